// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/sharing.h"

static const Sharing *sharing;
static gpointer sharing_data;
static gboolean is_expected;

void
sharing_expect (void)
{
  is_expected = TRUE;
}

gboolean
sharing_is_expected (void)
{
  return is_expected;
}

void
sharing_set (const Sharing *new_sharing, gpointer data)
{
  sharing = new_sharing;
  sharing_data = data;
}

const Sharing *
sharing_get (gpointer *data)
{
  *data = sharing_data;
  return sharing;
}

gboolean
sharing_is_for (const PullConfig *config)
{
  static const gchar *const schemes[] = { "rtsp://", "rtsps://", "http://", "https://", "srt://",
    "rtmp://" };

  if (config->titles != PULL_TITLES_NONE || config->lack || !config->uri)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (schemes); i++) {
    if (g_str_has_prefix (config->uri, schemes[i]))
      return TRUE;
  }
  return pull_config_awaits (config);
}
