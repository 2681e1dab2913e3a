// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the search for keyframes. The first byte of the input says the kind, the second the size
// of the pieces that are fed; the rest is the file. Pieces give the same keyframes as the whole.

#include <string.h>

#include "cuts.h"
#include "fuzz.h"

static GArray *
find (CutsKind kind, const uint8_t *data, size_t size, size_t piece)
{
  GArray *keyframes = g_array_new (FALSE, TRUE, sizeof (CutsKeyframe));
  Cuts *cuts = cuts_new (kind);

  for (size_t at = 0; at < size; at += piece)
    cuts_feed (cuts, data + at, MIN (piece, size - at), keyframes);
  cuts_free (cuts);
  return keyframes;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  GArray *whole, *pieces;
  CutsKind kind;
  guint64 before = 0;

  if (size < 3)
    return 0;
  kind = (CutsKind) (data[0] % (CUTS_H265 + 1));
  whole = find (kind, data + 2, size - 2, size);
  pieces = find (kind, data + 2, size - 2, data[1] + 1u);
  cuts_guess (data + 2, size - 2, "video/x-h264");
  require (whole->len == pieces->len);
  require (whole->len == 0
           || memcmp (whole->data, pieces->data, whole->len * sizeof (CutsKeyframe)) == 0);
  for (guint i = 0; i < whole->len; i++) {
    guint64 offset = g_array_index (whole, CutsKeyframe, i).offset;

    require (offset < size - 2 && (i == 0 || offset > before));
    require (kind != CUTS_TS || offset % 188 == 0);
    before = offset;
  }
  g_array_unref (whole);
  g_array_unref (pieces);
  return 0;
}
