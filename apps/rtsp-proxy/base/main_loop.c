// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/main_loop.h"

#define TICK_MS 20

static gboolean
wake (gpointer unused)
{
  return G_SOURCE_CONTINUE;
}

gboolean
main_loop_wait (MainLoopDone done, gpointer data, guint timeout_ms)
{
  gint64 deadline = g_get_monotonic_time () + (gint64) timeout_ms * 1000;
  guint waker = g_timeout_add (TICK_MS, wake, NULL);
  gboolean is_done;

  while (!(is_done = done (data)) && g_get_monotonic_time () < deadline)
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (waker);
  return is_done;
}

void
main_loop_drain (void)
{
  const gint64 end = g_get_monotonic_time () + G_USEC_PER_SEC;

  while (g_main_context_iteration (NULL, FALSE) && g_get_monotonic_time () < end)
    ;
}
