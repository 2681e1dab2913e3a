// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The files of one mount's recording: FOLDER/MOUNT/2026-11-23T11-15-11.123456Z.mp4. A part is
// appended with one write, so what was written is whole up to the last part when the process dies.
// One process at a time writes. One thread at a time calls; calls block on the disk.

#include "outlets/recording/recording_list.h"

typedef struct {
  gchar *folder;
  gint64 segment_ns;
  gint64 keep_us; // 0: for ever
  guint64 limit;  // bytes; 0: none
} RecordingSettings;

typedef struct {
  guint64 segments, parts, bytes; // written
  guint64 deleted;                // segments
  guint64 trimmed;                // bytes of parts that were cut off, which are gone
} RecordingFolderCounts;

typedef struct _RecordingFolder RecordingFolder;

// Called when a segment is complete. `path` is that of its file.
typedef void (*RecordingCompleteFunc) (
    const gchar *path, const RecordingFacts *facts, gpointer data);

// `mount` is a path such as "/cam", without parts that begin with a dot. `settings` must outlive
// the result.
RecordingFolder *recording_folder_new (const gchar *mount, const RecordingSettings *settings,
    RecordingList *list, RecordingCompleteFunc complete, gpointer data);

// Ends the segment.
void recording_folder_free (RecordingFolder *self);

// Makes the folder of the mount, takes it for this process, finds its segments, and ends those that
// were cut off. Call again after a failure of any function. Returns FALSE and sets `error` on
// failure.
gboolean recording_folder_open (RecordingFolder *self, GError **error);

typedef struct {
  GBytes *init, *data;
  gint64 wall_us;     // UTC of its first frame; only if `begins`
  gint64 duration_ns; // of the leading track
  gboolean begins;    // a file may begin with it
  gboolean breaks;    // it does not continue the one before: a file must begin with it
} RecordingPart;

typedef enum { RECORDING_WRITTEN, RECORDING_SKIPPED, RECORDING_FAILED } RecordingWritten;

// Writes a part. Skips it if a file would have to begin with it that cannot. After a failure, the
// folder has to be opened again.
RecordingWritten recording_folder_add (
    RecordingFolder *self, const RecordingPart *part, GError **error);

// Ends the segment.
gboolean recording_folder_end (RecordingFolder *self, GError **error);

// Deletes segments that are older than `keep_us` at `now_us`, and the oldest beyond `limit`.
// Nothing is old for an hour after the clock has stepped by more than a minute. Call every 10 s.
void recording_folder_prune (RecordingFolder *self, gint64 now_us);

const RecordingFolderCounts *recording_folder_get_counts (RecordingFolder *self);

// Opens a segment for reading. Returns -1 with errno on failure. Call from any thread.
int recording_folder_open_file (const gchar *folder, const gchar *mount, gint64 start_us);
