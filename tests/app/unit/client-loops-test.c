// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client_loops.h"

#include <glib-unix.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHARING 16  // connections of a context
#define CONTEXTS 20 // more than there are threads, on most machines
#define WAIT_US (30 * G_USEC_PER_SEC)

static GAsyncQueue *events;
static GstRTSPThread *threads[CONTEXTS * SHARING];

static gboolean
note (gpointer event)
{
  g_async_queue_push (events, event);
  return G_SOURCE_REMOVE;
}

static gpointer
wait_for_event (void)
{
  gpointer event = g_async_queue_timeout_pop (events, WAIT_US);

  g_assert_nonnull (event);
  return event;
}

static void
attach (GSource *source, GstRTSPThread *thread, GSourceFunc function, gpointer data)
{
  g_source_set_callback (source, function, data, NULL);
  g_source_attach (source, thread->context);
  g_source_unref (source);
}

static void
on_freed (gpointer number, GstMiniObject *thread)
{
  note (number);
}

// Gets threads for many connections, and notes when one is freed.
static void
get_threads (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++) {
    threads[i] = client_loops_get_thread ();
    g_assert_nonnull (threads[i]);
    if (i % SHARING == 0)
      gst_mini_object_weak_ref (GST_MINI_OBJECT (threads[i]), on_freed, GUINT_TO_POINTER (i + 1));
  }
}

static void
stop_threads (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    gst_rtsp_thread_stop (threads[i]);
  for (guint i = 0; i < CONTEXTS; i++)
    wait_for_event ();
}

static gboolean
note_thread (gpointer unused)
{
  return note (g_thread_self ());
}

// The first test, before there are other threads.
static void
connections_one_after_another_need_one_thread (void)
{
  gpointer first = NULL;

  for (guint i = 0; i < 2 * CONTEXTS; i++) {
    GstRTSPThread *thread = client_loops_get_thread ();
    gpointer one;

    g_assert_nonnull (thread);
    attach (g_idle_source_new (), thread, note_thread, NULL);
    one = wait_for_event ();
    first = first ? first : one;
    g_assert_true (one == first);
    gst_rtsp_thread_stop (thread);
  }
}

static void
a_context_has_a_few_connections (void)
{
  get_threads ();
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_assert_true ((threads[i] == threads[i - i % SHARING]));
  for (guint i = SHARING; i < G_N_ELEMENTS (threads); i += SHARING)
    g_assert_true (threads[i] != threads[i - SHARING]);
  // A place that was left is taken again.
  gst_rtsp_thread_stop (threads[G_N_ELEMENTS (threads) - 1]);
  threads[G_N_ELEMENTS (threads) - 1] = client_loops_get_thread ();
  g_assert_true (threads[G_N_ELEMENTS (threads) - 1] == threads[G_N_ELEMENTS (threads) - SHARING]);
  stop_threads ();
  g_assert_null (g_async_queue_try_pop (events));
}

static gboolean
attach_to_all (gpointer unused)
{
  for (guint i = 0; i < CONTEXTS; i++)
    attach (g_idle_source_new (), threads[i * SHARING], note, GUINT_TO_POINTER (i + 1));
  return G_SOURCE_REMOVE;
}

// Some of the other contexts belong to the same thread.
static void
a_context_is_woken_from_another_one (void)
{
  gboolean seen[CONTEXTS] = { FALSE };

  get_threads ();
  attach (g_timeout_source_new (20), threads[0], attach_to_all, NULL);
  for (guint i = 0; i < CONTEXTS; i++) {
    guint number = GPOINTER_TO_UINT (wait_for_event ()) - 1;

    g_assert_false (seen[number]);
    seen[number] = TRUE;
  }
  stop_threads ();
}

typedef struct {
  gint one[2], other[2], duplicate;
  GstRTSPThread *thread;
} Pipes;

static gboolean
on_other (gint fd, GIOCondition condition, gpointer data)
{
  gchar byte;

  g_assert_cmpint (read (fd, &byte, 1), ==, 1);
  g_assert_cmpint (byte, ==, 'b');
  note (data);
  return G_SOURCE_REMOVE;
}

// Puts another pipe in the place of this one, which lives on and still has a byte to read.
static gboolean
on_one (gint fd, GIOCondition condition, gpointer data)
{
  Pipes *pipes = data;

  pipes->duplicate = dup (fd);
  g_assert_cmpint (dup2 (pipes->other[0], fd), ==, fd);
  attach (g_unix_fd_source_new (fd, G_IO_IN), pipes->thread,
      (GSourceFunc) (void (*) (void)) on_other, pipes);
  note (pipes);
  return G_SOURCE_REMOVE;
}

// Counts how often its context is run.
typedef struct {
  GSource source;
  guint n; // atomic
} Counter;

static gboolean
count (GSource *source, gint *timeout)
{
  g_atomic_int_inc (&((Counter *) source)->n);
  return FALSE;
}

static GSourceFuncs counter_functions = { .prepare = count };

static void
a_descriptor_can_be_another_one_the_next_time (void)
{
  Pipes pipes = { .thread = client_loops_get_thread () };
  Counter *counter = (Counter *) g_source_new (&counter_functions, sizeof (Counter));

  g_assert_cmpint (pipe (pipes.one), ==, 0);
  g_assert_cmpint (pipe (pipes.other), ==, 0);
  attach (g_unix_fd_source_new (pipes.one[0], G_IO_IN), pipes.thread,
      (GSourceFunc) (void (*) (void)) on_one, &pipes);
  attach (g_timeout_source_new (20), pipes.thread, note, &pipes);
  wait_for_event (); // the pipe is watched
  g_assert_cmpint (write (pipes.one[1], "a", 1), ==, 1);
  wait_for_event ();
  // The first pipe, which is ready all the time, does not keep the thread busy.
  g_source_attach (&counter->source, pipes.thread->context);
  attach (g_timeout_source_new (300), pipes.thread, note, &pipes);
  wait_for_event ();
  g_assert_cmpint (g_atomic_int_get (&counter->n), <, 50);
  g_source_destroy (&counter->source);
  g_source_unref (&counter->source);
  g_assert_cmpint (write (pipes.other[1], "b", 1), ==, 1);
  wait_for_event ();
  gst_rtsp_thread_stop (pipes.thread);
  for (guint i = 0; i < 2; i++) {
    close (pipes.one[i]);
    close (pipes.other[i]);
  }
  close (pipes.duplicate);
}

// A thread may use a context that nobody uses, as g_main_context_invoke() does. The context's own
// thread must not release it, nor dispatch anything, meanwhile.
static void
another_thread_may_use_a_context (void)
{
  GstRTSPThread *thread = client_loops_get_thread ();

  for (guint i = 0; i < 5; i++) {
    while (!g_main_context_acquire (thread->context))
      g_thread_yield ();
    attach (g_idle_source_new (), thread, note_thread, NULL); // wakes the other thread
    g_assert_null (g_async_queue_timeout_pop (events, 20000));
    g_assert_true (g_main_context_is_owner (thread->context));
    g_main_context_release (thread->context);
    g_assert_true (wait_for_event () != g_thread_self ());
  }
  gst_rtsp_thread_stop (thread);
}

static void
connections_share_a_context_if_descriptors_are_short (void)
{
  GstRTSPThread *all[3 * SHARING];
  struct rlimit limit, low;

  all[0] = client_loops_get_thread ();
  g_assert_nonnull (all[0]);
  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &limit), ==, 0);
  low = limit;
  low.rlim_cur = (rlim_t) dup (0) + 2; // one file beside the duplicate
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &low), ==, 0);
  for (guint i = 1; i < G_N_ELEMENTS (all); i++) {
    all[i] = client_loops_get_thread ();
    g_assert_true (all[i] == all[0]);
  }
  close ((int) low.rlim_cur - 2);
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &limit), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    gst_rtsp_thread_stop (all[i]);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  events = g_async_queue_new ();
  g_test_add_func ("/client-loops/connections-one-after-another-need-one-thread",
      connections_one_after_another_need_one_thread);
  g_test_add_func (
      "/client-loops/a-context-has-a-few-connections", a_context_has_a_few_connections);
  g_test_add_func (
      "/client-loops/a-context-is-woken-from-another-one", a_context_is_woken_from_another_one);
  g_test_add_func ("/client-loops/a-descriptor-can-be-another-one-the-next-time",
      a_descriptor_can_be_another_one_the_next_time);
  g_test_add_func (
      "/client-loops/another-thread-may-use-a-context", another_thread_may_use_a_context);
  g_test_add_func ("/client-loops/connections-share-a-context-if-descriptors-are-short",
      connections_share_a_context_if_descriptors_are_short);
  return g_test_run ();
}
