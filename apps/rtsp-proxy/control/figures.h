// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tables of figures of a mount, for the metrics and for the API.

#include <json-glib/json-glib.h>

typedef struct {
  const gchar *name;        // of the API: "sent-packets"; NULL ends a table
  const gchar *metric;      // "broadcast_sent_packets_total"; NULL: there is none
  const gchar *type, *help; // of the metric
  gsize offset;             // of the number, a guint64, in the sample that the table is for
} Figure;

guint64 figure_get (const Figure *figure, gconstpointer sample);

// Adds all figures to the JSON object that `builder` is building.
void figures_write (const Figure *figures, gconstpointer sample, JsonBuilder *builder);
