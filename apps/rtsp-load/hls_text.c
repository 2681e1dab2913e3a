// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "hls_text.h"

#include <string.h>

// Returns the next line, which ends at `*len`, or NULL.
static const gchar *
next_line (const gchar **text, gsize *len)
{
  const gchar *line = *text;

  if (!*line)
    return NULL;
  *len = strcspn (line, "\n");
  *text = line + *len + (line[*len] == '\n');
  while (*len > 0 && line[*len - 1] == '\r')
    --*len;
  return line;
}

// Returns where the value of an attribute begins, or NULL.
static const gchar *
find_attribute (const gchar *line, gsize len, const gchar *name)
{
  const gchar *at = strchr (line, ':');
  gsize size = strlen (name);
  gboolean quoted = FALSE;

  for (; at && at < line + len; at++) {
    if (*at == '"')
      quoted = !quoted;
    else if (!quoted && (*at == ',' || *at == ':') && strncmp (at + 1, name, size) == 0
             && at[1 + size] == '=')
      return at + 2 + size;
  }
  return NULL;
}

static gchar *
dup_quoted (const gchar *line, gsize len, const gchar *name)
{
  const gchar *value = find_attribute (line, len, name);
  const gchar *end = value && *value == '"' ? strchr (value + 1, '"') : NULL;

  return end && end < line + len ? g_strndup (value + 1, (gsize) (end - value - 1)) : NULL;
}

static gint64
read_us (const gchar *number)
{
  gdouble seconds = number ? g_ascii_strtod (number, NULL) : 0;

  return seconds > 0 && seconds < 1e6 ? (gint64) (seconds * 1e6) : 0;
}

static gboolean
is_tag (const gchar *line, const gchar *tag)
{
  return g_str_has_prefix (line, tag);
}

gchar *
hls_text_find_rendition (const gchar *text)
{
  gboolean stream = FALSE;
  const gchar *line;
  gsize len;

  while ((line = next_line (&text, &len))) {
    if (is_tag (line, "#EXT-X-STREAM-INF:"))
      stream = TRUE;
    else if (stream && len > 0 && *line != '#')
      return g_strndup (line, len);
  }
  return NULL;
}

static gint64
read_date (const gchar *line, gsize len)
{
  gchar *text = g_strndup (strchr (line, ':') + 1, len - (gsize) (strchr (line, ':') + 1 - line));
  GDateTime *date = g_date_time_new_from_iso8601 (text, NULL);
  gint64 us =
      date ? g_date_time_to_unix (date) * G_USEC_PER_SEC + g_date_time_get_microsecond (date) : 0;

  g_clear_pointer (&date, g_date_time_unref);
  g_free (text);
  return us;
}

// The times of the segment and of the part that the next lines are about; 0: unknown.
typedef struct {
  gint64 segment_us, part_us;
} At;

static void
add_part (HlsPlaylist *self, const gchar *line, gsize len, At *at)
{
  HlsPart part = { .uri = dup_quoted (line, len, "URI"),
    .begin_us = at->part_us,
    .duration_us = read_us (find_attribute (line, len, "DURATION")),
    .independent = find_attribute (line, len, "INDEPENDENT") != NULL };

  if (at->part_us)
    at->part_us += part.duration_us;
  self->n_open++;
  if (part.uri)
    g_array_append_val (self->parts, part);
}

static void
end_segment (HlsPlaylist *self, At *at, gint64 duration_us)
{
  if (at->segment_us)
    at->segment_us += duration_us;
  at->part_us = at->segment_us;
  self->sequence++;
  self->n_open = 0;
}

static void
set (gchar **to, gchar *value)
{
  if (!value)
    return;
  g_free (*to);
  *to = value;
}

static void
read_line (HlsPlaylist *self, const gchar *line, gsize len, At *at, gint64 *duration_us)
{
  const gchar *value;

  if (is_tag (line, "#EXT-X-MEDIA-SEQUENCE:")) {
    self->sequence = g_ascii_strtoull (line + 22, NULL, 10);
  } else if (is_tag (line, "#EXT-X-PART-INF:")) {
    self->part_target_us = read_us (find_attribute (line, len, "PART-TARGET"));
  } else if (is_tag (line, "#EXT-X-SERVER-CONTROL:")) {
    value = find_attribute (line, len, "CAN-BLOCK-RELOAD");
    self->can_block = value && g_str_has_prefix (value, "YES");
  } else if (is_tag (line, "#EXT-X-PROGRAM-DATE-TIME:")) {
    at->segment_us = at->part_us = read_date (line, len);
  } else if (is_tag (line, "#EXT-X-MAP:")) {
    set (&self->map, dup_quoted (line, len, "URI"));
  } else if (is_tag (line, "#EXT-X-PART:")) {
    add_part (self, line, len, at);
  } else if (is_tag (line, "#EXTINF:")) {
    *duration_us = read_us (line + 8);
  } else if (is_tag (line, "#EXT-X-PRELOAD-HINT:")) {
    value = find_attribute (line, len, "TYPE");
    if (value && g_str_has_prefix (value, "PART"))
      set (&self->hint, dup_quoted (line, len, "URI"));
  } else if (len > 0 && *line != '#') {
    end_segment (self, at, *duration_us);
  }
}

static void
clear_part (gpointer part)
{
  g_free (((HlsPart *) part)->uri);
}

gboolean
hls_text_read (HlsPlaylist *self, const gchar *text)
{
  gint64 duration_us = 0;
  const gchar *line;
  At at = { 0 };
  gsize len;

  *self = (HlsPlaylist) { .parts = g_array_new (FALSE, FALSE, sizeof (HlsPart)) };
  g_array_set_clear_func (self->parts, clear_part);
  if (!is_tag (text, "#EXTM3U"))
    return FALSE;
  while ((line = next_line (&text, &len)))
    read_line (self, line, len, &at, &duration_us);
  return TRUE;
}

void
hls_text_clear (HlsPlaylist *self)
{
  g_array_unref (self->parts);
  g_free (self->map);
  g_free (self->hint);
}
