// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_session.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "outlets/webrtc/stun_hmac.h"

#define CONNECT_S 10 // a peer that is not there by then holds nothing any more
#define SECOND G_GINT64_CONSTANT (1000000000)
#define EARLY_BYTES (128 * 1024) // of media: a keyframe

// Media that came before its keys. A peer may send as soon as it has the last flight of DTLS, which
// another thread sends.
typedef struct {
  gboolean is_rtcp;
  gint64 arrival;
  gsize size;
  guint8 bytes[];
} Early;

struct _WebrtcSession {
  WebrtcPeer peer; // first
  LoopWatch watch;
  WebrtcPort *port;
  const WebrtcSessionEvents *events;
  gpointer data;
  WebrtcHandshake *handshake;
  gboolean is_client;
  gint64 deadline; // for being connected

  // Of the port's thread.
  gboolean is_begun, is_connected, is_ended;
  GQueue early; // of Early, for an owner that wants media
  gsize n_early;

  GMutex lock; // guards all below
  GCond quiet; // no event runs
  WeirIce ice;
  GThread *calling; // an event; NULL: none runs
  gboolean is_closed;
};

// ---- events; the port's thread ----

// Returns FALSE if the owner wants no event any more. Otherwise end_event() follows.
static gboolean
begin_event (WebrtcSession *self)
{
  gboolean wanted;

  g_mutex_lock (&self->lock);
  wanted = !self->is_closed;
  if (wanted)
    self->calling = g_thread_self ();
  g_mutex_unlock (&self->lock);
  return wanted;
}

static void
end_event (WebrtcSession *self)
{
  g_mutex_lock (&self->lock);
  self->calling = NULL;
  g_cond_broadcast (&self->quiet);
  g_mutex_unlock (&self->lock);
}

static void
tell_closed (WebrtcSession *self, const gchar *reason)
{
  if (!begin_event (self))
    return;
  if (self->events->closed)
    self->events->closed (self->data, reason);
  end_event (self);
}

static void
tell_packet (WebrtcSession *self, void (*event) (gpointer, guint8 *, gsize, gint64), guint8 *packet,
    gsize size, gint64 arrival)
{
  if (!event || !begin_event (self))
    return;
  event (self->data, packet, size, arrival);
  end_event (self);
}

static void
tell_connected (WebrtcSession *self)
{
  GBytes *send, *receive;
  const gchar *profile = webrtc_handshake_get_keys (self->handshake, &send, &receive);
  const WebrtcKeys keys = { profile, send, receive };

  if (begin_event (self)) {
    if (self->events->connected)
      self->events->connected (self->data, &keys);
    end_event (self);
  }
  g_bytes_unref (send);
  g_bytes_unref (receive);
}

static void
tell_media (WebrtcSession *self, guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival)
{
  tell_packet (self, is_rtcp ? self->events->rtcp : self->events->rtp, packet, size, arrival);
}

// Returns FALSE if the owner wants none, or has no room for more.
static gboolean
keep_early (WebrtcSession *self, const guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival)
{
  Early *early;

  if (!self->events->rtp || self->n_early + size > EARLY_BYTES)
    return FALSE;
  early = g_malloc (sizeof *early + size);
  *early = (Early) { is_rtcp, arrival, size };
  memcpy (early->bytes, packet, size);
  g_queue_push_tail (&self->early, early);
  self->n_early += size;
  return TRUE;
}

static void
tell_early (WebrtcSession *self)
{
  Early *early;

  while ((early = g_queue_pop_head (&self->early))) {
    tell_media (self, early->bytes, early->size, early->is_rtcp, early->arrival);
    g_free (early);
  }
}

static gchar *
dup_host (const WeirAddress *address)
{
  gchar text[INET6_ADDRSTRLEN] = "";

  if (address->any.sa_family == AF_INET6)
    inet_ntop (AF_INET6, &address->v6.sin6_addr, text, sizeof text);
  else
    inet_ntop (AF_INET, &address->v4.sin_addr, text, sizeof text);
  return g_strdup (text);
}

static void
tell_route (WebrtcSession *self)
{
  WebrtcRoute route = { NULL };
  WeirIceTuple to;
  gboolean has;
  gchar *host;

  g_mutex_lock (&self->lock);
  to = self->ice.route;
  has = self->ice.has_route;
  g_mutex_unlock (&self->lock);
  if (!has)
    return;
  host = to.connection ? webrtc_port_get_token (self->port, to.connection) : dup_host (&to.address);
  route.host = host;
  route.port = to.connection ? 0 : weir_address_port (&to.address);
  // Without a host, the connection has closed meanwhile.
  if (host && begin_event (self)) {
    if (self->events->route)
      self->events->route (self->data, &route);
    end_event (self);
  }
  g_free (host);
}

// ---- times and the end; the port's thread ----

static void
set_due (WebrtcSession *self)
{
  gint64 due = self->is_connected ? G_MAXINT64 : self->deadline;

  if (self->is_ended) {
    loop_set_due (&self->watch, LOOP_NEVER);
    return;
  }
  g_mutex_lock (&self->lock);
  due = MIN (due, weir_ice_get_end (&self->ice));
  g_mutex_unlock (&self->lock);
  loop_set_due (&self->watch, MIN (due, webrtc_handshake_get_due (self->handshake)));
}

static void
end (WebrtcSession *self, const gchar *reason)
{
  if (self->is_ended)
    return;
  self->is_ended = TRUE;
  webrtc_handshake_close (self->handshake);
  tell_closed (self, reason);
}

static void
end_unconnected (WebrtcSession *self)
{
  gboolean has_route;
  WeirIceTuple route;
  gchar *reason;

  g_mutex_lock (&self->lock);
  has_route = self->ice.has_route;
  route = self->ice.route;
  g_mutex_unlock (&self->lock);
  if (has_route) {
    gchar *host = dup_host (&route.address);

    reason = g_strdup_printf ("DTLS was not complete after %d s; STUN came from %s port %u (%s)",
        CONNECT_S, host, weir_address_port (&route.address), route.connection ? "TCP" : "UDP");
    g_free (host);
  } else {
    GPtrArray *candidates = webrtc_port_get_candidates (self->port);
    gchar *text = webrtc_candidates_dup_text (candidates);

    reason =
        g_strdup_printf ("no STUN of the client came to port %u within %d s; candidates sent: %s",
            webrtc_port_get_number (self->port), CONNECT_S, text);
    g_free (text);
    g_ptr_array_unref (candidates);
  }
  end (self, reason);
  g_free (reason);
}

static WebrtcSession *
from_watch (LoopWatch *watch)
{
  return (WebrtcSession *) ((gchar *) watch - G_STRUCT_OFFSET (WebrtcSession, watch));
}

static void
on_due (LoopWatch *watch, gint64 now)
{
  WebrtcSession *self = from_watch (watch);
  gint64 consent;

  if (webrtc_handshake_get_due (self->handshake) <= now)
    webrtc_handshake_tick (self->handshake);
  g_mutex_lock (&self->lock);
  consent = weir_ice_get_end (&self->ice);
  g_mutex_unlock (&self->lock);
  if (!self->is_connected && self->deadline <= now)
    end_unconnected (self);
  else if (consent <= now)
    end (self, "nothing came from the client for 30 s");
  set_due (self);
}

// The last call: what came until now has been handled, so nothing adds an address any more.
static void
on_left (LoopWatch *watch)
{
  WebrtcSession *self = from_watch (watch);
  WebrtcPeers *peers = webrtc_port_get_peers (self->port);

  webrtc_peers_remove (peers, self->ice.now.own.ufrag);
  if (self->ice.restarting)
    webrtc_peers_remove (peers, self->ice.before.own.ufrag);
  for (gsize i = 0; i < self->ice.n_places; i++) {
    const WeirIceTuple *tuple = &self->ice.places[i].tuple;

    if (tuple->connection)
      webrtc_port_disconnect (self->port, tuple->connection);
    else
      webrtc_peers_remove_address (peers, &tuple->address, &self->peer);
  }
  webrtc_peer_unref (&self->peer);
}

static const LoopOps loop_ops = { .due = on_due, .left = on_left };

// ---- DTLS ----

static void
on_handshake (gpointer session)
{
  WebrtcSession *self = session;
  const DtlsState state = webrtc_handshake_get_state (self->handshake);

  if (state == DTLS_CONNECTED && !self->is_connected && !self->is_ended) {
    self->is_connected = TRUE;
    tell_connected (self);
    tell_early (self);
  } else if (state == DTLS_CLOSED) {
    end (self, "the client closed the connection");
  } else if (state == DTLS_FAILED) {
    gchar *problem = webrtc_handshake_dup_problem (self->handshake);
    gchar *reason = g_strdup_printf ("DTLS failed: %s", problem);

    end (self, reason);
    g_free (reason);
    g_free (problem);
  }
  set_due (self);
  webrtc_peer_unref (&self->peer);
}

static void
on_handshake_changed (gpointer session)
{
  WebrtcSession *self = session;

  webrtc_peer_ref (&self->peer);
  loop_post (webrtc_port_get_loop (self->port), on_handshake, self);
}

static void
send_dtls (gpointer session, const guint8 *datagram, gsize size)
{
  webrtc_session_send (session, datagram, size);
}

static gpointer
ref (gpointer session)
{
  webrtc_peer_ref (session);
  return session;
}

static void
unref (gpointer session)
{
  webrtc_peer_unref (session);
}

static const WebrtcHandshakeOps handshake_ops = { send_dtls, on_handshake_changed, ref, unref };

// ---- datagrams; the port's thread ----

static void
keep_address (WebrtcSession *self, const WeirIceTuple *from, const WeirIceStep *step)
{
  WebrtcPeers *peers = webrtc_port_get_peers (self->port);

  if (step->is_full && step->left_out.connection)
    webrtc_port_disconnect (self->port, step->left_out.connection);
  else if (step->is_full)
    webrtc_peers_remove_address (peers, &step->left_out.address, &self->peer);
  if (step->is_known && !from->connection)
    webrtc_peers_add_address (peers, &from->address, &self->peer);
}

// A client's first flight needs a route.
static void
begin_dtls (WebrtcSession *self)
{
  if (!self->is_client || self->is_begun)
    return;
  self->is_begun = TRUE;
  webrtc_handshake_begin (self->handshake);
}

static WeirIceVerdict
take_stun (WebrtcPeer *peer, const WeirIceTuple *from, const WeirStun *stun, gint64 now)
{
  WebrtcSession *self = (WebrtcSession *) peer;
  gboolean was_restarting, has_restarted;
  gchar before[WEIR_ICE_OWN_UFRAG + 1];
  WeirIceStep step = { .verdict = WEIR_ICE_FOREIGN };

  g_mutex_lock (&self->lock);
  was_restarting = self->ice.restarting;
  if (!self->is_closed && !self->is_ended)
    weir_ice_take (&self->ice, from, stun, stun_hmac_sha1, now, &step);
  has_restarted = was_restarting && !self->ice.restarting;
  memcpy (before, self->ice.before.own.ufrag, sizeof before);
  g_mutex_unlock (&self->lock);
  if (step.verdict != WEIR_ICE_ANSWERED)
    return step.verdict;
  if (has_restarted)
    webrtc_peers_remove (webrtc_port_get_peers (self->port), before);
  keep_address (self, from, &step);
  webrtc_port_send (self->port, from, step.answer, step.answer_len);
  if (step.is_moved)
    tell_route (self);
  if (step.is_known)
    begin_dtls (self);
  return step.verdict;
}

static gboolean
take_dtls (WebrtcPeer *peer, const guint8 *datagram, gsize size)
{
  WebrtcSession *self = (WebrtcSession *) peer;

  return self->is_ended || webrtc_handshake_push (self->handshake, datagram, size, clock_now ());
}

static gboolean
take_media (WebrtcPeer *peer, guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival)
{
  WebrtcSession *self = (WebrtcSession *) peer;

  if (self->is_ended)
    return TRUE;
  if (!self->is_connected)
    return keep_early (self, packet, size, is_rtcp, arrival);
  tell_media (self, packet, size, is_rtcp, arrival);
  return TRUE;
}

static void
on_disconnected (WebrtcPeer *peer, guint32 connection)
{
  WebrtcSession *self = (WebrtcSession *) peer;
  gboolean is_moved;

  g_mutex_lock (&self->lock);
  is_moved = weir_ice_drop_connection (&self->ice, connection);
  g_mutex_unlock (&self->lock);
  if (is_moved)
    tell_route (self);
}

static void
session_free (WebrtcPeer *peer)
{
  WebrtcSession *self = (WebrtcSession *) peer;

  webrtc_handshake_free (self->handshake);
  g_queue_clear_full (&self->early, g_free);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->quiet);
  g_free (self);
}

static const WebrtcPeerOps peer_ops = { take_stun, take_dtls, take_media, on_disconnected,
  session_free };

// ---- for the owner ----

static void
make_credentials (WeirIceCredentials *out)
{
  uint8_t random[WEIR_ICE_OWN_UFRAG + WEIR_ICE_OWN_PASSWORD];

  // A signal can interrupt the call until the kernel has seeded its generator.
  while (getrandom (random, sizeof random, 0) != sizeof random)
    ;
  weir_ice_make_credentials (random, out);
}

WebrtcSession *
webrtc_session_new (
    WebrtcPort *port, const WebrtcRemote *remote, const WebrtcSessionEvents *events, gpointer data)
{
  WebrtcSession *self = g_new0 (WebrtcSession, 1);
  const gint64 now = clock_now ();
  WeirIceCredentials own;

  make_credentials (&own);
  self->peer.ops = &peer_ops;
  self->peer.refs = 1;
  self->port = port;
  self->events = events;
  self->data = data;
  self->is_client = remote->is_passive;
  self->deadline = now + CONNECT_S * SECOND;
  g_queue_init (&self->early);
  g_mutex_init (&self->lock);
  g_cond_init (&self->quiet);
  weir_ice_init (&self->ice, &own, remote->ufrag, now);
  self->handshake = webrtc_handshake_new (webrtc_port_get_handshakes (port), self->is_client,
      remote->fingerprint, &handshake_ops, self);
  webrtc_peer_ref (&self->peer); // of the watch
  loop_join (webrtc_port_get_loop (port), &self->watch, &loop_ops);
  loop_set_due (&self->watch, self->deadline);
  webrtc_peers_add (webrtc_port_get_peers (port), own.ufrag, &self->peer);
  return self;
}

void
webrtc_session_close (WebrtcSession *self)
{
  g_mutex_lock (&self->lock);
  self->is_closed = TRUE;
  while (self->calling && self->calling != g_thread_self ())
    g_cond_wait (&self->quiet, &self->lock);
  g_mutex_unlock (&self->lock);
  webrtc_handshake_close (self->handshake);
  loop_leave (&self->watch);
  webrtc_peer_unref (&self->peer);
}

void
webrtc_session_get_ice (WebrtcSession *self, gchar **ufrag, gchar **password)
{
  g_mutex_lock (&self->lock);
  *ufrag = g_strdup (self->ice.now.own.ufrag);
  *password = g_strdup (self->ice.now.own.password);
  g_mutex_unlock (&self->lock);
}

const gchar *
webrtc_session_get_fingerprint (WebrtcSession *self)
{
  return webrtc_handshakes_get_fingerprint (webrtc_port_get_handshakes (self->port));
}

void
webrtc_session_restart (WebrtcSession *self, const gchar *peer_ufrag)
{
  WebrtcPeers *peers = webrtc_port_get_peers (self->port);
  gchar unused[WEIR_ICE_OWN_UFRAG + 1] = "";
  WeirIceCredentials own;

  make_credentials (&own);
  g_mutex_lock (&self->lock);
  if (self->ice.restarting) // once more, before the peer used the last ones
    memcpy (unused, self->ice.now.own.ufrag, sizeof unused);
  weir_ice_restart (&self->ice, &own, peer_ufrag);
  g_mutex_unlock (&self->lock);
  if (*unused)
    webrtc_peers_remove (peers, unused);
  webrtc_peers_add (peers, own.ufrag, &self->peer);
}

void
webrtc_session_note_alive (WebrtcSession *self)
{
  const gint64 now = clock_now ();

  g_mutex_lock (&self->lock);
  weir_ice_note_alive (&self->ice, now);
  g_mutex_unlock (&self->lock);
  webrtc_handshake_settle (self->handshake);
}

void
webrtc_session_send (WebrtcSession *self, const guint8 *packet, gsize size)
{
  WeirIceTuple to;
  gboolean has;

  g_mutex_lock (&self->lock);
  to = self->ice.route;
  has = self->ice.has_route;
  g_mutex_unlock (&self->lock);
  if (has)
    webrtc_port_send (self->port, &to, packet, size);
}
