// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a run found, over all measured readers. Times are in ns.

#include <glib.h>

#include "run/histogram.h"

// One point of the time line.
typedef struct {
  gdouble at; // seconds from the start
  guint playing;
  guint64 packets, bytes, lost; // so far
} Sample;

typedef struct {
  guint connected;     // got an answer 200 to PLAY
  guint playing;       // now
  GHashTable *refused; // status, as text -> how many
  GHashTable *errors;  // kind -> how many
  guint64 packets, bytes, lost, reordered, duplicates, stalls;
  guint64 invalid;      // what came and is no RTP
  guint64 early;        // what came before PLAY was answered
  guint64 socket_drops; // what this machine's socket buffers had no room for
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

// The first of each kind is told on stderr, in the words of `text`.
void results_refused (Results *self, guint status, const gchar *text);
void results_error (Results *self, const gchar *kind, const gchar *text);

gboolean results_failed (const Results *self);
