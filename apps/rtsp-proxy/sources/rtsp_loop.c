// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/rtsp_loop.h"

#include <glib-unix.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"

#define EVENTS 64

typedef struct {
  GMainContext *context;
  gint epoll;
  GSource *sockets; // reads the epoll
  gpointer tag;     // of the epoll in `sockets`
  gboolean rests;   // until the next round
  struct epoll_event events[EVENTS];
  gint n_events, at; // of the batch that is under way
  gint n_watched;
  guint8 *scratch;
  GQueue ticked;  // of RtspTicked
  GList *next;    // of the tick that is under way
  GSource *ticks; // NULL while there is nothing to tick
} RtspLoop;

static RtspLoop loop;
static gint64 round_us = 2000; // between two rounds of reading

// ---- sockets ----

static void
read_batch (void)
{
  loop.n_events = epoll_wait (loop.epoll, loop.events, EVENTS, 0);
  for (loop.at = 0; loop.at < loop.n_events; loop.at++) {
    RtspWatched *watched = loop.events[loop.at].data.ptr;

    if (watched)
      watched->ready (watched, loop.scratch);
  }
}

// Gives each socket that is ready one turn. Returns FALSE if none is.
static gboolean
read_round (void)
{
  gint seen = 0;

  do {
    read_batch ();
    seen += loop.n_events;
  } while (loop.n_events == EVENTS && seen < loop.n_watched);
  return seen > 0;
}

// Between rounds the source only waits for its time. After a round without events, and always if no
// time is to pass between rounds, it waits for the sockets.
static gboolean
on_sockets (GSource *source, GSourceFunc callback, gpointer data)
{
  gboolean rests = read_round () && round_us > 0;

  if (rests)
    g_source_set_ready_time (source, g_get_monotonic_time () + round_us);
  else if (loop.rests)
    g_source_set_ready_time (source, -1);
  if (rests != loop.rests)
    g_source_modify_unix_fd (source, loop.tag, rests ? 0 : G_IO_IN);
  loop.rests = rests;
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs socket_functions = { .dispatch = on_sockets };

static gboolean
control (RtspWatched *watched, gint operation, gboolean writing)
{
  struct epoll_event event = { EPOLLIN | (writing ? EPOLLOUT : 0u), { .ptr = watched } };

  return epoll_ctl (loop.epoll, operation, watched->fd, &event) == 0;
}

gboolean
rtsp_loop_watch (RtspWatched *watched, gboolean writing)
{
  gboolean ok = control (watched, EPOLL_CTL_ADD, writing);

  loop.n_watched += ok;
  return ok;
}

void
rtsp_loop_set_writing (RtspWatched *watched, gboolean writing)
{
  control (watched, EPOLL_CTL_MOD, writing);
}

void
rtsp_loop_unwatch (RtspWatched *watched)
{
  control (watched, EPOLL_CTL_DEL, FALSE);
  loop.n_watched--;
  for (gint i = loop.at + 1; i < loop.n_events; i++) {
    if (loop.events[i].data.ptr == watched)
      loop.events[i].data.ptr = NULL;
  }
}

// ---- ticks ----

static gboolean
on_tick (gpointer data)
{
  gint64 now = clock_now ();

  for (GList *l = loop.ticked.head; l; l = loop.next) {
    RtspTicked *ticked = l->data;

    loop.next = l->next;
    ticked->tick (ticked, now);
  }
  return G_SOURCE_CONTINUE;
}

void
rtsp_loop_add_tick (RtspTicked *ticked)
{
  ticked->link = (GList) { .data = ticked };
  g_queue_push_tail_link (&loop.ticked, &ticked->link);
  if (loop.ticks)
    return;
  loop.ticks = g_timeout_source_new (RTSP_LOOP_TICK_MS);
  g_source_set_callback (loop.ticks, on_tick, NULL, NULL);
  g_source_attach (loop.ticks, loop.context);
}

void
rtsp_loop_remove_tick (RtspTicked *ticked)
{
  if (loop.next == &ticked->link)
    loop.next = ticked->link.next;
  g_queue_unlink (&loop.ticked, &ticked->link);
  if (loop.ticked.length > 0 || !loop.ticks)
    return;
  g_source_destroy (loop.ticks);
  g_clear_pointer (&loop.ticks, g_source_unref);
}

// ---- the thread ----

static gpointer
run (gpointer data)
{
  thread_set_name ("rtsp-pull");
  g_main_context_push_thread_default (loop.context);
  while (TRUE)
    g_main_context_iteration (loop.context, TRUE);
  return NULL;
}

static gboolean
start (GError **error)
{
  GThread *thread;

  loop.epoll = epoll_create1 (EPOLL_CLOEXEC);
  if (loop.epoll < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot open an epoll: %s",
        g_strerror (errno));
    return FALSE;
  }
  loop.context = g_main_context_new ();
  loop.scratch = g_malloc (RTSP_LOOP_SCRATCH);
  loop.sockets = g_source_new (&socket_functions, sizeof (GSource));
  loop.tag = g_source_add_unix_fd (loop.sockets, loop.epoll, G_IO_IN);
  g_source_attach (loop.sockets, loop.context);
  thread = g_thread_try_new ("rtsp-pull", run, NULL, error);
  if (thread) {
    g_thread_unref (thread);
    return TRUE;
  }
  g_source_destroy (loop.sockets);
  g_source_unref (loop.sockets);
  g_main_context_unref (loop.context);
  g_free (loop.scratch);
  close (loop.epoll);
  return FALSE;
}

void
rtsp_loop_set_round (guint us)
{
  round_us = us;
}

gboolean
rtsp_loop_start (GError **error)
{
  static GMutex lock;
  static gboolean started;
  gboolean is_started;

  g_mutex_lock (&lock);
  if (!started)
    started = start (error);
  is_started = started;
  g_mutex_unlock (&lock);
  return is_started;
}

void
rtsp_loop_invoke (GSourceFunc function, gpointer data)
{
  // Not g_main_context_invoke(), which runs the function in the caller's thread if it can.
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, function, data, NULL);
  g_source_attach (source, loop.context);
  g_source_unref (source);
}
