// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of Tracks share: tracks.c (streams, and the branches that payload them),
// tracks_packets.c (what comes of them).

#include <gst/app/gstappsink.h>

#include "sources/tracks.h"

typedef struct {
  Tracks *owner;
  GstElement *branch;     // of the pipeline; not owned
  GstElement *sink;       // in it
  const TracksKind *kind; // NULL: as the payloader has it
  gint made_pt;           // what the payloader writes
  // With the owner's lock:
  GstCaps *seen; // as they last came; NULL before
  GstCaps *caps; // what of them is said to readers
  gint index;    // in the relay, or -1
  gint pt;       // what goes out
  gboolean mapped;
} Track;

typedef struct {
  Track *track;
  GstBuffer *packet;
  GstClockTime time; // running time
  gint64 now;
} Packet;

struct _Tracks {
  const PullContext *context;
  GstElement *pipeline;
  TracksMode mode;
  GMutex lock;       // all below
  GPtrArray *tracks; // of Track
  gboolean complete;
  gboolean draining;   // one thread hands on what was held
  gboolean open;       // the relay knows these tracks, and nothing is held
  gboolean stale;      // they became others since the relay was told
  GQueue held;         // of Packet
  GstClockTime origin; // running time at which this description began
  gint64 start_unix;   // ns, at running time 0; 0 while not known
};

// ---- tracks_packets.c ----

void tracks_packet_free (gpointer packet);

// Of an appsink's new sample; `data` is the Track.
GstFlowReturn tracks_on_sample (GstAppSink *sink, gpointer data);

// ---- the same, with the lock held ----

// The tracks are others: what comes is held until the relay is told.
void tracks_close_description (Tracks *self);
void tracks_set_caps (Track *track, GstCaps *caps);
gboolean tracks_all_known (Tracks *self);

// Is it time to tell the relay? And tells it, and hands on what was held, without the lock.
gboolean tracks_is_time (Tracks *self, gint64 now);
void tracks_open_description (Tracks *self);
