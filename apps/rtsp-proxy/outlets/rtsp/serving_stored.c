// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/serving.h"

#include "outlets/rtsp/title_media.h"
#include "weir-rtsp.h"

// ---- the work of a PLAY, in the title's worker ----

typedef struct {
  GstRTSPSessionMedia *session;
  GstRTSPTimeRange *range; // may be NULL
  GstSeekFlags flags;
  gdouble rate;
} Play;

static gint
play_run (gpointer data)
{
  Play *play = data;

  return title_media_play (play->session, play->range, play->flags, play->rate);
}

static void
play_free (gpointer data)
{
  Play *play = data;

  g_object_unref (play->session);
  g_clear_pointer (&play->range, gst_rtsp_range_free);
  g_free (play);
}

// Returns the status of the PLAY whose work has ended.
static GstRTSPStatusCode
get_status (Title *title)
{
  gint status;

  return title_get_result (title, &status) ? (GstRTSPStatusCode) status
                                           : GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

// ---- requests ----

static Title *
get_title (const RtspRequest *request)
{
  return request->content ? request->content->title : NULL;
}

// Starts the seek of a PLAY in the title's worker, and puts the request aside until the seek has
// ended; gst-rtsp-server then handles the request again.
static GstRTSPStatusCode
start (
    Title *title, GstRTSPContext *ctx, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble rate)
{
  GstRTSPStatusCode status;
  Play *play;

  if (title_works (title))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  // The sinks would give the RTP-Info of the position before the seek.
  weir_media_set_rtp_info_func (ctx->media, NULL, NULL, NULL);
  status = title_media_adjust_play (ctx->media, range, flags, rate);
  if (status != GST_RTSP_STS_OK)
    return status;
  if (!weir_client_defer (ctx->client, ctx))
    return title_media_play (ctx->sessmedia, *range, *flags, rate);
  play = g_new (Play, 1);
  *play = (Play) { g_object_ref (ctx->sessmedia), g_steal_pointer (range), *flags, rate };
  title_run (title, G_OBJECT (ctx->media), play_run, play, play_free);
  title_wait (title, resume_run, resume_new (ctx->client));
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

// Seeks instead of gst-rtsp-server, which would not notice a failure.
static GstRTSPStatusCode
adjust_play (
    const RtspRequest *request, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate)
{
  Title *title = get_title (request);
  GstRTSPContext *ctx = request->ctx;
  GstRTSPStatusCode status;

  // The connection may use other content by now.
  if (!title)
    return GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;
  status = weir_client_was_deferred (ctx->client, ctx) ? get_status (title)
                                                       : start (title, ctx, range, flags, *rate);
  g_clear_pointer (range, gst_rtsp_range_free);
  *flags = GST_SEEK_FLAG_NONE;
  *rate = 1.0;
  return status;
}

static GstRTSPStatusCode
begin_pause (const RtspRequest *request)
{
  Title *title = get_title (request);

  // Work that was given up may not have ended yet.
  if (title && title_works (title))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  if (request->reader)
    reader_pause (request->reader, FALSE);
  return GST_RTSP_STS_OK;
}

static void
end_pause (const RtspRequest *request)
{
  title_media_paused (gst_rtsp_session_media_get_media (request->ctx->sessmedia));
}

const Serving serving_stored = {
  .adjust_play = adjust_play, .begin_pause = begin_pause, .end_pause = end_pause
};
