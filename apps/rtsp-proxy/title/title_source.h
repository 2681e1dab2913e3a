// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A source of the bytes behind a socket of stores/bytes_socket.h.

#include <gst/gst.h>

// Returns the element (floating reference). The caller keeps `socket` open as long as the element
// exists.
GstElement *title_source_new (int socket);
