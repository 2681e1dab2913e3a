// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of Tracks: tracks.c (streams, and the branches that payload them) and
// tracks_packets.c (their packets).

#include <gst/app/gstappsink.h>

#include "relay/relay_caps.h"
#include "sources/tracks.h"

typedef struct {
  Tracks *owner;
  GstElement *branch;     // in the pipeline; not owned
  GstElement *sink;       // in the branch; not owned
  GstElement *queue;      // likewise; NULL: the mode is TRACKS_ARRIVAL
  const TracksKind *kind; // NULL: the payloader was given
  gint made_pt;           // the payload type that the payloader writes
  gchar *stream;          // the demuxer's name of the stream; or NULL
  guint number;           // of the stream, from 0
  gint heard;             // atomic: something has come
  // Under the owner's lock:
  GstCaps *seen;                  // the last caps from the payloader, or NULL
  GstCaps *caps;                  // the caps for the relay
  gint index;                     // in the relay, or -1
  gint pt;                        // the payload type that is sent
  gchar language[RELAY_LANGUAGE]; // "": not known
  gboolean mapped;
  gboolean left; // it is left out, and its branch goes when its pad is idle
} Track;

typedef struct {
  Track *track;
  GstBuffer *packet;
  GstClockTime time; // running time
  gint64 now;
  gboolean more; // the rest of its list follows
} Packet;

struct _Tracks {
  const PullContext *context;
  GstElement *pipeline;
  TracksMode mode;
  const gchar *what; // it reads: "file"
  GMutex lock;       // of all below
  GPtrArray *tracks; // of Track
  gboolean complete;
  gboolean ended;      // the owner knows that there is no track
  guint n_streams;     // that were added
  GString *left_out;   // the streams that are no tracks
  gboolean draining;   // a thread sends the held packets
  gboolean open;       // the relay has these tracks, and no packet is held
  gboolean stale;      // the tracks changed since the relay got them
  GQueue held;         // of Packet
  GstClockTime origin; // running time at which this description began
  gint64 start_unix;   // Unix time at running time 0, ns; 0 while not known
};

// ---- tracks_packets.c ----

void tracks_packet_free (gpointer packet);

// Handles a new sample of an appsink; `data` is the Track.
GstFlowReturn tracks_on_sample (GstAppSink *sink, gpointer data);

// ---- the same; call with the lock held ----

// Marks the tracks as changed: packets are held until the relay has the new tracks.
void tracks_close_description (Tracks *self);
void tracks_set_caps (Track *track, GstCaps *caps);
gboolean tracks_all_known (Tracks *self);

// tracks_is_time() reports whether the tracks can be passed to the relay at `now`.
// tracks_open_description() passes them, and sends the held packets; it releases the lock and takes
// it again.
gboolean tracks_is_time (Tracks *self, gint64 now);
void tracks_open_description (Tracks *self);
