// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One who reads a mount now, as the API and the metrics tell of it. Counted; any thread. Nothing
// that a reader is served with waits for a question about it.

#include <gst/rtsp-server/rtsp-server.h>

#include "svc/rates.h"

typedef struct _Reader Reader;

#define READER_STATES 5
extern const gchar *const reader_state_names[READER_STATES + 1]; // from best to worst
#define READER_PRIORITIES 8

// The session media plays; `transport` is a constant.
Reader *reader_new (
    GstRTSPSessionMedia *media, const gchar *mount, const gchar *peer, const gchar *transport);
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

// ---- its track of video; see adaptation.h ----

// What who plays this begins with, before its media plays.
void reader_prepare_layers (GstRTSPSessionMedia *media, WeirLayerSet layers);

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

// A reference to the sink that serves it, or NULL.
GstElement *reader_dup_video_sink (Reader *self);

// The layers that a sink has seen, and their bitrates.
void reader_read_rates (GstElement *sink, WeirRates *rates);
