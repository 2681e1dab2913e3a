// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The URLs of the HLS outlet. A reader begins with /hls/PATH/index.m3u8 or /hls/PATH/plain.m3u8,
// which name its session: /hls/PATH/~SESSION/N/live.m3u8, init0.mp4, part7.mp4, seg3.mp4; of
// further tracks of sound, /hls/PATH/~SESSION/N-WINDOW/live.m3u8 and so on (hls_stream.h). So
// playlists have no secrets and are the same for all readers, whatever credentials they sent first.

#include "outlets/hls/hls_window.h"

#define HLS_PREFIX "/hls/"
#define HLS_SESSION_DIGITS 32

typedef enum {
  HLS_NOTHING,
  HLS_MASTER, // index.m3u8 and plain.m3u8
  HLS_PLAYLIST,
  HLS_INIT,
  HLS_PART,
  HLS_SEGMENT,
} HlsThing;

typedef struct {
  HlsThing thing;
  HlsAsk ask;     // of a playlist; `kind` also of a master
  gboolean wrong; // the directives of a playlist are against the rules
  gchar session[HLS_SESSION_DIGITS + 1];
  guint rendition, window;
  guint64 number; // of an initialization segment, a part or a segment
} HlsTarget;

// Parses a target that begins with HLS_PREFIX.
void hls_target_parse (HlsTarget *self, const gchar *target);

// Returns the mount's target of a master playlist, "/cam?a=b" for "/hls/cam/index.m3u8?a=b"
// (transfer full), or NULL if the target is another.
gchar *hls_target_dup_mount (const gchar *target);
