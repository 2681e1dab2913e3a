// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_session.h"

#include <gst/gst.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>

#include "base/clock.h"
#include "webrtc-client.h"

#define HOST "127.0.0.1"
#define MANY 5

// ---- the owner of a session ----

typedef struct {
  WebrtcSession *session;
  gint n_begun; // events of RTP, atomic

  GMutex lock;
  GCond changed;
  gboolean closes; // in the next event
  gchar *profile;
  GBytes *send, *receive;
  guint n_connected, n_routes, n_rtcp, n_rtp, n_closed;
  gint64 arrival; // of the last RTP, ns
  gchar *host;
  guint16 port;
  gchar *reason;
} Owner;

static void
note (Owner *self)
{
  const gboolean closes = self->closes;

  self->closes = FALSE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (closes)
    webrtc_session_close (self->session);
}

static void
on_connected (gpointer data, const WebrtcKeys *keys)
{
  Owner *self = data;

  g_mutex_lock (&self->lock);
  self->n_connected++;
  self->profile = g_strdup (keys->profile);
  self->send = g_bytes_ref (keys->send);
  self->receive = g_bytes_ref (keys->receive);
  note (self);
}

static void
on_route (gpointer data, const WebrtcRoute *route)
{
  Owner *self = data;

  g_mutex_lock (&self->lock);
  self->n_routes++;
  g_free (self->host);
  self->host = g_strdup (route->host);
  self->port = route->port;
  note (self);
}

static void
on_rtcp (gpointer data, guint8 *packet, gsize size, gint64 arrival)
{
  Owner *self = data;

  g_mutex_lock (&self->lock);
  self->n_rtcp++;
  note (self);
}

static void
on_rtp (gpointer data, guint8 *packet, gsize size, gint64 arrival)
{
  Owner *self = data;

  g_atomic_int_inc (&self->n_begun);
  g_mutex_lock (&self->lock);
  self->n_rtp++;
  self->arrival = arrival;
  note (self);
}

static void
on_closed (gpointer data, const gchar *reason)
{
  Owner *self = data;

  g_mutex_lock (&self->lock);
  self->n_closed++;
  self->reason = g_strdup (reason);
  note (self);
}

static const WebrtcSessionEvents events = { on_connected, on_route, on_rtcp, on_rtp, on_closed };

// Makes a session for a client that has not come yet.
static void
owner_open (Owner *self, WebrtcPort *port, Client *client, gboolean is_passive)
{
  WebrtcRemote remote = { .ufrag = CLIENT_UFRAG, .is_passive = is_passive };

  *self = (Owner) { 0 };
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  memcpy (remote.fingerprint, client->fingerprint, sizeof remote.fingerprint);
  self->session = webrtc_session_new (port, &remote, &events, self);
  webrtc_session_get_ice (self->session, &client->ufrag, &client->password);
}

static void
owner_clear (Owner *self)
{
  g_clear_pointer (&self->send, g_bytes_unref);
  g_clear_pointer (&self->receive, g_bytes_unref);
  g_free (self->profile);
  g_free (self->host);
  g_free (self->reason);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
}

static void
owner_close (Owner *self)
{
  webrtc_session_close (self->session);
  owner_clear (self);
}

static void
wait_for (Owner *self, const guint *count, guint wanted)
{
  const gint64 end = g_get_monotonic_time () + (CLIENT_WAIT_S + 5) * G_USEC_PER_SEC;

  g_mutex_lock (&self->lock);
  while (*count < wanted)
    g_assert_true (g_cond_wait_until (&self->changed, &self->lock, end));
  g_mutex_unlock (&self->lock);
}

static guint64 refused_before[WEBRTC_REFUSALS]; // the port was opened

static guint64
get_refused (WebrtcRefusal reason)
{
  return webrtc_refusals_get (reason) - refused_before[reason];
}

static WebrtcPort *
open_port (const gchar *address)
{
  const WebrtcPortSettings settings = { .address = address, .has_tcp = TRUE };
  GError *error = NULL;
  WebrtcPort *port = webrtc_port_new (&settings, &error);

  g_assert_no_error (error);
  for (guint i = 0; i < WEBRTC_REFUSALS; i++)
    refused_before[i] = webrtc_refusals_get (i);
  return port;
}

static void
wait_for_refused (WebrtcRefusal reason, guint64 wanted)
{
  const gint64 end = g_get_monotonic_time () + CLIENT_WAIT_S * G_USEC_PER_SEC;

  while (get_refused (reason) < wanted) {
    g_assert_cmpint (g_get_monotonic_time (), <, end);
    g_usleep (1000);
  }
  g_assert_cmpint (get_refused (reason), ==, wanted);
}

// ---- tests ----

// Connects one client by the way that `settings` say, and compares the keys of both sides.
static void
connect_one (const gchar *address, ClientSettings settings, const gchar *profile)
{
  WebrtcPort *port = open_port (address);
  Client *client = client_new (settings);
  Owner owner;

  owner_open (&owner, port, client, settings.is_server);
  client_move (client, address, webrtc_port_get_number (port));
  client_check (client, CLIENT_UFRAG);
  wait_for (&owner, &owner.n_routes, 1);
  g_assert_cmpstr (owner.host, ==, address);
  g_assert_true (client_shake_hands (client));
  wait_for (&owner, &owner.n_connected, 1);
  g_assert_cmpstr (owner.profile, ==, profile);
  if (settings.is_server)
    g_assert_true (client_has_keys (client, owner.send, owner.receive));
  else
    g_assert_true (client_has_keys (client, owner.receive, owner.send));
  g_assert_cmpint (owner.n_routes, ==, 1);
  g_assert_cmpint (owner.n_closed, ==, 0);
  owner_close (&owner);
  client_free (client);
  webrtc_port_free (port);
}

static void
a_client_gets_keys (void)
{
  connect_one ("127.0.0.1", (ClientSettings) { 0 }, "AEAD_AES_128_GCM");
}

static void
a_client_of_ipv6_gets_keys (void)
{
  connect_one ("::1", (ClientSettings) { 0 }, "AEAD_AES_128_GCM");
}

static void
a_client_without_gcm_gets_keys (void)
{
  connect_one ("127.0.0.1", (ClientSettings) { .profiles = "SRTP_AES128_CM_SHA1_80" },
      "AES_CM_128_HMAC_SHA1_80");
}

static void
a_client_of_small_datagrams_gets_keys (void)
{
  connect_one ("127.0.0.1", (ClientSettings) { .mtu = 256 }, "AEAD_AES_128_GCM");
}

// Then its order of profiles counts.
static void
a_passive_client_gets_keys (void)
{
  connect_one ("127.0.0.1", (ClientSettings) { .is_server = TRUE }, "AES_CM_128_HMAC_SHA1_80");
}

// Its certificate is not the one of its description, or it has none, or it wants no SRTP.
static void
fail_one (ClientSettings settings, gboolean is_other, const gchar *reason)
{
  WebrtcPort *port = open_port (HOST);
  Client *client = client_new (settings);
  Owner owner;

  client->fingerprint[31] ^= is_other;
  owner_open (&owner, port, client, FALSE);
  client_move (client, HOST, webrtc_port_get_number (port));
  client_check (client, CLIENT_UFRAG);
  client_shake_hands (client);
  wait_for (&owner, &owner.n_closed, 1);
  if (!strstr (owner.reason, reason))
    g_error ("the reason is: %s", owner.reason);
  g_assert_cmpint (owner.n_connected, ==, 0);
  owner_close (&owner);
  client_free (client);
  webrtc_port_free (port);
}

static void
a_certificate_of_another_is_refused (void)
{
  fail_one ((ClientSettings) { 0 }, TRUE, "does not have the fingerprint of its description");
}

static void
a_client_without_certificate_is_refused (void)
{
  fail_one ((ClientSettings) { .has_no_certificate = TRUE }, FALSE, "DTLS failed: ");
}

static void
a_client_without_srtp_is_refused (void)
{
  fail_one ((ClientSettings) { .profiles = "" }, FALSE, "no profile of SRTP in common");
}

typedef struct {
  WebrtcPort *port;
  Client *client;
  Owner owner;
} Pair;

static void
pair_connect (Pair *self)
{
  self->port = open_port (HOST);
  self->client = client_new ((ClientSettings) { 0 });
  owner_open (&self->owner, self->port, self->client, FALSE);
  client_move (self->client, HOST, webrtc_port_get_number (self->port));
  client_check (self->client, CLIENT_UFRAG);
  g_assert_true (client_shake_hands (self->client));
  wait_for (&self->owner, &self->owner.n_connected, 1);
}

static void
pair_clear (Pair *self)
{
  owner_close (&self->owner);
  client_free (self->client);
  webrtc_port_free (self->port);
}

static void
send_bytes (Client *client, guint8 first, guint8 second, gsize size)
{
  guint8 datagram[2048] = { first, second };

  g_assert_cmpint (send (client->fd, datagram, size, 0), ==, size);
}

// Holds the port's thread up between `begin` and `end`; what was posted before has run then.
typedef struct {
  GMutex lock;
  GCond changed;
  gboolean is_held, may_go;
} Hold;

static void
hold (gpointer data)
{
  Hold *self = data;

  g_mutex_lock (&self->lock);
  self->is_held = TRUE;
  g_cond_broadcast (&self->changed);
  while (!self->may_go)
    g_cond_wait (&self->changed, &self->lock);
  self->is_held = FALSE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
hold_begin (Hold *self, WebrtcPort *port)
{
  *self = (Hold) { .is_held = FALSE };
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  loop_post (webrtc_port_get_loop (port), hold, self);
  g_mutex_lock (&self->lock);
  while (!self->is_held)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

static void
hold_end (Hold *self)
{
  g_mutex_lock (&self->lock);
  self->may_go = TRUE;
  g_cond_broadcast (&self->changed);
  while (self->is_held)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
}

// A session that is closed has its addresses until the port's thread takes them.
static void
wait_until_stranger (Pair *pair)
{
  const gint64 end = g_get_monotonic_time () + CLIENT_WAIT_S * G_USEC_PER_SEC;

  while (get_refused (WEBRTC_REFUSED_STRANGER) == 0) {
    g_assert_cmpint (g_get_monotonic_time (), <, end);
    send_bytes (pair->client, 0x80, 201, 28);
    g_usleep (1000);
  }
}

static void
packets_arrive_when_they_come_and_not_when_they_are_read (void)
{
  const gint64 us = 1000, ms = 1000 * us;
  gint64 sent;
  Pair pair;

  pair_connect (&pair);
  // The port's thread waits in an event until the next packet has come.
  g_mutex_lock (&pair.owner.lock);
  send_bytes (pair.client, 0x80, 96, 12);
  while (g_atomic_int_get (&pair.owner.n_begun) == 0)
    sched_yield ();
  send_bytes (pair.client, 0x80, 96, 12);
  sent = clock_now ();
  while (clock_now () < sent + 2 * ms)
    sched_yield ();
  g_mutex_unlock (&pair.owner.lock);
  wait_for (&pair.owner, &pair.owner.n_rtp, 2);
  g_assert_cmpint (pair.owner.arrival, <=, sent + us);
  g_assert_cmpint (pair.owner.arrival, >, sent - CLIENT_WAIT_S * 1000 * ms);
  pair_clear (&pair);
}

static void
datagrams_are_told_apart (void)
{
  Pair pair;

  pair_connect (&pair);
  send_bytes (pair.client, 0x80, 201, 28);
  send_bytes (pair.client, 0x80, 206, 8);
  send_bytes (pair.client, 0xbf, 192, 100);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 3);
  send_bytes (pair.client, 0x80, 96, 12);
  send_bytes (pair.client, 0x90, 224, 1000);
  wait_for (&pair.owner, &pair.owner.n_rtp, 2);
  send_bytes (pair.client, 0x80, 96, 11);
  send_bytes (pair.client, 0x80, 200, 7);
  send_bytes (pair.client, 0x80, 0, 1);
  send_bytes (pair.client, 0, 1, 20);
  send_bytes (pair.client, 4, 1, 20);
  send_bytes (pair.client, 19, 1, 20);
  send_bytes (pair.client, 64, 1, 200);
  send_bytes (pair.client, 127, 1, 200);
  send_bytes (pair.client, 192, 1, 200);
  send_bytes (pair.client, 255, 1, 200);
  send (pair.client->fd, "", 0, 0);
  wait_for_refused (WEBRTC_REFUSED_MALFORMED, 11);
  g_assert_cmpint (pair.owner.n_rtcp, ==, 3);
  g_assert_cmpint (pair.owner.n_rtp, ==, 2);
  g_assert_cmpint (pair.owner.n_closed, ==, 0);
  pair_clear (&pair);
}

// They wait for the keys, as many as a keyframe has.
static void
media_before_the_keys_are_kept (void)
{
  WebrtcPort *port = open_port (HOST);
  Client *client = client_new ((ClientSettings) { 0 });
  Owner owner;

  owner_open (&owner, port, client, FALSE);
  client_move (client, HOST, webrtc_port_get_number (port));
  client_check (client, CLIENT_UFRAG);
  send_bytes (client, 0x80, 200, 28);
  for (guint i = 0; i < 135; i++)
    send_bytes (client, 0x80, 96, 1024);
  g_assert_true (client_shake_hands (client));
  wait_for (&owner, &owner.n_connected, 1);
  wait_for (&owner, &owner.n_rtcp, 1);
  wait_for (&owner, &owner.n_rtp, 127);
  wait_for_refused (WEBRTC_REFUSED_EARLY, 8);
  send_bytes (client, 0x80, 96, 1024);
  wait_for (&owner, &owner.n_rtp, 128);
  g_assert_cmpint (owner.n_rtp, ==, 128);
  owner_close (&owner);
  client_free (client);
  webrtc_port_free (port);
}

static void
strangers_reach_nobody (void)
{
  Pair pair;
  Client *stranger = client_new ((ClientSettings) { 0 });

  pair_connect (&pair);
  client_move (stranger, HOST, webrtc_port_get_number (pair.port));
  send_bytes (stranger, 0x80, 201, 28);
  send_bytes (stranger, 0x80, 96, 28);
  send_bytes (stranger, 22, 254, 200);
  wait_for_refused (WEBRTC_REFUSED_STRANGER, 3);
  stranger->ufrag = g_strdup (pair.client->ufrag);
  stranger->password = g_strdup ("abcdefghijklmnopqrstuvwx");
  client_send_check (stranger, CLIENT_UFRAG);
  wait_for_refused (WEBRTC_REFUSED_FORGED, 1);
  client_send_check (stranger, "somebody");
  stranger->ufrag[0] ^= 1;
  client_send_check (stranger, CLIENT_UFRAG);
  wait_for_refused (WEBRTC_REFUSED_FOREIGN, 2);
  send_bytes (stranger, 0x80, 201, 28);
  wait_for_refused (WEBRTC_REFUSED_STRANGER, 4);
  g_assert_cmpint (pair.owner.n_routes, ==, 1);
  g_assert_cmpint (pair.owner.n_rtcp, ==, 0);
  client_free (stranger);
  pair_clear (&pair);
}

// A fragment of a handshake each, as small as they may be; and what is no record at all.
static void
a_flood_of_dtls_is_bounded (void)
{
  static const guint8 fragment[] = { 22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13, 1, 0, 4, 0, 0, 0,
    0, 0, 1, 0, 0, 1, 0 };
  Pair pair;

  pair_connect (&pair);
  for (guint i = 0; i < 2000; i++) {
    guint8 bytes[sizeof fragment];

    memcpy (bytes, fragment, sizeof bytes);
    bytes[10] = (guint8) i;
    bytes[18] = (guint8) (i >> 8);
    bytes[0] = i % 3 ? 22 : 40;
    send (pair.client->fd, bytes, sizeof bytes, 0);
  }
  client_check (pair.client, CLIENT_UFRAG); // the thread goes on
  g_assert_cmpint (get_refused (WEBRTC_REFUSED_EXCESS), >, 0);
  send_bytes (pair.client, 0x80, 201, 28);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 1);
  g_assert_cmpint (pair.owner.n_closed, ==, 0);
  pair_clear (&pair);
}

static void
the_client_ends_it (gconstpointer settled)
{
  Pair pair;

  pair_connect (&pair);
  if (settled)
    webrtc_session_note_alive (pair.owner.session);
  SSL_shutdown (pair.client->ssl);
  wait_for (&pair.owner, &pair.owner.n_closed, 1);
  g_assert_cmpstr (pair.owner.reason, ==, "the client closed the connection");
  send_bytes (pair.client, 0x80, 201, 28);
  client_send_check (pair.client, CLIENT_UFRAG);
  wait_for_refused (WEBRTC_REFUSED_FOREIGN, 1);
  g_assert_cmpint (pair.owner.n_rtcp, ==, 0);
  pair_clear (&pair);
}

static void
the_client_is_told_of_the_end (gconstpointer settled)
{
  guint8 unused[64];
  Pair pair;
  int r;

  pair_connect (&pair);
  if (settled)
    webrtc_session_note_alive (pair.owner.session);
  webrtc_session_close (pair.owner.session);
  r = SSL_read (pair.client->ssl, unused, sizeof unused);
  g_assert_cmpint (SSL_get_error (pair.client->ssl, r), ==, SSL_ERROR_ZERO_RETURN);
  client_send_check (pair.client, CLIENT_UFRAG);
  wait_for_refused (WEBRTC_REFUSED_FOREIGN, 1);
  wait_until_stranger (&pair);
  g_assert_cmpint (pair.owner.n_rtcp, ==, 0);
  g_assert_cmpint (pair.owner.n_closed, ==, 0);
  owner_clear (&pair.owner);
  client_free (pair.client);
  webrtc_port_free (pair.port);
}

// Both packets come together, so the second one finds the session as the event left it.
static void
a_session_may_be_closed_in_an_event (void)
{
  Hold held;
  Pair pair;

  pair_connect (&pair);
  hold_begin (&held, pair.port);
  pair.owner.closes = TRUE;
  send_bytes (pair.client, 0x80, 201, 28);
  send_bytes (pair.client, 0x80, 201, 28);
  hold_end (&held);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 1);
  wait_until_stranger (&pair);
  g_assert_cmpint (pair.owner.n_rtcp, ==, 1);
  owner_clear (&pair.owner);
  client_free (pair.client);
  webrtc_port_free (pair.port);
}

static void
packets_go_to_the_route (void)
{
  guint8 packet[64] = { 0x80, 200, 7 }, got[128];
  Pair pair;

  pair_connect (&pair);
  webrtc_session_send (pair.owner.session, packet, sizeof packet);
  do {
    g_assert_cmpint (recv (pair.client->fd, got, sizeof got, 0), >, 0);
  } while (got[0] != 0x80);
  g_assert_cmpmem (got, sizeof packet, packet, sizeof packet);
  pair_clear (&pair);
}

// The client changes its network: its address is another one, and so are its credentials.
static void
ice_restarts (void)
{
  gchar *before;
  Pair pair;

  pair_connect (&pair);
  before = g_strdup (pair.client->ufrag);
  webrtc_session_restart (pair.owner.session, "again");
  g_free (pair.client->ufrag);
  g_free (pair.client->password);
  webrtc_session_get_ice (pair.owner.session, &pair.client->ufrag, &pair.client->password);
  g_assert_cmpstr (before, !=, pair.client->ufrag);
  send_bytes (pair.client, 0x80, 201, 28);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 1);
  client_move (pair.client, HOST, webrtc_port_get_number (pair.port));
  client_check (pair.client, "again");
  wait_for (&pair.owner, &pair.owner.n_routes, 2);
  send_bytes (pair.client, 0x80, 201, 28);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 2);
  g_assert_cmpint (pair.owner.n_connected, ==, 1);
  g_assert_cmpint (pair.owner.n_closed, ==, 0);
  // The old credentials are of nobody now.
  g_free (pair.client->ufrag);
  pair.client->ufrag = before;
  client_send_check (pair.client, CLIENT_UFRAG);
  wait_for_refused (WEBRTC_REFUSED_FOREIGN, 1);
  pair_clear (&pair);
}

// A NAT gives the same address to a second session of a client: the newer one has it.
static void
an_address_is_of_the_session_that_checked_it_last (void)
{
  Client *second = client_new ((ClientSettings) { 0 });
  gchar *ufrag, *password;
  Owner owner;
  Hold held;
  Pair pair;

  pair_connect (&pair);
  owner_open (&owner, pair.port, second, FALSE);
  ufrag = g_strdup (pair.client->ufrag);
  password = g_strdup (pair.client->password);
  g_free (pair.client->ufrag);
  g_free (pair.client->password);
  pair.client->ufrag = g_strdup (second->ufrag);
  pair.client->password = g_strdup (second->password);
  client_check (pair.client, CLIENT_UFRAG);
  send_bytes (pair.client, 22, 254, 100);
  owner_close (&pair.owner);
  hold_begin (&held, pair.port);
  hold_end (&held);
  // The first session has left the address to the second one.
  send_bytes (pair.client, 0x80, 96, 100);
  client_check (pair.client, CLIENT_UFRAG);
  g_assert_cmpint (get_refused (WEBRTC_REFUSED_STRANGER), ==, 0);
  g_assert_cmpint (pair.owner.n_rtp, ==, 0);
  owner_close (&owner);
  client_free (second);
  client_free (pair.client);
  webrtc_port_free (pair.port);
  g_free (ufrag);
  g_free (password);
}

// One client sends nothing, one only STUN.
static void
who_does_not_come_is_given_up (void)
{
  WebrtcPort *port = open_port (HOST);
  Client *clients[2];
  Owner owners[2];
  gchar *text;

  for (guint i = 0; i < 2; i++) {
    clients[i] = client_new ((ClientSettings) { 0 });
    owner_open (&owners[i], port, clients[i], FALSE);
  }
  client_move (clients[1], HOST, webrtc_port_get_number (port));
  client_check (clients[1], CLIENT_UFRAG);
  for (guint i = 0; i < 2; i++)
    wait_for (&owners[i], &owners[i].n_closed, 1);
  text = g_strdup_printf ("no STUN of the client came to port %u within 10 s; candidates sent: "
                          "127.0.0.1 (UDP), 127.0.0.1 (TCP)",
      webrtc_port_get_number (port));
  g_assert_cmpstr (owners[0].reason, ==, text);
  g_free (text);
  text = g_strdup_printf (
      "DTLS was not complete after 10 s; STUN came from 127.0.0.1 port %u (UDP)", owners[1].port);
  g_assert_cmpstr (owners[1].reason, ==, text);
  g_free (text);
  for (guint i = 0; i < 2; i++) {
    owner_close (&owners[i]);
    client_free (clients[i]);
  }
  webrtc_port_free (port);
}

static void
many_come_at_once (void)
{
  WebrtcPort *port = open_port (HOST);
  Client *clients[MANY];
  Owner owners[MANY];

  for (guint i = 0; i < MANY; i++) {
    clients[i] = client_new ((ClientSettings) { 0 });
    owner_open (&owners[i], port, clients[i], FALSE);
    client_move (clients[i], HOST, webrtc_port_get_number (port));
    client_send_check (clients[i], CLIENT_UFRAG);
  }
  for (guint i = 0; i < MANY; i++) {
    client_check (clients[i], CLIENT_UFRAG);
    g_assert_true (client_shake_hands (clients[i]));
  }
  for (guint i = 0; i < MANY; i++) {
    wait_for (&owners[i], &owners[i].n_connected, 1);
    g_assert_true (client_has_keys (clients[i], owners[i].receive, owners[i].send));
    owner_close (&owners[i]);
    client_free (clients[i]);
  }
  webrtc_port_free (port);
}

// A number that is free for UDP may not be for TCP, which the port has to find out.
static void
a_port_has_one_number (void)
{
  WebrtcPort *port = open_port ("::");
  const guint16 number = webrtc_port_get_number (port);
  const WebrtcPortSettings same = { .address = "::", .number = number };
  GError *error = NULL;
  gchar *wanted = g_strdup_printf ("cannot listen on :: port %u: ", number);

  g_assert_nonnull (webrtc_port_get_socket (port, G_SOCKET_FAMILY_IPV4));
  g_assert_nonnull (webrtc_port_get_socket (port, G_SOCKET_FAMILY_IPV6));
  g_assert_null (webrtc_port_new (&same, &error));
  g_assert_true (g_str_has_prefix (error->message, wanted));
  g_error_free (error);
  g_free (wanted);
  webrtc_port_free (port);
}

static void
candidates_begin_with_what_is_configured (void)
{
  static const gchar *const hosts[] = { "203.0.113.5", "127.0.0.1", "203.0.113.5", NULL };
  const WebrtcPortSettings settings = { HOST, 0, TRUE, hosts };
  WebrtcPort *port = webrtc_port_new (&settings, NULL);
  GPtrArray *candidates = webrtc_port_get_candidates (port);
  gchar *text = webrtc_candidates_dup_text (candidates);

  g_assert_cmpstr (
      text, ==, "203.0.113.5 (UDP), 127.0.0.1 (UDP), 203.0.113.5 (TCP), 127.0.0.1 (TCP)");
  g_free (text);
  g_ptr_array_unref (candidates);
  webrtc_port_free (port);
}

static void
candidates_of_all_addresses_are_of_others (void)
{
  WebrtcPort *port = open_port ("::");
  GPtrArray *candidates = webrtc_port_get_candidates (port);

  g_assert_cmpint (candidates->len, >, 0);
  for (guint i = 0; i < candidates->len; i++) {
    const WebrtcCandidate *candidate = candidates->pdata[i];
    GInetAddress *inet = g_inet_address_new_from_string (candidate->address);

    g_assert_nonnull (inet);
    g_assert_false (g_inet_address_get_is_any (inet));
    g_assert_false (g_inet_address_get_is_link_local (inet));
    for (guint j = 0; j < i; j++) {
      const WebrtcCandidate *other = candidates->pdata[j];

      g_assert_true (
          strcmp (candidate->address, other->address) != 0 || candidate->is_tcp != other->is_tcp);
    }
    g_object_unref (inet);
  }
  g_ptr_array_unref (candidates);
  webrtc_port_free (port);
}

static void
ip (const gchar *words)
{
  gchar *line = g_strconcat ("ip ", words, NULL);
  gint status = -1;

  g_assert_true (g_spawn_command_line_sync (line, NULL, NULL, &status, NULL));
  g_assert_cmpint (status, ==, 0);
  g_free (line);
}

static void
check_candidates (const gchar *address, const gchar *wanted)
{
  GPtrArray *candidates = webrtc_candidates_new (address, NULL, FALSE);
  gchar *text = webrtc_candidates_dup_text (candidates);

  g_assert_cmpstr (text, ==, wanted);
  g_free (text);
  g_ptr_array_unref (candidates);
}

// Returns what keeps the test from a network of its own, or NULL.
static gpointer
check_networks (gpointer unused)
{
  if (unshare (CLONE_NEWNET) < 0)
    return (gpointer) "a network of its own is not allowed here";
  ip ("link set lo up");
  check_candidates ("0.0.0.0", "127.0.0.1 (UDP)");
  check_candidates ("::", "127.0.0.1 (UDP), ::1 (UDP)");
  ip ("link add veth-inner type veth peer name uplink");
  ip ("link set veth-inner up");
  ip ("addr add 192.0.2.1/24 dev veth-inner");
  check_candidates ("0.0.0.0", "192.0.2.1 (UDP)");
  ip ("link set uplink up");
  ip ("addr add 198.51.100.1/24 dev uplink");
  check_candidates ("0.0.0.0", "198.51.100.1 (UDP)");
  return NULL;
}

// The network belongs to the thread, and ends with it.
static void
candidates_are_the_best_that_there_are (void)
{
  gchar *ip_program = g_find_program_in_path ("ip");
  const gchar *problem =
      ip_program ? g_thread_join (g_thread_new ("network", check_networks, NULL)) : "needs ip";

  if (problem)
    g_test_skip (problem);
  g_free (ip_program);
}

// The session sends its flight again. The client sends nothing meanwhile.
static void
a_lost_flight_is_sent_again (void)
{
  WebrtcPort *port = open_port (HOST);
  Client *client = client_new ((ClientSettings) { 0 });
  struct pollfd wait = { .events = POLLIN };
  guint8 lost[2048];
  Owner owner;

  owner_open (&owner, port, client, FALSE);
  client_move (client, HOST, webrtc_port_get_number (port));
  client_check (client, CLIENT_UFRAG);
  wait.fd = client->fd;
  SSL_set0_rbio (client->ssl, BIO_new (BIO_s_mem ())); // from where nothing comes
  g_assert_cmpint (SSL_do_handshake (client->ssl), ==, -1);
  g_assert_cmpint (poll (&wait, 1, CLIENT_WAIT_S * 1000), ==, 1);
  while (poll (&wait, 1, 200) == 1)
    g_assert_cmpint (recv (client->fd, lost, sizeof lost, 0), >, 0);
  g_assert_cmpint (poll (&wait, 1, CLIENT_WAIT_S * 1000), ==, 1);
  BIO_up_ref (SSL_get_wbio (client->ssl));
  SSL_set0_rbio (client->ssl, SSL_get_wbio (client->ssl));
  g_assert_true (client_shake_hands (client));
  wait_for (&owner, &owner.n_connected, 1);
  owner_close (&owner);
  client_free (client);
  webrtc_port_free (port);
}

// ---- TCP ----

// Connects, and has the main thread accept.
static int
open_tcp (WebrtcPort *port)
{
  struct timeval wait = { CLIENT_WAIT_S, 0 };
  struct sockaddr_in to = { .sin_family = AF_INET,
    .sin_addr.s_addr = inet_addr (HOST),
    .sin_port = htons (webrtc_port_get_number (port)) };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

  g_assert_cmpint (connect (fd, (struct sockaddr *) &to, sizeof to), ==, 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  g_main_context_iteration (NULL, TRUE);
  return fd;
}

static void
send_framed (gpointer data, const guint8 *datagram, gsize size)
{
  guint8 framed[2048 + 2] = { (guint8) (size >> 8), (guint8) size };

  memcpy (framed + 2, datagram, size);
  g_assert_cmpint (send (*(int *) data, framed, size + 2, MSG_NOSIGNAL), ==, size + 2);
}

// Returns the size of the next datagram; 0: the connection has ended.
static gsize
receive_framed (int fd, guint8 datagram[2048])
{
  guint8 length[2];
  gsize size;
  ssize_t n = recv (fd, length, sizeof length, MSG_WAITALL);

  if (n == 0 || (n < 0 && errno == ECONNRESET))
    return 0;
  g_assert_cmpint (n, ==, sizeof length);
  size = (gsize) length[0] << 8 | length[1];
  g_assert_cmpint (size, <=, 2048);
  g_assert_cmpint (recv (fd, datagram, size, MSG_WAITALL), ==, size);
  return size;
}

static StunMessage
make_check (Client *client)
{
  gchar *username = g_strconcat (client->ufrag, ":", CLIENT_UFRAG, NULL);
  StunMessage message;

  stun_begin (&message, WEIR_STUN_REQUEST);
  stun_add (&message, 0x0006, username, strlen (username));
  stun_add (&message, 0x0025, NULL, 0);
  stun_add_integrity (&message, client->password);
  stun_add_fingerprint (&message);
  g_free (username);
  return message;
}

static void
check_by_tcp (Client *client, int fd)
{
  StunMessage message = make_check (client);
  guint8 answer[2048];
  WeirStun stun;

  send_framed (&fd, message.bytes, message.len);
  g_assert_cmpint (weir_stun_read (answer, receive_framed (fd, answer), &stun), ==, 0);
  g_assert_cmpint (stun.type, ==, WEIR_STUN_SUCCESS);
}

static void
shake_hands_by_tcp (int fd, Dtls *dtls)
{
  guint8 datagram[2048];
  DtlsState state = dtls_begin (dtls);

  while (state == DTLS_OPENING)
    state = dtls_take (dtls, datagram, receive_framed (fd, datagram));
  g_assert_cmpint (state, ==, DTLS_CONNECTED);
}

// OpenSSL's sockets have no framing, so the client's DTLS is the one of the proxy here.
typedef struct {
  WebrtcPort *port;
  Client *client;
  DtlsContext *context;
  Dtls *dtls;
  int fd;
  Owner owner;
} TcpPair;

static void
tcp_pair_connect (TcpPair *self)
{
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];

  self->port = open_port (HOST);
  self->client = client_new ((ClientSettings) { 0 });
  self->context = dtls_context_new (NULL);
  g_assert_true (tls_fingerprint_parse (
      dtls_context_get_fingerprint (self->context), self->client->fingerprint));
  owner_open (&self->owner, self->port, self->client, FALSE);
  g_assert_true (
      tls_fingerprint_parse (webrtc_session_get_fingerprint (self->owner.session), fingerprint));
  self->dtls = dtls_new (self->context, TRUE, fingerprint, send_framed, &self->fd);
  self->fd = open_tcp (self->port);
  check_by_tcp (self->client, self->fd);
  wait_for (&self->owner, &self->owner.n_routes, 1);
  shake_hands_by_tcp (self->fd, self->dtls);
  wait_for (&self->owner, &self->owner.n_connected, 1);
}

static void
tcp_pair_clear (TcpPair *self)
{
  close (self->fd);
  dtls_free (self->dtls);
  dtls_context_free (self->context);
  owner_clear (&self->owner);
  client_free (self->client);
  webrtc_port_free (self->port);
}

static void
a_client_of_tcp_gets_keys (void)
{
  guint8 send[DTLS_KEY_MAX], receive[DTLS_KEY_MAX], packet[100] = { 0x80, 201 }, got[2048];
  gsize size;
  TcpPair pair;

  tcp_pair_connect (&pair);
  g_assert_cmpint (strlen (pair.owner.host), ==, 32); // the token of a WeirConnection
  g_assert_cmpint (pair.owner.port, ==, 0);
  g_assert_cmpstr (dtls_get_keys (pair.dtls, send, receive, &size), ==, "AEAD_AES_128_GCM");
  g_assert_cmpmem (send, size, g_bytes_get_data (pair.owner.receive, NULL), 28);
  g_assert_cmpmem (receive, size, g_bytes_get_data (pair.owner.send, NULL), 28);
  send_framed (&pair.fd, packet, sizeof packet);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 1);
  webrtc_session_send (pair.owner.session, packet, sizeof packet);
  g_assert_cmpint (receive_framed (pair.fd, got), ==, sizeof packet);
  g_assert_cmpmem (got, sizeof packet, packet, sizeof packet);
  webrtc_session_close (pair.owner.session);
  // The end of DTLS, and then of the connection.
  g_assert_cmpint (receive_framed (pair.fd, got), >, 0);
  g_assert_cmpint (got[0], ==, 21);
  g_assert_cmpint (receive_framed (pair.fd, got), ==, 0);
  tcp_pair_clear (&pair);
}

static void
a_client_of_tcp_may_connect_again (void)
{
  guint8 packet[100] = { 0x80, 201 }, got[2048];
  TcpPair pair;
  gchar *host;

  tcp_pair_connect (&pair);
  host = g_strdup (pair.owner.host);
  close (pair.fd);
  pair.fd = open_tcp (pair.port);
  check_by_tcp (pair.client, pair.fd);
  wait_for (&pair.owner, &pair.owner.n_routes, 2);
  g_assert_cmpstr (pair.owner.host, !=, host);
  webrtc_session_send (pair.owner.session, packet, sizeof packet);
  g_assert_cmpint (receive_framed (pair.fd, got), ==, sizeof packet);
  g_assert_cmpint (pair.owner.n_closed, ==, 0);
  webrtc_session_close (pair.owner.session);
  g_free (host);
  tcp_pair_clear (&pair);
}

static void
bytes_of_tcp_come_in_pieces (void)
{
  guint8 packet[3 * 102] = { 0 }, got[2048];
  TcpPair pair;

  tcp_pair_connect (&pair);
  for (guint i = 0; i < 3; i++)
    memcpy (packet + 102 * i, "\0\x64\x80\xc9", 4);
  for (guint i = 0; i < sizeof packet; i++)
    g_assert_cmpint (send (pair.fd, packet + i, 1, 0), ==, 1);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 3);
  g_assert_cmpint (send (pair.fd, packet, 150, 0), ==, 150);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 4);
  g_assert_cmpint (send (pair.fd, packet + 150, 156, 0), ==, 156);
  wait_for (&pair.owner, &pair.owner.n_rtcp, 6);
  // An empty datagram is none; one that is too long ends the connection.
  g_assert_cmpint (send (pair.fd, "\0\0", 2, 0), ==, 2);
  wait_for_refused (WEBRTC_REFUSED_MALFORMED, 1);
  g_assert_cmpint (send (pair.fd, "\x10\x01", 2, 0), ==, 2);
  g_assert_cmpint (receive_framed (pair.fd, got), ==, 0);
  g_assert_cmpint (pair.owner.n_rtcp, ==, 6);
  webrtc_session_close (pair.owner.session);
  tcp_pair_clear (&pair);
}

static void
connections_without_a_session_are_few (void)
{
  static const guint8 framed[14] = { 0, 12, 0x80, 201 };
  guint8 packet[100] = { 0x80, 201 }, got[2048];
  WebrtcPort *port = open_port (HOST);
  int fds[17];

  for (guint i = 0; i < G_N_ELEMENTS (fds); i++)
    fds[i] = open_tcp (port);
  g_assert_cmpint (receive_framed (fds[16], got), ==, 0);
  g_assert_cmpint (get_refused (WEBRTC_REFUSED_BUSY), ==, 1);
  send_framed (&fds[0], packet, sizeof packet);
  wait_for_refused (WEBRTC_REFUSED_STRANGER, 1);
  // One that goes makes room, as soon as that is seen.
  close (fds[0]);
  while (get_refused (WEBRTC_REFUSED_STRANGER) == 1) {
    const guint64 busy = get_refused (WEBRTC_REFUSED_BUSY);

    close (fds[16]);
    fds[16] = open_tcp (port);
    send (fds[16], framed, sizeof framed, MSG_NOSIGNAL);
    while (get_refused (WEBRTC_REFUSED_STRANGER) == 1 && get_refused (WEBRTC_REFUSED_BUSY) == busy)
      g_usleep (1000);
  }
  for (guint i = 1; i < G_N_ELEMENTS (fds); i++)
    close (fds[i]);
  webrtc_port_free (port);
}

// ---- what is left of DTLS ----

// An end of an association, in memory.
typedef struct {
  DtlsContext *context;
  Dtls *dtls;
  GQueue to; // of GBytes: what it has sent
  DtlsState state;
} End;

static void
send_to (gpointer end, const guint8 *datagram, gsize size)
{
  g_queue_push_tail (&((End *) end)->to, g_bytes_new (datagram, size));
}

static void
end_init (End *self, const End *other, gboolean is_client)
{
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];

  g_assert_true (
      tls_fingerprint_parse (dtls_context_get_fingerprint (other->context), fingerprint));
  self->dtls = dtls_new (self->context, is_client, fingerprint, send_to, self);
}

// Gives one end what the other has sent.
static void
pass_on (End *from, End *to)
{
  GBytes *datagram;

  while ((datagram = g_queue_pop_head (&from->to))) {
    to->state =
        dtls_take (to->dtls, g_bytes_get_data (datagram, NULL), g_bytes_get_size (datagram));
    g_bytes_unref (datagram);
  }
}

// Begins with a server and a client.
static void
ends_init (End ends[2])
{
  for (guint i = 0; i < 2; i++)
    ends[i] = (End) { .context = dtls_context_new (NULL), .to = G_QUEUE_INIT };
  end_init (&ends[0], &ends[1], FALSE);
  end_init (&ends[1], &ends[0], TRUE);
  dtls_begin (ends[1].dtls);
}

static void
shake_hands (End ends[2])
{
  while (ends[0].to.length > 0 || ends[1].to.length > 0) {
    pass_on (&ends[0], &ends[1]);
    pass_on (&ends[1], &ends[0]);
  }
  g_assert_cmpint (ends[0].state, ==, DTLS_CONNECTED);
  g_assert_cmpint (ends[1].state, ==, DTLS_CONNECTED);
}

static void
ends_clear (End ends[2])
{
  for (guint i = 0; i < 2; i++) {
    dtls_free (ends[i].dtls);
    dtls_context_free (ends[i].context);
    g_queue_clear_full (&ends[i].to, (GDestroyNotify) g_bytes_unref);
  }
}

// Gives the datagram to an end with one byte changed, and cut, at each place.
static void
take_broken (End *end, GBytes *datagram)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (datagram, &size);
  guint8 *copy = g_memdup2 (data, size);

  for (gsize i = 0; i < size; i++) {
    copy[i] ^= 1;
    g_assert_cmpint (dtls_take (end->dtls, copy, size), ==, DTLS_CONNECTED);
    copy[i] ^= 1;
    g_assert_cmpint (dtls_take (end->dtls, copy, i), ==, DTLS_CONNECTED);
  }
  g_free (copy);
}

// An end that is settled, the server or the client, sees and tells the end of the association, and
// nothing else.
static void
a_settled_association_ends (void)
{
  for (guint settled = 0; settled < 2; settled++) {
    for (guint first = 0; first < 2; first++) {
      End ends[2];

      ends_init (ends);
      shake_hands (ends);
      g_assert_true (dtls_settle (ends[settled].dtls));
      g_assert_cmpint (ends[settled].to.length, ==, 0);
      dtls_close (ends[first].dtls);
      g_assert_cmpint (ends[first].to.length, ==, 1);
      if (first != settled)
        take_broken (&ends[settled], g_queue_peek_head (&ends[first].to));
      pass_on (&ends[first], &ends[!first]);
      g_assert_cmpint (ends[!first].state, ==, DTLS_CLOSED);
      dtls_close (ends[settled].dtls);
      g_assert_cmpint (ends[settled].to.length, ==, first != settled); // once
      ends_clear (ends);
    }
  }
}

// A client that has not got the server's last flight sends its own again, and gets an answer.
static void
a_last_flight_is_sent_again (void)
{
  End ends[2];

  ends_init (ends);
  while (ends[0].state != DTLS_CONNECTED) {
    pass_on (&ends[1], &ends[0]);
    if (ends[0].state != DTLS_CONNECTED)
      pass_on (&ends[0], &ends[1]);
  }
  g_queue_clear_full (&ends[0].to, (GDestroyNotify) g_bytes_unref);
  g_usleep ((gulong) (dtls_get_due (ends[1].dtls) / 1000 + 1000));
  dtls_tick (ends[1].dtls);
  shake_hands (ends);
  ends_clear (ends);
}

#define ADD(test) g_test_add_func ("/webrtc/" #test, test)

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  ADD (a_client_gets_keys);
  ADD (a_client_of_ipv6_gets_keys);
  ADD (a_client_without_gcm_gets_keys);
  ADD (a_client_of_small_datagrams_gets_keys);
  ADD (a_passive_client_gets_keys);
  ADD (a_certificate_of_another_is_refused);
  ADD (a_client_without_certificate_is_refused);
  ADD (a_client_without_srtp_is_refused);
  ADD (packets_arrive_when_they_come_and_not_when_they_are_read);
  ADD (datagrams_are_told_apart);
  ADD (media_before_the_keys_are_kept);
  ADD (strangers_reach_nobody);
  ADD (a_flood_of_dtls_is_bounded);
  g_test_add_data_func ("/webrtc/the_client_ends_it", NULL, the_client_ends_it);
  g_test_add_data_func ("/webrtc/the_client_ends_it/settled", "", the_client_ends_it);
  g_test_add_data_func (
      "/webrtc/the_client_is_told_of_the_end", NULL, the_client_is_told_of_the_end);
  g_test_add_data_func (
      "/webrtc/the_client_is_told_of_the_end/settled", "", the_client_is_told_of_the_end);
  ADD (a_session_may_be_closed_in_an_event);
  ADD (packets_go_to_the_route);
  ADD (ice_restarts);
  ADD (an_address_is_of_the_session_that_checked_it_last);
  ADD (who_does_not_come_is_given_up);
  ADD (many_come_at_once);
  ADD (a_port_has_one_number);
  ADD (candidates_begin_with_what_is_configured);
  ADD (candidates_of_all_addresses_are_of_others);
  ADD (candidates_are_the_best_that_there_are);
  ADD (a_lost_flight_is_sent_again);
  ADD (a_client_of_tcp_gets_keys);
  ADD (a_client_of_tcp_may_connect_again);
  ADD (bytes_of_tcp_come_in_pieces);
  ADD (connections_without_a_session_are_few);
  ADD (a_last_flight_is_sent_again);
  ADD (a_settled_association_ends);
  return g_test_run ();
}
