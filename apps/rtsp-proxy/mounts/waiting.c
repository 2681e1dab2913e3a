// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/waiting.h"

struct _Waiting {
  GMutex lock;
  GList *all; // of Waiter; use with `lock` held
};

typedef struct {
  Waiting *waiting;
  WaitingFunc done;
  gpointer data;
  GSource *deadline; // on the main thread
} Waiter;

static void
end_one (gpointer data)
{
  Waiter *waiter = data;

  g_source_destroy (waiter->deadline);
  g_source_unref (waiter->deadline);
  waiter->done (waiter->data);
  g_free (waiter);
}

void
waiting_end (Waiting *self)
{
  GList *all;

  g_mutex_lock (&self->lock);
  all = g_steal_pointer (&self->all);
  g_mutex_unlock (&self->lock);
  g_list_free_full (all, end_one);
}

static gboolean
on_timeout (gpointer data)
{
  Waiter *waiter = data;
  Waiting *self = waiter->waiting;
  GList *link;

  g_mutex_lock (&self->lock);
  link = g_list_find (self->all, waiter);
  if (link)
    self->all = g_list_delete_link (self->all, link);
  g_mutex_unlock (&self->lock);
  if (link)
    end_one (waiter);
  return G_SOURCE_REMOVE;
}

void
waiting_add (Waiting *self, guint timeout_ms, WaitingFunc done, gpointer data)
{
  Waiter *waiter = g_new (Waiter, 1);

  *waiter = (Waiter) { self, done, data, g_timeout_source_new (timeout_ms) };
  g_source_set_callback (waiter->deadline, on_timeout, waiter, NULL);
  g_mutex_lock (&self->lock);
  self->all = g_list_prepend (self->all, waiter);
  g_source_attach (waiter->deadline, NULL);
  g_mutex_unlock (&self->lock);
}

Waiting *
waiting_new (void)
{
  Waiting *self = g_new0 (Waiting, 1);

  g_mutex_init (&self->lock);
  return self;
}

void
waiting_free (Waiting *self)
{
  g_mutex_clear (&self->lock);
  g_free (self);
}
