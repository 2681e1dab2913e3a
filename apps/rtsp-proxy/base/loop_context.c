// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/loop_context.h"

#include <sys/epoll.h>

#include "base/clock.h"

#define NS_PER_MS G_GINT64_CONSTANT (1000000)
#define BUSY_MS 1    // until a context is tried again that another thread uses
#define RETRY_MS 100 // until a context is run whose descriptors cannot be watched

typedef struct {
  LoopWatch watch; // first
  GMainContext *context;
  const LoopContextOps *ops;
  gpointer owner;
  GArray *fds; // of GPollFD
} Context;

// Returns the timeout until the next turn, in ms, or -1.
static gint
query (Context *self)
{
  gint priority, timeout, n;

  g_main_context_prepare (self->context, &priority);
  while ((n = g_main_context_query (self->context, priority, &timeout,
              (GPollFD *) (gpointer) self->fds->data, (gint) self->fds->len))
         > (gint) self->fds->len)
    g_array_set_size (self->fds, (guint) n);
  g_array_set_size (self->fds, (guint) n);
  return timeout;
}

// Watches each descriptor until its next event. A descriptor can have been closed and opened again
// since the last time, and the epoll cannot forget a closed one whose socket lives on as a
// duplicate, so each event may be the last one.
static gboolean
watch_all (Context *self)
{
  gboolean ok = TRUE;

  for (guint i = 0; i < self->fds->len; i++) {
    const GPollFD *fd = &g_array_index (self->fds, GPollFD, i);

    // The events of poll() and those of an epoll are the same bits.
    ok &= loop_watch (&self->watch, 0, fd->fd, fd->events | EPOLLONESHOT);
  }
  return ok;
}

// Has the next turn in `timeout` ms; never if it is negative. The loop looks at other owners first.
static void
schedule (Context *self, gint timeout)
{
  loop_set_due (&self->watch, timeout < 0 ? LOOP_NEVER : clock_now () + timeout * NS_PER_MS);
}

// While another thread runs a function in the context, as g_main_context_invoke() does, this waits
// for its turn.
static void
take_turn (Context *self)
{
  gint timeout;

  if (!g_main_context_acquire (self->context)) {
    schedule (self, BUSY_MS);
    return;
  }
  g_main_context_iteration (self->context, FALSE);
  timeout = query (self);
  g_main_context_release (self->context);
  if (self->ops->goes_on && !self->ops->goes_on (self->owner)) {
    loop_leave (&self->watch);
    return;
  }
  if (!watch_all (self))
    timeout = timeout < 0 ? RETRY_MS : MIN (timeout, RETRY_MS);
  schedule (self, timeout);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  take_turn ((Context *) watch);
}

static void
on_due (LoopWatch *watch, gint64 now)
{
  take_turn ((Context *) watch);
}

static void
on_left (LoopWatch *watch)
{
  Context *self = (Context *) watch;

  if (self->ops->left)
    self->ops->left (self->owner);
  g_main_context_unref (self->context);
  g_array_unref (self->fds);
  g_free (self);
}

void
loop_run_context (Loop *loop, GMainContext *context, const LoopContextOps *ops, gpointer owner)
{
  static const LoopOps loop_ops = { on_ready, on_due, on_left };
  Context *self = g_new0 (Context, 1);

  self->context = g_main_context_ref (context);
  self->ops = ops;
  self->owner = owner;
  self->fds = g_array_new (FALSE, FALSE, sizeof (GPollFD));
  loop_join (loop, &self->watch, &loop_ops);
  loop_set_due (&self->watch, 0);
}
