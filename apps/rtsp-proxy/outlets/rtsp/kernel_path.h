// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The kernel path of fanoutsink, for all readers over UDP.

#include <glib.h>

typedef enum { KERNEL_PATH_OFF, KERNEL_PATH_AUTO, KERNEL_PATH_ON } KernelPath;

// Loads the kernel path, before other threads start: afterwards, unless the process runs as root,
// no thread has the capabilities that this needs, except the one that attaches the program to
// devices. With `auto`, logs why it cannot be used.
// With `on`, returns FALSE and an error in that case.
gboolean kernel_path_load (KernelPath wanted, GError **error);

// Returns the value of the property `kernel` for sinks, such as "auto".
const gchar *kernel_path_get (void);
