// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/times.h"

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "mp4/box.h"

#define EPOCH UINT64_C (2082844800) // s from 1904, from which on MP4 counts, to 1970
#define US_PER_S UINT64_C (1000000)

// Returns the `n`-th box of the path, such as "udta/WEIR", and its content in `content`. Returns
// false if there is none. Only of the first name there may be several.
static bool
find_box (WeirBytes in, const char *path, unsigned n, WeirBytes *content)
{
  WeirMp4Box box;

  while (weir_mp4_read_box (in.at, weir_bytes_left (&in), &box) == 0
         && box.size <= weir_bytes_left (&in)) {
    WeirBytes inside = weir_bytes (in.at + WEIR_MP4_BOX_HEAD, box.size - WEIR_MP4_BOX_HEAD);

    weir_bytes_skip (&in, box.size);
    if (memcmp (box.type, path, 4) != 0 || n-- > 0)
      continue;
    if (path[4])
      return find_box (inside, path + 5, 0, content);
    *content = inside;
    return true;
  }
  return false;
}

// Finds the box WEIR, whose content has room for a time of the clock and one of each track, and the
// moov that it is in.
static bool
find_own (const uint8_t *data, size_t size, WeirBytes *moov, WeirBytes *own, unsigned *n_tracks)
{
  WeirBytes trak;

  *n_tracks = 0;
  if (!find_box (weir_bytes (data, size), "moov", 0, moov)
      || !find_box (*moov, "udta/WEIR", 0, own))
    return false;
  while (*n_tracks < WEIR_MP4_TRACKS_MAX && find_box (*moov, "trak", *n_tracks, &trak))
    ++*n_tracks;
  return weir_bytes_left (own) == 4 + 8 + (size_t) 8 * *n_tracks;
}

static void
put (uint8_t *data, const WeirBytes *content, size_t at, unsigned size, uint64_t value)
{
  WeirBoxes w = { data + (content->at - data) + at, size, 0 };

  weir_boxes_number (&w, size, value);
}

void
weir_mp4_set_times (uint8_t *data, size_t size, const WeirMp4Times *times)
{
  uint64_t created = times->wall_us > 0 ? times->wall_us / US_PER_S + EPOCH : 0;
  WeirBytes moov, own, box;
  unsigned n_tracks;

  if (!find_own (data, size, &moov, &own, &n_tracks))
    return;
  put (data, &own, 4, 8, times->wall_us);
  for (unsigned i = 0; i < n_tracks; i++)
    put (data, &own, 12 + 8 * i, 8, times->bases[i]);
  if (find_box (moov, "mvhd", 0, &box) && weir_bytes_left (&box) >= 20) {
    put (data, &box, 4, 4, created <= UINT32_MAX ? created : 0);
    put (data, &box, 16, 4, times->duration_ms <= UINT32_MAX ? times->duration_ms : 0);
  }
  if (find_box (moov, "mvex/mehd", 0, &box) && weir_bytes_left (&box) == 12)
    put (data, &box, 4, 8, times->duration_ms);
}

int
weir_mp4_get_times (const uint8_t *data, size_t size, WeirMp4Times *times)
{
  WeirBytes moov, own, box;
  unsigned n_tracks;

  *times = (WeirMp4Times) { 0 };
  if (!find_own (data, size, &moov, &own, &n_tracks))
    return 0;
  weir_bytes_skip (&own, 4);
  weir_bytes_u64 (&own, &times->wall_us);
  for (unsigned i = 0; i < n_tracks; i++) {
    weir_bytes_u64 (&own, &times->bases[i]);
    if (times->bases[i] > INT64_MAX / 4)
      return -EINVAL;
  }
  if (find_box (moov, "mvex/mehd", 0, &box) && weir_bytes_skip (&box, 4))
    weir_bytes_u64 (&box, &times->duration_ms);
  return 0;
}
