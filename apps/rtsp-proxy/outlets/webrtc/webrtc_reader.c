// SPDX-License-Identifier: LGPL-2.1-or-later
// The thread of the readers' loop owns most of a reader. Events of the session come from the port's
// thread, which notes what they say, and handles RTCP.
#include "outlets/webrtc/webrtc_reader.h"

#include "base/clock.h"
#include "base/log.h"
#include "outlets/webrtc/webrtc_served.h"
#include "outlets/webrtc/webrtc_session.h"
#include "readers/adaptation.h"
#include "readers/reader_limit.h"

#include <string.h>

#define REPORT_INTERVAL_NS G_GINT64_CONSTANT (1000000000)

struct _WebrtcReader {
  LoopWatch watch; // first: see reader_of()
  gatomicrefcount refs;
  const WebrtcReaders *readers;
  Presentation *presentation;
  WebrtcStream *stream;
  SdpOffer *offer;
  GArray *choices;     // of AnswerChoice
  WeirLayerSet layers; // that the client has chosen
  gchar *mount, *peer, *cname;
  guint64 id;
  gint ending;   // atomic: webrtc_reader_end() was called
  gchar *reason; // of that

  GMutex lock;            // guards the fields below
  gchar *ufrag;           // of the client, for ICE
  WebrtcSession *session; // NULL: closed
  gchar *host;            // the route
  guint16 port;
  const gchar *profile; // the keys; NULL: not connected yet
  GBytes *send_key, *receive_key;
  WebrtcFeedback *feedback; // NULL: it does not play

  // The loop's thread's.
  GObject *srtp;
  GPtrArray *places; // of WebrtcPlace; NULL: it does not play
  Reader *served;
};

WebrtcReader *
webrtc_reader_ref (WebrtcReader *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
webrtc_reader_unref (WebrtcReader *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_object (&self->srtp);
  g_clear_pointer (&self->places, g_ptr_array_unref);
  g_clear_pointer (&self->send_key, g_bytes_unref);
  g_clear_pointer (&self->receive_key, g_bytes_unref);
  g_clear_pointer (&self->stream, webrtc_stream_unref);
  g_clear_pointer (&self->presentation, presentation_unref);
  g_clear_pointer (&self->offer, sdp_offer_free);
  g_clear_pointer (&self->choices, g_array_unref);
  g_mutex_clear (&self->lock);
  g_free (self->reason);
  g_free (self->mount);
  g_free (self->ufrag);
  g_free (self->cname);
  g_free (self->peer);
  g_free (self->host);
  g_free (self);
}

Presentation *
webrtc_reader_get_presentation (WebrtcReader *self)
{
  return self->presentation;
}

static WebrtcReader *
reader_of (LoopWatch *watch)
{
  return (WebrtcReader *) watch;
}

// Runs a function in the loop's thread, which releases a reference.
static void
post (WebrtcReader *self, void (*function) (gpointer reader))
{
  loop_post (self->readers->loop, function, webrtc_reader_ref (self));
}

// ---- the end ----

static void
send_reports (WebrtcReader *self, gboolean bye)
{
  guint8 report[WEBRTC_FEEDBACK_ROOM];

  for (guint i = 0; i < self->places->len; i++) {
    gsize size = webrtc_feedback_write (self->feedback, i, bye, clock_now (), report);

    if (size > 0)
      webrtc_session_send (self->session, report, size);
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
  g_mutex_lock (&self->lock);
  feedback = g_steal_pointer (&self->feedback);
  g_mutex_unlock (&self->lock);
  webrtc_feedback_unref (feedback);
}

// Waits for an event that runs.
static void
close_session (WebrtcReader *self)
{
  WebrtcSession *session;

  g_mutex_lock (&self->lock);
  session = g_steal_pointer (&self->session);
  g_mutex_unlock (&self->lock);
  webrtc_session_close (session);
}

static void
end (gpointer reader)
{
  WebrtcReader *self = reader;

  loop_leave (&self->watch);
  if (self->places)
    stop_playing (self);
  close_session (self);
  log_event ("reader %s out: %s: %s", self->peer, presentation_get_label (self->presentation),
      self->reason);
  reader_limit_leave (self->mount);
  presentation_unuse (self->presentation);
  self->readers->ended (self, self->readers->data);
  webrtc_reader_unref (self);
}

void
webrtc_reader_end (WebrtcReader *self, const gchar *reason)
{
  if (!g_atomic_int_compare_and_exchange (&self->ending, FALSE, TRUE))
    return;
  self->reason = g_strdup (reason);
  post (self, end);
}

static void
on_left (LoopWatch *watch)
{
  webrtc_reader_unref (reader_of (watch));
}

// ---- playing ----

static GstStructure *
describe_stream (WebrtcReader *self, const AnswerChoice *choice)
{
  const OfferMedia *line = g_ptr_array_index (self->offer->media, choice->media);
  const OfferFormat *format = &g_array_index (line->formats, OfferFormat, choice->format);
  GBytes *extensions = sdp_answer_make_extensions (self->offer, choice);
  GstStructure *stream = gst_structure_new (
      "stream", "ssrc", G_TYPE_UINT, choice->ssrc, "payload-type", G_TYPE_UINT, format->type, NULL);

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
  webrtc_reader_end (owner, reason);
}

static gpointer
ref_owner (gpointer owner)
{
  return webrtc_reader_ref (owner);
}

static void
unref_owner (gpointer owner)
{
  webrtc_reader_unref (owner);
}

static void
show (WebrtcReader *self)
{
  static const WebrtcServedOwner functions = { close_served, ref_owner, unref_owner };
  gchar *left_out = webrtc_stream_dup_left_out (self->stream);

  self->served = webrtc_served_new (
      self->places, self->feedback, self->mount, self->peer, left_out, &functions, self);
  adaptation_watch (self->served, self->presentation, self->layers);
  log_event (
      "reader %s in: %s over WebRTC", self->peer, presentation_get_label (self->presentation));
  g_free (left_out);
}

static void
enter (WebrtcReader *self, guint16 port)
{
  MountConfig *config = presentation_dup_config (self->presentation);
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

  g_mutex_lock (&self->lock);
  port = self->port;
  self->srtp = g_object_new (g_type_from_name ("WeirSrtp"), "destination", self->host, "profile",
      self->profile, "send-key", self->send_key, "receive-key", self->receive_key, NULL);
  g_clear_pointer (&self->send_key, g_bytes_unref);
  g_clear_pointer (&self->receive_key, g_bytes_unref);
  g_mutex_unlock (&self->lock);
  self->places = make_places (self);
  feedback = webrtc_feedback_new (self->srtp, self->stream, self->places, self->cname);
  g_mutex_lock (&self->lock);
  self->feedback = feedback;
  g_mutex_unlock (&self->lock);
  show (self);
  enter (self, port);
  loop_set_due (&self->watch, clock_now ());
  if (self->places->len < self->choices->len)
    webrtc_reader_end (self, "its packets cannot be encrypted");
}

// The browser is connected.
static void
play (gpointer reader)
{
  WebrtcReader *self = reader;

  if (!g_atomic_int_get (&self->ending))
    begin_playing (self);
  webrtc_reader_unref (self);
}

// The browser has another address. It begins at a join point again.
static void
move (gpointer reader)
{
  WebrtcReader *self = reader;
  gboolean plays = self->places && !g_atomic_int_get (&self->ending);
  guint16 port;
  gchar *host;

  g_mutex_lock (&self->lock);
  host = g_strdup (self->host);
  port = self->port;
  g_mutex_unlock (&self->lock);
  if (plays)
    g_signal_emit_by_name (self->srtp, "set-destination", host);
  for (guint i = 0; plays && i < self->places->len; i++)
    webrtc_place_leave (g_ptr_array_index (self->places, i));
  if (plays)
    enter (self, port);
  g_free (host);
  webrtc_reader_unref (self);
}

static void
on_due (LoopWatch *watch, gint64 now)
{
  WebrtcReader *self = reader_of (watch);

  send_reports (self, FALSE);
  loop_set_due (watch, now + REPORT_INTERVAL_NS);
  if (webrtc_stream_has_ended (self->stream))
    webrtc_reader_end (self, "the stream has ended");
}

// ---- events of the session, in the port's thread ----

static void
on_route (gpointer reader, const WebrtcRoute *route)
{
  WebrtcReader *self = reader;
  gboolean moves;

  g_mutex_lock (&self->lock);
  g_free (self->host);
  self->host = g_strdup (route->host);
  self->port = route->port;
  moves = self->profile != NULL;
  g_mutex_unlock (&self->lock);
  if (moves)
    post (self, move);
}

static void
on_connected (gpointer reader, const WebrtcKeys *keys)
{
  WebrtcReader *self = reader;

  g_mutex_lock (&self->lock);
  self->profile = g_intern_string (keys->profile);
  self->send_key = g_bytes_ref (keys->send);
  self->receive_key = g_bytes_ref (keys->receive);
  g_mutex_unlock (&self->lock);
  post (self, play);
}

static void
on_rtcp (gpointer reader, guint8 *packet, gsize size)
{
  WebrtcReader *self = reader;
  WebrtcFeedbackVerdict verdict = WEBRTC_FEEDBACK_FORGED;
  WebrtcFeedback *feedback;
  WebrtcSession *session;

  g_mutex_lock (&self->lock);
  session = self->session;
  feedback = self->feedback ? webrtc_feedback_ref (self->feedback) : NULL;
  g_mutex_unlock (&self->lock);
  if (feedback)
    verdict = webrtc_feedback_take (feedback, packet, size, clock_now ());
  g_clear_pointer (&feedback, webrtc_feedback_unref);
  // While an event runs, the session is not freed.
  if (session && verdict != WEBRTC_FEEDBACK_FORGED)
    webrtc_session_note_alive (session);
  if (verdict == WEBRTC_FEEDBACK_BYE)
    webrtc_reader_end (self, "the browser left");
}

static void
on_closed (gpointer reader, const gchar *reason)
{
  webrtc_reader_end (reader, reason);
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

static void
open_session (WebrtcReader *self)
{
  static const WebrtcSessionEvents events = {
    .connected = on_connected, .route = on_route, .rtcp = on_rtcp, .closed = on_closed
  };
  WebrtcRemote remote = { .ufrag = self->offer->ufrag, .is_passive = self->offer->is_passive };

  memcpy (remote.fingerprint, self->offer->fingerprint, sizeof remote.fingerprint);
  // Its events wait for the lock until the reader knows the session.
  g_mutex_lock (&self->lock);
  self->session = webrtc_session_new (self->readers->port, &remote, &events, self);
  g_mutex_unlock (&self->lock);
}

WebrtcReader *
webrtc_reader_new (const WebrtcReaders *readers, const WebrtcReaderParts *parts, GError **error)
{
  static const LoopOps ops = { .due = on_due, .left = on_left };
  GArray *choices = choose (parts->stream, parts->offer, error);
  WebrtcReader *self;

  if (!choices)
    return NULL;
  self = g_new0 (WebrtcReader, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->readers = readers;
  self->choices = choices;
  self->offer = parts->offer;
  self->ufrag = g_strdup (parts->offer->ufrag);
  self->layers = parts->layers;
  self->id = ((guint64) g_random_int () << 32 | g_random_int ()) & G_MAXINT64; // RFC 9429, 5.2.1
  self->cname = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", self->id);
  self->mount = g_strdup (parts->mount);
  self->peer = g_strdup (parts->peer);
  self->presentation = parts->presentation;
  self->stream = webrtc_stream_ref (parts->stream);
  loop_join (readers->loop, &self->watch, &ops);
  webrtc_reader_ref (self); // of the loop
  open_session (self);
  return self;
}

// ---- answers ----

// Calls `write` with what the answer says of the session. Returns its text, or NULL if the session
// has ended. (transfer full)
static gchar *
write_own (WebrtcReader *self, const gchar *ufrag,
    gchar *(*write) (WebrtcReader *self, const AnswerOwn *own))
{
  GPtrArray *candidates = webrtc_port_get_candidates (self->readers->port);
  AnswerCandidate *list = g_new0 (AnswerCandidate, candidates->len);
  AnswerOwn own = { .id = self->id,
    .is_active = self->offer->is_passive,
    .cname = self->cname,
    .candidates = list,
    .n_candidates = candidates->len };
  gchar *own_ufrag = NULL, *own_pwd = NULL, *text = NULL;

  for (guint i = 0; i < candidates->len; i++) {
    const WebrtcCandidate *each = g_ptr_array_index (candidates, i);

    list[i] = (AnswerCandidate) { each->address, webrtc_port_get_number (self->readers->port),
      each->is_tcp };
  }
  g_mutex_lock (&self->lock);
  if (self->session && ufrag) {
    webrtc_session_restart (self->session, ufrag);
    g_free (self->ufrag);
    self->ufrag = g_strdup (ufrag);
  }
  if (self->session) {
    webrtc_session_get_ice (self->session, &own_ufrag, &own_pwd);
    own.ufrag = own_ufrag;
    own.pwd = own_pwd;
    own.fingerprint = webrtc_session_get_fingerprint (self->session);
    text = write (self, &own);
  }
  g_mutex_unlock (&self->lock);
  g_free (own_ufrag);
  g_free (own_pwd);
  g_free (list);
  g_ptr_array_unref (candidates);
  return text;
}

static gchar *
write_answer (WebrtcReader *self, const AnswerOwn *own)
{
  return sdp_answer_write (self->offer, self->choices, own);
}

static gchar *
write_fragment (WebrtcReader *self, const AnswerOwn *own)
{
  const AnswerChoice *first = &g_array_index (self->choices, AnswerChoice, 0);
  const OfferMedia *line = g_ptr_array_index (self->offer->media, first->media);

  return sdp_answer_write_fragment (own, line->mid);
}

gchar *
webrtc_reader_write_answer (WebrtcReader *self)
{
  return write_own (self, NULL, write_answer);
}

gchar *
webrtc_reader_restart (WebrtcReader *self, const gchar *ufrag)
{
  return write_own (self, ufrag, write_fragment);
}

gboolean
webrtc_reader_read_fragment (WebrtcReader *self, GBytes *body, gchar **ufrag, GError **error)
{
  return sdp_offer_read_fragment (
      self->offer, g_bytes_get_data (body, NULL), g_bytes_get_size (body), ufrag, error);
}

gboolean
webrtc_reader_is_same (WebrtcReader *self, const gchar *ufrag)
{
  gboolean is_same;

  g_mutex_lock (&self->lock);
  is_same = g_str_equal (self->ufrag, ufrag);
  g_mutex_unlock (&self->lock);
  return is_same;
}
