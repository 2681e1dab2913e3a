// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/timer.h"

#define N 50

static guint n_done;

static gboolean
count (gpointer data)
{
  guint *n_ticks = data;

  if (++*n_ticks < 3)
    return G_SOURCE_CONTINUE;
  n_done++;
  return G_SOURCE_REMOVE;
}

static gboolean
begin (gpointer data)
{
  timer_add_tick (200, count, data);
  return G_SOURCE_REMOVE;
}

// The ticks are added over more than one interval, so the first ones fire before the last is added.
static void
many_wake_the_loop_together (void)
{
  guint n_ticks[N] = { 0 };
  guint n_wakes = 0;

  for (guint i = 0; i < N; i++)
    g_timeout_add (i * 5, begin, &n_ticks[i]);
  while (n_done < N) {
    guint n_before = n_done;

    g_main_context_iteration (NULL, TRUE);
    n_wakes += n_done > n_before;
  }
  // All third calls come at two or three points in time.
  g_assert_cmpuint (n_wakes, <=, 5);
}

static GString *events;

static gboolean
note (gpointer letter)
{
  g_string_append_c (events, *(gchar *) letter);
  return G_SOURCE_REMOVE;
}

static void
wait_for (gsize n)
{
  while (events->len < n)
    g_main_context_iteration (NULL, TRUE);
}

static void
timers_come_in_order (void)
{
  events = g_string_new (NULL);
  timer_add (60, note, (gpointer) "c");
  timer_add (20, note, (gpointer) "a");
  timer_remove (timer_add (10, note, (gpointer) "x"));
  timer_add (40, note, (gpointer) "b");
  wait_for (3);
  g_assert_cmpstr (events->str, ==, "abc");
  g_string_free (events, TRUE);
}

static Timer *pair[2];

// Removes both timers, one of which runs this function.
static gboolean
remove_both (gpointer letter)
{
  note (letter);
  g_clear_pointer (&pair[0], timer_remove);
  g_clear_pointer (&pair[1], timer_remove);
  return G_SOURCE_CONTINUE;
}

static void
timers_may_remove_each_other (void)
{
  events = g_string_new (NULL);
  pair[0] = timer_add (10, remove_both, (gpointer) "a");
  pair[1] = timer_add (10, remove_both, (gpointer) "a");
  timer_add (60, note, (gpointer) "b");
  wait_for (2);
  g_assert_cmpstr (events->str, ==, "ab");
  g_string_free (events, TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/timer/many-wake-the-loop-together", many_wake_the_loop_together);
  g_test_add_func ("/timer/come-in-order", timers_come_in_order);
  g_test_add_func ("/timer/may-remove-each-other", timers_may_remove_each_other);
  return g_test_run ();
}
