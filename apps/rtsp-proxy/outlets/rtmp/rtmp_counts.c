// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtmp/rtmp_counts.h"

static gint connections;
static GMutex lock;
static guint64 unusable; // protected by `lock`

void
rtmp_counts_add_connections (gint n)
{
  g_atomic_int_add (&connections, n);
}

guint
rtmp_counts_get_connections (void)
{
  return (guint) g_atomic_int_get (&connections);
}

void
rtmp_counts_add_unusable (void)
{
  g_mutex_lock (&lock);
  unusable++;
  g_mutex_unlock (&lock);
}

guint64
rtmp_counts_get_unusable (void)
{
  guint64 n;

  g_mutex_lock (&lock);
  n = unusable;
  g_mutex_unlock (&lock);
  return n;
}
