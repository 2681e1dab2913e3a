// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The kernel path: readers get clones that a BPF program makes at the network device, instead of
// sends (docs/kernel.md). It is loaded once for the process, on first use, and stays until the
// process ends.

#include <gio/gio.h>

#include "core/net/address.h"
#include "core/net/clones.h"

G_BEGIN_DECLS

// Loads the kernel path if it is not loaded yet. Returns FALSE and an error that gives the reason
// if it cannot be used; without `force`, also G_IO_ERROR_BUSY while clones would go round rules of
// the system for packets that leave.
gboolean weir_kernel_use (gboolean force, GError **error);

// Returns a route for clones from the UDP socket `fd` to an address, with its operations in
// `cloner`; NULL if there can be none. Only after weir_kernel_use() has returned TRUE with `force`.
// Without `force`, clones take the route only over devices that segment UDP, and while there are no
// such rules. The caller owns the result.
WeirCloneRoute *weir_kernel_route_new (
    int fd, const WeirAddress *address, gboolean force, const WeirCloner **cloner);

G_END_DECLS
