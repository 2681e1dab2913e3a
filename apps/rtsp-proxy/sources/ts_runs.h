// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Knows where packets of a transport stream can begin. A demultiplexer takes a sync byte for the
// beginning of a packet only in a run: others follow it, or came before it, one packet apart each.
// tsdemux wants three, and four before it knows the size of the packets.

#include <glib.h>

#define TS_RUNS_TAIL 1024

// Zeroed at first. All fields are private.
typedef struct {
  guint8 tail[TS_RUNS_TAIL]; // the bytes before the next data
  gsize n_tail;
  guint strides; // bits of the packet sizes of which there was a run of four
} TsRuns;

// Call where the stream goes on at another place: what came before no longer counts.
void ts_runs_jump (TsRuns *self);

// Call with each piece of the stream before the next function, and with what it was changed to
// behind it.
void ts_runs_begin (TsRuns *self, const guint8 *data, gsize size);
void ts_runs_end (TsRuns *self, const guint8 *data, gsize size);

// Returns FALSE if no packet begins with the byte at `at`, whatever the next piece is.
gboolean ts_runs_may_begin (const TsRuns *self, const guint8 *data, gsize size, gsize at);
