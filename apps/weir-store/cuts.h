// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the keyframes of a file, at which it can be cut into blocks: of MPEG-TS by the random
// access indicator (ISO/IEC 13818-1, 2.4.3.5), of a byte stream of H.264 or H.265 by its NAL units.

#include <glib.h>

typedef enum {
  CUTS_NONE, // a file of another kind: no keyframes are found
  CUTS_TS,
  CUTS_H264,
  CUTS_H265,
} CutsKind;

typedef struct {
  guint64 offset; // where a block may begin
  gint64 time_ns; // since the first keyframe, or WEIR_INDEX_NO_TIME
} CutsKeyframe;

typedef struct _Cuts Cuts;

// Tells the kind of a file by its first bytes, and by the name of its caps ("" if unknown).
CutsKind cuts_guess (const guint8 *bytes, gsize length, const gchar *caps);

Cuts *cuts_new (CutsKind kind);
void cuts_free (Cuts *self);

// Looks at the next bytes of the file, and appends the keyframes (CutsKeyframe) that they show. An
// offset may be in bytes given before.
void cuts_feed (Cuts *self, const guint8 *bytes, gsize length, GArray *keyframes);
