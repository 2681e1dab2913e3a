// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_counts.h"

static gint connections;
static guint dropped; // atomic
static GMutex lock;
static guint64 late[2]; // protected by `lock`

void
srt_counts_add_connections (gint n)
{
  g_atomic_int_add (&connections, n);
}

guint
srt_counts_get_connections (void)
{
  return (guint) g_atomic_int_get (&connections);
}

void
srt_counts_add_late (gboolean in, guint64 n)
{
  g_mutex_lock (&lock);
  late[!!in] += n;
  g_mutex_unlock (&lock);
}

guint64
srt_counts_get_late (gboolean in)
{
  guint64 n;

  g_mutex_lock (&lock);
  n = late[!!in];
  g_mutex_unlock (&lock);
  return n;
}

void
srt_counts_set_dropped (guint32 n)
{
  g_atomic_int_set (&dropped, n);
}

guint32
srt_counts_get_dropped (void)
{
  return (guint32) g_atomic_int_get (&dropped);
}
