// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The input and output of a reader: its connection, with messages and interleaved media, and its
// UDP sockets.

#include "reader.h"

// Starts connecting. Returns 0 or a negative errno.
int reader_io_connect (Reader *self);
// Sends as much of the reader's output as the socket takes.
void reader_io_flush (Reader *self);
// Adds a socket to the event loop, or removes it.
void reader_io_watch (Reader *self, Source *source, guint32 events);
void reader_io_unwatch (Reader *self, Source *source);
void reader_io_close (Reader *self, Source *source);
// Returns a new array for Load.unjudged. The caller owns it.
GArray *reader_io_unjudged (void);

// Called by the event loop when a datagram socket is readable.
void reader_io_on_datagram (Source *source);
// Reads all datagrams that the UDP sockets still hold.
void reader_io_drain (Reader *self);
// Sends an RTCP packet of a track, over UDP or interleaved.
void reader_io_send_rtcp (Reader *self, Track *track, const guint8 *data, gsize len);
