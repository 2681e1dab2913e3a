// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_memory.h"

#include <string.h>

typedef struct {
  gchar *id, *target;
  gint64 since_us;
} Entry;

struct _HlsMemory {
  guint max;
  gint64 keep_us;
  GQueue entries;    // of Entry, the oldest first
  GHashTable *by_id; // id: the entry's link
};

static void
free_entry (gpointer data)
{
  Entry *entry = data;

  g_free (entry->id);
  g_free (entry->target);
  g_free (entry);
}

HlsMemory *
hls_memory_new (guint max, gint64 keep_us)
{
  HlsMemory *self = g_new0 (HlsMemory, 1);

  self->max = max;
  self->keep_us = keep_us;
  g_queue_init (&self->entries);
  self->by_id = g_hash_table_new (g_str_hash, g_str_equal);
  return self;
}

void
hls_memory_free (HlsMemory *self)
{
  g_hash_table_unref (self->by_id);
  g_queue_clear_full (&self->entries, free_entry);
  g_free (self);
}

static void
remove_link (HlsMemory *self, GList *link)
{
  Entry *entry = link->data;

  g_hash_table_remove (self->by_id, entry->id);
  g_queue_delete_link (&self->entries, link);
  free_entry (entry);
}

void
hls_memory_forget (HlsMemory *self, const gchar *id)
{
  GList *link = g_hash_table_lookup (self->by_id, id);

  if (link)
    remove_link (self, link);
}

void
hls_memory_put (HlsMemory *self, const gchar *id, const gchar *target, gint64 now_us)
{
  Entry *entry;

  hls_memory_forget (self, id);
  if (strlen (target) > HLS_MEMORY_TARGET)
    return;
  entry = g_new (Entry, 1);
  *entry = (Entry) { g_strdup (id), g_strdup (target), now_us };
  g_queue_push_tail (&self->entries, entry);
  g_hash_table_insert (self->by_id, entry->id, self->entries.tail);
  if (self->entries.length > self->max)
    remove_link (self, self->entries.head);
}

gchar *
hls_memory_dup (HlsMemory *self, const gchar *id, gint64 now_us)
{
  GList *link;

  while ((link = self->entries.head) && now_us - ((Entry *) link->data)->since_us > self->keep_us)
    remove_link (self, link);
  link = g_hash_table_lookup (self->by_id, id);
  return link ? g_strdup (((Entry *) link->data)->target) : NULL;
}
