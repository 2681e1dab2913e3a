// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The member of a cluster to which new readers are sent while this one drains. Call from any
// thread.

#include <glib.h>

// `address`: an IP address or a host name; a port of 0: it does not serve this. NULL: readers stay
// here.
void elsewhere_set (const gchar *address, guint16 rtsp, guint16 rtsps);

// Returns the URL there of `rest`, a path with its query: over RTSP, or with `tls` over RTSPS.
// (transfer full) Returns NULL if readers stay here.
gchar *elsewhere_dup_url (gboolean tls, const gchar *rest);
