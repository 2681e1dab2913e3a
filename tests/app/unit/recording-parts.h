// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Beginnings and parts of recordings, of one video track.

#include <glib.h>
#include <string.h>

#include "mp4/fragment.h"
#include "mp4/init.h"

#define RECORDING_RATE 90000

static inline GBytes *
make_recording_init (void)
{
  static const guint8 avcc[] = { 1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68 };
  const WeirMp4Track track = { WEIR_MP4_H264, RECORDING_RATE, 640, 360, 0, avcc, sizeof avcc };
  gsize size = weir_mp4_write_file_init (NULL, 0, &track, 1);
  guint8 *bytes = g_malloc (size);

  weir_mp4_write_file_init (bytes, size, &track, 1);
  return g_bytes_new_take (bytes, size);
}

// Returns part `n`, of one keyframe of `length` bytes that lasts 1 s.
static inline GBytes *
make_recording_part (guint32 n, guint32 length)
{
  const WeirMp4Sample sample = { length, RECORDING_RATE, 0, TRUE };
  const WeirMp4Run run = { (guint64) n * RECORDING_RATE, &sample, 1 };
  gsize size = weir_mp4_write_fragment (NULL, 0, n + 1, TRUE, &run, 1);
  guint8 *bytes = g_malloc (size + length);

  weir_mp4_write_fragment (bytes, size, n + 1, TRUE, &run, 1);
  memset (bytes + size, (int) (n % 251) + 1, length);
  return g_bytes_new_take (bytes, size + length);
}
