// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a mount has recorded: its segments by time. Reference-counted. Call from any thread.

#include "outlets/recording/recording_file.h"

typedef struct _RecordingList RecordingList;

RecordingList *recording_list_new (void);
RecordingList *recording_list_ref (RecordingList *self);
void recording_list_unref (RecordingList *self);

// Adds a segment, or replaces the one with the same start.
void recording_list_put (RecordingList *self, const RecordingFacts *facts);
void recording_list_remove (RecordingList *self, gint64 start_us);

// Reports whether there is a segment with this start, and then sets `facts`, which may be NULL.
gboolean recording_list_find (RecordingList *self, gint64 start_us, RecordingFacts *facts);

// Returns the segments (of RecordingFacts) that have something between `from_us` and `to_us`, at
// most `max`. If one begins at `from_us`, it is the first. (transfer full)
GArray *recording_list_dup (RecordingList *self, gint64 from_us, gint64 to_us, guint max);

// Returns the number of segments, and their bytes.
guint recording_list_count (RecordingList *self, guint64 *bytes);
