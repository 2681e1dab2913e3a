// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_left_out.h"

static GMutex lock;
static GHashTable *texts; // path: text; with `lock` held

void
hls_left_out_set (const gchar *path, const gchar *why)
{
  g_mutex_lock (&lock);
  if (!texts)
    texts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  if (why)
    g_hash_table_insert (texts, g_strdup (path), g_strdup (why));
  else
    g_hash_table_remove (texts, path);
  g_mutex_unlock (&lock);
}

gchar *
hls_left_out_dup (const gchar *path)
{
  gchar *why;

  g_mutex_lock (&lock);
  why = texts ? g_strdup (g_hash_table_lookup (texts, path)) : NULL;
  g_mutex_unlock (&lock);
  return why;
}
