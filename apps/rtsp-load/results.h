// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The results of a run over all measured readers. Times are in ns.

#include <glib.h>

#include "run/histogram.h"

// One point of the time line.
typedef struct {
  gdouble at; // seconds from the start
  guint playing;
  guint64 packets, bytes, lost; // since the start
} Sample;

typedef struct {
  guint connected;     // readers whose PLAY was answered with 200
  guint playing;       // readers that play now
  GHashTable *refused; // RTSP status, as text -> number of readers
  GHashTable *errors;  // kind -> number of readers
  guint64 packets, bytes, lost, reordered, duplicates, stalls;
  guint64 invalid;      // packets that are not RTP
  guint64 early;        // packets that arrived before the answer to PLAY
  guint64 socket_drops; // datagrams that this machine's socket buffers had no room for
  guint64 unmatched;    // packets that the origin did not send
  gint probe_lo, probe_hi;
  gint64 start_ns, end_ns;
  gint64 last_play_ns;
  WeirHistogram describe, setup, play, first_packet, first_frame, frame_gap, added_delay;
  WeirHistogram playout_delay, jitter, av_skew;
  GArray *samples; // Sample
} Results;

void results_init (Results *self);
void results_clear (Results *self);

// Count a refusal or an error. The first of each kind is printed on stderr as `text`.
void results_refused (Results *self, guint status, const gchar *text);
void results_error (Results *self, const gchar *kind, const gchar *text);

// Returns whether there was any refusal or error.
gboolean results_failed (const Results *self);
