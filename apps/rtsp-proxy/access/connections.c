// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/connections.h"

#include "base/address.h"
#include "base/memory.h"

struct _Connections {
  gatomicrefcount refs;
  GMutex lock; // guards all below
  guint n;
  GHashTable *addresses; // address -> number of its connections
};

Connections *
connections_new (void)
{
  Connections *self = g_new0 (Connections, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->addresses = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

Connections *
connections_ref (Connections *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
connections_unref (Connections *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->addresses);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gboolean
connections_enter (
    Connections *self, const Limits *limits, GInetAddress *address, RefusedReason *reason)
{
  g_autofree gchar *key = address_dup_key (address);
  gboolean own = limits->address_connections > 0 && !address_is_loopback (address), may;
  guint n;

  g_mutex_lock (&self->lock);
  n = GPOINTER_TO_UINT (g_hash_table_lookup (self->addresses, key));
  *reason = own && n >= limits->address_connections ? REFUSED_ADDRESS : REFUSED_CONNECTIONS;
  may = self->n < limits->connections && *reason != REFUSED_ADDRESS;
  if (may) {
    self->n++;
    g_hash_table_insert (self->addresses, g_strdup (key), GUINT_TO_POINTER (n + 1));
  }
  g_mutex_unlock (&self->lock);
  return may;
}

gboolean
connections_admit (
    Connections *self, GInetAddress *address, const gchar *kind, const gchar *peer, gchar **text)
{
  RefusedReason reason = REFUSED_MEMORY;
  gchar *ip, *problem;
  Limits limits;

  limits_get (&limits);
  if (memory_get_level () == MEMORY_ENOUGH && connections_enter (self, &limits, address, &reason))
    return TRUE;
  if (reason == REFUSED_MEMORY)
    problem = g_strdup (MEMORY_PROBLEM);
  else
    problem = g_strdup_printf ("there are too many %s%s", kind,
        reason == REFUSED_ADDRESS ? " from this address (limits.connections-per-address)"
                                  : " (limits.connections)");
  ip = g_inet_address_to_string (address);
  refusals_note (reason, peer ? peer : ip, "%s", problem);
  g_free (ip);
  if (text)
    *text = problem;
  else
    g_free (problem);
  return FALSE;
}

void
connections_leave (Connections *self, GInetAddress *address)
{
  g_autofree gchar *key = address_dup_key (address);
  guint n;

  g_mutex_lock (&self->lock);
  n = GPOINTER_TO_UINT (g_hash_table_lookup (self->addresses, key));
  self->n--;
  if (n > 1)
    g_hash_table_insert (self->addresses, g_strdup (key), GUINT_TO_POINTER (n - 1));
  else
    g_hash_table_remove (self->addresses, key);
  g_mutex_unlock (&self->lock);
}

guint
connections_count (Connections *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n;
  g_mutex_unlock (&self->lock);
  return n;
}
