// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client_loops.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/files_left.h"
#include "base/threads.h"

#define THREADS_MIN 8
#define CONNECTIONS_MAX 16 // of a context
#define SEARCHED 4         // contexts that are searched for room before another one is made
#define EVENTS 64
#define BUSY_MS 1    // until a context is tried again that another thread uses
#define RETRY_MS 100 // until a context is run whose descriptors cannot be watched

typedef struct {
  GThread *thread;
  gint epoll, wakes; // `wakes` is an eventfd
  GAsyncQueue *new;  // of Bundle
  guint n_open;      // its bundles in `all.bundles`
  // For the thread only:
  GHashTable *bundles; // id -> Bundle
  GSequence *timers;   // of Bundle by `due`
} Loop;

// A context and its connections. Its loop's thread frees it when the connections have ended.
typedef struct {
  GstRTSPThread *thread;
  Loop *loop;
  guint64 id; // from 1 on
  // For the loop's thread only:
  GArray *fds;       // of GPollFD
  gint64 due;        // µs, monotonic
  GSequenceIter *at; // in the timers; NULL without a time
} Bundle;

static struct {
  GMutex lock;
  GPtrArray *loops; // of Loop
  guint64 last_id;  // of a bundle
  GQueue bundles;   // that take connections, the one with room first
} all;

// ---- time ----

static gint
compare (gconstpointer a, gconstpointer b, gpointer unused)
{
  gint64 one = ((const Bundle *) a)->due, other = ((const Bundle *) b)->due;

  return one < other ? -1 : one > other;
}

static void
unschedule (Bundle *self)
{
  if (self->at)
    g_sequence_remove (self->at);
  self->at = NULL;
}

// Schedules the next turn in `timeout` ms; never if it is negative.
static void
schedule (Bundle *self, gint timeout)
{
  unschedule (self);
  if (timeout < 0)
    return;
  // Later than now, so that the thread looks at other bundles first.
  self->due = g_get_monotonic_time () + MAX (timeout * G_TIME_SPAN_MILLISECOND, 1);
  self->at = g_sequence_insert_sorted (self->loop->timers, self, compare, NULL);
}

static Bundle *
get_first (Loop *self)
{
  GSequenceIter *at = g_sequence_get_begin_iter (self->timers);

  return g_sequence_iter_is_end (at) ? NULL : g_sequence_get (at);
}

// ---- bundles ----

// Returns the timeout until the next turn, in ms, or -1.
static gint
query (Bundle *self)
{
  GMainContext *context = self->thread->context;
  gint priority, timeout, n;

  g_main_context_prepare (context, &priority);
  while ((n = g_main_context_query (context, priority, &timeout,
              (GPollFD *) (gpointer) self->fds->data, (gint) self->fds->len))
         > (gint) self->fds->len)
    g_array_set_size (self->fds, (guint) n);
  g_array_set_size (self->fds, (guint) n);
  return timeout;
}

// Watches a descriptor until its next event. A descriptor can have been closed and opened again
// since the last time, and the epoll cannot forget a closed one whose socket lives on as a
// duplicate, so each event may be the last one.
static gboolean
watch (Loop *self, gint fd, guint32 events, guint64 id)
{
  struct epoll_event event = { events | EPOLLONESHOT, { .u64 = id } };

  return epoll_ctl (self->epoll, EPOLL_CTL_MOD, fd, &event) == 0
         || epoll_ctl (self->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static gboolean
watch_all (Bundle *self)
{
  gboolean ok = TRUE;

  for (guint i = 0; i < self->fds->len; i++) {
    const GPollFD *fd = &g_array_index (self->fds, GPollFD, i);

    // The events of poll() and those of an epoll are the same bits.
    ok &= watch (self->loop, fd->fd, fd->events, self->id);
  }
  return ok;
}

static void
end (Bundle *self)
{
  g_mutex_lock (&all.lock);
  self->loop->n_open -= g_queue_remove (&all.bundles, self) ? 1 : 0;
  g_mutex_unlock (&all.lock);
  unschedule (self);
  g_hash_table_remove (self->loop->bundles, &self->id);
  g_array_unref (self->fds);
  gst_rtsp_thread_unref (self->thread);
  g_free (self);
}

// Dispatches what is ready once, so that no bundle keeps its thread. While another thread runs a
// function in the context, as g_main_context_invoke() does, this waits for its turn.
static void
take_turn (Bundle *self)
{
  GMainContext *context = self->thread->context;
  gint timeout;

  if (!g_main_context_acquire (context)) {
    schedule (self, BUSY_MS);
    return;
  }
  g_main_context_iteration (context, FALSE);
  timeout = query (self);
  g_main_context_release (context);
  if (!g_main_loop_is_running (self->thread->loop)) {
    end (self);
    return;
  }
  if (!watch_all (self))
    timeout = timeout < 0 ? RETRY_MS : MIN (timeout, RETRY_MS);
  schedule (self, timeout);
}

// ---- threads ----

static void
take_new (Loop *self)
{
  guint64 unused;
  Bundle *bundle;

  while (read (self->wakes, &unused, sizeof unused) < 0 && errno == EINTR)
    ;
  watch (self, self->wakes, EPOLLIN, 0);
  while ((bundle = g_async_queue_try_pop (self->new))) {
    g_hash_table_insert (self->bundles, &bundle->id, bundle);
    take_turn (bundle);
  }
}

static void
take_event (Loop *self, guint64 id)
{
  Bundle *bundle = g_hash_table_lookup (self->bundles, &id);

  if (id == 0)
    take_new (self);
  else if (bundle)
    take_turn (bundle);
}

static gint
get_timeout (Loop *self)
{
  Bundle *first = get_first (self);
  gint64 left = first ? first->due - g_get_monotonic_time () : -1;

  return first ? (gint) CLAMP ((left + 999) / 1000, 0, G_MAXINT) : -1;
}

static gpointer
run (gpointer data)
{
  Loop *self = data;

  thread_set_name ("rtsp-clients");
  for (;;) {
    struct epoll_event events[EVENTS];
    gint n = epoll_wait (self->epoll, events, EVENTS, get_timeout (self));
    gint64 now;
    Bundle *first;

    for (gint i = 0; i < n; i++)
      take_event (self, events[i].data.u64);
    now = g_get_monotonic_time ();
    while ((first = get_first (self)) && first->due <= now)
      take_turn (first);
  }
  return NULL;
}

static void
loop_free (Loop *self)
{
  if (self->epoll >= 0)
    close (self->epoll);
  if (self->wakes >= 0)
    close (self->wakes);
  g_async_queue_unref (self->new);
  g_hash_table_unref (self->bundles);
  g_sequence_free (self->timers);
  g_free (self);
}

static Loop *
loop_new (void)
{
  Loop *self = g_new0 (Loop, 1);

  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->wakes = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  self->new = g_async_queue_new ();
  self->bundles = g_hash_table_new (g_int64_hash, g_int64_equal);
  self->timers = g_sequence_new (NULL);
  if (watch (self, self->wakes, EPOLLIN, 0))
    self->thread = g_thread_try_new ("rtsp-clients", run, self, NULL);
  if (!self->thread)
    g_clear_pointer (&self, loop_free);
  return self;
}

// ---- choosing ----

// Returns the loop with the fewest bundles, a new one if each has some, or NULL. Call with the lock
// held.
static Loop *
get_loop (void)
{
  guint max = MAX (g_get_num_processors (), THREADS_MIN);
  Loop *least = NULL, *made;

  if (!all.loops)
    all.loops = g_ptr_array_new ();
  for (guint i = 0; i < all.loops->len; i++) {
    Loop *loop = g_ptr_array_index (all.loops, i);

    if (!least || loop->n_open < least->n_open)
      least = loop;
  }
  if ((!least || least->n_open > 0) && all.loops->len < max && (made = loop_new ())) {
    g_ptr_array_add (all.loops, made);
    least = made;
  }
  return least;
}

static void
wake (Loop *self)
{
  const guint64 one = 1;

  while (write (self->wakes, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

// Call with the lock held.
static GstRTSPThread *
make_bundle (void)
{
  Loop *loop = get_loop ();
  GstRTSPThread *thread;
  Bundle *bundle;

  if (!loop)
    return NULL;
  thread = gst_rtsp_thread_new (GST_RTSP_THREAD_TYPE_CLIENT);
  g_main_loop_unref (thread->loop);
  g_main_context_unref (thread->context);
  // Sources that another context of the same thread attaches have to wake it, too.
  thread->context = g_main_context_new_with_flags (G_MAIN_CONTEXT_FLAGS_OWNERLESS_POLLING);
  thread->loop = g_main_loop_new (thread->context, TRUE);
  bundle = g_new0 (Bundle, 1);
  bundle->thread = gst_rtsp_thread_ref (thread);
  bundle->loop = loop;
  bundle->id = ++all.last_id;
  bundle->fds = g_array_new (FALSE, FALSE, sizeof (GPollFD));
  g_queue_push_head (&all.bundles, bundle);
  loop->n_open++;
  g_async_queue_push (loop->new, bundle);
  wake (loop);
  return thread;
}

// Returns a thread with fewer than `max` connections, or NULL. Each connection has a reference, and
// the bundle has one. Call with the lock held.
static GstRTSPThread *
find_thread (gint max)
{
  for (guint i = MIN (SEARCHED, all.bundles.length); i > 0; i--) {
    Bundle *first = g_queue_peek_head (&all.bundles);
    gboolean full = GST_MINI_OBJECT_REFCOUNT_VALUE (first->thread) > max;

    if (!full && gst_rtsp_thread_reuse (first->thread))
      return first->thread;
    g_queue_pop_head (&all.bundles);
    if (full)
      g_queue_push_tail (&all.bundles, first);
    else // it ends
      first->loop->n_open--;
  }
  return NULL;
}

GstRTSPThread *
client_loops_get_thread (void)
{
  GstRTSPThread *thread;

  g_mutex_lock (&all.lock);
  thread = find_thread (CONNECTIONS_MAX);
  if (!thread && files_are_left (FILES_FOR_CONNECTION))
    thread = make_bundle ();
  if (!thread)
    thread = find_thread (G_MAXINT);
  g_mutex_unlock (&all.lock);
  return thread;
}
