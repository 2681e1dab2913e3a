// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_group.h"

struct _HlsGroup {
  gatomicrefcount refs;
  HlsStream *streams[HLS_STREAMS_MAX];
  guint n_streams;
};

HlsGroup *
hls_group_new (
    const HlsVariant *variants, guint n, const HlsSettings *settings, const HlsNumbers *first)
{
  HlsGroup *self = g_new0 (HlsGroup, 1);
  HlsCommon *common = hls_common_new (n, settings->lengths.segment_ns, first);

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

void
hls_group_raise (HlsGroup *self, HlsNumbers *numbers)
{
  for (guint i = 0; i < self->n_streams; i++) {
    for (guint k = 0; k < SEGMENT_TRACKS_MAX; k++)
      hls_window_raise (hls_stream_get_window (self->streams[i], k), numbers);
  }
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

// Adds the codec of a track to a value of CODECS, unless it has it.
static void
add_codec (GString *text, const gchar *codec)
{
  g_auto (GStrv) codecs = g_strsplit (text->str, ",", -1);

  if (!g_strv_contains ((const gchar *const *) codecs, codec))
    g_string_append_printf (text, ",%s", codec);
}

// Adds a rendition of sound of stream `i` to its group. Its number counts from 1; `uri` may be
// NULL, if the variant has it. `languages` are those of the group so far: a player does not choose
// by itself between two of one language.
static void
add_sound (GString *text, guint i, guint number, const SegmentFormat *format, const gchar *uri,
    GPtrArray *languages)
{
  gboolean is_told_apart = !g_ptr_array_find_with_equal_func (
      languages, format->language, (GEqualFunc) g_str_equal, NULL);

  g_string_append_printf (
      text, "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"sound%u\",NAME=\"Sound %u", i, number);
  if (*format->language)
    g_string_append_printf (text, " (%s)\",LANGUAGE=\"%s", format->language, format->language);
  g_string_append_printf (text, "\",DEFAULT=%s,AUTOSELECT=%s,CHANNELS=\"%u\"",
      number == 1 ? "YES" : "NO", is_told_apart ? "YES" : "NO", format->channels);
  if (uri)
    g_string_append_printf (text, ",URI=\"%s\"", uri);
  g_string_append (text, "\n");
  g_ptr_array_add (languages, g_strdup (format->language));
}

static gchar *
dup_uri (const gchar *folder, guint stream, guint window, HlsKind kind)
{
  const gchar *name = kind == HLS_LIVE ? "live.m3u8" : "segments.m3u8";

  return window > 0 ? g_strdup_printf ("%s/%u-%u/%s", folder, stream, window, name)
                    : g_strdup_printf ("%s/%u/%s", folder, stream, name);
}

// Adds the renditions of sound of stream `i`, if it has windows for them. Adds the greatest rates
// of these, and their codecs, to `format`. Returns whether there are any.
static gboolean
add_sounds (GString *text, HlsStream *stream, guint i, const gchar *folder, HlsKind kind,
    SegmentFormat *format)
{
  g_autoptr (GPtrArray) languages = g_ptr_array_new_with_free_func (g_free);
  GString *codecs = g_string_new (format->codecs);
  gboolean is_first = format->channels > 0; // the variant is the first of them
  guint64 average = 0, peak = 0;
  SegmentFormat sound = { 0 };
  guint n = 0;

  for (guint k = 1; k < SEGMENT_TRACKS_MAX; k++) {
    g_autofree gchar *uri = dup_uri (folder, i, k, kind);

    if (hls_window_dup_format (hls_stream_get_window (stream, k), &sound)) {
      if (n == 0 && is_first)
        add_sound (text, i, ++n, format, NULL, languages);
      add_sound (text, i, ++n, &sound, uri, languages);
      add_codec (codecs, sound.codecs);
      average = MAX (average, sound.average);
      peak = MAX (peak, sound.peak);
      hls_format_clear (&sound);
    }
  }
  g_free (format->codecs);
  format->codecs = g_string_free (codecs, FALSE);
  format->average = is_first ? MAX (format->average, average) : format->average + average;
  format->peak = is_first ? MAX (format->peak, peak) : format->peak + peak;
  return n > 0;
}

static void
add_variant (GString *text, const SegmentFormat *format)
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
    SegmentFormat format = { 0 };
    gboolean has_sounds;
    g_autofree gchar *uri = NULL;

    if (!hls_window_dup_format (hls_stream_get_window (self->streams[i], 0), &format))
      continue;
    uri = dup_uri (folder, i, 0, kind);
    has_sounds = add_sounds (text, self->streams[i], i, folder, kind, &format);
    add_variant (text, &format);
    if (has_sounds)
      g_string_append_printf (text, ",AUDIO=\"sound%u\"", i);
    g_string_append_printf (text, "\n%s\n", uri);
    hls_format_clear (&format);
    n++;
  }
  if (n > 0)
    return g_string_free_to_bytes (text);
  g_string_free (text, TRUE);
  return NULL;
}

GBytes *
hls_group_write_reports (HlsGroup *self, const HlsWindow *own)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < self->n_streams; i++) {
    for (guint k = 0; k < SEGMENT_TRACKS_MAX && !hls_stream_has_failed (self->streams[i]); k++) {
      HlsWindow *window = hls_stream_get_window (self->streams[i], k);
      g_autofree gchar *uri = NULL;

      if (window == own || !hls_window_has_begun (window))
        continue;
      uri = dup_uri ("..", i, k, HLS_LIVE);
      hls_window_add_report (window, text, uri);
    }
  }
  if (text->len > 0)
    return g_string_free_to_bytes (text);
  g_string_free (text, TRUE);
  return NULL;
}
