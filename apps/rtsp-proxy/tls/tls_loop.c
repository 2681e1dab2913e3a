// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/threads.h"

#define EVENTS 64

struct _TlsLoop {
  GThread *thread;
  gchar *name;
  gint epoll, wake;
  gint stops;   // atomic
  GQueue tasks; // of TlsTask; for the thread only
  GQueue ended; // of TlsTask that the current batch of events may still name
  guint8 scratch[TLS_LOOP_SCRATCH];

  GMutex lock;  // guards `added`
  GQueue added; // of TlsTask, from other threads
};

// ---- the thread ----

static void
take_added (TlsLoop *self)
{
  guint64 unused;
  TlsTask *task;
  GQueue added;

  // The event is read before the queue is taken, so that a later task wakes the thread again.
  while (read (self->wake, &unused, sizeof unused) < 0 && errno == EINTR)
    ;
  g_mutex_lock (&self->lock);
  added = self->added;
  g_queue_init (&self->added);
  g_mutex_unlock (&self->lock);
  while (added.head) {
    task = g_queue_pop_head_link (&added)->data;
    g_queue_push_tail_link (&self->tasks, &task->link);
    task->ops->begin (task);
  }
}

static void
free_ended (TlsLoop *self)
{
  while (self->ended.head) {
    TlsTask *task = g_queue_pop_head_link (&self->ended)->data;

    task->ops->free (task);
  }
}

static void
check_deadlines (TlsLoop *self, gint64 now)
{
  for (GList *l = self->tasks.head, *next; l; l = next) {
    TlsTask *task = l->data;

    next = l->next;
    if (task->deadline && now >= task->deadline)
      task->ops->expired (task);
  }
}

static gpointer
run (gpointer data)
{
  TlsLoop *self = data;
  struct epoll_event events[EVENTS];
  gint64 tick_at = 0;

  thread_set_name (self->name);
  while (!g_atomic_int_get (&self->stops)) {
    gint n =
        epoll_wait (self->epoll, events, EVENTS, self->tasks.length > 0 ? TLS_LOOP_TICK_MS : -1);
    gint64 now = g_get_monotonic_time ();

    for (gint i = 0; i < n; i++) {
      TlsWatch *watch = events[i].data.ptr;

      if (!watch)
        take_added (self);
      else if (!watch->task->ended && watch->events)
        watch->task->ops->ready (watch->task, watch);
    }
    if (now >= tick_at) {
      check_deadlines (self, now);
      tick_at = now + TLS_LOOP_TICK_MS * 1000;
    }
    free_ended (self);
  }
  return NULL;
}

// ---- tasks ----

void
tls_loop_add (TlsLoop *self, TlsTask *task)
{
  guint64 one = 1;

  task->loop = self;
  task->scratch = self->scratch;
  task->link = (GList) { .data = task };
  g_mutex_lock (&self->lock);
  g_queue_push_tail_link (&self->added, &task->link);
  g_mutex_unlock (&self->lock);
  while (write (self->wake, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

void
tls_task_leave (TlsTask *task)
{
  g_queue_unlink (&task->loop->tasks, &task->link);
}

void
tls_task_end (TlsTask *task)
{
  if (task->ended)
    return;
  task->ended = TRUE;
  g_queue_unlink (&task->loop->tasks, &task->link);
  g_queue_push_tail_link (&task->loop->ended, &task->link);
}

void
tls_watch_set (TlsWatch *watch, guint32 events)
{
  struct epoll_event event = { events, { .ptr = watch } };
  gint operation = !events ? EPOLL_CTL_DEL : watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

  if (events == watch->events)
    return;
  if (epoll_ctl (watch->task->loop->epoll, operation, watch->fd, &event) == 0)
    watch->events = events;
  else
    tls_task_end (watch->task);
}

// ---- construction ----

TlsLoop *
tls_loop_new (const gchar *name, GError **error)
{
  TlsLoop *self = g_new0 (TlsLoop, 1);
  struct epoll_event wake = { .events = EPOLLIN };

  self->name = g_strdup (name);
  g_mutex_init (&self->lock);
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->epoll < 0 || self->wake < 0
      || epoll_ctl (self->epoll, EPOLL_CTL_ADD, self->wake, &wake) < 0)
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot open an epoll: %s",
        g_strerror (errno));
  else
    self->thread = g_thread_try_new (name, run, self, error);
  if (!self->thread)
    g_clear_pointer (&self, tls_loop_free);
  return self;
}

static void
free_tasks (GQueue *tasks)
{
  while (tasks->head) {
    TlsTask *task = g_queue_pop_head_link (tasks)->data;

    task->ops->free (task);
  }
}

void
tls_loop_free (TlsLoop *self)
{
  guint64 one = 1;

  g_atomic_int_set (&self->stops, TRUE);
  if (self->thread) {
    while (write (self->wake, &one, sizeof one) < 0 && errno == EINTR)
      ;
    g_thread_join (self->thread);
  }
  free_tasks (&self->tasks);
  free_tasks (&self->added);
  if (self->epoll >= 0)
    close (self->epoll);
  if (self->wake >= 0)
    close (self->wake);
  g_mutex_clear (&self->lock);
  g_free (self->name);
  g_free (self);
}
