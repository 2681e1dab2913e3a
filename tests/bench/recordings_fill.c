// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes what a mount would have recorded, by the recording's own writer but with a clock that runs
// as fast as the disk takes it.
//
//     recordings_fill FOLDER MOUNT START_S SEGMENTS SEGMENT_S
//
// START_S is the UTC time of the first frame, in s since the epoch. Each second is a part: a
// keyframe and 24 other frames of H.264, and 50 of Opus. Their bytes are zeros.

#include <stdio.h>

#include "mp4/fragment.h"
#include "mp4/init.h"
#include "outlets/recording/recording_folder.h"

#define VIDEO_RATE 90000
#define AUDIO_RATE 48000
#define VIDEO_FRAMES 25 // a second
#define AUDIO_FRAMES 50
#define KEY_BYTES 1500
#define OTHER_BYTES 60
#define AUDIO_BYTES 20
#define US_PER_S G_GINT64_CONSTANT (1000000)

static GBytes *
make_init (void)
{
  static const guint8 avcc[] = { 1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68 };
  guint8 opus[WEIR_MP4_OPUS_CONFIG], *bytes;
  const WeirMp4Track tracks[] = {
    { WEIR_MP4_H264, VIDEO_RATE, 640, 360, 0, avcc, sizeof avcc },
    { WEIR_MP4_OPUS, AUDIO_RATE, 0, 0, 2, opus, sizeof opus },
  };
  gsize size;

  weir_mp4_opus_config (opus, 2);
  size = weir_mp4_write_file_init (NULL, 0, tracks, G_N_ELEMENTS (tracks));
  bytes = g_malloc (size);
  weir_mp4_write_file_init (bytes, size, tracks, G_N_ELEMENTS (tracks));
  return g_bytes_new_take (bytes, size);
}

// Returns the part of second `n`, with which a segment may begin.
static GBytes *
make_part (guint32 n, gboolean begins)
{
  WeirMp4Sample video[VIDEO_FRAMES], audio[AUDIO_FRAMES];
  const WeirMp4Run runs[] = { { (guint64) n * VIDEO_RATE, video, VIDEO_FRAMES },
    { (guint64) n * AUDIO_RATE, audio, AUDIO_FRAMES } };
  gsize data = 0, size;
  guint8 *bytes;

  for (guint i = 0; i < VIDEO_FRAMES; i++) {
    video[i] =
        (WeirMp4Sample) { i == 0 ? KEY_BYTES : OTHER_BYTES, VIDEO_RATE / VIDEO_FRAMES, 0, i == 0 };
    data += video[i].size;
  }
  for (guint i = 0; i < AUDIO_FRAMES; i++) {
    audio[i] = (WeirMp4Sample) { AUDIO_BYTES, AUDIO_RATE / AUDIO_FRAMES, 0, TRUE };
    data += audio[i].size;
  }
  size = weir_mp4_write_fragment (NULL, 0, n + 1, begins, runs, G_N_ELEMENTS (runs));
  bytes = g_malloc0 (size + data);
  weir_mp4_write_fragment (bytes, size, n + 1, begins, runs, G_N_ELEMENTS (runs));
  return g_bytes_new_take (bytes, size + data);
}

static void
on_complete (const gchar *path, const RecordingFacts *facts, gpointer unused)
{
}

static void
check (gboolean ok, const GError *error)
{
  if (!ok)
    g_error ("%s", error->message);
}

int
main (int argc, char **argv)
{
  RecordingSettings settings = { 0 };
  RecordingFolder *folder;
  RecordingList *list;
  GBytes *init;
  guint32 each, all;
  gint64 start_us;
  GError *error = NULL;

  if (argc != 6) {
    fprintf (stderr, "Usage: recordings_fill FOLDER MOUNT START_S SEGMENTS SEGMENT_S\n");
    return 2;
  }
  start_us = g_ascii_strtoll (argv[3], NULL, 10) * US_PER_S;
  each = (guint32) g_ascii_strtoull (argv[5], NULL, 10);
  all = each * (guint32) g_ascii_strtoull (argv[4], NULL, 10);
  settings.folder = argv[1];
  settings.segment_ns = each * 1000 * US_PER_S;
  list = recording_list_new ();
  folder = recording_folder_new (argv[2], &settings, list, on_complete, NULL);
  check (recording_folder_open (folder, &error), error);
  init = make_init ();
  for (guint32 n = 0; n < all; n++) {
    RecordingPart part = { init, make_part (n, n % each == 0), start_us + n * US_PER_S,
      1000 * US_PER_S, TRUE, FALSE };

    check (recording_folder_add (folder, &part, &error) == RECORDING_WRITTEN, error);
    g_bytes_unref (part.data);
  }
  recording_folder_free (folder);
  recording_list_unref (list);
  g_bytes_unref (init);
  return 0;
}
