// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of the recordings of mounts, for the metrics and for the API.

#include <json-glib/json-glib.h>

#include "mounts/mount.h"

typedef struct {
  guint64 up, segments, bytes; // 1 if all is well; that are there now
  guint64 written_segments, written_parts, written_bytes, deleted_segments, trimmed_bytes;
  guint64 dropped_parts, dropped_bytes, queued_bytes, failures;
  guint64 hooks, failed_hooks, dropped_hooks;
} RecordingSample;

typedef struct {
  const gchar *name;   // of the API: "written-parts"
  const gchar *metric; // "recording_written_parts_total"
  const gchar *type, *help;
  gsize offset; // of the number in a RecordingSample
} RecordingFigure;

extern const RecordingFigure recording_figures[]; // a row without a name ends it

// Gets the figures of a mount. Returns FALSE if it is not recorded.
gboolean recording_figures_sample (Mount *mount, RecordingSample *sample);

guint64 recording_figures_get (const RecordingFigure *figure, const RecordingSample *sample);

// Writes the member `recording` of a mount that is recorded.
void recording_figures_write (JsonBuilder *builder, Mount *mount);
