// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_path.h"

#include <string.h>

gchar *
mount_check_path (const gchar *path)
{
  if (path[0] != '/' || !path[1] || g_str_has_suffix (path, "/") || strstr (path, "//")
      || strlen (path) > 255)
    return g_strdup_printf ("\"%s\" is not a valid path; write it like /cam", path);
  for (const gchar *c = path; *c; c++) {
    if (!g_ascii_isalnum (*c) && !strchr ("/-_.~", *c))
      return g_strdup_printf ("\"%s\" contains a character other than A-Z a-z 0-9 / - _ . ~", path);
  }
  if (g_str_has_prefix (strrchr (path, '/'), "/stream="))
    return g_strdup ("/stream=N is the name of a track; choose another path");
  if (g_str_has_suffix (path, "/insert") && strchr (path + 1, '/'))
    return g_strdup ("/insert behind a path is an operation of the API; choose another path");
  return NULL;
}

gchar *
mount_path_check (SchemaText *it)
{
  return mount_check_path (it->text);
}
