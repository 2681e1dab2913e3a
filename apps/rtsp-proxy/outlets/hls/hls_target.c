// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_target.h"

#include <string.h>

static const gchar *const masters[HLS_N_KINDS] = {
  [HLS_LIVE] = "index.m3u8", [HLS_PLAIN] = "plain.m3u8"
};
static const gchar *const playlists[HLS_N_KINDS] = {
  [HLS_LIVE] = "live.m3u8", [HLS_PLAIN] = "segments.m3u8"
};

static gboolean
read_number (const gchar *text, guint64 max, guint64 *number)
{
  return g_ascii_string_to_unsigned (text, 10, 0, max, number, NULL);
}

static gint
find (const gchar *const names[HLS_N_KINDS], const gchar *name)
{
  for (gint i = 0; i < HLS_N_KINDS; i++) {
    if (g_str_equal (names[i], name))
      return i;
  }
  return -1;
}

// Parses "part12.mp4". Changes the text.
static void
parse_file (HlsTarget *self, gchar *name)
{
  static const struct {
    const gchar *prefix;
    HlsThing thing;
  } files[] = { { "init", HLS_INIT }, { "part", HLS_PART }, { "seg", HLS_SEGMENT } };

  if (!g_str_has_suffix (name, ".mp4"))
    return;
  name[strlen (name) - strlen (".mp4")] = 0;
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    gsize start = strlen (files[i].prefix);

    if (strncmp (name, files[i].prefix, start) == 0
        && read_number (name + start, G_MAXINT64, &self->number))
      self->thing = files[i].thing;
  }
}

// Ends the text before the next `mark`. Returns what follows that, or NULL.
static gchar *
cut (gchar *text, gchar mark)
{
  gchar *found = text ? strchr (text, mark) : NULL;

  if (found)
    *found = 0;
  return found ? found + 1 : NULL;
}

// Parses "~SESSION/0/NAME" or "~SESSION/0-1/NAME". Changes the text.
static void
parse_session (HlsTarget *self, gchar *session)
{
  gchar *number = cut (session, '/'), *name = cut (number, '/'), *further = cut (number, '-');
  guint64 rendition, window = 0;
  gint kind;

  if (!name || strchr (name, '/') || strlen (session) != 1 + HLS_SESSION_DIGITS
      || !read_number (number, G_MAXUINT, &rendition)
      || (further && !read_number (further, G_MAXUINT, &window)))
    return;
  g_strlcpy (self->session, session + 1, sizeof self->session);
  self->rendition = (guint) rendition;
  self->window = (guint) window;
  kind = find (playlists, name);
  if (kind >= 0) {
    self->thing = HLS_PLAYLIST;
    self->ask.kind = (HlsKind) kind;
  } else {
    parse_file (self, name);
  }
}

static gboolean
read_directive (const gchar *value, gint64 *number)
{
  guint64 read;

  if (!read_number (value, G_MAXINT32, &read))
    return FALSE;
  *number = (gint64) read;
  return TRUE;
}

static void
parse_query (HlsTarget *self, const gchar *query)
{
  GUriParamsIter iter;
  gchar *name, *value;
  gboolean fine = TRUE;

  g_uri_params_iter_init (&iter, query, -1, "&", G_URI_PARAMS_NONE);
  while (g_uri_params_iter_next (&iter, &name, &value, NULL)) {
    if (g_str_equal (name, "_HLS_msn"))
      fine &= read_directive (value, &self->ask.msn);
    else if (g_str_equal (name, "_HLS_part"))
      fine &= read_directive (value, &self->ask.part);
    else if (g_str_equal (name, "_HLS_skip"))
      self->ask.skips = g_str_equal (value, "YES") || g_str_equal (value, "v2");
    g_free (name);
    g_free (value);
  }
  self->wrong = !fine || (self->ask.part >= 0 && self->ask.msn < 0);
}

// Returns the kind of a master playlist, or -1. Sets `name` to the last slash of the path.
static gint
find_master (const gchar *target, gsize length, const gchar **name)
{
  *name = memrchr (target, '/', length);
  for (gint i = 0; i < HLS_N_KINDS && *name > target + strlen (HLS_PREFIX); i++) {
    gsize size = strlen (masters[i]);

    if (target + length == *name + 1 + size && memcmp (*name + 1, masters[i], size) == 0)
      return i;
  }
  return -1;
}

void
hls_target_parse (HlsTarget *self, const gchar *target)
{
  gsize length = strcspn (target, "?");
  const gchar *name;
  gint kind = find_master (target, length, &name);
  gchar *path, *session;

  *self = (HlsTarget) { .ask = { .msn = -1, .part = -1 } };
  if (kind >= 0) {
    self->thing = HLS_MASTER;
    self->ask.kind = (HlsKind) kind;
    return;
  }
  path = g_strndup (target, length);
  session = g_strrstr (path, "/~");
  if (session)
    parse_session (self, session + 1);
  if (target[length] && self->thing == HLS_PLAYLIST)
    parse_query (self, target + length + 1);
  g_free (path);
}

gchar *
hls_target_dup_mount (const gchar *target)
{
  gsize length = strcspn (target, "?");
  const gchar *name, *path = target + strlen (HLS_PREFIX) - 1;

  return find_master (target, length, &name) >= 0
             ? g_strdup_printf ("%.*s%s", (int) (name - path), path, target + length)
             : NULL;
}
