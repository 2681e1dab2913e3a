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

void
resume_run (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);

  if (client) {
    weir_client_resume (client);
    g_object_unref (client);
  }
  resume_free (weak);
}
