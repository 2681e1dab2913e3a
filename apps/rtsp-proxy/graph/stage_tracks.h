// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The tracks of one run of a stage, in whatever process its pipeline runs: what it takes from its
// input, and how its packets get into the relay that it feeds.

#include "base/log.h"
#include "sources/pull.h"
#include "stages/stage.h"

// The input of a stage.
typedef struct {
  Relay *relay; // has the tracks
  Relay *clock; // has the sender reports that give the tracks' NTP time
  // The functions are called on the main thread. `publish` publishes a track as a window and
  // returns the window's name, an intervalcache channel (transfer full). `unpublish` ends that.
  gchar *(*publish) (gpointer data, guint track);
  void (*unpublish) (gpointer data, guint track);
  gpointer data; // valid until `release`
  void (*release) (gpointer data);
  // The nodes whose raw frames a stage with several inputs takes: each in the window of its first
  // track of the stage's media. 0: there is none.
  guint sides[STAGE_INPUTS_MAX];
} StageInput;

typedef struct _StageTracks StageTracks;

// Returns the name of the window of a track of node `id`, such as "stage7.video0": by the track's
// number among those of its media, which stays if the other media come or go. (transfer full)
gchar *stage_tracks_dup_channel (guint id, Relay *relay, guint track);

// Reports whether a track of a relay stands for raw frames, which are in a window.
gboolean stage_tracks_is_raw (Relay *relay, guint track);

typedef struct {
  StageTracks *tracks;
  guint track;
  guint rate;    // Hz
  guint32 base;  // RTP timestamp at the run's start
  GstCaps *in;   // of the input; NULL if the stage does not process the track
  GstCaps *caps; // of the output; NULL until known
  GQueue held;   // of GstBuffer
  gint64 mapped; // time of the last map_ntp() that gave the relay an NTP time, ns
} StageTrack;

struct _StageTracks {
  const PullContext *context;
  Stage *stage;
  guint id;
  StageInput input; // call its functions on the main thread only
  Relay *from;
  Relay *clock;      // the nearest relay with sender reports; it has the same time as `from`
  gint64 start;      // in the input's time, ns
  gboolean payloads; // the stage has a payloader
  guint n_tracks;
  guint32 processed; // mask of the tracks that the stage processes
  guint32 published; // mask of those that `input` publishes
  StageTrack each[RELAY_MAX_TRACKS];
  LogLimit misses;

  GMutex lock; // protects the fields below, and `caps` and `held` of the tracks
  gboolean beginning, begun;
};

// Makes the tracks of a run. The relay of `context` is fed. `input` is released with the tracks.
// Call from the main thread only.
StageTracks *stage_tracks_new (
    const StageInput *input, Stage *stage, guint id, const PullContext *context);
void stage_tracks_free (gpointer self); // from any thread

// Reports whether the stage processes the track.
static inline gboolean
stage_tracks_has (const StageTracks *self, guint track)
{
  return track < self->n_tracks && self->processed & 1u << track;
}

// Publishes the input, and returns the launch text of the stage's pipeline, whose last element for
// track N is "outN": an appsink, or an intervalcache of raw frames. `reader` is NULL if the
// pipeline runs in this process. Else packets come from an appsrc "inN", and `reader` gets the
// launch text of a pipeline that reads them here, with an appsink "inN". Returns NULL and sets
// `error` if the stage cannot process the tracks. The caller owns the text.
gchar *stage_tracks_publish (StageTracks *self, GString *reader, GError **error);

// Links the other tracks to the relay, and begins a run that gives raw frames. Call when nothing
// can fail any more.
void stage_tracks_link (StageTracks *self);

// Sets the caps of the output, once. Call before its first packet.
void stage_tracks_set_caps (StageTrack *track, GstCaps *caps);

// Sends a packet of the output, or holds it until all tracks are known: all tracks begin together.
// `more` is as in RelayPacket. Takes ownership of `packet`. Call from one thread for each track.
void stage_tracks_push (StageTrack *track, GstBuffer *packet, gboolean more);

// Counts and logs the packets or frames that left the window before the stage took them, if that is
// what an element of its pipeline says. From any thread.
void stage_tracks_count_miss (StageTracks *self, GstMessage *message);

// Says that raw frames flow out of the stage.
void stage_tracks_flow (StageTracks *self);
