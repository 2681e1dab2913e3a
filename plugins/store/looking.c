// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/looking.h"

gint64 weir_disk_patience_us = 10 * G_USEC_PER_SEC; // a disk that sleeps needs seconds to spin up

typedef struct {
  gint refs; // of the thread, and of those who wait
  gchar *key, *path, *store;
  guint16 number;
  gint64 until_us;
  gboolean done;
  WeirDiskState state;
  WeirDiskSpace space;
} Look;

struct _WeirDiskWork {
  GList link; // in works
  gchar *path;
  gint64 until_us;
};

static GMutex lock;
static GCond answered;
static GHashTable *looks_at_work; // key: Look
static GQueue works = G_QUEUE_INIT;

static void
unref (Look *look)
{
  if (--look->refs > 0)
    return;
  g_free (look->key);
  g_free (look->path);
  g_free (look->store);
  g_free (look);
}

static void
look_at (gpointer data, gpointer unused)
{
  Look *look = data, place;
  WeirDiskSpace space = { 0 };
  WeirDiskState state;

  g_mutex_lock (&lock);
  place = *look;
  g_mutex_unlock (&lock);
  state = weir_disk_check (place.path, place.store, place.number);
  if (state == WEIR_DISK_THERE && !weir_disk_get_space (place.path, &space))
    state = WEIR_DISK_FAILING;

  g_mutex_lock (&lock);
  look->done = TRUE;
  look->state = state;
  look->space = space;
  g_hash_table_remove (looks_at_work, look->key);
  g_cond_broadcast (&answered);
  unref (look);
  g_mutex_unlock (&lock);
}

// Joins the look at the disk that is at work, or begins one. Lock held.
static Look *
begin_look (const gchar *path, const gchar *store, guint16 number)
{
  static GThreadPool *pool;
  g_autofree gchar *key = g_strdup_printf ("%s %u %s", store, number, path);
  Look *look;

  if (!pool) {
    pool = g_thread_pool_new (look_at, NULL, -1, FALSE, NULL);
    looks_at_work = g_hash_table_new (g_str_hash, g_str_equal);
  }
  look = g_hash_table_lookup (looks_at_work, key);
  if (!look) {
    look = g_new0 (Look, 1);
    look->refs = 1;
    look->key = g_steal_pointer (&key);
    look->path = g_strdup (path);
    look->store = g_strdup (store);
    look->number = number;
    look->until_us = g_get_monotonic_time () + weir_disk_patience_us;
    g_hash_table_insert (looks_at_work, look->key, look);
    g_thread_pool_push (pool, look, NULL);
  }
  look->refs++;
  return look;
}

void
weir_disks_look (const gchar *store, WeirDiskLook *looks, guint n)
{
  g_autofree Look **begun = g_new (Look *, n);

  g_mutex_lock (&lock);
  for (guint i = 0; i < n; i++)
    begun[i] = begin_look (looks[i].path, store, looks[i].number);
  for (guint i = 0; i < n; i++) {
    Look *look = begun[i];

    while (!look->done && g_cond_wait_until (&answered, &lock, look->until_us))
      ;
    looks[i].state = look->done ? look->state : WEIR_DISK_SILENT;
    looks[i].space = look->space;
    unref (look);
  }
  g_mutex_unlock (&lock);
}

gboolean
weir_disk_is_there (const gchar *path, const gchar *store, guint16 number)
{
  WeirDiskLook look = { .path = path, .number = number };

  weir_disks_look (store, &look, 1);
  return look.state == WEIR_DISK_THERE;
}

gboolean
weir_disk_is_stuck (const gchar *path)
{
  const gint64 now = g_get_monotonic_time ();
  gboolean stuck = FALSE;
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&lock);
  if (looks_at_work) {
    g_hash_table_iter_init (&iter, looks_at_work);
    while (!stuck && g_hash_table_iter_next (&iter, NULL, &value)) {
      const Look *look = value;

      stuck = now >= look->until_us && g_str_equal (look->path, path);
    }
  }
  for (const GList *item = works.head; item && !stuck; item = item->next) {
    const WeirDiskWork *work = item->data;

    stuck = now >= work->until_us && g_str_equal (work->path, path);
  }
  g_mutex_unlock (&lock);
  return stuck;
}

WeirDiskWork *
weir_disk_work_begin (const gchar *path)
{
  WeirDiskWork *work = g_new0 (WeirDiskWork, 1);

  work->link.data = work;
  work->path = g_strdup (path);
  work->until_us = g_get_monotonic_time () + weir_disk_patience_us;
  g_mutex_lock (&lock);
  g_queue_push_tail_link (&works, &work->link);
  g_mutex_unlock (&lock);
  return work;
}

void
weir_disk_work_end (WeirDiskWork *work)
{
  g_mutex_lock (&lock);
  g_queue_unlink (&works, &work->link);
  g_mutex_unlock (&lock);
  g_free (work->path);
  g_free (work);
}
