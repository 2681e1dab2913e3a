// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/isolated_loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"

#define EVENTS 64
#define TICK_MS 500
#define ROUND_US 1000
// With so few sockets, a sleep saves no wakes.
#define FEW 4

static gint epoll = -1;
static gboolean runs;  // main thread only
static GMutex lock;    // of `all`
static GPtrArray *all; // of IsolatedWatched

static IsolatedWatched *
get (guint i)
{
  IsolatedWatched *watched = NULL;

  g_mutex_lock (&lock);
  if (i < all->len)
    watched = g_ptr_array_index (all, i);
  g_mutex_unlock (&lock);
  return watched;
}

static guint
count (void)
{
  guint n;

  g_mutex_lock (&lock);
  n = all->len;
  g_mutex_unlock (&lock);
  return n;
}

// A tick removes its own socket at most, and the last one takes its place. So the ticks go from the
// last to the first.
static void
tick_all (gint64 now)
{
  for (guint i = count (); i-- > 0;) {
    IsolatedWatched *watched = get (i);

    if (watched)
      watched->tick (watched, now);
  }
}

static gpointer
run (gpointer scratch)
{
  gint64 ticked = clock_now ();

  thread_set_name ("pull:isolated");
  for (;;) {
    struct epoll_event events[EVENTS];
    gint n = epoll_wait (epoll, events, EVENTS, TICK_MS);
    gint64 now;

    for (gint i = 0; i < n; i++) {
      IsolatedWatched *watched = events[i].data.ptr;

      watched->ready (watched, scratch);
    }
    now = clock_now ();
    if (now - ticked >= TICK_MS * G_GINT64_CONSTANT (1000000)) {
      ticked = now;
      tick_all (now);
    }
    if (n > 0 && count () > FEW)
      g_usleep (ROUND_US);
  }
  return NULL;
}

static gboolean
start (GError **error)
{
  GThread *thread;
  gpointer scratch;

  if (!all)
    all = g_ptr_array_new ();
  if (epoll < 0)
    epoll = epoll_create1 (EPOLL_CLOEXEC);
  if (epoll < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot open an epoll: %s",
        g_strerror (errno));
    return FALSE;
  }
  scratch = g_malloc (ISOLATED_LOOP_SCRATCH);
  thread = g_thread_try_new ("pull:isolated", run, scratch, error);
  if (thread)
    g_thread_unref (thread);
  else
    g_free (scratch);
  return thread != NULL;
}

gboolean
isolated_loop_add (IsolatedWatched *watched, GError **error)
{
  struct epoll_event event = { EPOLLIN, { .ptr = watched } };

  if (!runs)
    runs = start (error);
  if (!runs)
    return FALSE;
  g_mutex_lock (&lock);
  g_ptr_array_add (all, watched);
  g_mutex_unlock (&lock);
  if (epoll_ctl (epoll, EPOLL_CTL_ADD, watched->fd, &event) == 0)
    return TRUE;
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot watch a socket: %s",
      g_strerror (errno));
  g_mutex_lock (&lock);
  g_ptr_array_remove_fast (all, watched);
  g_mutex_unlock (&lock);
  return FALSE;
}

void
isolated_loop_remove (IsolatedWatched *watched)
{
  epoll_ctl (epoll, EPOLL_CTL_DEL, watched->fd, NULL);
  g_mutex_lock (&lock);
  g_ptr_array_remove_fast (all, watched);
  g_mutex_unlock (&lock);
}
