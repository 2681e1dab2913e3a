// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a URL asks for, and a PLAY of it: parsed once for a request, whoever answers it. Whether
// there is such a thing is not known here.

#include <glib.h>

#include "svc/layerset.h"

typedef struct {
  gchar *url;     // as it was asked for: "/cam?size=640x360&delay=30/stream=0"
  gchar *path;    // "/cam"
  gchar *track;   // "/stream=0"; "" without one
  gchar *query;   // "size=640x360&delay=30"; NULL: there is none
  gchar *stages;  // of the query what may choose stages, "size=640x360&delay=30"; NULL: nothing
  gchar *choices; // the same without the delay, which only a mount with a cache takes
  // What is for the one reader who asks.
  WeirLayerSet layers;       // all, where it says nothing
  gint64 delay_ns;           // -1: none
  const gchar *wrong_layers; // what is wrong with them, or NULL
  const gchar *wrong_delay;
} Demand;

// Of a URL from its path on. Players put the track behind the query of a URL that has one and no
// Content-Base of its own. Any text makes one; to be freed with demand_free().
Demand *demand_new (const gchar *url);
void demand_free (Demand *self);

typedef enum {
  DEMAND_NOW,
  DEMAND_NPT,       // `at` in ns of the reader's own time
  DEMAND_CLOCK,     // `at` in us since the epoch
  DEMAND_NOWHERE,   // nothing that could be played
  DEMAND_UNREADABLE // no Range
} DemandStart;

// With what the header Range of a PLAY begins.
DemandStart demand_read_range (const gchar *header, gint64 *at);
