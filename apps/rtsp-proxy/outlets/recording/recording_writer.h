// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes the parts of a cutter into files, on the threads of its folder (recording_threads.h): the
// cutter only queues them, and drops them, counted, when too many wait. After a failure it tries
// again, after a time that grows (backoff.h). Reference-counted. Call from any thread.

#include "frames/segment_output.h"
#include "outlets/recording/recording_folder.h"

typedef struct _RecordingWriter RecordingWriter;

typedef struct {
  RecordingFolderCounts written;
  guint64 dropped, dropped_bytes; // parts, and their bytes
  guint64 failures;               // to open or to write
  guint64 queued_bytes;
  gboolean failing;
} RecordingCounts;

// Starts. Takes over the contents of `settings`. `complete` is called on one of the
// folder's threads.
RecordingWriter *recording_writer_new (const gchar *mount, const RecordingSettings *settings,
    RecordingCompleteFunc complete, gpointer data, GDestroyNotify free_data);

// Looks after the folder when it is time. Call several times a second.
void recording_writer_tick (RecordingWriter *self);

RecordingWriter *recording_writer_ref (RecordingWriter *self);
void recording_writer_unref (RecordingWriter *self);

// Ends the file behind what is queued.
void recording_writer_end_file (RecordingWriter *self);

// Takes nothing more. What is queued is still written.
void recording_writer_end (RecordingWriter *self);

// Waits until all writers that have been ended are done, for `timeout_ms` at most. Returns FALSE if
// some are not.
gboolean recording_writer_wait_all (guint timeout_ms);

SegmentOutput *recording_writer_get_output (RecordingWriter *self); // (transfer none)
RecordingList *recording_writer_get_list (RecordingWriter *self);   // (transfer none)
const gchar *recording_writer_get_folder (RecordingWriter *self);
const gchar *recording_writer_get_mount (RecordingWriter *self);

void recording_writer_get_counts (RecordingWriter *self, RecordingCounts *counts);

// Returns why nothing can be written (transfer full), or NULL.
gchar *recording_writer_dup_problem (RecordingWriter *self);
