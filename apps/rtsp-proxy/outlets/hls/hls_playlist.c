// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_window_private.h"

#define NS_PER_S 1e9
#define PARTS_S 3 // target durations from the end, in which parts are listed
#define SKIP_S 6  // and before which segments may be skipped

static void
add_seconds (GString *text, const gchar *before, gint64 ns)
{
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];

  g_ascii_formatd (number, sizeof number, "%.5f", (gdouble) ns / NS_PER_S);
  g_string_append_printf (text, "%s%s", before, number);
}

static void
add_wall (GString *text, gint64 us)
{
  g_autoptr (GDateTime) date = g_date_time_new_from_unix_utc (us / G_USEC_PER_SEC);
  g_autofree gchar *seconds = date ? g_date_time_format (date, "%Y-%m-%dT%H:%M:%S") : NULL;

  if (seconds)
    g_string_append_printf (
        text, "#EXT-X-PROGRAM-DATE-TIME:%s.%03uZ\n", seconds, (guint) (us % G_USEC_PER_SEC / 1000));
}

static void
add_parts (GString *text, const HlsSegment *segment)
{
  for (guint i = 0; i < segment->parts->len; i++) {
    const HlsPart *part = g_ptr_array_index (segment->parts, i);

    add_seconds (text, "#EXT-X-PART:DURATION=", part->duration_ns);
    g_string_append_printf (text, ",URI=\"part%" G_GUINT64_FORMAT ".mp4\"%s\n", part->number,
        !part->data         ? ",GAP=YES"
        : part->independent ? ",INDEPENDENT=YES"
                            : "");
  }
}

static void
add_segment (GString *text, const HlsSegment *segment, const HlsSegment *before, gboolean parts)
{
  for (guint64 n = before ? before->discontinuities : segment->discontinuities;
      n < segment->discontinuities; n++)
    g_string_append (text, "#EXT-X-DISCONTINUITY\n");
  if (!before || segment->init != before->init)
    g_string_append_printf (
        text, "#EXT-X-MAP:URI=\"init%" G_GUINT64_FORMAT ".mp4\"\n", segment->init);
  if (segment->gap)
    g_string_append (text, "#EXT-X-GAP\n");
  if (segment->parts->len > 0)
    add_wall (text, segment->wall_us);
  if (parts)
    add_parts (text, segment);
  if (!segment->ended && !segment->gap)
    return;
  add_seconds (text, "#EXTINF:", segment->duration_ns);
  g_string_append_printf (text, ",\nseg%" G_GUINT64_FORMAT ".mp4\n", segment->msn);
}

static void
add_head (HlsWindow *self, GString *text, HlsKind kind)
{
  g_string_append_printf (text, "#EXTM3U\n#EXT-X-VERSION:%u\n#EXT-X-TARGETDURATION:%u\n",
      kind == HLS_LIVE ? 9 : 6, self->target_s);
  if (kind != HLS_LIVE)
    return;
  add_seconds (
      text, "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=", 3 * self->part_target_ns);
  g_string_append_printf (text, ",CAN-SKIP-UNTIL=%u\n", SKIP_S * self->target_s);
  add_seconds (text, "#EXT-X-PART-INF:PART-TARGET=", self->part_target_ns);
  g_string_append (text, "\n");
}

// Returns the index of the first segment that a delta update has.
static guint
find_kept (HlsWindow *self, guint first)
{
  gint64 left = (gint64) (SKIP_S * self->target_s * NS_PER_S);
  guint i = self->segments->len;

  while (i > first && left > 0)
    left -= hls_window_nth (self, --i)->duration_ns;
  return i;
}

static gboolean
all_independent (HlsWindow *self, guint first)
{
  for (guint i = first; i < self->segments->len; i++) {
    const HlsSegment *segment = hls_window_nth (self, i);

    if (!segment->gap && segment->ended && !segment->independent)
      return FALSE;
  }
  return TRUE;
}

GBytes *
hls_playlist_write (HlsWindow *self, HlsKind kind, gboolean skips)
{
  GString *text = g_string_new (NULL);
  guint first = hls_window_first_listed (self), from, end = self->segments->len;
  gint64 left = (gint64) (PARTS_S * self->target_s * NS_PER_S);
  guint parts_from = end;

  while (kind == HLS_PLAIN && first + 1 < end && hls_window_nth (self, first)->gap)
    first++;
  if (kind == HLS_PLAIN && self->is_open)
    end--;
  from = skips && kind == HLS_LIVE ? find_kept (self, first) : first;
  while (kind == HLS_LIVE && parts_from > from && left > 0)
    left -= hls_window_nth (self, --parts_from)->duration_ns;
  add_head (self, text, kind);
  if (all_independent (self, first))
    g_string_append (text, "#EXT-X-INDEPENDENT-SEGMENTS\n");
  g_string_append_printf (text,
      "#EXT-X-MEDIA-SEQUENCE:%" G_GUINT64_FORMAT
      "\n#EXT-X-DISCONTINUITY-SEQUENCE:%" G_GUINT64_FORMAT "\n",
      hls_window_nth (self, first)->msn, hls_window_nth (self, first)->discontinuities);
  if (from > first)
    g_string_append_printf (text, "#EXT-X-SKIP:SKIPPED-SEGMENTS=%u\n", from - first);
  for (guint i = from; i < end; i++)
    add_segment (text, hls_window_nth (self, i), i > first ? hls_window_nth (self, i - 1) : NULL,
        i >= parts_from);
  if (kind == HLS_LIVE)
    g_string_append_printf (text,
        "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"part%" G_GUINT64_FORMAT ".mp4\"\n", self->next_part);
  return g_string_free_to_bytes (text);
}
