// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses what a reader gets by the estimate of its line (core/net/steps.h), if its feedback allows
// one. Call from the main thread only.

#include "net/steps.h"
#include "readers/readers.h"
#include "readers/renditions.h"

typedef struct {
  gboolean known;     // the reader has given feedback
  gboolean can_probe; // as far as is known
  gint64 since;       // when it began, clock_now()
  WeirEstimateView line;
  WeirSteps steps;
  Renditions *renditions; // between which the reader may change; NULL: none
} LineChoice;

// What has been decided for all readers so far.
typedef struct {
  guint64 down, up; // changes of what a reader gets
  guint64 probes;
  guint64 failed; // probes, and rises on trial, that showed no room
} LineChoiceCounts;

// Begins with the layers `limit`, anew if that has changed. `seed` should differ from reader to
// reader.
void line_choice_begin (
    LineChoice *self, Reader *reader, WeirLayerSet limit, guint32 seed, gint64 now);

// Reads the estimate of the reader's line. Returns FALSE if it gives none.
gboolean line_choice_read (LineChoice *self, Reader *reader, gint64 now);

// Reports whether there is something to decide: the reader could get more or less.
gboolean line_choice_is_open (const LineChoice *self, WeirLayerSet limit);

// Decides, with the rates of the layers, and sets what the reader gets: layers, or a rendition.
// `others`: another reader behind the same line is probed.
void line_choice_decide (LineChoice *self, Reader *reader, WeirLayerSet limit,
    const WeirRates *rates, gboolean others, gint64 now);

gboolean line_choice_is_probing (const LineChoice *self);

// Returns words for the API; the query of the rendition that the reader has, or NULL.
const gchar *line_choice_get_state (const LineChoice *self);
const gchar *line_choice_get_step (const LineChoice *self);
const gchar *line_choice_get_reason (const LineChoice *self);
const gchar *line_choice_get_rendition (const LineChoice *self);

void line_choice_count (LineChoiceCounts *counts);
