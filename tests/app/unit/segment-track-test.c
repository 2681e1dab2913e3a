// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/segment_track.h"

#define RATE 90000
#define FRAME (GST_SECOND / 25)
#define TICKS (RATE / 25)
#define N_MAX 64

// Adds the frames with these places in the order of showing, up to -1.
static void
add (SegmentTrack *track, const gint *places)
{
  for (; *places >= 0; places++)
    segment_track_add (track, gst_buffer_new (), *places * (gint64) FRAME, *places == 0, 0);
}

static void
begin (SegmentTrack *track)
{
  static const guint8 config[4];
  const WeirMp4Track format = { WEIR_MP4_H264, RATE, 640, 360, 0, config, sizeof config };

  segment_track_init (track, WEIR_MP4_H264);
  g_assert_true (segment_track_set_format (track, &format));
  add (track, (const gint[]) { 0, 3, 1, 2, 6, 4, 5, 9, 7, 8, -1 });
  segment_track_measure (track);
}

// Checks when the frames are shown, that none is shown before it is decoded, and frees the track.
static void
end (SegmentTrack *track, const gint *places)
{
  WeirMp4Sample samples[N_MAX];
  WeirMp4Run run;
  gint64 decoded;

  segment_track_flush (track);
  segment_track_fill (track, track->n_timed, samples, &run);
  decoded = (gint64) run.start - segment_track_get_ticks (track, 0);
  for (gsize i = 0; i < run.n_samples; i++, places++) {
    g_assert_cmpint (samples[i].offset, >=, 0);
    g_assert_cmpint (decoded + samples[i].offset, ==, *places * TICKS);
    decoded += samples[i].duration;
  }
  g_assert_cmpint (*places, ==, -1);
  segment_track_clear (track);
}

static void
frames_are_shown_at_their_times (void)
{
  SegmentTrack track;

  begin (&track);
  add (&track, (const gint[]) { 12, 10, 11, 15, 13, 14, -1 });
  end (&track, (const gint[]) { 0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11, 15, 13, 14, -1 });
}

// Some players move all later frames if one is shown before it is decoded.
static void
a_missing_frame_makes_none_be_shown_too_early (void)
{
  SegmentTrack track;

  begin (&track);
  add (&track, (const gint[]) { 12, 10, 50, 53, 51, 52, 56, 55, 59, 57, 58, -1 });
  end (&track, (const gint[]) {
                   0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 50, 53, 51, 52, 56, 55, 59, 57, 58, -1 });
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/segment-track/times", frames_are_shown_at_their_times);
  g_test_add_func ("/segment-track/missing", a_missing_frame_makes_none_be_shown_too_early);
  return g_test_run ();
}
