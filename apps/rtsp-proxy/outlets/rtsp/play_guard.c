// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/play_guard.h"

typedef struct {
  GstRTSPAuth parent;
  PlayGuardFunc check;
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

// Answers as gst-rtsp-server does.
static void
refuse (GstRTSPContext *ctx, GstRTSPStatusCode status, const gchar *const *challenges)
{
  gst_rtsp_message_init_response (
      ctx->response, status, gst_rtsp_status_as_text (status), ctx->request);
  for (; challenges && *challenges; challenges++)
    gst_rtsp_message_add_header (ctx->response, GST_RTSP_HDR_WWW_AUTHENTICATE, *challenges);
  ctx->session = NULL;
  gst_rtsp_client_send_message (ctx->client, NULL, ctx->response);
}

static gboolean
is_misplaced (GstRTSPContext *ctx)
{
  return ctx->method == GST_RTSP_PLAY && ctx->session && !session_has_path (ctx);
}

static gboolean
play_guard_check (GstRTSPAuth *auth, GstRTSPContext *ctx, const gchar *check)
{
  const gchar *const *challenges = NULL;
  GstRTSPStatusCode status;

  // Without a GstRTSPAuth the library would assume FALSE here.
  if (g_str_equal (check, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS))
    return FALSE;
  if (!g_str_equal (check, GST_RTSP_AUTH_CHECK_URL))
    return TRUE;
  status = ((PlayGuard *) auth)->check (ctx->client, ctx, &challenges);
  if (status == GST_RTSP_STS_OK && is_misplaced (ctx))
    status = GST_RTSP_STS_NOT_FOUND;
  if (status != GST_RTSP_STS_OK && status != PLAY_GUARD_ANSWERED)
    refuse (ctx, status, challenges);
  return status == GST_RTSP_STS_OK;
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
play_guard_new (PlayGuardFunc check)
{
  PlayGuard *self = g_object_new (play_guard_get_type (), NULL);

  self->check = check;
  return GST_RTSP_AUTH (self);
}
