// SPDX-License-Identifier: LGPL-2.1-or-later
#include "address.h"

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
