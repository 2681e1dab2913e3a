// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/address.h"

#include <string.h>

static gboolean
names_track (const gchar *segment)
{
  return g_str_has_prefix (segment, "/stream=") && g_ascii_isdigit (segment[8])
         && segment[9] == '\0';
}

// Cuts a track, or a trailing slash, off the text.
static gchar *
cut_track (gchar *text)
{
  gchar *slash = strrchr (text, '/');
  gchar *track = g_strdup ("");

  if (slash && slash != text && (slash[1] == '\0' || names_track (slash))) {
    if (slash[1]) {
      g_free (track);
      track = g_strdup (slash);
    }
    *slash = '\0';
  }
  return track;
}

void
address_parse (Address *self, const GstRTSPUrl *url)
{
  self->path = g_strdup (url->abspath ? url->abspath : "");
  self->query = g_strdup (url->query);
  self->track = cut_track (self->query ? self->query : self->path);
}

void
address_clear (Address *self)
{
  g_free (self->path);
  g_free (self->query);
  g_free (self->track);
}

guint
address_cut_param (const gchar *query, const gchar *param, gchar **value, gchar **rest)
{
  gchar **items = g_strsplit (query ? query : "", "&", 0);
  GString *left = g_string_new (NULL);
  gsize len = strlen (param);
  guint n = 0;

  *value = NULL;
  for (gchar **item = items; *item; item++) {
    if (strncmp (*item, param, len) != 0 || (*item)[len] != '=')
      g_string_append_printf (left, "%s%s", left->len ? "&" : "", *item);
    else if (n++ == 0)
      *value = g_strdup (*item + len + 1);
  }
  g_strfreev (items);
  *rest = left->len > 0 ? g_string_free (left, FALSE) : (g_string_free (left, TRUE), NULL);
  return n;
}
