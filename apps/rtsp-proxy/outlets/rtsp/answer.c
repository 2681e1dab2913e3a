// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/answer.h"

#include "outlets/rtsp/play_guard.h"

#include <string.h>

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
  return PLAY_GUARD_ANSWERED;
}

GstRTSPStatusCode
answer_refuse (GstRTSPContext *ctx, GstRTSPStatusCode status, guint retry_s, const gchar *why)
{
  gchar *body = g_strconcat (why, "\r\n", NULL);

  answer_begin (ctx, status);
  if (retry_s > 0)
    gst_rtsp_message_take_header (
        ctx->response, GST_RTSP_HDR_RETRY_AFTER, g_strdup_printf ("%u", retry_s));
  answer_add_body (ctx, "text/plain", body, strlen (body));
  g_free (body);
  return answer_send (ctx, NULL);
}
