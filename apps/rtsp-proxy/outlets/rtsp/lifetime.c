// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/lifetime.h"

#include "outlets/rtsp/session_pool.h"
#include "weir-rtsp.h"

#define REMOVAL_MS                                                                                 \
  1000 // until the next look at a session that has timed out and is not removed yet

// Qdata of a client: the time of its last answer, in µs, monotonic; atomic.
static GQuark
answered_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-answered");
}

static void
on_send_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message, gint64 *at)
{
  __atomic_store_n (at, g_get_monotonic_time (), __ATOMIC_RELAXED);
}

void
lifetime_begin (GstRTSPClient *client)
{
  gint64 *answered = g_new (gint64, 1);

  *answered = g_get_monotonic_time ();
  g_object_set_qdata_full (G_OBJECT (client), answered_quark (), answered, g_free);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), answered);
}

gint64
lifetime_get_end (GstRTSPClient *client, gint64 now, guint silence_ms)
{
  const gint64 *answered = g_object_get_qdata (G_OBJECT (client), answered_quark ());
  GstRTSPSessionPool *pool = gst_rtsp_client_get_session_pool (client);
  gint64 silence = (gint64) silence_ms * G_TIME_SPAN_MILLISECOND, end;

  if (gst_rtsp_session_pool_get_n_sessions (pool) > 0)
    end = now
          + (gint64) MAX (session_pool_get_left (pool, now), REMOVAL_MS) * G_TIME_SPAN_MILLISECOND;
  else if (weir_client_has_deferred (client))
    end = now + silence;
  else
    end = __atomic_load_n (answered, __ATOMIC_RELAXED) + silence;
  g_object_unref (pool);
  return end;
}
