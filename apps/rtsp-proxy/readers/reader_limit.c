// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/reader_limit.h"

static GMutex lock;
static GHashTable *taken; // path -> number; use with `lock` held

gboolean
reader_limit_take (const gchar *mount, guint max)
{
  gboolean may;
  guint n;

  g_mutex_lock (&lock);
  if (!taken)
    taken = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  n = GPOINTER_TO_UINT (g_hash_table_lookup (taken, mount));
  may = max == 0 || n < max;
  if (may)
    g_hash_table_insert (taken, g_strdup (mount), GUINT_TO_POINTER (n + 1));
  g_mutex_unlock (&lock);
  return may;
}

void
reader_limit_leave (const gchar *mount)
{
  guint n;

  g_mutex_lock (&lock);
  n = GPOINTER_TO_UINT (g_hash_table_lookup (taken, mount));
  if (n > 1)
    g_hash_table_insert (taken, g_strdup (mount), GUINT_TO_POINTER (n - 1));
  else
    g_hash_table_remove (taken, mount);
  g_mutex_unlock (&lock);
}

gboolean
reader_limit_is_full (const gchar *mount, guint max)
{
  guint n;

  g_mutex_lock (&lock);
  n = taken ? GPOINTER_TO_UINT (g_hash_table_lookup (taken, mount)) : 0;
  g_mutex_unlock (&lock);
  return max > 0 && n >= max;
}
