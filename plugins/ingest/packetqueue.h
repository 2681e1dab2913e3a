// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bounded queue between an engine thread, which never waits, and the streaming thread of a
// relaysrc. A packet that finds the queue full is dropped and counted.

#include <gst/gst.h>

#include "core/ingest/packet.h"

G_BEGIN_DECLS

typedef struct {
  GstBuffer *buffer;
  gint64 arrival_ns; // of weir_now_ns()
} QueuedPacket;

typedef struct {
  GMutex lock; // guards all fields; never held while calling out
  GCond cond;
  QueuedPacket *items; // a ring
  guint capacity, head, n;
  gsize bytes, max_bytes;
  gboolean flushing;
  gboolean gap; // a packet was dropped since the last one was added
  guint64 run;  // of the last packet added
  guint64 n_taken, n_overflow, n_flushed;
} PacketQueue;

void packet_queue_init (PacketQueue *self);
void packet_queue_clear (PacketQueue *self);

// Starts empty, with all counts 0. `capacity` is in packets, at least 1.
void packet_queue_open (PacketQueue *self, guint capacity, gsize max_bytes);
// Drops the waiting packets, which count as flushed. Nothing may be added any more.
void packet_queue_close (PacketQueue *self);

// Copies a packet into a buffer at the end. The buffer has DISCONT behind a gap and in a new run,
// and MARKER as the packet.
void packet_queue_add (PacketQueue *self, const WeirIngestPacket *packet);
// Wakes the streaming thread, if packets wait.
void packet_queue_signal (PacketQueue *self);

// Waits for a packet and takes it; the caller owns its buffer. Returns FALSE while flushing.
gboolean packet_queue_take (PacketQueue *self, QueuedPacket *out);
// While flushing, packet_queue_take() returns at once.
void packet_queue_set_flushing (PacketQueue *self, gboolean flushing);

G_END_DECLS
