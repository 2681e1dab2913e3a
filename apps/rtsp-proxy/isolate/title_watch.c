// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/title_watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/threads.h"

#define EVENTS 64 // at once
#define TICK_US G_USEC_PER_SEC

struct _TitleWatch {
  TitleWatchFunc func;
  gpointer owner;
  guint64 id;
};

static struct {
  int epoll; // set once

  GMutex lock;     // protects the fields below
  GCond idle;      // `busy` has become NULL
  GHashTable *all; // id -> TitleWatch
  TitleWatch *busy;
  guint64 last_id;
} shared;

// ---- the thread ----

// Calls the function, unless the watch has ended.
static void
call (guint64 id, guint number, guint32 events)
{
  TitleWatch *watch;

  g_mutex_lock (&shared.lock);
  watch = shared.busy = g_hash_table_lookup (shared.all, &id);
  g_mutex_unlock (&shared.lock);
  if (!watch)
    return;
  watch->func (watch->owner, number, events);
  g_mutex_lock (&shared.lock);
  shared.busy = NULL;
  g_cond_broadcast (&shared.idle);
  g_mutex_unlock (&shared.lock);
}

static GArray *
dup_ids (void)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (guint64));
  GHashTableIter iter;
  gpointer id;

  g_mutex_lock (&shared.lock);
  g_hash_table_iter_init (&iter, shared.all);
  while (g_hash_table_iter_next (&iter, &id, NULL))
    g_array_append_vals (ids, id, 1);
  g_mutex_unlock (&shared.lock);
  return ids;
}

static void
tick_all (void)
{
  GArray *ids = dup_ids ();

  for (guint i = 0; i < ids->len; i++)
    call (g_array_index (ids, guint64, i), TITLE_WATCH_TICK, 0);
  g_array_unref (ids);
}

static gpointer
run (gpointer unused)
{
  gint64 tick_at = g_get_monotonic_time () + TICK_US;

  thread_set_name ("title-control");
  for (;;) {
    struct epoll_event events[EVENTS];
    gint64 left = tick_at - g_get_monotonic_time ();
    int n = epoll_wait (shared.epoll, events, EVENTS, (int) (MAX (left, 0) / 1000 + 1));

    for (int i = 0; i < n; i++)
      call (events[i].data.u64 / TITLE_WATCH_MAX, (guint) (events[i].data.u64 % TITLE_WATCH_MAX),
          events[i].events);
    // A process that was suspended gets one tick, after what has come meanwhile.
    if (n == EVENTS || g_get_monotonic_time () < tick_at)
      continue;
    tick_all ();
    tick_at = g_get_monotonic_time () + TICK_US;
  }
  return NULL;
}

static void
start (void)
{
  static gsize started;

  if (!g_once_init_enter (&started))
    return;
  shared.all = g_hash_table_new (g_int64_hash, g_int64_equal);
  shared.epoll = epoll_create1 (EPOLL_CLOEXEC);
  g_thread_unref (g_thread_new ("title-control", run, NULL));
  g_once_init_leave (&started, 1);
}

// ---- watches ----

TitleWatch *
title_watch_new (TitleWatchFunc func, gpointer owner)
{
  TitleWatch *self = g_new0 (TitleWatch, 1);

  start ();
  self->func = func;
  self->owner = owner;
  g_mutex_lock (&shared.lock);
  self->id = ++shared.last_id;
  g_hash_table_insert (shared.all, &self->id, self);
  g_mutex_unlock (&shared.lock);
  return self;
}

gboolean
title_watch_set (TitleWatch *self, guint number, gint fd, guint32 events)
{
  struct epoll_event event = { .events = events, .data.u64 = self->id * TITLE_WATCH_MAX + number };

  if (events == 0)
    return epoll_ctl (shared.epoll, EPOLL_CTL_DEL, fd, NULL) == 0;
  return epoll_ctl (shared.epoll, EPOLL_CTL_MOD, fd, &event) == 0
         || (errno == ENOENT && epoll_ctl (shared.epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

void
title_watch_free (TitleWatch *self)
{
  g_mutex_lock (&shared.lock);
  g_hash_table_remove (shared.all, &self->id);
  while (shared.busy == self)
    g_cond_wait (&shared.idle, &shared.lock);
  g_mutex_unlock (&shared.lock);
  g_free (self);
}
