// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An element that outputs a track of a stored title, whose packets a worker process sends. It
// stands for the payloader in the worker, with those of its properties that gst-rtsp-server uses:
// pt, mtu, stats.

#include <gst/gst.h>

typedef struct _RemoteTrack RemoteTrack;

typedef struct {
  // A seek of a sink; called in any thread. `track` is the number of the track.
  gboolean (*seek) (gpointer owner, guint track, GstEvent *event);
  void (*set_mtu) (gpointer owner, guint track, guint mtu);
  // The track waits at the seek with this serial number, or has ended for good. Called in the
  // track's thread.
  void (*waits) (gpointer owner);
  void (*malformed) (gpointer owner, guint track);
} RemoteTrackHandler;

typedef struct {
  guint number, payload_type, mtu;
  guint together; // most packets in a buffer (weir_buffer_set_packets())
  gint socket;    // taken by the element
} RemoteTrackConfig;

// Returns the element (floating reference), with a pad "src". `owner` must outlive the state
// PAUSED.
GstElement *remote_track_new (
    const RemoteTrackConfig *config, const RemoteTrackHandler *handler, gpointer owner);

// Pushes a flush for the seek `serial`, as a demuxer does: it ends the push in progress.
void remote_track_flush (RemoteTrack *self, guint32 serial, guint32 seqnum);

// Reports whether the track waits at the seek `serial`, that is, all of its older packets are gone.
gboolean remote_track_waits (RemoteTrack *self, guint32 serial);

// Ends the flush, and lets the track go on from the seek `serial`.
void remote_track_resume (RemoteTrack *self, guint32 serial, guint32 seqnum);

// Reports whether the track has ended because its worker process did.
gboolean remote_track_is_cut_off (RemoteTrack *self);

// As title_file_get_lead().
GstClockTime remote_track_get_lead (RemoteTrack *self);
