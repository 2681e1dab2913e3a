// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/picture/picture_target.h"

#include <string.h>

#include "outlets/http/http_route.h"

#define WIDTH "width="

gchar *
picture_target_dup_mount (const gchar *target)
{
  const gchar *end = http_route_find_suffix (target, PICTURE_SUFFIX);
  const gchar *rest = end + strlen (PICTURE_SUFFIX);
  GString *mount;
  gchar separator = '?';

  if (*rest == '/')
    return NULL;
  mount = g_string_new_len (target, end - target - 1);
  if (*rest == '?') {
    g_auto (GStrv) items = g_strsplit (rest + 1, "&", -1);

    for (gchar **item = items; *item; item++) {
      if (g_str_has_prefix (*item, WIDTH))
        continue;
      g_string_append_c (mount, separator);
      g_string_append (mount, *item);
      separator = '&';
    }
  }
  return g_string_free (mount, FALSE);
}

gboolean
picture_target_read_width (const gchar *target, guint *width)
{
  const gchar *query = strchr (target, '?');
  g_auto (GStrv) items = g_strsplit (query ? query + 1 : "", "&", -1);
  guint64 number;

  *width = 0;
  for (gchar **item = items; *item; item++) {
    if (!g_str_has_prefix (*item, WIDTH))
      continue;
    if (*width > 0
        || !g_ascii_string_to_unsigned (
            *item + strlen (WIDTH), 10, PICTURE_WIDTH_MIN, PICTURE_WIDTH_MAX, &number, NULL))
      return FALSE;
    *width = (guint) number;
  }
  return TRUE;
}
