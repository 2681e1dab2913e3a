// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/serving.h"

#include "outlets/rtsp/rtsp_reader.h"
#include "outlets/rtsp/timeshift.h"
#include "readers/adaptation.h"
#include "relay/relay_sets.h"

static Presentation *
get_presentation (const RtspRequest *request)
{
  return request->content ? request->content->presentation : NULL;
}

static gboolean
has_cache (const RtspRequest *request)
{
  Presentation *presentation = get_presentation (request);

  return presentation && presentation_has_cache (presentation);
}

// The media has the parameter sets with which it was made.
void
serving_live_describe_sets (Presentation *presentation, GstSDPMessage *sdp)
{
  Relay *relay = presentation_get_relay (presentation);

  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++) {
    g_autoptr (GstCaps) caps = relay_dup_caps (relay, i);

    if (caps)
      relay_sets_describe (caps, (GstSDPMedia *) gst_sdp_message_get_media (sdp, i));
  }
}

static void
describe (const RtspRequest *request, GstRTSPMedia *media, GstSDPMessage *sdp)
{
  Presentation *presentation = get_presentation (request);

  if (presentation)
    serving_live_describe_sets (presentation, sdp);
  if (has_cache (request))
    timeshift_describe (media, sdp, request->peer);
}

static GstRTSPStatusCode
begin_play (const RtspRequest *request)
{
  return has_cache (request)
             ? timeshift_play (request->ctx, request->delay_ns, request->peer, request->reader)
             : GST_RTSP_STS_OK;
}

// Reports whether every stream has a segment with rate 1. gst_rtsp_media_get_rates() asserts that
// all streams have segments with equal rates, so check this first.
static gboolean
can_be_played (GstRTSPMedia *media)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    GstRTSPStream *stream = gst_rtsp_media_get_stream (media, i);
    gdouble rate, applied;

    if (!gst_rtsp_stream_is_complete (stream) || !gst_rtsp_stream_is_sender (stream))
      continue;
    if (!gst_rtsp_stream_get_rates (stream, &rate, &applied) || rate != 1.0 || applied != 1.0)
      return FALSE;
  }
  return TRUE;
}

static void
prepare_layers (const RtspRequest *request, Presentation *presentation)
{
  g_autoptr (MountConfig) config = presentation_dup_config (presentation);

  rtsp_reader_prepare_layers (request->ctx->sessmedia, adaptation_limit (config, request->layers));
}

GstRTSPStatusCode
serving_live_adjust (
    const RtspRequest *request, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate)
{
  Presentation *presentation = get_presentation (request);
  GstRTSPContext *ctx = request->ctx;

  if (!presentation)
    return GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;
  if (*rate != 1.0)
    return GST_RTSP_STS_PARAMETER_NOT_UNDERSTOOD;
  if (!can_be_played (ctx->media))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  if (gst_rtsp_session_media_get_rtsp_state (ctx->sessmedia) != GST_RTSP_STATE_PLAYING)
    prepare_layers (request, presentation);
  return GST_RTSP_STS_OK;
}

static void
answer_play (const RtspRequest *request)
{
  if (has_cache (request))
    timeshift_answer (request->ctx);
}

static GstRTSPStatusCode
begin_pause (const RtspRequest *request)
{
  gboolean cache = has_cache (request);

  if (request->reader)
    reader_pause (request->reader, cache);
  if (cache)
    timeshift_pause (request->ctx);
  return GST_RTSP_STS_OK;
}

const Serving serving_live = { .describe = describe,
  .begin_play = begin_play,
  .adjust_play = serving_live_adjust,
  .answer_play = answer_play,
  .begin_pause = begin_pause };
