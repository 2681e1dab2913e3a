// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the variant streams of one master playlist have in common (RFC 8216, 6.2.4): the target
// duration, the numbers that they begin with, and the numbers of discontinuities.
// Reference-counted. Call from any thread.

#include <glib.h>

typedef struct _HlsCommon HlsCommon;

// The numbers of the next segment, part and initialization segment, and of the discontinuities
// before them.
typedef struct {
  guint64 msn, part, init, discontinuities;
} HlsNumbers;

// `n` variants will have windows. No target is less than `segment_ns`.
HlsCommon *hls_common_new (guint n, gint64 segment_ns, const HlsNumbers *first);
HlsCommon *hls_common_ref (HlsCommon *self);
void hls_common_unref (HlsCommon *self);

const HlsNumbers *hls_common_get_first (const HlsCommon *self);

// A segment of a variant has got this long.
void hls_common_note_length (HlsCommon *self, gint64 length_ns);

// A segment of a variant has ended. `total_ns` is the length of all its segments so far; `first`:
// it is the first one.
void hls_common_end_segment (HlsCommon *self, gint64 total_ns, gboolean first);

// A variant will have no segment, so it is not waited for.
void hls_common_leave (HlsCommon *self);

// Returns the target duration in s, which is known, and never changes, when all variants have had a
// segment, or one of them has had them for 5 s; 0 before.
guint hls_common_get_target (HlsCommon *self);

// Returns the number of discontinuities before a segment of a variant that begins at `wall_us`, in
// us since the epoch. The variant has counted `counted` before. `begins`: its timestamps or its
// format do not continue. A discontinuity of one variant is one of all, at the same time, so it is
// counted once.
guint64 hls_common_count (HlsCommon *self, guint64 counted, gint64 wall_us, gboolean begins);
