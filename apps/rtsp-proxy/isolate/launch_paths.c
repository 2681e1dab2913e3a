// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/launch_paths.h"
#include "isolate/spawn.h"

#include <string.h>

// Reports whether the '/' at `at` begins a path: a value, or what follows file://.
static gboolean
begins_path (const gchar *text, const gchar *at)
{
  return at > text
         && (strchr ("=\"' \t\n", at[-1]) || (at - text >= 7 && !strncmp (at - 7, "file://", 7)));
}

// Returns the path that begins at `at`, up to a quote that has begun before it, or a space.
static gchar *
dup_path (const gchar *text, const gchar *at)
{
  const gchar *quote = at;

  while (quote > text && !strchr ("=\"' \t\n", quote[-1]))
    quote--;
  if (quote > text && (quote[-1] == '"' || quote[-1] == '\''))
    return g_strndup (at, strcspn (at, (gchar[]) { quote[-1], '\0' }));
  return g_strndup (at, strcspn (at, "\"' \t\n"));
}

static void
add (GStrvBuilder *out, const gchar *path)
{
  g_autofree gchar *folder = NULL;

  if (strpbrk (path, "%*?"))
    path = folder = g_path_get_dirname (path);
  if (strspn (path, "/.") < strlen (path) && g_file_test (path, G_FILE_TEST_EXISTS))
    g_strv_builder_add (out, path);
}

GStrv
launch_paths_find (const gchar *text)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (const gchar *at = strchr (text, '/'); at; at = strchr (at + 1, '/')) {
    g_autofree gchar *path = NULL;

    if (!begins_path (text, at))
      continue;
    path = dup_path (text, at);
    add (builder, path);
    at += MAX (strlen (path), 1) - 1;
  }
  return g_strv_builder_end (builder);
}

void
launch_paths_allow (GStrv paths, WorkerKind kind)
{
  for (gchar **path = paths; *path; path++)
    spawn_allow (kind, *path);
}
