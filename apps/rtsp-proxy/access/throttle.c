// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/throttle.h"

#include "base/address.h"

#define LOG_BURST 10
#define LOG_INTERVAL_MS 1000

typedef struct {
  guint failures, inside; // `inside`: requests that wait or are checked
  gint64 used_us;         // the last failure or log line
  gint64 due_us;          // when the next request may be checked
  LogLimit log;
} Entry;

struct _Throttle {
  GMutex lock;
  GHashTable *entries; // gchar * -> Entry
};

Throttle *
throttle_new (void)
{
  Throttle *self = g_new0 (Throttle, 1);

  g_mutex_init (&self->lock);
  self->entries = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return self;
}

void
throttle_free (Throttle *self)
{
  g_hash_table_unref (self->entries);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- entries; call with the lock held ----

static gboolean
is_old (gpointer key, gpointer value, gpointer now_us)
{
  const Entry *entry = value;

  return entry->inside == 0
         && entry->used_us + THROTTLE_FORGET_S * G_USEC_PER_SEC < *(gint64 *) now_us;
}

// Makes room for one entry. Returns FALSE if all entries are in use.
static gboolean
make_room (Throttle *self, gint64 now_us)
{
  gpointer key, value, oldest = NULL;
  gint64 oldest_us = G_MAXINT64;
  GHashTableIter iter;

  if (g_hash_table_size (self->entries) < THROTTLE_ADDRESSES_MAX)
    return TRUE;
  if (g_hash_table_foreach_remove (self->entries, is_old, &now_us) > 0)
    return TRUE;
  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, &key, &value)) {
    const Entry *entry = value;

    if (entry->inside == 0 && entry->used_us < oldest_us) {
      oldest = key;
      oldest_us = entry->used_us;
    }
  }
  return oldest && g_hash_table_remove (self->entries, oldest);
}

// Returns the entry of an address, a new one if necessary, or NULL if the table is full.
static Entry *
get_entry (Throttle *self, GInetAddress *address, gint64 now_us)
{
  g_autofree gchar *key = address_dup_key (address);
  Entry *entry = g_hash_table_lookup (self->entries, key);

  if (!entry && make_room (self, now_us)) {
    entry = g_new0 (Entry, 1);
    entry->used_us = now_us;
    entry->log = (LogLimit) { .burst = LOG_BURST, .interval_ms = LOG_INTERVAL_MS };
    g_hash_table_insert (self->entries, g_steal_pointer (&key), entry);
  }
  if (entry && entry->used_us + THROTTLE_FORGET_S * G_USEC_PER_SEC < now_us)
    entry->failures = 0;
  return entry;
}

static gint64
pause_us (const Entry *entry)
{
  guint doublings = MIN (entry->failures - THROTTLE_FREE, 16);

  return MIN (THROTTLE_PAUSE_MS << doublings, THROTTLE_PAUSE_MAX_MS) * G_GINT64_CONSTANT (1000);
}

// ---- requests ----

gint64
throttle_enter (Throttle *self, GInetAddress *address, gint64 now_us)
{
  gint64 wait_us = -1;
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = get_entry (self, address, now_us);
  if (entry && entry->failures < THROTTLE_FREE && entry->inside < THROTTLE_CHECKED_MAX) {
    wait_us = 0;
  } else if (entry && entry->failures >= THROTTLE_FREE && entry->inside < THROTTLE_WAITING_MAX) {
    entry->due_us = MAX (entry->due_us, now_us);
    wait_us = entry->due_us - now_us;
    entry->due_us += pause_us (entry);
  }
  if (wait_us >= 0)
    entry->inside++;
  g_mutex_unlock (&self->lock);
  return wait_us;
}

void
throttle_leave (Throttle *self, GInetAddress *address, gboolean failed, gint64 now_us)
{
  g_autofree gchar *key = address_dup_key (address);
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = g_hash_table_lookup (self->entries, key);
  entry->inside--;
  if (failed) {
    entry->failures++;
    entry->used_us = now_us;
    entry->due_us =
        MAX (entry->due_us, entry->failures < THROTTLE_FREE ? 0 : now_us + pause_us (entry));
  } else if (entry->failures == 0 && entry->inside == 0 && entry->log.due_us <= now_us) {
    g_hash_table_remove (self->entries, key);
  }
  g_mutex_unlock (&self->lock);
}

gboolean
throttle_may_log (Throttle *self, GInetAddress *address, gint64 now_us, guint64 *n_suppressed)
{
  gboolean may;
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = get_entry (self, address, now_us);
  may = entry && log_limit_pass (&entry->log, now_us, n_suppressed);
  if (entry)
    entry->used_us = now_us;
  g_mutex_unlock (&self->lock);
  return may;
}

guint
throttle_count (Throttle *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = g_hash_table_size (self->entries);
  g_mutex_unlock (&self->lock);
  return n;
}
