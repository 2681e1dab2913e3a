// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_group.h"

struct _HlsGroup {
  gatomicrefcount refs;
  HlsStream *streams[HLS_STREAMS_MAX];
  guint n_streams;
};

HlsGroup *
hls_group_new (const HlsVariant *variants, guint n, const HlsSettings *settings)
{
  HlsGroup *self = g_new0 (HlsGroup, 1);
  HlsCommon *common = hls_common_new (n, settings->segment_ns);

  g_atomic_ref_count_init (&self->refs);
  self->n_streams = n;
  for (guint i = 0; i < n; i++)
    self->streams[i] = hls_stream_new (&variants[i], settings, common);
  hls_common_unref (common);
  return self;
}

HlsGroup *
hls_group_ref (HlsGroup *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
hls_group_unref (HlsGroup *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < self->n_streams; i++)
    hls_stream_unref (self->streams[i]);
  g_free (self);
}

void
hls_group_stop (HlsGroup *self)
{
  for (guint i = 0; i < self->n_streams; i++)
    hls_stream_stop (self->streams[i]);
}

gboolean
hls_group_has_failed (HlsGroup *self)
{
  return hls_stream_has_failed (self->streams[0]);
}

guint
hls_group_n_streams (HlsGroup *self)
{
  return self->n_streams;
}

HlsStream *
hls_group_get_stream (HlsGroup *self, guint i)
{
  return self->streams[i];
}

gchar *
hls_group_dup_left_out (HlsGroup *self)
{
  return hls_stream_dup_left_out (self->streams[0]);
}

// ---- playlists ----

static void
add_variant (GString *text, const HlsFormat *format)
{
  gchar rate[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append_printf (text,
      "#EXT-X-STREAM-INF:BANDWIDTH=%" G_GUINT64_FORMAT ",AVERAGE-BANDWIDTH=%" G_GUINT64_FORMAT
      ",CODECS=\"%s\"",
      format->peak, format->average, format->codecs);
  if (format->height > 0)
    g_string_append_printf (text, ",RESOLUTION=%ux%u", format->width, format->height);
  if (format->frame_rate > 0)
    g_string_append_printf (
        text, ",FRAME-RATE=%s", g_ascii_formatd (rate, sizeof rate, "%.3f", format->frame_rate));
}

GBytes *
hls_group_write_master (HlsGroup *self, const gchar *folder, HlsKind kind)
{
  GString *text = g_string_new ("#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n");
  guint n = 0;

  for (guint i = 0; i < self->n_streams; i++) {
    HlsFormat format = { 0 };

    if (!hls_window_dup_format (hls_stream_get_window (self->streams[i]), &format))
      continue;
    add_variant (text, &format);
    g_string_append_printf (
        text, "\n%s/%u/%s\n", folder, i, kind == HLS_LIVE ? "live.m3u8" : "segments.m3u8");
    hls_format_clear (&format);
    n++;
  }
  if (n > 0)
    return g_string_free_to_bytes (text);
  g_string_free (text, TRUE);
  return NULL;
}

GBytes *
hls_group_write_reports (HlsGroup *self, guint own)
{
  GString *text;

  if (self->n_streams < 2)
    return NULL;
  text = g_string_new (NULL);
  for (guint i = 0; i < self->n_streams; i++) {
    gchar *uri = g_strdup_printf ("../%u/live.m3u8", i);

    if (i != own && !hls_stream_has_failed (self->streams[i]))
      hls_window_add_report (hls_stream_get_window (self->streams[i]), text, uri);
    g_free (uri);
  }
  if (text->len > 0)
    return g_string_free_to_bytes (text);
  g_string_free (text, TRUE);
  return NULL;
}
