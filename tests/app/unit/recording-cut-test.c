// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_cut.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "mp4/fragment.h"
#include "mp4/init.h"
#include "outlets/recording/recording_file.h"
#include "outlets/recording/recording_folder.h"

#define SECOND G_GINT64_CONSTANT (1000000) // us
#define HOUR (3600 * SECOND)
#define T (G_GINT64_CONSTANT (1800000000) * SECOND)
#define VIDEO_RATE 90000
#define AUDIO_RATE 48000
#define DATA 50      // bytes of a frame
#define REORDER 9000 // presentation time minus decode time of a picture
#define SEGMENT 2    // s

typedef struct {
  gchar *top;
  RecordingSettings settings;
  RecordingList *list;
  RecordingFolder *folder;
  guint16 height; // of the pictures
  guint audio_ms; // of a part
  gboolean old;   // files whose times are the stream's
} Fixture;

static void
ignore (const gchar *path, const RecordingFacts *facts, gpointer unused)
{
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;

  *f = (Fixture) { .height = 360, .audio_ms = 1000 };
  f->top = g_dir_make_tmp ("recording-XXXXXX", NULL);
  f->settings = (RecordingSettings) { f->top, SEGMENT * 1000 * SECOND, 0, 0 };
  f->list = recording_list_new ();
  f->folder = recording_folder_new ("/cam", &f->settings, f->list, ignore, NULL);
  recording_folder_open (f->folder, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  gchar *cam = g_build_filename (f->top, "cam", NULL);
  GDir *dir;
  const gchar *name;

  recording_folder_free (f->folder);
  recording_list_unref (f->list);
  dir = g_dir_open (cam, 0, NULL);
  while ((name = g_dir_read_name (dir))) {
    gchar *path = g_build_filename (cam, name, NULL);

    g_assert_cmpint (g_remove (path), ==, 0);
    g_free (path);
  }
  g_dir_close (dir);
  g_assert_cmpint (g_rmdir (cam), ==, 0);
  g_assert_cmpint (g_rmdir (f->top), ==, 0);
  g_free (cam);
  g_free (f->top);
}

// ---- writing ----

static GBytes *
make_init (const Fixture *f)
{
  static const guint8 avcc[] = { 1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68 };
  size_t (*write) (uint8_t *, size_t, const WeirMp4Track *, size_t) =
      f->old ? weir_mp4_write_init : weir_mp4_write_file_init;
  guint8 opus[WEIR_MP4_OPUS_CONFIG], *bytes;
  const WeirMp4Track tracks[] = {
    { WEIR_MP4_H264, VIDEO_RATE, 640, f->height, 0, avcc, sizeof avcc },
    { WEIR_MP4_OPUS, AUDIO_RATE, 0, 0, 2, opus, sizeof opus },
  };
  gsize size;

  weir_mp4_opus_config (opus, 2);
  size = write (NULL, 0, tracks, G_N_ELEMENTS (tracks));
  bytes = g_malloc (size);
  write (bytes, size, tracks, G_N_ELEMENTS (tracks));
  return g_bytes_new_take (bytes, size);
}

// Returns a part of a keyframe of 1 s and of sound, at `media_s` of the stream's time.
static GBytes *
make_part (const Fixture *f, guint32 media_s)
{
  const WeirMp4Sample video = { DATA, VIDEO_RATE, REORDER, TRUE };
  const WeirMp4Sample audio = { DATA, AUDIO_RATE / 1000 * f->audio_ms, 0, TRUE };
  const WeirMp4Run runs[] = { { (guint64) media_s * VIDEO_RATE, &video, 1 },
    { (guint64) media_s * AUDIO_RATE, &audio, 1 } };
  gsize size = weir_mp4_write_fragment (NULL, 0, media_s + 1, TRUE, runs, 2);
  guint8 *bytes = g_malloc (size + 2 * DATA);

  weir_mp4_write_fragment (bytes, size, media_s + 1, TRUE, runs, 2);
  memset (bytes + size, (int) (media_s % 251) + 1, 2 * DATA);
  return g_bytes_new_take (bytes, size + 2 * DATA);
}

// Records `n` s of the stream's time from `media_s` on, at `wall_us`.
static void
write_run_at (Fixture *f, gint64 wall_us, guint32 media_s, guint n, gboolean breaks)
{
  GBytes *init = make_init (f);

  for (guint i = 0; i < n; i++) {
    RecordingPart part = { init, make_part (f, media_s + i), wall_us + i * SECOND, 1000 * SECOND,
      TRUE, breaks && i == 0 };
    GError *error = NULL;

    g_assert_cmpint (recording_folder_add (f->folder, &part, &error), ==, RECORDING_WRITTEN);
    g_assert_no_error (error);
    g_bytes_unref (part.data);
  }
  g_bytes_unref (init);
}

static void
write_run (Fixture *f, gint64 wall_us, guint32 media_s, guint n)
{
  write_run_at (f, wall_us, media_s, n, TRUE);
}

// ---- reading ----

static RecordingCut *
cut (Fixture *f, gint64 start_us, gint64 duration_us)
{
  GError *error = NULL;
  RecordingCut *cut = recording_cut_new (f->top, "/cam", f->list, start_us, duration_us, &error);

  g_assert_no_error (error);
  return cut;
}

static GByteArray *
read_all (RecordingCut *cut)
{
  GByteArray *all = g_byte_array_new ();
  GError *error = NULL;
  GBytes *bytes;

  while ((bytes = recording_cut_read (cut, &error))) {
    g_byte_array_append (all, g_bytes_get_data (bytes, NULL), (guint) g_bytes_get_size (bytes));
    g_bytes_unref (bytes);
  }
  g_assert_no_error (error);
  g_assert_cmpuint (all->len, ==, recording_cut_get_size (cut));
  return all;
}

// Checks the times of the parts, in ms: a list that ends with -1. Pictures and sound begin
// together.
static void
check_times (RecordingCut *cut, const gint *ms)
{
  GByteArray *all = read_all (cut);
  WeirMp4Init init;
  gsize at;

  g_assert_cmpint (weir_mp4_read_init (all->data, all->len, &init), ==, 0);
  for (at = init.size; at < all->len;) {
    WeirMp4Moof moof;
    WeirMp4Box box;

    g_assert_cmpint (weir_mp4_read_box (all->data + at, all->len - at, &box), ==, 0);
    if (g_str_equal (box.type, "moof")) {
      g_assert_cmpint (weir_mp4_read_moof (all->data + at, box.size, &moof), ==, 0);
      g_assert_cmpint ((gint) (moof.trafs[0].start / (VIDEO_RATE / 1000)), ==, *ms);
      g_assert_cmpint ((gint) (moof.trafs[1].start / (AUDIO_RATE / 1000)), ==, *ms);
      ms++;
    }
    at += box.size;
  }
  g_assert_cmpuint (at, ==, all->len);
  g_assert_cmpint (*ms, ==, -1);
  g_byte_array_unref (all);
  recording_cut_free (cut);
}

#define CHECK_TIMES(cut, ...) check_times (cut, (const gint[]) { __VA_ARGS__, -1 })

// ---- times ----

static void
what_was_written_in_one_go_continues (Fixture *f, gconstpointer unused)
{
  RecordingCut *part;

  write_run (f, T, 100, 5); // the last segment is being written
  CHECK_TIMES (cut (f, T, HOUR), 0, 1000, 2000, 3000, 4000);
  CHECK_TIMES (cut (f, T, 2500 * 1000), 0, 1000, 2000);
  CHECK_TIMES (cut (f, T - HOUR, HOUR + SECOND), 0);
  part = cut (f, T + SECOND + 500 * 1000, 2 * SECOND);
  g_assert_cmpint (recording_cut_get_start_us (part), ==, T + SECOND);
  CHECK_TIMES (part, 0, 1000, 2000);
}

// Those of versions that wrote the stream's times into files.
static void
old_files_are_read (Fixture *f, gconstpointer unused)
{
  f->old = TRUE;
  write_run (f, T, 100, 5);
  CHECK_TIMES (cut (f, T, HOUR), 0, 1000, 2000, 3000, 4000);
  CHECK_TIMES (cut (f, T + SECOND, 2500 * 1000), 0, 1000, 2000);
}

// The time of the answer is a time to ask for.
static void
the_start_of_a_stretch_gives_the_same_stretch (Fixture *f, gconstpointer unused)
{
  RecordingCut *one, *same;

  write_run (f, T + 7, 100, 5);
  one = cut (f, T + 3 * SECOND + 900 * 1000, SECOND);
  g_assert_cmpint (recording_cut_get_start_us (one), ==, T + 7 + 3 * SECOND);
  same = cut (f, recording_cut_get_start_us (one), 1900 * 1000);
  g_assert_cmpint (recording_cut_get_start_us (same), ==, T + 7 + 3 * SECOND);
  g_assert_cmpuint (recording_cut_get_tag (same), ==, recording_cut_get_tag (one));
  recording_cut_free (same);
  same = cut (f, T + 3 * SECOND, 1900 * 1000);
  g_assert_cmpuint (recording_cut_get_tag (same), !=, recording_cut_get_tag (one));
  recording_cut_free (same);
  recording_cut_free (one);
}

static void
a_gap_keeps_its_length (Fixture *f, gconstpointer unused)
{
  RecordingCut *later;

  write_run (f, T, 100, 3);
  write_run (f, T + 10 * SECOND, 110, 3); // the stream's time went on
  write_run (f, T + 20 * SECOND, 5, 3);   // it began again
  CHECK_TIMES (cut (f, T, HOUR), 0, 1000, 2000, 10000, 11000, 12000, 20000, 21000, 22000);
  later = cut (f, T + 5 * SECOND, 10 * SECOND); // begins in the gap, and ends in one
  g_assert_cmpint (recording_cut_get_start_us (later), ==, T + 10 * SECOND);
  CHECK_TIMES (later, 0, 1000, 2000);
}

static void
a_clock_that_steps_forward_is_a_gap (Fixture *f, gconstpointer unused)
{
  write_run (f, T, 100, 2);
  write_run (f, T + 60 * SECOND, 102, 2);
  CHECK_TIMES (cut (f, T, HOUR), 0, 1000, 60000, 61000);
}

// Nothing overlaps, whatever the clock says: not even sound that ends after the pictures.
static void
a_clock_that_steps_back_is_no_gap (Fixture *f, gconstpointer unused)
{
  write_run (f, T, 100, 1);
  f->audio_ms = 1300;
  write_run (f, T + SECOND, 101, 1);
  f->audio_ms = 1000;
  write_run (f, T + SECOND + 500 * 1000, 7, 2);
  CHECK_TIMES (cut (f, T, HOUR), 0, 1000, 2300, 3300);
}

// The stream's clock is faster than ours, so a segment ends a little after the next one begins.
static void
a_segment_can_be_asked_for_by_its_start (Fixture *f, gconstpointer unused)
{
  GArray *found;

  for (guint32 i = 0; i < 6; i++)
    write_run_at (f, T + i * (SECOND - 500), 100 + i, 1, i == 0);
  found = recording_list_dup (f->list, T, T + HOUR, 100);
  g_assert_cmpuint (found->len, ==, 3);
  for (guint i = 0; i < found->len; i++) {
    gint64 start_us = g_array_index (found, RecordingFacts, i).start_us;
    RecordingCut *one = cut (f, start_us, SEGMENT * SECOND - 2000);

    g_assert_cmpint (recording_cut_get_start_us (one), ==, start_us);
    CHECK_TIMES (one, 0, 1000);
  }
  g_array_unref (found);
}

// ---- formats ----

static void
a_stretch_ends_before_another_format (Fixture *f, gconstpointer unused)
{
  RecordingCut *one;
  gint64 next_us;

  write_run (f, T, 100, 3);
  f->height = 720;
  write_run (f, T + 10 * SECOND, 110, 3);
  f->height = 360;
  write_run (f, T + 20 * SECOND, 120, 1);
  one = cut (f, T, HOUR);
  next_us = recording_cut_get_next_us (one);
  g_assert_cmpint (next_us, ==, T + 10 * SECOND);
  CHECK_TIMES (one, 0, 1000, 2000);
  one = cut (f, next_us, HOUR);
  g_assert_cmpint (recording_cut_get_start_us (one), ==, next_us);
  next_us = recording_cut_get_next_us (one);
  g_assert_cmpint (next_us, ==, T + 20 * SECOND);
  CHECK_TIMES (one, 0, 1000, 2000);
  one = cut (f, next_us, HOUR);
  g_assert_cmpint (recording_cut_get_next_us (one), ==, 0);
  CHECK_TIMES (one, 0);
  one = cut (f, T, 10 * SECOND); // ends before it
  g_assert_cmpint (recording_cut_get_next_us (one), ==, 0);
  CHECK_TIMES (one, 0, 1000, 2000);
}

// ---- places ----

static void
a_stretch_can_be_read_from_each_place (Fixture *f, gconstpointer unused)
{
  GByteArray *all;
  RecordingCut *one;
  GError *error = NULL;

  write_run (f, T, 100, 3);
  write_run (f, T + 10 * SECOND, 5, 2);
  one = cut (f, T + SECOND, HOUR);
  all = read_all (one);
  for (guint at = 0; at <= all->len; at++) {
    GBytes *bytes;
    gsize size;
    const guint8 *got;

    g_assert_true (recording_cut_seek (one, at, &error));
    bytes = recording_cut_read (one, &error);
    g_assert_no_error (error);
    g_assert_true ((bytes == NULL) == (at == all->len));
    if (!bytes)
      continue;
    got = g_bytes_get_data (bytes, &size);
    g_assert_cmpmem (got, MIN (size, 64), all->data + at, MIN (all->len - at, 64));
    g_bytes_unref (bytes);
  }
  g_byte_array_unref (all);
  recording_cut_free (one);
}

// The file changes while it is read.
static void
boxes_that_are_overwritten_end_the_reading (Fixture *f, gconstpointer unused)
{
  static const gchar zeros[64];
  gchar *name = recording_file_dup_name (T), *path = g_build_filename (f->top, "cam", name, NULL);
  GBytes *init = make_init (f);
  GError *error = NULL;
  RecordingCut *one;
  FILE *file;

  write_run (f, T, 100, 2);
  one = cut (f, T, HOUR);
  file = g_fopen (path, "r+");
  g_assert_cmpint (fseek (file, (glong) g_bytes_get_size (init), SEEK_SET), ==, 0);
  g_assert_cmpuint (fwrite (zeros, 1, sizeof zeros, file), ==, sizeof zeros);
  g_assert_cmpint (fclose (file), ==, 0);
  g_assert_false (recording_cut_seek (one, recording_cut_get_size (one) - 1, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_FAILED);
  g_error_free (error);
  recording_cut_free (one);
  g_bytes_unref (init);
  g_free (path);
  g_free (name);
}

#define ADD(path, name) g_test_add (path, Fixture, NULL, set_up, name, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/recording-cut/continues", what_was_written_in_one_go_continues);
  ADD ("/recording-cut/old", old_files_are_read);
  ADD ("/recording-cut/start", the_start_of_a_stretch_gives_the_same_stretch);
  ADD ("/recording-cut/gap", a_gap_keeps_its_length);
  ADD ("/recording-cut/forward", a_clock_that_steps_forward_is_a_gap);
  ADD ("/recording-cut/back", a_clock_that_steps_back_is_no_gap);
  ADD ("/recording-cut/by-its-start", a_segment_can_be_asked_for_by_its_start);
  ADD ("/recording-cut/format", a_stretch_ends_before_another_format);
  ADD ("/recording-cut/places", a_stretch_can_be_read_from_each_place);
  ADD ("/recording-cut/overwritten", boxes_that_are_overwritten_end_the_reading);
  return g_test_run ();
}
