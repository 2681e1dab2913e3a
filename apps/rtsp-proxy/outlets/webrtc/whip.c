// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/whip.h"

#include "mounts/publish_check.h"
#include "outlets/webrtc/sdp_sent.h"
#include "outlets/webrtc/webrtc_publisher.h"

#define SUFFIX "whip"

// Takes ownership of the error.
static void
answer_problem (WebrtcReply *self, GError *error)
{
  guint status = SOUP_STATUS_CONFLICT;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    status = SOUP_STATUS_NOT_ACCEPTABLE;
  else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT))
    status = SOUP_STATUS_UNPROCESSABLE_ENTITY;
  webrtc_reply_answer_error (self, status, error);
}

static void
add_publisher (WebrtcReply *self, const gchar *identity, GArray *choices, const MountConfig *config)
{
  const HttpAsked *asked = self->asked;
  WebrtcEndpoints *endpoints = self->endpoints;
  const WebrtcPublisherParts parts = { endpoints->mounts, self->offer, choices, asked->demand->path,
    asked->peer, identity, config };
  GError *error = NULL;
  WebrtcClient *publisher =
      webrtc_publisher_new (webrtc_clients_get_context (endpoints->clients), &parts, &error);

  if (publisher)
    webrtc_reply_answer_session (self, publisher);
  else
    answer_problem (self, error);
}

// Reports whether somebody may publish to the mount now. Otherwise answers why not.
static gboolean
check_mount (WebrtcReply *self, const gchar *identity)
{
  const gchar *why;

  switch (publish_check (self->endpoints->mounts, self->asked->demand->path, identity, &why)) {
    case PUBLISH_POSSIBLE:
      return TRUE;
    case PUBLISH_CONFLICT:
      webrtc_reply_answer (self, SOUP_STATUS_CONFLICT, g_strdup (why));
      return FALSE;
    default:
      webrtc_reply_answer (self, SOUP_STATUS_NOT_FOUND, g_strdup (why));
      return FALSE;
  }
}

static void
begin_session (WebrtcReply *self, const gchar *identity)
{
  gboolean exists;
  MountConfig *config =
      mounts_dup_publish_config (self->endpoints->mounts, self->asked->demand->path, &exists);
  GError *error = NULL;
  GArray *choices =
      sdp_sent_choose (self->offer, config && mount_config_takes_layers (config), &error);

  if (!choices)
    answer_problem (self, error);
  else if (!config)
    webrtc_reply_answer (self, SOUP_STATUS_NOT_FOUND, NULL);
  else if (webrtc_reply_enter (self))
    add_publisher (self, identity, choices, config);
  g_clear_pointer (&choices, g_array_unref);
  g_clear_pointer (&config, mount_config_unref);
}

static void
take_offer (WebrtcReply *self)
{
  gchar *identity = access_decision_dup_identity (self->asked->decided);

  if (check_mount (self, identity) && webrtc_reply_read_offer (self)) {
    if (sdp_sent_is (self->offer))
      begin_session (self, identity);
    else
      webrtc_reply_answer (self, SOUP_STATUS_BAD_REQUEST,
          g_strdup ("the offer must have a line m= with a=sendonly or a=sendrecv"));
  }
  g_free (identity);
}

// ---- the reply ----

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  webrtc_reply_fill ((WebrtcReply *) reply, head);
  return TRUE;
}

static void
free_reply (HttpReply *reply)
{
  webrtc_reply_clear ((WebrtcReply *) reply);
  g_free (reply);
}

static HttpReply *
answer (gpointer endpoints, const HttpAsked *asked)
{
  static const HttpReplyOps ops = { .begin = begin, .next = webrtc_reply_next, .free = free_reply };
  WebrtcReply *self = g_new0 (WebrtcReply, 1);

  webrtc_reply_init (self, &ops, endpoints, asked);
  webrtc_reply_take (self, SUFFIX, take_offer);
  return &self->reply;
}

static gchar *
dup_target (gpointer endpoints, const gchar *target)
{
  return webrtc_reply_dup_target (target, SUFFIX);
}

HttpRoute
whip_get_route (WebrtcEndpoints *endpoints)
{
  HttpRoute route = webrtc_reply_make_route (endpoints, SUFFIX, ACCESS_PUBLISH, dup_target, answer);

  route.changes = TRUE;
  return route;
}
