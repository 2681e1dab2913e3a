// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads HLS playlists (RFC 8216; draft-pantos-hls-rfc8216bis for the parts of Low-Latency HLS).

#include <glib.h>

typedef struct {
  gchar *uri;
  gint64 begin_us, duration_us; // the begin is in us since the epoch, 0: unknown
  gboolean independent;
} HlsPart;

typedef struct {
  GArray *parts; // of HlsPart
  gchar *map, *hint;
  guint64 sequence; // media sequence number of the segment that is being made
  guint n_open;     // its parts so far
  gint64 part_target_us;
  gboolean can_block;
} HlsPlaylist;

// Returns the URI of the first rendition of a multivariant playlist, or NULL if it is none. The
// caller owns the result.
gchar *hls_text_find_rendition (const gchar *text);

// Returns FALSE if the text is no media playlist. Clear the playlist in any case.
gboolean hls_text_read (HlsPlaylist *self, const gchar *text);
void hls_text_clear (HlsPlaylist *self);
