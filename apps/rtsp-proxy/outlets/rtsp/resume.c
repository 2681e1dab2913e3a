// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/resume.h"

#include "weir-rtsp.h"

gpointer
resume_new (GstRTSPClient *client)
{
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, client);
  return weak;
}

void
resume_free (gpointer weak)
{
  g_weak_ref_clear (weak);
  g_free (weak);
}

static gboolean
run_again (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);

  if (client) {
    weir_client_resume (client);
    g_object_unref (client);
  }
  return G_SOURCE_REMOVE;
}

void
resume_run (gpointer weak)
{
  run_again (weak);
  resume_free (weak);
}

void
resume_after (GstRTSPClient *client, guint ms)
{
  GSource *source = g_timeout_source_new (ms);

  g_source_set_callback (source, run_again, resume_new (client), resume_free);
  g_source_attach (source, g_source_get_context (g_main_current_source ()));
  g_source_unref (source);
}
