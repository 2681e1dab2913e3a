// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/whep.h"

#include "mounts/start_wait.h"
#include "outlets/http/http_refusal.h"
#include "outlets/webrtc/webrtc_choice.h"
#include "outlets/webrtc/webrtc_reader.h"
#include "readers/reader_limit.h"

#define SUFFIX "whep"

typedef struct {
  WebrtcReply common;         // first
  Presentation *presentation; // NULL: it is not in use
  WeirLayerSet layers;        // that the reader asks for
  GError *unfit;              // why it is a rendition's, for which nobody asked; NULL: it is none
  StartWait *wait;
} Reply;

// ---- offers ----

static guint32
list_codecs (const SdpOffer *offer)
{
  guint32 codecs = 0;

  for (guint i = 0; i < offer->media->len; i++) {
    const OfferMedia *line = g_ptr_array_index (offer->media, i);

    for (guint j = 0; line->is_usable && line->receives && j < line->formats->len; j++) {
      const gchar *name = sdp_answer_get_encoding (&g_array_index (line->formats, OfferFormat, j));

      codecs |= name ? webrtc_codec_from_name (name) : 0;
    }
  }
  return codecs;
}

// Takes ownership of the error.
static void
answer_problem (Reply *self, guint status, GError *error)
{
  if (self->unfit) {
    webrtc_reply_answer (&self->common, SOUP_STATUS_NOT_ACCEPTABLE,
        g_strdup_printf ("%s; the rendition: %s", self->unfit->message, error->message));
    g_error_free (error);
  } else {
    webrtc_reply_answer_error (&self->common, status, error);
  }
}

// Reports whether the client asks for the mount as it is, in no certain form.
static gboolean
asks_for_any (const Reply *self)
{
  const Resolved *resolved = self->common.asked->resolved;

  return !self->unfit && !resolved->choices && !resolved->is_below
         && weir_layer_set_equal (self->layers, WEIR_LAYER_SET_ALL);
}

// Begins to wait for a rendition of the mount, if there is one that fits, and the client has asked
// for no certain form of the mount. Otherwise answers. Takes ownership of the error.
static void
take_rendition (Reply *self, GError *error)
{
  const HttpAsked *asked = self->common.asked;
  Presentation *own = self->presentation;
  Resolved rendition = { .mount = asked->resolved->mount };
  GError *problem = NULL;
  gchar *choices = NULL;

  if (asks_for_any (self))
    choices = webrtc_choice_find_rendition (own, list_codecs (self->common.offer), &self->layers);
  if (!choices) {
    answer_problem (self, SOUP_STATUS_NOT_ACCEPTABLE, error);
    return;
  }
  rendition.choices = choices;
  self->unfit = error;
  self->presentation = mounts_use (&rendition, &problem);
  presentation_leave (own);
  g_clear_pointer (&self->wait, start_wait_free);
  if (self->presentation)
    self->wait = start_wait_new (self->presentation, asked->wake, asked->wake_data);
  else
    answer_problem (self, SOUP_STATUS_SERVICE_UNAVAILABLE, problem);
  g_free (choices);
}

// Takes ownership of the error.
static void
refuse (Reply *self, GError *error)
{
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    take_rendition (self, error);
  else
    answer_problem (self, SOUP_STATUS_SERVICE_UNAVAILABLE, error);
}

// The reader has a place on the mount.
static void
add_reader (Reply *self, WebrtcStream *stream)
{
  const HttpAsked *asked = self->common.asked;
  const gchar *mount = mount_get_path (asked->resolved->mount);
  const WebrtcReaderParts parts = { self->presentation, stream, self->common.offer, self->layers,
    mount, asked->peer, asks_for_any (self) ? asked->resolved->mount : NULL };
  GError *error = NULL;
  WebrtcClient *reader = webrtc_reader_new (
      webrtc_clients_get_context (self->common.endpoints->clients), &parts, &error);

  if (reader) {
    self->presentation = NULL;
    webrtc_reply_answer_session (&self->common, reader);
  } else {
    reader_limit_leave (mount);
    refuse (self, error);
  }
}

static void
begin_session (Reply *self)
{
  const HttpAsked *asked = self->common.asked;
  GSocket *v4 = webrtc_port_get_socket (self->common.endpoints->port, G_SOCKET_FAMILY_IPV4);
  GSocket *v6 = webrtc_port_get_socket (self->common.endpoints->port, G_SOCKET_FAMILY_IPV6);
  const HttpRefusal *problem;
  GError *error = NULL;
  WebrtcStream *stream =
      webrtc_stream_get (self->presentation, list_codecs (self->common.offer), v4, v6, &error);

  if (!stream) {
    refuse (self, error);
    return;
  }
  problem = http_refusal_of_reader (asked->resolved->mount);
  if (problem) {
    refusals_note (problem->reason, asked->peer, "%s", problem->text);
    webrtc_reply_answer (&self->common, problem->status, g_strdup (problem->text));
  } else {
    add_reader (self, stream);
  }
  webrtc_stream_unref (stream);
}

static void
decide (Reply *self)
{
  GError *error = NULL;

  switch (presentation_ask (self->presentation, &error)) {
    case PRESENTATION_READY:
      begin_session (self);
      break;
    case PRESENTATION_DOWN:
      answer_problem (self, SOUP_STATUS_CONFLICT, error);
      break;
    default:
      answer_problem (self, SOUP_STATUS_CONFLICT,
          g_error_new_literal (G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
              "the upstream takes too long to start (start-timeout)"));
      break;
  }
}

static void
take_offer (WebrtcReply *reply)
{
  Reply *self = (Reply *) reply;
  const HttpAsked *asked = reply->asked;
  GError *error = NULL;

  if (!webrtc_reply_read_offer (reply))
    return;
  if (!sdp_answer_receives (reply->offer)) {
    webrtc_reply_answer (reply, SOUP_STATUS_BAD_REQUEST,
        g_strdup ("the offer must have a line m= with a=recvonly or a=sendrecv"));
    return;
  }
  if (!webrtc_reply_enter (reply))
    return;
  self->layers = asked->demand->layers;
  self->presentation = mounts_use (asked->resolved, &error);
  if (self->presentation)
    self->wait = start_wait_new (self->presentation, asked->wake, asked->wake_data);
  else
    webrtc_reply_answer_error (reply, SOUP_STATUS_SERVICE_UNAVAILABLE, error);
}

// ---- the reply ----

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  Reply *self = (Reply *) reply;

  while (self->common.status == 0) {
    if (!start_wait_is_over (self->wait))
      return FALSE;
    decide (self);
  }
  webrtc_reply_fill (&self->common, head);
  return TRUE;
}

static void
free_reply (HttpReply *reply)
{
  Reply *self = (Reply *) reply;

  g_clear_pointer (&self->wait, start_wait_free);
  g_clear_error (&self->unfit);
  g_clear_pointer (&self->presentation, presentation_leave);
  webrtc_reply_clear (&self->common);
  g_free (self);
}

static HttpReply *
answer (gpointer endpoints, const HttpAsked *asked)
{
  static const HttpReplyOps ops = { .begin = begin, .next = webrtc_reply_next, .free = free_reply };
  Reply *self = g_new0 (Reply, 1);

  webrtc_reply_init (&self->common, &ops, endpoints, asked);
  webrtc_reply_take (&self->common, SUFFIX, take_offer);
  return &self->common.reply;
}

static gchar *
dup_target (gpointer endpoints, const gchar *target)
{
  return webrtc_reply_dup_target (target, SUFFIX);
}

static gboolean
begins (const HttpRequest *request)
{
  return request->kind == HTTP_POST;
}

HttpRoute
whep_get_route (WebrtcEndpoints *endpoints)
{
  HttpRoute route = webrtc_reply_make_route (endpoints, SUFFIX, ACCESS_READ, dup_target, answer);

  route.begins = begins;
  return route;
}
