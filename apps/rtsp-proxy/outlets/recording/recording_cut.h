// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stretch of a mount's recording as one MP4 of known length: the beginning of its first segment,
// and the parts of all, moved in time so that they join. Times of segments that were written in one
// go continue without a seam; other segments begin when their clock says, and not before the end of
// the one before. One thread at a time; calls block on the disk.

#include "outlets/recording/recording_list.h"

typedef struct _RecordingCut RecordingCut;

// Begins with the newest keyframe at `start_us` or before, and ends with the part in which
// `duration_us` is over, or before a segment of another format. Returns NULL and sets `error` if
// there is nothing in this time.
RecordingCut *recording_cut_new (const gchar *folder, const gchar *mount, RecordingList *list,
    gint64 start_us, gint64 duration_us, GError **error);
void recording_cut_free (RecordingCut *self);

guint64 recording_cut_get_size (const RecordingCut *self);    // bytes
gint64 recording_cut_get_start_us (const RecordingCut *self); // UTC of its first frame

// Returns a number that differs for other bytes.
guint64 recording_cut_get_tag (const RecordingCut *self);

// Returns when the segment begins, in us of UTC, that ends the stretch because it has another
// format; 0 if none does.
gint64 recording_cut_get_next_us (const RecordingCut *self);

// Goes to a place: the next bytes are from there. Returns FALSE and sets `error` on failure.
gboolean recording_cut_seek (RecordingCut *self, guint64 at, GError **error);

// Returns the next bytes: about 256 KiB, and the parts of one box at least (transfer full). Returns
// NULL without an error at the end.
GBytes *recording_cut_read (RecordingCut *self, GError **error);
