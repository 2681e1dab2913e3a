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

// Parses "part12.mp4".
static void
parse_file (HlsTarget *self, const gchar *name)
{
  static const struct {
    const gchar *prefix;
    HlsThing thing;
  } files[] = { { "init", HLS_INIT }, { "part", HLS_PART }, { "seg", HLS_SEGMENT } };

  for (guint i = 0; i < G_N_ELEMENTS (files) && g_str_has_suffix (name, ".mp4"); i++) {
    gsize start = strlen (files[i].prefix);
    gchar *digits = strncmp (name, files[i].prefix, start) == 0
                        ? g_strndup (name + start, strlen (name) - start - strlen (".mp4"))
                        : NULL;

    if (digits && read_number (digits, G_MAXINT64, &self->number))
      self->thing = files[i].thing;
    g_free (digits);
  }
}

// Parses "~SESSION/0/NAME".
static void
parse_session (HlsTarget *self, const gchar *path)
{
  gchar **parts = g_strsplit (path, "/", 4);
  guint64 rendition;
  gint kind;

  if (g_strv_length (parts) == 3 && strlen (parts[0]) == 1 + HLS_SESSION_DIGITS
      && read_number (parts[1], G_MAXUINT, &rendition)) {
    g_strlcpy (self->session, parts[0] + 1, sizeof self->session);
    self->rendition = (guint) rendition;
    kind = find (playlists, parts[2]);
    if (kind >= 0) {
      self->thing = HLS_PLAYLIST;
      self->ask.kind = (HlsKind) kind;
    } else {
      parse_file (self, parts[2]);
    }
  }
  g_strfreev (parts);
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

void
hls_target_parse (HlsTarget *self, const gchar *target)
{
  const gchar *query = strchr (target, '?');
  gchar *path = query ? g_strndup (target, (gsize) (query - target)) : g_strdup (target);
  const gchar *session = g_strrstr (path, "/~"), *name = strrchr (path, '/');
  gint kind;

  *self = (HlsTarget) { .ask = { .msn = -1, .part = -1 } };
  if (session)
    parse_session (self, session + 1);
  if (self->thing == HLS_NOTHING) {
    kind = find (masters, name + 1);
    if (kind >= 0 && name > path + strlen (HLS_PREFIX)) {
      self->thing = HLS_MASTER;
      self->ask.kind = (HlsKind) kind;
    }
  }
  if (query && self->thing == HLS_PLAYLIST)
    parse_query (self, query + 1);
  g_free (path);
}

gchar *
hls_target_dup_mount (const gchar *target)
{
  const gchar *query = strchr (target, '?');
  gchar *path = query ? g_strndup (target, (gsize) (query - target)) : g_strdup (target);
  gchar *mount = NULL;
  HlsTarget parsed;

  hls_target_parse (&parsed, path);
  if (parsed.thing == HLS_MASTER) {
    *strrchr (path, '/') = 0;
    mount = g_strconcat (path + strlen (HLS_PREFIX) - 1, query, NULL);
  }
  g_free (path);
  return mount;
}
