// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Pieces of titles for the clients of a swarm. A piece is complete or of no use, so it is sent as
// fast as the line and the reader take it, not at the title's rate. The bounds: a piece is a range
// of at most HTTP_PIECE_MAX bytes, an address gets HTTP_PIECES_AT_ONCE at a time, and all pieces
// share what limits.line-rate leaves beside the streams of block stores. Call from any thread.

#include <gio/gio.h>

// A request that has it with the value "off" asks for its range at the line's speed.
#define HTTP_PIECES_HEADER "Weir-Pace"
#define HTTP_PIECE_MAX (16u << 20) // bytes; the longest piece of a torrent of weir-store
#define HTTP_PIECES_AT_ONCE 32     // of an address

// Counts a piece for `address`. Returns FALSE if it gets too many already: this one is paced.
// Addresses are told apart as by connections_enter().
gboolean http_pieces_enter (GInetAddress *address);
void http_pieces_leave (GInetAddress *address);

// Returns when `bytes` bytes of a piece may leave, and keeps the line for them. However busy the
// line is, pieces have `least_rate` bits a second: that of the title.
gint64 http_pieces_take_line (gsize bytes, guint64 least_rate, gint64 now_ns);
