// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A segment of a recording: one file of fragmented MP4, named by the UTC time of its first frame,
// so that names sort by time. Whoever wrote it is not trusted. Call from any thread; the functions
// that read files may block.

#include <glib.h>

#include "events/events.h"
#include "mp4/index.h"
#include "mp4/read.h"
#include "mp4/times.h"

typedef struct {
  gint64 start_us;     // UTC, us since the epoch
  guint64 size;        // bytes of the file, so far
  guint64 end;         // bytes up to the index: where the parts end
  guint64 format;      // the same for files whose beginnings are equal but for `times`
  WeirMp4Init init;    // without it (size 0), the file has no readable beginning
  WeirMp4Times times;  // of the file: all others here are the stream's
  guint64 first, last; // decode times of the leading track: of its first frame, and after its last
  guint64 shown;       // presentation time of its first frame
  gint64 over_ns;      // the stream's time after the last frame of any track
  gboolean complete;   // it has ended, and has an index
} RecordingFacts;

// Returns the name of a file: "2026-11-23T11-15-11.123456Z.mp4". (transfer full)
gchar *recording_file_dup_name (gint64 start_us);

// Returns the time as text of ISO 8601. (transfer full)
gchar *recording_file_dup_time (gint64 start_us);

// Returns FALSE if the name is of another form.
gboolean recording_file_parse_name (const gchar *name, gint64 *start_us);

gint64 recording_facts_get_duration_ns (const RecordingFacts *self);

// Returns the stream's time in ns, of a time of a track.
gint64 recording_facts_get_ns (const RecordingFacts *self, guint track, guint64 ticks);

// Returns the stream's time at which the leading track begins.
gint64 recording_facts_get_first_ns (const RecordingFacts *self);

// Fills `facts`, whose `start_us` is set, from the bytes of a beginning. Returns FALSE if it cannot
// be read.
gboolean recording_facts_set_init (RecordingFacts *facts, const guint8 *init, gsize size);

// Sets the times of a file that begins with a part, in the stream's times: the first frame of its
// tracks is decoded at 0.
void recording_facts_set_times (RecordingFacts *facts, const WeirMp4Moof *moof);

// Returns the index of a file, whose entries (of WeirMp4Entry) are in the stream's times. (transfer
// full)
guint8 *recording_file_make_index (const RecordingFacts *facts, const GArray *entries, gsize *size);

// Sets the duration of a file that has its last part, and writes its beginning again. Returns FALSE
// with errno on failure.
gboolean recording_file_write_duration (int fd, RecordingFacts *facts);

// Notes a part, whose moof, in the stream's times, is at `at`: when it begins and ends, and in
// `entries` (of WeirMp4Entry), which may be NULL, that a decoder can start there. `begun` tells
// whether it is not the first one with the leading track, and is set.
void recording_facts_note (
    RecordingFacts *facts, const WeirMp4Moof *moof, guint64 at, gboolean *begun, GArray *entries);

// Reads what an open file has. Of an incomplete one, follows its parts to the last whole one, and
// appends to `entries` (of WeirMp4Entry) where a decoder can start. Returns FALSE if the file has
// no part.
gboolean recording_file_read (int fd, RecordingFacts *facts, GArray *entries);

// Reports whether a file that recording_file_read() found incomplete ends, behind its whole parts,
// with what is left of a write that was cut off: the beginning of a part or of an index, or bytes
// that never reached the disk. Anything else has not been written by a recording.
gboolean recording_file_is_cut_off (int fd, const RecordingFacts *facts);

// Reads the entries of a complete file, in the stream's times. (transfer full)
GArray *recording_file_read_entries (int fd, const RecordingFacts *facts);

// Reads a moof of `size` bytes at a place (transfer full), and describes it in the stream's times.
// Returns NULL on failure.
guint8 *recording_file_read_moof (
    int fd, const RecordingFacts *facts, guint64 at, guint64 size, WeirMp4Moof *moof);

// Reads the beginning with other times, such as those of a file that is complete, or of a stretch
// (transfer full), or returns NULL.
guint8 *recording_file_read_init (int fd, const RecordingFacts *facts, const WeirMp4Times *times);

// Reads the head of the box at a place. Returns FALSE if there is no whole box up to `end`.
gboolean recording_file_read_box (int fd, guint64 at, guint64 end, WeirMp4Box *box);

// Makes the event that the file `path` of a mount has begun (EVENT_RECORD) or is complete
// (EVENT_RECORD_DONE).
void recording_file_make_event (
    EventKind kind, const gchar *path, const gchar *mount, const RecordingFacts *facts);
