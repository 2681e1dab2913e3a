// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A source of the bytes behind a socket of stores/bytes_socket.h.

#include <gst/gst.h>

// Returns the element (floating reference). The caller keeps `socket` open as long as the element
// exists.
GstElement *title_source_new (int socket);

// The type of the title is known, and its demuxer reads from now on. Until then, the source gives
// the beginning of the title only, and only a failure to read its first bytes is an error. Does
// nothing for another kind of element.
void title_source_note_type (GstElement *element);
