// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client_loops.h"

#include "base/files_left.h"
#include "base/loop_context.h"

#define THREADS_MIN 8
#define CONNECTIONS_MAX 16 // of a context
#define SEARCHED 4         // contexts that are searched for room before another one is made

typedef struct {
  Loop *loop;
  guint n_open; // its bundles in `all.bundles`
} ClientLoop;

// A context and its connections. Its loop's thread frees it when the connections have ended.
typedef struct {
  GstRTSPThread *thread;
  ClientLoop *loop;
} Bundle;

static struct {
  GMutex lock;
  GPtrArray *loops; // of ClientLoop
  GQueue bundles;   // that take connections, the one with room first
} all;

// ---- bundles; their loop's thread ----

static gboolean
goes_on (gpointer bundle)
{
  return g_main_loop_is_running (((Bundle *) bundle)->thread->loop);
}

static void
bundle_free (gpointer bundle)
{
  Bundle *self = bundle;

  g_mutex_lock (&all.lock);
  self->loop->n_open -= g_queue_remove (&all.bundles, self) ? 1 : 0;
  g_mutex_unlock (&all.lock);
  gst_rtsp_thread_unref (self->thread);
  g_free (self);
}

static const LoopContextOps context_ops = { goes_on, bundle_free };

// ---- choosing ----

// Returns the loop with the fewest bundles, a new one if each has some, or NULL. Call with the lock
// held.
static ClientLoop *
get_loop (void)
{
  static const LoopSettings settings = { .name = "rtsp-clients" };
  guint max = MAX (g_get_num_processors (), THREADS_MIN);
  ClientLoop *least = NULL;
  Loop *made;

  if (!all.loops)
    all.loops = g_ptr_array_new ();
  for (guint i = 0; i < all.loops->len; i++) {
    ClientLoop *loop = g_ptr_array_index (all.loops, i);

    if (!least || loop->n_open < least->n_open)
      least = loop;
  }
  if ((!least || least->n_open > 0) && all.loops->len < max
      && (made = loop_new (&settings, NULL))) {
    least = g_new0 (ClientLoop, 1);
    least->loop = made;
    g_ptr_array_add (all.loops, least);
  }
  return least;
}

// Call with the lock held.
static GstRTSPThread *
make_bundle (void)
{
  ClientLoop *loop = get_loop ();
  GstRTSPThread *thread;
  Bundle *bundle;

  if (!loop)
    return NULL;
  thread = gst_rtsp_thread_new (GST_RTSP_THREAD_TYPE_CLIENT);
  g_main_loop_unref (thread->loop);
  g_main_context_unref (thread->context);
  thread->context = g_main_context_new_with_flags (G_MAIN_CONTEXT_FLAGS_OWNERLESS_POLLING);
  thread->loop = g_main_loop_new (thread->context, TRUE);
  bundle = g_new0 (Bundle, 1);
  bundle->thread = gst_rtsp_thread_ref (thread);
  bundle->loop = loop;
  g_queue_push_head (&all.bundles, bundle);
  loop->n_open++;
  loop_run_context (loop->loop, thread->context, &context_ops, bundle);
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
