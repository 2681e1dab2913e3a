// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/rtsp_loop.h"

#include "base/loop_context.h"

static guint round_us = 2000; // between two rounds of reading

static void
make_default (gpointer context)
{
  g_main_context_push_thread_default (context);
}

static Loop *
start (GError **error)
{
  static const LoopContextOps ops = { 0 };
  const LoopSettings settings = {
    .name = "rtsp-pull", .gather_us = round_us, .scratch = RTSP_LOOP_SCRATCH
  };
  Loop *loop = loop_new (&settings, error);
  GMainContext *context;

  if (!loop)
    return NULL;
  context = g_main_context_new_with_flags (G_MAIN_CONTEXT_FLAGS_OWNERLESS_POLLING);
  loop_post (loop, make_default, context);
  loop_run_context (loop, context, &ops, NULL);
  g_main_context_unref (context);
  return loop;
}

Loop *
rtsp_loop_get (GError **error)
{
  static GMutex lock;
  static Loop *loop;
  Loop *found;

  g_mutex_lock (&lock);
  if (!loop)
    loop = start (error);
  found = loop;
  g_mutex_unlock (&lock);
  return found;
}

void
rtsp_loop_set_round (guint us)
{
  round_us = us;
}
