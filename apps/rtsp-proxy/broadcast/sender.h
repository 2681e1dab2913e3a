// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends the frames of many titles on many groups, each frame at its time, on one thread. The owner
// says which frames are due and when the next ones will be; the sender reads their blocks ahead and
// opens the channels. It never waits for a disk: frames whose block or channel is not there yet
// wait, up to one second. Then they are left out.
//
// Groups have numbers, of which only one file is sent at a time.

#include "broadcast/block_cache.h"
#include "broadcast/channel.h"

typedef struct _Sender Sender;
typedef struct _SenderRound SenderRound;

typedef struct {
  // Calls sender_add() for all frames whose time is in the round from `from_ns` up to `to_ns`.
  // Returns the first time, at or after `to_ns`, at which a frame is due or it is to be called
  // again. `ahead`: the frames are not due yet, and the returned time is not used. Times are of
  // clock_now().
  gint64 (*due) (gpointer owner, gint64 from_ns, gint64 to_ns, gboolean ahead, SenderRound *round);
  // Fills in the address of a group. The sender's threads call both functions.
  void (*address) (gpointer owner, guint group, MulticastAddress *address);
} SenderOwner;

typedef struct {
  guint64 packets, bytes;
  guint64 frames, frames_late;
  guint64 frames_missed;
  guint channels; // now
} SenderStats;

// Starts the thread.
Sender *sender_new (BlockCache *cache, const SenderOwner *functions, gpointer owner);

// Ends the thread and all channels. Afterwards no function of the owner is called.
void sender_free (Sender *self);

// Adds frames `from` to `to` - 1 of `file` to a round; the first is due at `at_ns`.
void sender_add (
    SenderRound *round, guint group, PacketFile *file, guint32 from, guint32 to, gint64 at_ns);

// Makes the sender ask again what is due, after frames were added. Call from any thread.
void sender_wake (Sender *self);

void sender_get_stats (Sender *self, SenderStats *stats);
