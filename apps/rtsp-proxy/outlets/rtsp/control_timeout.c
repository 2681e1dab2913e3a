// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/control_timeout.h"

#include <dlfcn.h>

#define SOURCES_MAX 65536 // that are searched: those of a few connections

// Returns the id of the newest source of the context.
static guint
find_newest (GMainContext *context)
{
  GSource *source = g_idle_source_new ();
  guint id = g_source_attach (source, context);

  g_source_destroy (source);
  g_source_unref (source);
  return id;
}

static gboolean
is_of_the_library (GSourceFunc function)
{
  Dl_info own, library;

  return function && dladdr ((gpointer) function, &own)
         && dladdr ((gpointer) gst_rtsp_client_attach, &library)
         && own.dli_fbase == library.dli_fbase;
}

// The library has no other timeouts in the contexts of clients. The data of this one is a weak
// reference to its client.
static gboolean
is_control_timeout (GSource *source, GstRTSPClient *client)
{
  GSourceFunc function = NULL;
  gpointer data = NULL;
  g_autoptr (GstRTSPClient) of = NULL;

  if (source->source_funcs != &g_timeout_funcs || !source->callback_funcs)
    return FALSE;
  source->callback_funcs->get (source->callback_data, source, &function, &data);
  if (!is_of_the_library (function))
    return FALSE;
  of = g_weak_ref_get (data);
  return of == client;
}

void
control_timeout_remove (GstRTSPClient *client)
{
  GMainContext *context = g_source_get_context (g_main_current_source ());
  guint newest = find_newest (context);

  for (guint id = newest; id > 0 && newest - id < SOURCES_MAX; id--) {
    GSource *source = g_main_context_find_source_by_id (context, id);

    if (source && is_control_timeout (source, client)) {
      g_source_destroy (source);
      return;
    }
  }
}
