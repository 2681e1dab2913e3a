// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_threads.h"

#include "base/threads.h"

#define THREADS_MAX 4 // of a folder

struct _RecordingThreads {
  gchar *folder;
  guint n; // recordings
  void (*run) (gpointer data);
  GThreadPool *pool;
};

static GMutex lock;
static GHashTable *all; // folder: RecordingThreads

static void
run_named (gpointer data, gpointer self)
{
  thread_set_name ("record");
  ((RecordingThreads *) self)->run (data);
}

// Call with the lock held.
static void
set_number (RecordingThreads *self)
{
  g_thread_pool_set_max_threads (self->pool, (gint) CLAMP (self->n, 1, THREADS_MAX), NULL);
}

RecordingThreads *
recording_threads_join (const gchar *folder, void (*run) (gpointer data))
{
  RecordingThreads *self;

  g_mutex_lock (&lock);
  if (!all)
    all = g_hash_table_new (g_str_hash, g_str_equal);
  self = g_hash_table_lookup (all, folder);
  if (!self) {
    self = g_new0 (RecordingThreads, 1);
    self->folder = g_strdup (folder);
    self->run = run;
    self->pool = g_thread_pool_new (run_named, self, 1, TRUE, NULL);
    g_hash_table_insert (all, self->folder, self);
  }
  self->n++;
  set_number (self);
  g_mutex_unlock (&lock);
  return self;
}

void
recording_threads_leave (RecordingThreads *self)
{
  gboolean last;

  g_mutex_lock (&lock);
  last = --self->n == 0;
  if (last)
    g_hash_table_remove (all, self->folder);
  else
    set_number (self);
  g_mutex_unlock (&lock);
  if (!last)
    return;
  g_thread_pool_free (self->pool, FALSE, FALSE); // nothing is pushed any more
  g_free (self->folder);
  g_free (self);
}

void
recording_threads_push (RecordingThreads *self, gpointer data)
{
  g_thread_pool_push (self->pool, data, NULL);
}
