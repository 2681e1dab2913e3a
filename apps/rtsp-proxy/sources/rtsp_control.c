// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/rtsp_control.h"

#include <gst/rtsp/gstrtspurl.h>
#include <string.h>

#define URL_MAX 4096 // bytes

static gboolean
is_absolute (const gchar *url)
{
  return !g_ascii_strncasecmp (url, "rtsp://", 7) || !g_ascii_strncasecmp (url, "rtsps://", 8);
}

gboolean
rtsp_control_is_sound (const gchar *url)
{
  GstRTSPUrl *parsed = NULL;
  gsize len = strlen (url);

  for (const gchar *c = url; *c; c++) {
    if ((guchar) *c <= 0x20 || *c == 0x7f)
      return FALSE;
  }
  if (!is_absolute (url) || len >= URL_MAX || gst_rtsp_url_parse (url, &parsed) != GST_RTSP_OK)
    return FALSE;
  gst_rtsp_url_free (parsed);
  return TRUE;
}

// Reports whether `path` begins with the path of `base`, which ends at the query.
static gboolean
is_below (const gchar *path, const gchar *base_path)
{
  gsize len = strcspn (base_path, "?");

  while (len > 0 && base_path[len - 1] == '/')
    len--;
  return len > 0 && !strncmp (path, base_path, len) && path[len] == '/';
}

gchar *
rtsp_control_join (const gchar *base, const gchar *control)
{
  const gchar *path;
  gsize len = strlen (base);

  if (!control || !*control || g_str_equal (control, "*"))
    return g_strdup (base);
  if (is_absolute (control) || g_str_has_prefix (control, "//"))
    return g_strdup (control);
  path = strstr (base, "://");
  path = path ? path + 3 + strcspn (path + 3, "/?") : base + len;
  if (control[0] == '/' && is_below (control, path))
    return g_strdup_printf ("%.*s%s", (gint) (path - base), base, control);
  if (control[0] == '?')
    return g_strconcat (base, control, NULL);
  control += control[0] == '/' && len > 0 && base[len - 1] == '/';
  return g_strconcat (
      base, len > 0 && base[len - 1] != '/' && control[0] != '/' ? "/" : "", control, NULL);
}
