// SPDX-License-Identifier: LGPL-2.1-or-later
#include "loop.h"

static gpointer
run (gpointer data)
{
  auto *context = static_cast<GMainContext *> (data);
  GMainLoop *loop = g_main_loop_new (context, FALSE);

  g_main_context_push_thread_default (context);
  g_main_loop_run (loop);
  return nullptr;
}

static GMainContext *
start ()
{
  GMainContext *context = g_main_context_new ();

  g_thread_unref (g_thread_new ("weir-swarm", run, context));
  return context;
}

GMainContext *
loop_context ()
{
  static GMainContext *const context = start ();

  return context;
}

void
loop_invoke (std::function<void ()> work)
{
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (
      source,
      [] (gpointer data) -> gboolean {
        (*static_cast<std::function<void ()> *> (data)) ();
        return G_SOURCE_REMOVE;
      },
      new std::function<void ()> (std::move (work)),
      [] (gpointer data) { delete static_cast<std::function<void ()> *> (data); });
  g_source_attach (source, loop_context ());
  g_source_unref (source);
}
