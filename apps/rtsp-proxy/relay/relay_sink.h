// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A sink that takes tracks from a relay: an outlet, a stage, or a second relay. Every sink gets the
// same callbacks.

#include <gst/gst.h>

#include "ingest/counts.h"

typedef struct _Relay Relay;

// What may happen to a packet before a relay gets it.
typedef enum {
  RELAY_OVERFLOW, // dropped by the system, as a receive buffer was full
  RELAY_SKIPPED,  // not a packet: stray bytes between packets of a connection
  RELAY_SPLIT,    // longer than usual lines carry, and split
  RELAY_LONG,     // longer than usual lines carry, and not split
  RELAY_REPAIRED, // RELAY_REPAIRED + WeirIngestRepair: put right
  RELAY_REFUSED = RELAY_REPAIRED + WEIR_INGEST_N_REPAIRS, // + WeirIngestDrop: dropped
  RELAY_N_COUNTS = RELAY_REFUSED + WEIR_INGEST_N_DROPS
} RelayCount;

typedef struct {
  guint track;
  GstBuffer *buffer; // with the relay's sequence number, timestamp and SSRC
  gint64 now;        // arrival time, ns, monotonic
  gint64 time;       // media time, ns of the relay's time
  guint64 base;      // RTP timestamp of the instant `start` of the sink
  gboolean more;     // more packets of the track follow at once, so the sink may wait for them
} RelayPacket;

// Where a run of a stored title plays, in ns of the title's own time.
typedef struct {
  gint64 start, end; // of the title
  gint64 from;       // the instant of the run's bases; negative: not known yet
} TitlePlace;

// The relay calls these functions from any thread. It holds its lock only during is_open().
typedef struct {
  // The tracks became known, or they changed. The packets that follow are later than `start`, in ns
  // of the relay's time. NULL if the sink cannot handle a change of tracks; it is removed when they
  // change.
  void (*begun) (gpointer sink, Relay *relay, GPtrArray *caps, gint64 start);
  // Passes a packet; the packets of one track come in order. Takes ownership of the buffer. The
  // call may still come while the sink is being removed.
  void (*push) (gpointer sink, const RelayPacket *packet);
  // Passes the mapping of the track's latest sender report, in outgoing timestamps. May be NULL.
  void (*mapped) (gpointer sink, guint track, const WeirNtpMap *map);
  // The sink was removed: no further packets come. Releases `sink`.
  void (*ended) (gpointer sink);
  // Reports whether the sink accepts packets. Until then the relay holds the first packets of a run
  // for it. NULL if the sink always accepts packets; the relay then holds nothing for it. Called
  // with the relay's lock held.
  gboolean (*is_open) (gpointer sink);
  // With is_open(): when it opens, it gets the first packets of a run even if other sinks have
  // opened before. The relay keeps them for it only if relay_await_sink() has announced it.
  gboolean from_start;
  // The sink gets the packets since the newest join point first, in relay_add_sink() or soon after,
  // if the relay keeps them (relay_keep_group()). Their `now` is when they arrived.
  gboolean from_join;
  // Says what happened to `n` packets before the relay got them. May be NULL.
  void (*counted) (gpointer sink, RelayCount what, guint64 n);
  // The source plays a stored title that it can seek. May be NULL.
  void (*placed) (gpointer sink, const TitlePlace *place);
} RelaySink;
