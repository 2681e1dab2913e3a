// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/answer.h"

#include <string.h>

// ---- answers of the proxy ----

void
answer_begin (GstRTSPContext *ctx, GstRTSPStatusCode status)
{
  gst_rtsp_message_init_response (
      ctx->response, status, gst_rtsp_status_as_text (status), ctx->request);
}

void
answer_add_body (GstRTSPContext *ctx, const gchar *type, gconstpointer data, gsize size)
{
  gst_rtsp_message_add_header (ctx->response, GST_RTSP_HDR_CONTENT_TYPE, type);
  gst_rtsp_message_set_body (ctx->response, data, (guint) size);
}

GstRTSPStatusCode
answer_send (GstRTSPContext *ctx, GstRTSPSession *session)
{
  ctx->session = NULL;
  gst_rtsp_client_send_message (ctx->client, session, ctx->response);
  return ANSWERED;
}

GstRTSPStatusCode
answer_refuse (GstRTSPContext *ctx, GstRTSPStatusCode status, guint retry_s, const gchar *why)
{
  g_autofree gchar *body = g_strconcat (why, "\r\n", NULL);

  answer_begin (ctx, status);
  if (retry_s > 0)
    gst_rtsp_message_take_header (
        ctx->response, GST_RTSP_HDR_RETRY_AFTER, g_strdup_printf ("%u", retry_s));
  answer_add_body (ctx, "text/plain", body, strlen (body));
  return answer_send (ctx, NULL);
}

// ---- answers of gst-rtsp-server ----

static gboolean
has_number (GstRTSPMessage *request)
{
  gchar *cseq;

  return gst_rtsp_message_get_header (request, GST_RTSP_HDR_CSEQ, &cseq, 0) == GST_RTSP_OK
         && g_ascii_isdigit (*cseq);
}

static GstRTSPStatusCode
adjust_status (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPStatusCode code)
{
  GstRTSPMethod method = GST_RTSP_INVALID;

  if (!ctx->request
      || gst_rtsp_message_parse_request (ctx->request, &method, NULL, NULL) != GST_RTSP_OK)
    return code;
  // The media ended after the request was checked. The library blames the request for that.
  if (code == GST_RTSP_STS_BAD_REQUEST && ctx->factory)
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
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
answer_class_init (GstRTSPClientClass *klass)
{
  klass->adjust_error_code = adjust_status;
}

void
answer_complete (GstRTSPMessage *answer)
{
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  if (gst_rtsp_message_parse_response (answer, &code, NULL, NULL) == GST_RTSP_OK
      && code == GST_RTSP_STS_METHOD_NOT_ALLOWED)
    gst_rtsp_message_add_header (answer, GST_RTSP_HDR_ALLOW,
        "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER");
}
