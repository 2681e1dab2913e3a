// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/transport_ports.h"

struct _TransportPorts {
  gchar *keys[2]; // "HOST PORT"
};

// A port that is taken. An owner may take it several times.
typedef struct {
  gpointer owner;
  guint times;
} Taken;

static GMutex lock;
static GHashTable *all; // key -> Taken; guarded by `lock`

static gboolean
is_free (const gchar *key, gpointer owner)
{
  Taken *taken = g_hash_table_lookup (all, key);

  return !taken || taken->owner == owner;
}

static void
take (const gchar *key, gpointer owner)
{
  Taken *taken = g_hash_table_lookup (all, key);

  if (!taken) {
    taken = g_new (Taken, 1);
    *taken = (Taken) { owner, 0 };
    g_hash_table_insert (all, g_strdup (key), taken);
  }
  taken->times++;
}

static void
give_back (const gchar *key)
{
  Taken *taken = g_hash_table_lookup (all, key);

  if (--taken->times == 0)
    g_hash_table_remove (all, key);
}

static void
free_keys (TransportPorts *self)
{
  g_free (self->keys[0]);
  g_free (self->keys[1]);
  g_free (self);
}

TransportPorts *
transport_ports_take (const gchar *host, guint rtp, guint rtcp, gpointer owner)
{
  TransportPorts *self = g_new0 (TransportPorts, 1);
  gboolean ok;

  self->keys[0] = g_strdup_printf ("%s %u", host, rtp);
  self->keys[1] = g_strdup_printf ("%s %u", host, rtcp);
  g_mutex_lock (&lock);
  if (!all)
    all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  ok = is_free (self->keys[0], owner) && is_free (self->keys[1], owner);
  for (guint i = 0; ok && i < 2; i++)
    take (self->keys[i], owner);
  g_mutex_unlock (&lock);
  if (ok)
    return self;
  free_keys (self);
  return NULL;
}

void
transport_ports_free (TransportPorts *self)
{
  if (!self)
    return;
  g_mutex_lock (&lock);
  give_back (self->keys[0]);
  give_back (self->keys[1]);
  g_mutex_unlock (&lock);
  free_keys (self);
}
