// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_opening.h"

#include "base/threads.h"

#define OPENERS 2 // threads

struct _HttpOpening {
  gatomicrefcount refs;
  Store *store;
  gchar *name;
  GMutex lock; // protects the fields below; held while `done` runs
  gboolean ended;
  StoreBytes *bytes;
  GError *error;
  void (*done) (gpointer data); // NULL once it has run, or the opening was freed
  gpointer data;
};

static void
unref (HttpOpening *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->bytes, store_bytes_unref);
  g_clear_error (&self->error);
  store_unref (self->store);
  g_free (self->name);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
work (gpointer opening, gpointer unused)
{
  HttpOpening *self = opening;
  GError *error = NULL;
  StoreBytes *bytes;

  thread_set_name ("http-open");
  bytes = store_open_bytes (self->store, self->name, &error);
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  self->bytes = bytes;
  self->error = error;
  if (self->done)
    self->done (self->data);
  self->done = NULL;
  g_mutex_unlock (&self->lock);
  unref (self);
  thread_set_name (THREAD_IDLE);
}

static GThreadPool *
get_openers (void)
{
  static gsize openers;

  if (g_once_init_enter (&openers))
    g_once_init_leave (&openers, (gsize) g_thread_pool_new (work, NULL, OPENERS, FALSE, NULL));
  return (GThreadPool *) openers;
}

HttpOpening *
http_opening_new (Store *store, gchar *name, void (*done) (gpointer data), gpointer data)
{
  HttpOpening *self = g_new0 (HttpOpening, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->store = store;
  self->name = name;
  self->done = done;
  self->data = data;
  g_atomic_ref_count_inc (&self->refs);
  g_thread_pool_push (get_openers (), self, NULL);
  return self;
}

gboolean
http_opening_take (HttpOpening *self, StoreBytes **bytes, GError **error)
{
  gboolean ended;

  g_mutex_lock (&self->lock);
  ended = self->ended;
  *bytes = g_steal_pointer (&self->bytes);
  if (self->error)
    g_propagate_error (error, g_steal_pointer (&self->error));
  g_mutex_unlock (&self->lock);
  return ended;
}

void
http_opening_free (HttpOpening *self)
{
  if (!self)
    return;
  g_mutex_lock (&self->lock);
  self->done = NULL;
  g_mutex_unlock (&self->lock);
  unref (self);
}
