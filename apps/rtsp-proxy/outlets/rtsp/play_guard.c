// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/play_guard.h"

#include "outlets/rtsp/setup_guard.h"

typedef struct {
  GstRTSPAuth parent;
} PlayGuard;

typedef struct {
  GstRTSPAuthClass parent_class;
} PlayGuardClass;

GType play_guard_get_type (void);
G_DEFINE_TYPE (PlayGuard, play_guard, GST_TYPE_RTSP_AUTH)

static gboolean
session_has_path (GstRTSPContext *ctx)
{
  GstRTSPClient *client = ctx->client;
  gchar *path = GST_RTSP_CLIENT_GET_CLASS (client)->make_path_from_uri (client, ctx->uri);
  gint matched;
  gboolean has = gst_rtsp_session_get_media (ctx->session, path, &matched) != NULL;

  g_free (path);
  return has;
}

// Sends the same answer as gst-rtsp-server.
static void
refuse (GstRTSPContext *ctx, GstRTSPStatusCode status)
{
  gst_rtsp_message_init_response (
      ctx->response, status, gst_rtsp_status_as_text (status), ctx->request);
  ctx->session = NULL;
  gst_rtsp_client_send_message (ctx->client, NULL, ctx->response);
}

static gboolean
check_setup (GstRTSPContext *ctx)
{
  GstRTSPStatusCode status = setup_guard_check (ctx);

  if (status != GST_RTSP_STS_OK)
    refuse (ctx, status);
  return status == GST_RTSP_STS_OK;
}

static gboolean
play_guard_check (GstRTSPAuth *self, GstRTSPContext *ctx, const gchar *check)
{
  // Without a GstRTSPAuth the library would assume FALSE here.
  if (g_str_equal (check, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS))
    return FALSE;
  if (g_str_equal (check, GST_RTSP_AUTH_CHECK_URL) && ctx->method == GST_RTSP_SETUP)
    return check_setup (ctx);
  if (!g_str_equal (check, GST_RTSP_AUTH_CHECK_URL)
      || (ctx->method != GST_RTSP_PLAY && ctx->method != GST_RTSP_RECORD) || !ctx->session
      || !ctx->uri || session_has_path (ctx))
    return TRUE;
  refuse (ctx, GST_RTSP_STS_NOT_FOUND);
  return FALSE;
}

static void
play_guard_init (PlayGuard *self)
{
}

static void
play_guard_class_init (PlayGuardClass *klass)
{
  GST_RTSP_AUTH_CLASS (klass)->check = play_guard_check;
}

GstRTSPAuth *
play_guard_new (void)
{
  return g_object_new (play_guard_get_type (), NULL);
}
