// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Returns the IPv4 address of this machine from which packets to `group` leave, by the interface
// `iface`, or by the system's route if it is NULL. Returns NULL if there is none. (transfer full)
gchar *source_address_dup (const gchar *group, const gchar *iface);
