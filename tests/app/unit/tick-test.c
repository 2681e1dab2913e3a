// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/tick.h"

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
  tick_add (200, count, data);
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

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tick/many-wake-the-loop-together", many_wake_the_loop_together);
  return g_test_run ();
}
