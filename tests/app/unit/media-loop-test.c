// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/media_loop.h"

#include <glib-unix.h>
#include <unistd.h>

#define LIMIT_S 30

typedef struct {
  GMutex lock;
  GCond changed;
  guint n;
  gboolean held;
} Calls;

static void
attach (GstRTSPThread *thread, GSource *source, GSourceFunc func, gpointer data)
{
  g_source_set_callback (source, func, data, NULL);
  g_source_attach (source, thread->context);
  g_source_unref (source);
}

static gboolean
count (gpointer data)
{
  Calls *calls = data;

  g_mutex_lock (&calls->lock);
  calls->n++;
  g_cond_broadcast (&calls->changed);
  g_mutex_unlock (&calls->lock);
  return G_SOURCE_REMOVE;
}

static gboolean
count_bytes (gint fd, GIOCondition condition, gpointer data)
{
  gchar byte;

  g_assert_cmpint (read (fd, &byte, 1), ==, 1);
  count (data);
  return G_SOURCE_CONTINUE;
}

static gboolean
hold (gpointer data)
{
  Calls *calls = data;

  count (calls);
  g_mutex_lock (&calls->lock);
  while (calls->held)
    g_cond_wait (&calls->changed, &calls->lock);
  g_mutex_unlock (&calls->lock);
  return G_SOURCE_REMOVE;
}

static void
expect (Calls *calls, guint n)
{
  const gint64 limit = g_get_monotonic_time () + LIMIT_S * G_TIME_SPAN_SECOND;

  g_mutex_lock (&calls->lock);
  while (calls->n < n)
    g_assert_true (g_cond_wait_until (&calls->changed, &calls->lock, limit));
  g_assert_cmpuint (calls->n, ==, n);
  g_mutex_unlock (&calls->lock);
}

static void
on_freed (gpointer calls, GstMiniObject *unused)
{
  count (calls);
}

static void
sources_of_each_kind_run (void)
{
  GstRTSPThread *thread = media_loop_new ();
  Calls calls = { 0 };
  gint pair[2];
  GSource *bytes;

  g_assert_cmpint (pipe (pair), ==, 0);
  bytes = g_unix_fd_source_new (pair[0], G_IO_IN);
  g_source_set_callback (bytes, G_SOURCE_FUNC (count_bytes), &calls, NULL);
  g_source_attach (bytes, thread->context);
  for (guint i = 0; i < 20; i++) {
    g_assert_cmpint (write (pair[1], "", 1), ==, 1);
    expect (&calls, 3 * i + 1);
    attach (thread, g_idle_source_new (), count, &calls);
    expect (&calls, 3 * i + 2);
    attach (thread, g_timeout_source_new (1 + i % 3 * 10), count, &calls);
    expect (&calls, 3 * i + 3);
  }
  g_source_destroy (bytes);
  g_source_unref (bytes);
  close (pair[0]);
  close (pair[1]);
  gst_rtsp_thread_stop (thread);
}

static void
one_that_blocks_holds_no_other (void)
{
  GstRTSPThread *threads[2] = { media_loop_new (), media_loop_new () };
  Calls held = { .held = TRUE }, calls = { 0 };

  attach (threads[0], g_idle_source_new (), hold, &held);
  expect (&held, 1);
  attach (threads[0], g_idle_source_new (), count, &held);
  for (guint i = 0; i < 10; i++) {
    attach (threads[1], g_idle_source_new (), count, &calls);
    expect (&calls, i + 1);
  }
  g_assert_cmpuint (held.n, ==, 1);
  g_mutex_lock (&held.lock);
  held.held = FALSE;
  g_cond_broadcast (&held.changed);
  g_mutex_unlock (&held.lock);
  expect (&held, 2);
  gst_rtsp_thread_stop (threads[0]);
  gst_rtsp_thread_stop (threads[1]);
}

static void
one_that_is_stopped_is_freed (void)
{
  GstRTSPThread *thread = media_loop_new ();
  Calls calls = { 0 };

  gst_mini_object_weak_ref (GST_MINI_OBJECT (thread), on_freed, &calls);
  gst_rtsp_thread_reuse (thread);
  gst_rtsp_thread_stop (thread);
  attach (thread, g_idle_source_new (), count, &calls);
  expect (&calls, 1);
  gst_rtsp_thread_stop (thread);
  expect (&calls, 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (NULL, NULL);
#define ADD(function) g_test_add_func ("/media-loop/" #function, function)
  ADD (sources_of_each_kind_run);
  ADD (one_that_blocks_holds_no_other);
  ADD (one_that_is_stopped_is_freed);
  return g_test_run ();
}
