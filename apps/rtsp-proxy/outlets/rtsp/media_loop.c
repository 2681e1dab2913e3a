// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/media_loop.h"

#include <sys/epoll.h>

#include "base/threads.h"
#include "isolate/title_loop.h"

typedef struct {
  LoopWatch watch; // first
  GstRTSPThread *thread;
  gboolean waits; // no thread runs the sources; protected by `arming`
} MediaLoop;

static GMutex arming;

// ---- in a thread of the pool ----

static void
run_sources (GMainContext *context, gboolean waits)
{
  g_main_context_push_thread_default (context);
  g_main_context_iteration (context, waits);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_main_context_pop_thread_default (context);
}

// Fills `fds` with what the sources wait for, and returns its number; 0 if they are ready, wait for
// the time too, or for more.
static gint
query (GMainContext *context, GPollFD fds[LOOP_NUMBERS])
{
  gint n, timeout, priority;

  if (!g_main_context_acquire (context))
    return 0;
  g_main_context_prepare (context, &priority);
  n = g_main_context_query (context, priority, &timeout, fds, LOOP_NUMBERS);
  g_main_context_release (context);
  return timeout < 0 && n <= LOOP_NUMBERS ? n : 0;
}

// Waits for the sources without this thread: another one may have the loop when this returns TRUE.
static gboolean
wait_elsewhere (MediaLoop *self)
{
  GPollFD fds[LOOP_NUMBERS];
  const gint n = query (self->thread->context, fds);
  gboolean ok = n > 0;

  g_mutex_lock (&arming);
  for (gint i = 0; i < n && ok; i++)
    ok = loop_watch (&self->watch, (guint) i, fds[i].fd, fds[i].events | EPOLLONESHOT);
  self->waits = ok;
  g_mutex_unlock (&arming);
  return ok;
}

static void
work (gpointer data)
{
  MediaLoop *self = data;
  gboolean elsewhere = FALSE;

  run_sources (self->thread->context, FALSE);
  while (g_main_loop_is_running (self->thread->loop) && !(elsewhere = wait_elsewhere (self)))
    run_sources (self->thread->context, TRUE);
  if (!elsewhere)
    loop_leave (&self->watch);
}

static void
work_soon (MediaLoop *self)
{
  thread_run ("rtsp-media", work, self);
}

// ---- in the thread that waits ----

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  MediaLoop *self = (MediaLoop *) watch;
  gboolean waited;

  g_mutex_lock (&arming);
  waited = self->waits;
  self->waits = FALSE;
  g_mutex_unlock (&arming);
  if (waited)
    work_soon (self);
}

static void
on_left (LoopWatch *watch)
{
  MediaLoop *self = (MediaLoop *) watch;

  gst_rtsp_thread_unref (self->thread);
  g_free (self);
}

GstRTSPThread *
media_loop_new (void)
{
  static const LoopOps ops = { .ready = on_ready, .left = on_left };
  GstRTSPThread *thread = gst_rtsp_thread_new (GST_RTSP_THREAD_TYPE_MEDIA);
  MediaLoop *self = g_new0 (MediaLoop, 1);

  // Only such a context wakes who waits for it when it gets a source.
  g_main_loop_unref (thread->loop);
  g_main_context_unref (thread->context);
  thread->context = g_main_context_new_with_flags (G_MAIN_CONTEXT_FLAGS_OWNERLESS_POLLING);
  thread->loop = g_main_loop_new (thread->context, TRUE);
  self->thread = gst_rtsp_thread_ref (thread);
  loop_join (title_loop_get (), &self->watch, &ops);
  work_soon (self);
  return thread;
}
