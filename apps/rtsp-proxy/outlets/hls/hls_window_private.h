// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "outlets/hls/hls_window.h"

typedef struct {
  GBytes *data; // NULL: nothing came of the window's track
  guint64 number;
  gint64 duration_ns;
  gboolean independent;
} HlsPart;

typedef struct {
  guint64 msn;      // media sequence number
  GPtrArray *parts; // of HlsPart
  gint64 duration_ns, wall_us;
  guint64 bytes;
  guint64 init;                     // number of its initialization segment
  guint64 discontinuities;          // before it, and at its start
  gboolean ended, gap, independent; // a gap: it has no data
} HlsSegment;

struct _HlsWindow {
  SegmentOutput output;
  gatomicrefcount refs;
  HlsSettings settings;
  HlsCommon *common;

  GMutex lock;                 // protects the fields below
  GPtrArray *segments, *inits; // of HlsSegment, by msn without holes; of GBytes
  guint64 first_init;          // number of the first of `inits`
  guint64 next_part;
  guint64 discontinuities;
  gint64 part_target_ns;
  guint target_s;   // 0: the playlists have not begun
  gint64 total_ns;  // of the segments so far; not needed after the beginning
  gboolean counted; // `common` does not await it
  gboolean is_open; // the last segment
  SegmentFormat format;
  GBytes *texts[HLS_N_KINDS][2]; // playlists, whole and with a skip; NULL: to be written
  GHashTable *waiters;           // data: function
};

// Writes a playlist. Call with the lock held.
GBytes *hls_playlist_write (HlsWindow *self, HlsKind kind, gboolean skips);

static inline HlsSegment *
hls_window_nth (HlsWindow *self, guint i)
{
  return g_ptr_array_index (self->segments, i);
}

// Returns the index of the first segment in the playlist.
static inline guint
hls_window_first_listed (HlsWindow *self)
{
  guint ended = self->segments->len - self->is_open;

  return ended > self->settings.n_segments ? ended - self->settings.n_segments : 0;
}
