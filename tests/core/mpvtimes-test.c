// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mpvtimes.h"

#include "tap.h"

#define MS 40

// Writes the headers of a frame. Returns their length.
static size_t
make_frame (uint8_t *out, bool group, unsigned reference)
{
  const uint8_t head[] = { 0, 0, 1, 0xb8, 1, 2, 3, 4 };
  const uint8_t picture[] = { 0, 0, 1, 0, (uint8_t) (reference >> 2 & 0xff),
    (uint8_t) ((reference & 3) << 6 | 1 << 3), 0xff, 0xf8, 0, 0, 1, 1, 9 };
  size_t n = 0;

  for (size_t i = 0; group && i < sizeof head; i++)
    out[n++] = head[i];
  for (size_t i = 0; i < sizeof picture; i++)
    out[n++] = picture[i];
  return n;
}

static void
note (WeirMpvTimes *times, bool group, unsigned reference, int64_t pts)
{
  uint8_t frame[32];
  size_t len = make_frame (frame, group, reference);

  weir_mpv_times_note (times, frame, len, pts, MS);
}

#define CHECK_PTS(times, group, reference, expected)                                               \
  do {                                                                                             \
    uint8_t frame_[32];                                                                            \
    size_t len_ = make_frame (frame_, group, reference);                                           \
    int64_t pts_ = -1;                                                                             \
    CHECK (weir_mpv_times_find (times, frame_, len_, MS, &pts_));                                  \
    CHECK_INT (pts_, expected);                                                                    \
  } while (0)

static void
one_time_serves_all_groups (void)
{
  WeirMpvTimes times = { 0 };

  note (&times, true, 0, 1000);
  CHECK_PTS (&times, false, 3, 1000 + 3 * MS);
  CHECK_PTS (&times, false, 1, 1000 + 1 * MS);
  CHECK_PTS (&times, false, 2, 1000 + 2 * MS);
  // An open group: its B-frames are presented before its I-frame.
  CHECK_PTS (&times, true, 2, 1000 + 6 * MS);
  CHECK_PTS (&times, false, 0, 1000 + 4 * MS);
  CHECK_PTS (&times, false, 1, 1000 + 5 * MS);
  CHECK_PTS (&times, true, 0, 1000 + 7 * MS);
}

static void
a_later_time_is_believed (void)
{
  WeirMpvTimes times = { 0 };

  note (&times, true, 2, 5000);
  CHECK_PTS (&times, false, 0, 5000 - 2 * MS);
  note (&times, false, 5, 9000);
  CHECK_PTS (&times, false, 3, 9000 - 2 * MS);
  note (&times, true, 0, 700);
  CHECK_PTS (&times, false, 1, 700 + MS);
}

static void
references_without_groups_wrap (void)
{
  WeirMpvTimes times = { 0 };

  note (&times, false, 1020, 0);
  for (int i = 1; i < 5000; i++)
    CHECK_PTS (&times, false, (1020u + (unsigned) i) % 1024, i * MS);
  CHECK_PTS (&times, false, (1020u + 4998) % 1024, 4998 * MS);
}

static void
no_time_is_made_up (void)
{
  static const uint8_t no_picture[] = { 0, 0, 1, 0xb3, 1, 2, 3, 0, 0, 1, 0 };
  WeirMpvTimes times = { 0 };
  uint8_t frame[32];
  size_t len = make_frame (frame, true, 0);
  int64_t pts;

  CHECK (!weir_mpv_times_find (&times, frame, len, MS, &pts));
  weir_mpv_times_note (&times, no_picture, sizeof no_picture, 1000, MS);
  CHECK (!weir_mpv_times_find (&times, frame, len, MS, &pts));
  weir_mpv_times_note (&times, frame, len, 1000, MS);
  CHECK (!weir_mpv_times_find (&times, no_picture, sizeof no_picture, MS, &pts));
}

int
main (void)
{
  RUN (one_time_serves_all_groups);
  RUN (a_later_time_is_believed);
  RUN (references_without_groups_wrap);
  RUN (no_time_is_made_up);
  return tap_done ();
}
