// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/lifetime.h"

#include "outlets/rtsp/client.h"
#include "outlets/rtsp/session_pool.h"
#include "weir-rtsp.h"

#define REMOVAL_MS                                                                                 \
  1000 // until the next look at a session that has timed out and is not removed yet

gint64
lifetime_get_end (GstRTSPClient *client, gint64 now, guint silence_ms)
{
  GstRTSPSessionPool *pool = gst_rtsp_client_get_session_pool (client);
  gint64 silence = (gint64) silence_ms * G_TIME_SPAN_MILLISECOND, end;

  if (gst_rtsp_session_pool_get_n_sessions (pool) > 0)
    end = now
          + (gint64) MAX (session_pool_get_left (pool, now), REMOVAL_MS) * G_TIME_SPAN_MILLISECOND;
  else if (weir_client_has_deferred (client))
    end = now + silence;
  else
    end = client_get_answered (client) + silence;
  g_object_unref (pool);
  return end;
}
