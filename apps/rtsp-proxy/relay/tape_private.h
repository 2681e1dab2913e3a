// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What tape_player.c needs of tape.c.

#include <gst/base/gstqueuearray.h>

#include "base/loop.h"
#include "relay/tape.h"

// A packet. Its position is a number that grows by 1 from the first packet, whose number is 0.
typedef struct {
  GstBuffer *buffer;
  guint track;
  gint64 now;  // arrival, ns, monotonic
  gint64 time; // ns since the beginning of the tape
} TapeItem;

typedef struct {
  guint32 rate; // ticks per second
  guint64 base; // RTP timestamp of the time 0; RELAY_NO_BASE before the first packet
  WeirNtpMap ntp;
} TapeTrack;

// Copies up to `max` packets from `*position` on, that have arrived by `until`, with references,
// and moves the position behind them; to the oldest packet first if those before are gone. Sets
// `next` to the arrival of the packet behind them: G_MAXINT64 if none has come yet, -1 if none
// comes any more. If none has come, the player is woken by loop_set_due() when one comes.
guint tape_read (Tape *self, LoopWatch *player, gint64 *position, gint64 until, TapeItem *items,
    guint max, gint64 *next);

// Copies the packet at the position, without a reference. Returns FALSE if it is gone or has not
// come.
gboolean tape_peek (Tape *self, gint64 position, TapeItem *item);

// Reports whether a packet at or after the position is still there or will come, and none is lost.
gboolean tape_holds (Tape *self, gint64 position);

// Ends the waiting of a player.
void tape_forget (Tape *self, LoopWatch *player);

TapeTrack tape_get_track (Tape *self, guint track);
