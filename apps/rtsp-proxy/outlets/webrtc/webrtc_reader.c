// SPDX-License-Identifier: LGPL-2.1-or-later
// The thread of the readers' loop owns most of a reader. Events of the session come from the port's
// thread, which notes what they say, and handles RTCP.
#include "outlets/webrtc/webrtc_reader.h"

#include "base/clock.h"
#include "base/log.h"
#include "outlets/webrtc/webrtc_served.h"
#include "readers/adaptation.h"
#include "readers/reader_limit.h"

#define REPORT_INTERVAL_NS G_GINT64_CONSTANT (1000000000)

typedef struct {
  WebrtcClient client; // first
  WebrtcStream *stream;
  GArray *choices;     // of AnswerChoice
  WeirLayerSet layers; // that the client has chosen
  gchar *mount;
  Mount *varies; // or NULL

  // Guarded by the client's lock:
  gchar *host; // the route
  guint16 port;
  const gchar *profile; // the keys; NULL: not connected yet
  GBytes *send_key, *receive_key;
  WebrtcFeedback *feedback; // NULL: it does not play

  // The loop's thread's.
  GObject *srtp;
  GPtrArray *places; // of WebrtcPlace; NULL: it does not play
  Reader *served;
} WebrtcReader;

static void
reader_free (WebrtcClient *client)
{
  WebrtcReader *self = (WebrtcReader *) client;

  g_clear_object (&self->srtp);
  g_clear_pointer (&self->places, g_ptr_array_unref);
  g_clear_pointer (&self->send_key, g_bytes_unref);
  g_clear_pointer (&self->receive_key, g_bytes_unref);
  g_clear_pointer (&self->stream, webrtc_stream_unref);
  g_clear_pointer (&self->choices, g_array_unref);
  g_clear_pointer (&self->varies, mount_unref);
  g_free (self->mount);
  g_free (self->host);
  g_free (self);
}

// ---- the end ----

static void
send_reports (WebrtcReader *self, gboolean bye)
{
  guint8 report[WEBRTC_FEEDBACK_ROOM];

  for (guint i = 0; i < self->places->len; i++) {
    gsize size = webrtc_feedback_write (self->feedback, i, bye, clock_now (), report);

    if (size > 0)
      webrtc_session_send (self->client.session, report, size);
  }
}

static void
stop_playing (WebrtcReader *self)
{
  WebrtcFeedback *feedback;

  send_reports (self, TRUE);
  adaptation_forget (self->served);
  webrtc_served_end (g_steal_pointer (&self->served));
  for (guint i = 0; i < self->places->len; i++)
    webrtc_place_leave (g_ptr_array_index (self->places, i));
  g_mutex_lock (&self->client.lock);
  feedback = g_steal_pointer (&self->feedback);
  g_mutex_unlock (&self->client.lock);
  webrtc_feedback_unref (feedback);
}

static void
leave (WebrtcClient *client)
{
  WebrtcReader *self = (WebrtcReader *) client;

  if (self->places)
    stop_playing (self);
}

static void
end (WebrtcClient *client, const gchar *reason)
{
  WebrtcReader *self = (WebrtcReader *) client;

  log_event ("reader %s out: %s: %s", client->peer,
      presentation_get_label (self->client.presentation), reason);
  reader_limit_leave (self->mount);
  presentation_unuse (self->client.presentation);
}

// ---- playing ----

static GstStructure *
describe_stream (WebrtcReader *self, const AnswerChoice *choice)
{
  const OfferMedia *line = g_ptr_array_index (self->client.offer->media, choice->media);
  const OfferFormat *format = &g_array_index (line->formats, OfferFormat, choice->format);
  GBytes *extensions = sdp_answer_make_extensions (self->client.offer, choice);
  GstStructure *stream = gst_structure_new ("stream", "ssrc", G_TYPE_UINT, choice->ssrc,
      "payload-type", G_TYPE_UINT, format->type, "transport-id", G_TYPE_UINT,
      sdp_answer_get_transport_id (self->client.offer, choice), NULL);

  if (choice->rtx_ssrc)
    gst_structure_set (stream, "rtx-ssrc", G_TYPE_UINT, choice->rtx_ssrc, "rtx-payload-type",
        G_TYPE_UINT, (guint) format->rtx, NULL);
  if (extensions)
    gst_structure_set (stream, "extensions", G_TYPE_BYTES, extensions, NULL);
  g_clear_pointer (&extensions, g_bytes_unref);
  return stream;
}

static GPtrArray *
make_places (WebrtcReader *self)
{
  GPtrArray *places = g_ptr_array_new_with_free_func (webrtc_place_free);

  for (guint i = 0; i < self->choices->len; i++) {
    const AnswerChoice *choice = &g_array_index (self->choices, AnswerChoice, i);
    const WebrtcTrack *track = webrtc_stream_get_track (self->stream, choice->track);
    GstStructure *stream = describe_stream (self, choice);
    gchar *token = NULL;

    g_signal_emit_by_name (self->srtp, "add-stream", stream, &token);
    gst_structure_free (stream);
    if (token)
      g_ptr_array_add (places,
          webrtc_place_new (choice->track, choice->ssrc, track->is_video, track->sink, token));
  }
  return places;
}

static void
close_served (gpointer owner, const gchar *reason)
{
  webrtc_client_end (owner, reason);
}

static gpointer
ref_owner (gpointer owner)
{
  return webrtc_client_ref (owner);
}

static void
unref_owner (gpointer owner)
{
  webrtc_client_unref (owner);
}

static void
show (WebrtcReader *self)
{
  static const WebrtcServedOwner functions = { close_served, ref_owner, unref_owner };
  gchar *left_out = webrtc_stream_dup_left_out (self->stream);

  self->served = webrtc_served_new (self->stream, self->places, self->feedback, self->mount,
      self->client.peer, left_out, &functions, self);
  adaptation_watch (self->served, self->client.presentation, self->varies, self->layers);
  log_event ("reader %s in: %s over WebRTC", self->client.peer,
      presentation_get_label (self->client.presentation));
  g_free (left_out);
}

static void
enter (WebrtcReader *self, guint16 port)
{
  MountConfig *config = presentation_dup_config (self->client.presentation);
  WeirLayerSet layers = adaptation_limit (config, self->layers);

  for (guint i = 0; i < self->places->len; i++)
    webrtc_place_enter (g_ptr_array_index (self->places, i), port, layers);
  mount_config_unref (config);
}

static void
begin_playing (WebrtcReader *self)
{
  WebrtcFeedback *feedback;
  guint16 port;

  g_mutex_lock (&self->client.lock);
  port = self->port;
  self->srtp = g_object_new (g_type_from_name ("WeirSrtp"), "destination", self->host, "profile",
      self->profile, "send-key", self->send_key, "receive-key", self->receive_key, NULL);
  g_clear_pointer (&self->send_key, g_bytes_unref);
  g_clear_pointer (&self->receive_key, g_bytes_unref);
  g_mutex_unlock (&self->client.lock);
  self->places = make_places (self);
  feedback = webrtc_feedback_new (self->srtp, self->stream, self->places, self->client.cname);
  g_mutex_lock (&self->client.lock);
  self->feedback = feedback;
  g_mutex_unlock (&self->client.lock);
  show (self);
  enter (self, port);
  loop_set_due (&self->client.watch, clock_now ());
  if (self->places->len < self->choices->len)
    webrtc_client_end (&self->client, "its packets cannot be encrypted");
}

// The browser is connected.
static void
play (gpointer reader)
{
  WebrtcReader *self = reader;

  if (!webrtc_client_is_ending (&self->client))
    begin_playing (self);
  webrtc_client_unref (&self->client);
}

// The browser has another address. It begins at a join point again.
static void
move (gpointer reader)
{
  WebrtcReader *self = reader;
  gboolean plays = self->places && !webrtc_client_is_ending (&self->client);
  guint16 port;
  gchar *host;

  g_mutex_lock (&self->client.lock);
  host = g_strdup (self->host);
  port = self->port;
  g_mutex_unlock (&self->client.lock);
  if (plays)
    g_signal_emit_by_name (self->srtp, "set-destination", host);
  for (guint i = 0; plays && i < self->places->len; i++)
    webrtc_place_leave (g_ptr_array_index (self->places, i));
  if (plays)
    enter (self, port);
  g_free (host);
  webrtc_client_unref (&self->client);
}

static void
on_due (WebrtcClient *client, gint64 now)
{
  WebrtcReader *self = (WebrtcReader *) client;

  send_reports (self, FALSE);
  loop_set_due (&client->watch, now + REPORT_INTERVAL_NS);
  if (webrtc_stream_has_ended (self->stream))
    webrtc_client_end (&self->client, "the stream has ended");
}

// ---- events of the session, in the port's thread ----

static void
on_route (gpointer reader, const WebrtcRoute *route)
{
  WebrtcReader *self = reader;
  gboolean moves;

  g_mutex_lock (&self->client.lock);
  g_free (self->host);
  self->host = g_strdup (route->host);
  self->port = route->port;
  moves = self->profile != NULL;
  g_mutex_unlock (&self->client.lock);
  if (moves)
    webrtc_client_post (&self->client, move);
}

static void
on_connected (gpointer reader, const WebrtcKeys *keys)
{
  WebrtcReader *self = reader;

  g_mutex_lock (&self->client.lock);
  self->profile = g_intern_string (keys->profile);
  self->send_key = g_bytes_ref (keys->send);
  self->receive_key = g_bytes_ref (keys->receive);
  g_mutex_unlock (&self->client.lock);
  webrtc_client_post (&self->client, play);
}

static void
on_rtcp (gpointer reader, guint8 *packet, gsize size, gint64 arrival)
{
  WebrtcReader *self = reader;
  WebrtcFeedbackVerdict verdict = WEBRTC_FEEDBACK_FORGED;
  WebrtcFeedback *feedback;
  WebrtcSession *session;

  g_mutex_lock (&self->client.lock);
  session = self->client.session;
  feedback = self->feedback ? webrtc_feedback_ref (self->feedback) : NULL;
  g_mutex_unlock (&self->client.lock);
  if (feedback)
    verdict = webrtc_feedback_take (feedback, packet, size, clock_now ());
  g_clear_pointer (&feedback, webrtc_feedback_unref);
  // While an event runs, the session is not freed.
  if (session && verdict != WEBRTC_FEEDBACK_FORGED)
    webrtc_session_note_alive (session);
  if (verdict == WEBRTC_FEEDBACK_BYE)
    webrtc_client_end (&self->client, "the browser left");
}

static void
on_closed (gpointer reader, const gchar *reason)
{
  webrtc_client_end (reader, reason);
}

// ---- construction ----

static GArray *
choose (WebrtcStream *stream, const SdpOffer *offer, GError **error)
{
  const guint n = webrtc_stream_n_tracks (stream);
  AnswerTrack *tracks = g_new0 (AnswerTrack, n);
  GArray *choices;

  for (guint i = 0; i < n; i++) {
    const WebrtcTrack *track = webrtc_stream_get_track (stream, i);

    tracks[i] = (AnswerTrack) { track->is_video, track->encoding, track->fmtp };
  }
  choices = sdp_answer_choose (offer, tracks, n, error);
  g_free (tracks);
  return choices;
}

static gchar *
write_answer (WebrtcClient *client, const AnswerOwn *own)
{
  return sdp_answer_write (client->offer, ((WebrtcReader *) client)->choices, own);
}

WebrtcClient *
webrtc_reader_new (const WebrtcContext *context, const WebrtcReaderParts *parts, GError **error)
{
  static const WebrtcClientOps ops = {
    { .connected = on_connected, .route = on_route, .rtcp = on_rtcp, .closed = on_closed },
    write_answer, on_due, leave, end, reader_free
  };
  GArray *choices = choose (parts->stream, parts->offer, error);
  WebrtcReader *self;

  if (!choices)
    return NULL;
  self = g_new0 (WebrtcReader, 1);
  webrtc_client_init (&self->client, &ops, context, parts->offer, parts->peer);
  self->choices = choices;
  self->layers = parts->layers;
  self->mount = g_strdup (parts->mount);
  self->varies = parts->varies ? mount_ref (parts->varies) : NULL;
  self->client.presentation = parts->presentation;
  self->stream = webrtc_stream_ref (parts->stream);
  return &self->client;
}
