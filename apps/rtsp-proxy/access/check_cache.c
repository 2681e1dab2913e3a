// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/check_cache.h"

typedef struct {
  gchar *key;
  gint64 until_us;
} Entry;

struct _CheckCache {
  GHashTable *by_key; // of Entry
  GQueue entries;     // oldest first, which is also the first to expire
  guint size_max;
  gint64 lifetime_us;
};

CheckCache *
check_cache_new (guint size_max, gint64 lifetime_us)
{
  CheckCache *self = g_new0 (CheckCache, 1);

  self->by_key = g_hash_table_new (g_str_hash, g_str_equal);
  g_queue_init (&self->entries);
  self->size_max = size_max;
  self->lifetime_us = lifetime_us;
  return self;
}

static void
drop_oldest (CheckCache *self)
{
  g_autofree Entry *entry = g_queue_pop_head (&self->entries);

  g_hash_table_remove (self->by_key, entry->key);
  g_free (entry->key);
}

static void
drop_expired (CheckCache *self, gint64 now_us)
{
  while (self->entries.length > 0
         && ((const Entry *) g_queue_peek_head (&self->entries))->until_us <= now_us)
    drop_oldest (self);
}

gboolean
check_cache_has (CheckCache *self, const gchar *key, gint64 now_us)
{
  drop_expired (self, now_us);
  return g_hash_table_contains (self->by_key, key);
}

void
check_cache_add (CheckCache *self, const gchar *key, gint64 now_us)
{
  Entry *entry;

  if (check_cache_has (self, key, now_us))
    return;
  if (self->entries.length == self->size_max)
    drop_oldest (self);
  entry = g_new (Entry, 1);
  *entry = (Entry) { g_strdup (key), now_us + self->lifetime_us };
  g_queue_push_tail (&self->entries, entry);
  g_hash_table_insert (self->by_key, entry->key, entry);
}

void
check_cache_clear (CheckCache *self)
{
  while (self->entries.length > 0)
    drop_oldest (self);
}

void
check_cache_free (CheckCache *self)
{
  check_cache_clear (self);
  g_hash_table_unref (self->by_key);
  g_free (self);
}
