// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of packets from a mount's upstream, for the API, the metrics and the log.

#include <json-glib/json-glib.h>

#include "relay/relay.h"

typedef struct {
  const gchar *name;   // of the API: "lost"
  const gchar *group;  // the object of the API that has it; NULL: `ingest` itself
  const gchar *metric; // "ingest_lost_packets_total"; rows of one metric are neighbours
  const gchar *label;  // of the metric, whose value is `name`; NULL: none
  const gchar *help;   // of the metric
  const gchar *logged; // the words behind the number in the log; NULL: it is not logged
  gsize offset;        // of the number in RelayStats
} IngestFigure;

extern const IngestFigure ingest_figures[]; // a row without a name ends it

guint64 ingest_figures_get (const IngestFigure *figure, const RelayStats *stats);

// Writes the members of `ingest`.
void ingest_figures_write (JsonBuilder *builder, const RelayStats *stats);

// Returns the words of the log for what has happened since `last`, or NULL if nothing has.
// (transfer full)
gchar *ingest_figures_describe (const RelayStats *stats, const RelayStats *last);
