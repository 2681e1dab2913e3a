// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The UDP port of the SRT listener.

#include "config/listen_address.h"

// Opens the port, with the filter of srt_guard.h, and sets `listen->port` if it was 0. Returns the
// socket, or -1 with `error` set.
gint srt_port_open (ListenAddress *listen, GError **error);

// Returns how many datagrams the kernel has dropped: those that the filter refuses, and those for
// which there was no room.
guint32 srt_port_count_dropped (gint port);
