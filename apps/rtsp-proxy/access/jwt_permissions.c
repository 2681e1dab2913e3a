// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/jwt_permissions.h"

#include "text/json_strict.h"

#include <string.h>

#define DEPTH_MAX 4

static gboolean
matches_regex (const gchar *regex, const gchar *path)
{
  g_autoptr (GRegex) compiled = g_regex_new (regex, 0, 0, NULL);

  return compiled && g_regex_match (compiled, path, 0, NULL);
}

// Reports whether the path of a permission is `path` or above it. Both are without leading slash.
static gboolean
covers (const gchar *permitted, const gchar *path)
{
  gsize len = strlen (permitted);

  if (strchr (permitted, '*'))
    return g_pattern_match_simple (permitted, path);
  return strncmp (path, permitted, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static gboolean
permits_path (const gchar *permitted, const gchar *path)
{
  if (!path)
    return FALSE;
  path += path[0] == '/';
  if (permitted[0] == '~')
    return matches_regex (permitted + 1, path);
  return covers (permitted + (permitted[0] == '/'), path);
}

static gboolean
permits (JsonObject *permission, AccessAction action, const gchar *path, const gchar *mount)
{
  const gchar *name = json_strict_text (permission, "action");
  const gchar *permitted = json_strict_text (permission, "path");

  if (g_strcmp0 (name, access_action_words[action]) != 0)
    return FALSE;
  if (!permitted)
    return !json_object_has_member (permission, "path");
  return !*permitted || permits_path (permitted, path) || permits_path (permitted, mount);
}

static gboolean
any_permits (JsonArray *list, AccessAction action, const gchar *path, const gchar *mount)
{
  for (guint i = 0; i < json_array_get_length (list); i++) {
    JsonNode *node = json_array_get_element (list, i);

    if (JSON_NODE_HOLDS_OBJECT (node) && permits (json_node_get_object (node), action, path, mount))
      return TRUE;
  }
  return FALSE;
}

gboolean
jwt_permits (JsonObject *claims, const gchar *claim, AccessAction action, const gchar *path,
    const gchar *mount)
{
  JsonArray *list = json_strict_array (claims, claim);
  const gchar *text = json_strict_text (claims, claim);
  g_autofree gchar *wrapped = text ? g_strconcat ("{\"list\":", text, "}", NULL) : NULL;
  g_autoptr (JsonObject) parsed =
      wrapped ? json_strict_read (wrapped, strlen (wrapped), DEPTH_MAX) : NULL;

  if (parsed)
    list = json_strict_array (parsed, "list");
  return list && any_permits (list, action, path, mount);
}
