// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of the recordings of mounts, for the metrics and for the API.

#include "control/figures.h"
#include "mounts/mount.h"

typedef struct {
  guint64 up, segments, bytes; // 1 if all is well; that are there now
  guint64 written_segments, written_parts, written_bytes, deleted_segments, trimmed_bytes;
  guint64 dropped_parts, dropped_bytes, queued_bytes, failures;
  guint64 hooks, failed_hooks, dropped_hooks;
} RecordingSample;

extern const Figure recording_figures[]; // of a RecordingSample

// Gets the figures of a mount. Returns FALSE if it is not recorded.
gboolean recording_figures_sample (Mount *mount, gpointer sample);

// Writes the member `recording` of a mount that is recorded.
void recording_figures_write (JsonBuilder *builder, Mount *mount);
