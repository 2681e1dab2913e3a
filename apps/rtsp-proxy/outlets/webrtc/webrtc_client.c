// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_client.h"

#include <string.h>

// ---- references ----

static WebrtcClient *
client_of (LoopWatch *watch)
{
  return (WebrtcClient *) watch;
}

WebrtcClient *
webrtc_client_ref (WebrtcClient *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
webrtc_client_unref (WebrtcClient *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->presentation, presentation_unref);
  g_clear_pointer (&self->offer, sdp_offer_free);
  g_mutex_clear (&self->lock);
  g_free (self->reason);
  g_free (self->ufrag);
  g_free (self->cname);
  g_free (self->peer);
  self->ops->free (self);
}

void
webrtc_client_post (WebrtcClient *self, void (*function) (gpointer client))
{
  loop_post (self->context->loop, function, webrtc_client_ref (self));
}

// ---- the end ----

// Waits for an event that runs.
static void
close_session (WebrtcClient *self)
{
  WebrtcSession *session;

  g_mutex_lock (&self->lock);
  session = g_steal_pointer (&self->session);
  g_mutex_unlock (&self->lock);
  webrtc_session_close (session);
}

static void
end (gpointer client)
{
  WebrtcClient *self = client;

  loop_leave (&self->watch);
  if (self->ops->leave)
    self->ops->leave (self);
  close_session (self);
  self->ops->end (self, self->reason);
  self->context->ended (self, self->context->data);
  webrtc_client_unref (self);
}

void
webrtc_client_end (WebrtcClient *self, const gchar *reason)
{
  gboolean ends;

  g_mutex_lock (&self->lock);
  ends = self->is_open && !self->reason;
  if (!self->reason)
    self->reason = g_strdup (reason);
  g_mutex_unlock (&self->lock);
  if (ends)
    webrtc_client_post (self, end);
}

gboolean
webrtc_client_is_ending (WebrtcClient *self)
{
  gboolean is_ending;

  g_mutex_lock (&self->lock);
  is_ending = self->reason != NULL;
  g_mutex_unlock (&self->lock);
  return is_ending;
}

static void
on_left (LoopWatch *watch)
{
  webrtc_client_unref (client_of (watch));
}

// ---- the beginning ----

static void
on_due (LoopWatch *watch, gint64 now)
{
  WebrtcClient *self = client_of (watch);

  self->ops->due (self, now);
}

void
webrtc_client_init (WebrtcClient *self, const WebrtcClientOps *ops, const WebrtcContext *context,
    SdpOffer *offer, const gchar *peer)
{
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->ops = ops;
  self->context = context;
  self->offer = offer;
  self->peer = g_strdup (peer);
  self->id = ((guint64) g_random_int () << 32 | g_random_int ()) & G_MAXINT64; // RFC 9429, 5.2.1
  self->cname = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", self->id);
  self->ufrag = g_strdup (offer->ufrag);
}

void
webrtc_client_open (WebrtcClient *self)
{
  static const LoopOps ops = { .due = on_due, .left = on_left };
  WebrtcRemote remote = { .ufrag = self->offer->ufrag, .is_passive = self->offer->is_passive };
  gboolean ends;

  memcpy (remote.fingerprint, self->offer->fingerprint, sizeof remote.fingerprint);
  loop_join (self->context->loop, &self->watch, &ops);
  webrtc_client_ref (self); // of the loop
  g_mutex_lock (&self->lock);
  self->session = webrtc_session_new (self->context->port, &remote, &self->ops->events, self);
  self->is_open = TRUE;
  ends = self->reason != NULL;
  g_mutex_unlock (&self->lock);
  if (ends)
    webrtc_client_post (self, end);
}

void
webrtc_client_note_alive (WebrtcClient *self)
{
  g_mutex_lock (&self->lock);
  if (self->session)
    webrtc_session_note_alive (self->session);
  g_mutex_unlock (&self->lock);
}

// ---- answers ----

// Calls `write` with what the answer says of the session. Returns its text, or NULL if the session
// has ended. (transfer full)
static gchar *
write_own (WebrtcClient *self, const gchar *ufrag,
    gchar *(*write) (WebrtcClient *self, const AnswerOwn *own))
{
  GPtrArray *candidates = webrtc_port_get_candidates (self->context->port);
  AnswerCandidate *list = g_new0 (AnswerCandidate, candidates->len);
  AnswerOwn own = { .id = self->id,
    .is_active = self->offer->is_passive,
    .cname = self->cname,
    .candidates = list,
    .n_candidates = candidates->len };
  gchar *own_ufrag = NULL, *own_pwd = NULL, *text = NULL;

  for (guint i = 0; i < candidates->len; i++) {
    const WebrtcCandidate *each = g_ptr_array_index (candidates, i);

    list[i] = (AnswerCandidate) { each->address, webrtc_port_get_number (self->context->port),
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

// Names any m-line: all have one transport.
static gchar *
write_fragment (WebrtcClient *self, const AnswerOwn *own)
{
  const gchar *mid = NULL;

  for (guint i = 0; i < self->offer->media->len && !mid; i++) {
    const OfferMedia *line = g_ptr_array_index (self->offer->media, i);

    mid = line->is_usable ? line->mid : NULL;
  }
  return sdp_answer_write_fragment (own, mid);
}

gchar *
webrtc_client_write_answer (WebrtcClient *self)
{
  return write_own (self, NULL, self->ops->write_answer);
}

gchar *
webrtc_client_restart (WebrtcClient *self, const gchar *ufrag)
{
  return write_own (self, ufrag, write_fragment);
}

gboolean
webrtc_client_read_fragment (WebrtcClient *self, GBytes *body, gchar **ufrag, GError **error)
{
  return sdp_offer_read_fragment (
      self->offer, g_bytes_get_data (body, NULL), g_bytes_get_size (body), ufrag, error);
}

gboolean
webrtc_client_is_same (WebrtcClient *self, const gchar *ufrag)
{
  gboolean is_same;

  g_mutex_lock (&self->lock);
  is_same = g_str_equal (self->ufrag, ufrag);
  g_mutex_unlock (&self->lock);
  return is_same;
}
