// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bytes of a reader: its connection, with messages and interleaved media, and its UDP sockets.

#include "reader.h"

int reader_io_connect (Reader *self);
void reader_io_flush (Reader *self);
// Lets the loop hear of a socket, or no more.
void reader_io_watch (Reader *self, Source *source, guint32 events);
void reader_io_unwatch (Reader *self, Source *source);
void reader_io_close (Reader *self, Source *source);
// A datagram socket has something.
// For Load.unjudged.
GArray *reader_io_unjudged (void);

void reader_io_on_datagram (Source *source);
// Takes in all that the UDP sockets still hold.
void reader_io_drain (Reader *self);
// Sends RTCP of a track.
void reader_io_send_rtcp (Reader *self, Track *track, const guint8 *data, gsize len);
