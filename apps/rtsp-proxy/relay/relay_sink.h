// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Who takes tracks from a relay: what an outlet reads, what a stage reads, a relay behind this one.
// All are told the same.

#include <gst/gst.h>

#include "rtp/rtcp.h"

typedef struct _Relay Relay;

typedef struct {
  guint track;
  GstBuffer *buffer; // with the numbers and the SSRC of the relay
  gint64 now;        // when it came, ns, monotonic
  gint64 time;       // of its media, ns of the relay's time
  guint64 base;      // the RTP timestamp of the instant `start` of whoever takes it
} RelayPacket;

// Called in any thread, with no lock held but where it says so.
typedef struct {
  // The tracks are known, or others than before, and what comes is after `start` of the relay's
  // time. NULL: for who takes the tracks as they are, and is done when they are others.
  void (*begun) (gpointer sink, Relay *relay, GPtrArray *caps, gint64 start);
  // Those of one track come one after the other. Takes the buffer. It may come still while the sink
  // is being removed.
  void (*push) (gpointer sink, const RelayPacket *packet);
  // What the track's latest sender report says, in outgoing timestamps. NULL: of no use.
  void (*mapped) (gpointer sink, guint track, const WeirNtpMap *map);
  // It gets nothing any more, and lets go of itself.
  void (*ended) (gpointer sink);
  // Does what is pushed go through? What a life begins with is held for it until then. NULL:
  // always, and nothing is held for it. With the relay's lock held.
  gboolean (*is_open) (gpointer sink);
} RelaySink;
