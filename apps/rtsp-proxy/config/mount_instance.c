// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_instance.h"

#include "config/mount_pattern.h"
#include "config/mount_stages.h"
#include "config/mount_upstreams.h"
#include "sources/pull.h"

#include <string.h>

// ---- checks ----

static gboolean
has_variable_host (const MountConfig *pattern, const gchar *uri)
{
  gboolean in_host = FALSE;

  g_free (mount_pattern_check_uri (pattern->pattern, uri, &in_host));
  return in_host;
}

const gchar *
mount_instance_find_wrong (const MountConfig *pattern, const gchar **key)
{
  gboolean in_host = FALSE;

  for (gchar **uri = pattern->upstreams; *uri; uri++)
    in_host |= has_variable_host (pattern, *uri);
  *key = "hosts";
  if (in_host && !*pattern->hosts)
    return "a variable is in the host of the upstream: list the whole hosts that it may lead to, "
           "such as [cam1.example.org]";
  if (!in_host && *pattern->hosts)
    return "no upstream has a variable in its host";
  *key = "inputs";
  if (*pattern->inputs)
    return "a pattern has no inputs";
  *key = "broadcast";
  if (pattern->broadcast.groups)
    return "the mounts of a pattern would share the groups";
  *key = "upstream";
  return mount_config_get_titles (pattern)
             ? "a pattern serves no folder; a folder serves many titles "
               "already"
             : NULL;
}

// ---- instances ----

static void
keep_first (
    gpointer data, const gchar *key, guint line, guint column, ConfigError code, gchar *text)
{
  gchar **first = data;

  g_free (*first);
  *first = text;
}

static gboolean
is_listed (const MountConfig *pattern, const gchar *uri)
{
  g_autofree gchar *host = mount_pattern_dup_host (uri);

  for (gchar **each = pattern->hosts; *each; each++) {
    if (g_ascii_strcasecmp (*each, host) == 0)
      return TRUE;
  }
  return FALSE;
}

static gboolean
expand (MountConfig *self, const MountConfig *pattern, GHashTable *values)
{
  for (guint i = 0; self->upstreams[i]; i++) {
    gchar *uri = mount_pattern_expand (self->upstreams[i], values);

    g_free (self->upstreams[i]);
    self->upstreams[i] = uri;
    if (has_variable_host (pattern, pattern->upstreams[i]) && !is_listed (pattern, uri))
      return FALSE;
  }
  return TRUE;
}

MountConfig *
mount_instance_new (const MountConfig *pattern, const gchar *path)
{
  g_autoptr (GHashTable) values = mount_pattern_match (pattern->pattern, path);
  MountConfig *self;
  g_autofree gchar *wrong = NULL;

  if (!values)
    return NULL;
  self = mount_config_copy (pattern);
  g_free (self->path);
  self->path = g_strdup (path);
  self->pattern = mount_pattern_ref (pattern->pattern);
  if (expand (self, pattern, values))
    wrong = mount_upstreams_apply (self);
  if (self->pulls->len == 0 || wrong || mount_config_get_titles (self)
      || !mount_stages_make (self, pattern->stage_set, 0, 0, keep_first, &wrong))
    g_clear_pointer (&self, mount_config_unref);
  return self;
}
