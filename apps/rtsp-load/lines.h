// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A result of plain numbers.

#include <glib.h>

#include "run/histogram.h"

typedef struct {
  const gchar *name, *key; // in the table, and in the JSON object
  gdouble value;
} Line;

// Values of lines: a percentile of times in ns, in ms, and the processor time of this program in s.
gdouble lines_percentile (const WeirHistogram *times, gdouble which);
gdouble lines_cpu_seconds (void);

void lines_print (const Line *lines, guint n, gboolean json);
