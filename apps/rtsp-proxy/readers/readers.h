// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One who reads a mount now, as the API and the metrics tell of it. Counted; any thread. Nothing
// that a reader is served with waits for a question about it.

#include <gst/gst.h>

#include "svc/rates.h"

typedef struct _Reader Reader;

#define READER_STATES 5
extern const gchar *const reader_state_names[READER_STATES + 1]; // from best to worst
#define READER_PRIORITIES 8

Reader *reader_ref (Reader *self);
void reader_unref (Reader *self);

guint64 reader_get_id (const Reader *self); // no other reader of this process has it
const gchar *reader_get_mount (const Reader *self);
const gchar *reader_get_peer (const Reader *self);
const gchar *reader_get_transport (const Reader *self);
gint64 reader_get_since (const Reader *self); // us since the epoch

// Of the track of video that has layers, or may.
typedef struct {
  gboolean has_layers; // there is one
  WeirLayerSet wanted, now;
} ReaderLayers;

typedef struct {
  guint state; // index in reader_state_names, of the track that is worst off
  guint priority;
  gboolean catching_up, paused;
  guint64 lag_ns;
  guint64 delay_ns; // of its place behind the live edge
  // All tracks together.
  guint64 packets, bytes, due, dropped;
  ReaderLayers layers;
  // What it reported itself.
  guint64 reports;
  guint64 lost;
  gdouble fraction_lost; // of the track that lost most
} ReaderSample;

void reader_sample (Reader *self, ReaderSample *sample);

// It is about to be paused, and its sinks to forget it; `keeps_place`: they are to go on with it
// where it was.
void reader_pause (Reader *self, gboolean keeps_place);
void reader_resume (Reader *self);

// Only what it reported itself.
void reader_sample_reports (Reader *self, ReaderSample *sample);

// FALSE: it has left.
gboolean reader_set_priority (Reader *self, guint priority);

// Closes its connection, or what else it comes by. `reason` is logged.
void reader_close (Reader *self, const gchar *reason);

// ---- its track of video; see adaptation.h ----

// FALSE: it has left, or has no video.
gboolean reader_set_layers (Reader *self, WeirLayerSet layers);

gboolean reader_is_tcp (const Reader *self);

// How often it has reported. Costs less than a sample.
guint64 reader_count_reports (Reader *self);

typedef struct {
  gboolean catching_up;
  gboolean thinned; // it lagged so much that packets are left out for it
  guint64 lag_ns, packets, bytes;
  guint64 reports;
  gint lost;
  guint highest; // sequence number
} ReaderVideo;

// FALSE: it has left, or has no video.
gboolean reader_sample_video (Reader *self, ReaderVideo *sample);

// A reference to the element that serves it, and others, or NULL.
GstElement *reader_dup_video_sink (Reader *self);

// The layers that this has seen, and their bitrates.
void reader_read_rates (Reader *self, WeirRates *rates);

// ---- what serves it ----

// What an outlet does for one of its readers: see the functions of these names. Any thread. Samples
// come empty.
typedef struct {
  void (*sample) (gpointer served, ReaderSample *sample);
  void (*sample_reports) (gpointer served, ReaderSample *sample);
  gboolean (*set_priority) (gpointer served, guint priority);
  gboolean (*set_layers) (gpointer served, WeirLayerSet layers);
  gboolean (*sample_video) (gpointer served, ReaderVideo *sample);
  guint64 (*count_reports) (gpointer served);
  GstElement *(*dup_video_sink) (gpointer served);
  void (*read_rates) (gpointer served, WeirRates *rates);
  void (*close) (gpointer served, const gchar *reason);
  void (*free) (gpointer served);
} ReaderOps;

// It begins to play. `served` is taken; `transport` is a constant.
Reader *reader_new (const ReaderOps *ops, gpointer served, const gchar *mount, const gchar *peer,
    const gchar *transport);

// ---- all that play, of whatever outlet ----

void readers_add (Reader *reader);
void readers_remove (Reader *reader);

// References to them, by id; to be freed with g_ptr_array_unref().
GPtrArray *readers_dup_all (void);
