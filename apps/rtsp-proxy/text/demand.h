// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The demand of a client: the URL of a request and the Range of a PLAY, parsed. All outlets use it.
// Parsing does not depend on the mounts.

#include <glib.h>

#include "svc/layerset.h"

typedef struct {
  gchar *url; // as requested, without the token and the mark: "/cam?size=640x360&delay=30/stream=0"
  gchar *path;    // "/cam"
  gchar *track;   // "/stream=0", or "" without a track
  gchar *query;   // "size=640x360&delay=30", or NULL
  gchar *stages;  // the query without layers and feedback, or NULL if nothing is left
  gchar *choices; // `stages` without delay, which only a mount with a cache takes; may be NULL
  gboolean moved; // the URL had "moved", which is in no other field: see readers/elsewhere.h
  // A secret. It is in no other field, so that those can be logged and shared between clients.
  gchar *token; // of "?token=", decoded; NULL: none, an empty one, several, or not UTF-8
  // These concern this reader only:
  WeirLayerSet layers;       // all layers if the query names none
  gboolean feedback;         // "feedback=transport-cc": it gives feedback on each packet
  gint64 delay_ns;           // behind the live edge, up to a day; -1: no delay
  const gchar *wrong_layers; // the error in `layers`, or NULL
  const gchar *wrong_delay;  // the error in `delay`, or NULL
} Demand;

// Parses a URL from its path on. Some players append the track to the query, so the track is looked
// for there too. Accepts any text. The caller frees the result with demand_free().
Demand *demand_new (const gchar *url);
void demand_free (Demand *self);

// Takes `layers` out of a query, which may be NULL. Sets `*layers` to their set, or to all layers,
// and `*rest` to the rest of the query, or NULL (transfer full). Returns NULL, or what is wrong
// with the layers.
const gchar *demand_cut_layers (const gchar *query, WeirLayerSet *layers, gchar **rest);

typedef enum {
  DEMAND_NOW,       // at the live edge
  DEMAND_NPT,       // at `at`, in ns of the reader's own time
  DEMAND_CLOCK,     // at `at`, in us since the Unix epoch
  DEMAND_NOWHERE,   // the header is a Range, but names no time that can be played
  DEMAND_UNREADABLE // the header is not a Range
} DemandStart;

// Returns where the header Range of a PLAY begins. Sets `*at` for DEMAND_NPT and DEMAND_CLOCK.
DemandStart demand_read_range (const gchar *header, gint64 *at);
