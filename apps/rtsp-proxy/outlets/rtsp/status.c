// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/status.h"

static gboolean
has_number (GstRTSPMessage *request)
{
  gchar *cseq;

  return gst_rtsp_message_get_header (request, GST_RTSP_HDR_CSEQ, &cseq, 0) == GST_RTSP_OK
         && g_ascii_isdigit (*cseq);
}

static GstRTSPStatusCode
adjust (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPStatusCode code)
{
  GstRTSPMethod method = GST_RTSP_INVALID;

  if (!ctx->request
      || gst_rtsp_message_parse_request (ctx->request, &method, NULL, NULL) != GST_RTSP_OK)
    return code;
  // The library itself takes no publishers, and says so in other words.
  if (code != GST_RTSP_STS_BAD_REQUEST
      && (method == GST_RTSP_ANNOUNCE || method == GST_RTSP_RECORD))
    return GST_RTSP_STS_METHOD_NOT_ALLOWED;
  // The guard has passed it, so only the method is unknown.
  if (method == GST_RTSP_INVALID && code == GST_RTSP_STS_BAD_REQUEST && has_number (ctx->request))
    return GST_RTSP_STS_NOT_IMPLEMENTED;
  return code;
}

void
status_class_init (GstRTSPClientClass *klass)
{
  klass->adjust_error_code = adjust;
}

void
status_complete (GstRTSPMessage *response)
{
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  if (gst_rtsp_message_parse_response (response, &code, NULL, NULL) == GST_RTSP_OK
      && code == GST_RTSP_STS_METHOD_NOT_ALLOWED)
    gst_rtsp_message_add_header (response, GST_RTSP_HDR_ALLOW,
        "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER");
}
