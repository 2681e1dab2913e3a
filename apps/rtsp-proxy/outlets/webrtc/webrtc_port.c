// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "ingest/udp.h"
#include "outlets/webrtc/webrtc_tcp.h"

#define RECEIVE_BUFFER (2 << 20) // bytes, as the kernel accounts them
#define READS_MAX 16             // of one socket, before others get their turn
#define PORT_TRIES 16            // to find a number that is free for all sockets

enum { IPV4, IPV6, FAMILIES };

struct _WebrtcPort {
  LoopWatch watch; // of the UDP sockets: IPV4 and IPV6
  Loop *loop;
  gchar *address;
  gchar **additional;
  gboolean has_tcp;
  guint16 number;
  GSocket *udp[FAMILIES]; // NULL: none
  WebrtcTcp *tcp;         // NULL: none
  WeirReceiver receiver;
  WebrtcRefusals *refusals;
  WebrtcPeers *peers;
  WebrtcHandshakes *handshakes;
};

// ---- receiving; the loop's thread ----

static void
take_message (WebrtcPort *self, const WeirMessage *message, gint64 arrival)
{
  const WeirIceTuple from = { .address = message->from };
  WebrtcPeer *none = NULL;

  if (message->from_known)
    webrtc_peers_take (self->peers, &from, &none, message->data, message->len, arrival);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  WebrtcPort *self = (WebrtcPort *) ((gchar *) watch - G_STRUCT_OFFSET (WebrtcPort, watch));
  const int fd = g_socket_get_fd (self->udp[number]);

  for (guint i = 0; i < READS_MAX; i++) {
    const int n = weir_receiver_fill (&self->receiver, fd);
    const gint64 now = clock_now (), unix_offset = g_get_real_time () * 1000 - now;

    // An error is one of an earlier datagram that was sent: its peer is gone, which time shows.
    for (int j = 0; j < n; j++)
      take_message (self, &self->receiver.messages[j],
          weir_message_arrival (&self->receiver.messages[j], unix_offset, now));
    if (n >= 0 && n < WEIR_RECEIVE_MESSAGES)
      return;
  }
}

static const LoopOps loop_ops = { .ready = on_ready };

// ---- sending ----

void
webrtc_port_send (WebrtcPort *self, const WeirIceTuple *to, const guint8 *datagram, gsize size)
{
  GSocket *socket = self->udp[to->address.any.sa_family == AF_INET6 ? IPV6 : IPV4];

  if (to->connection && self->tcp)
    webrtc_tcp_send (self->tcp, to->connection, datagram, size);
  else if (!to->connection && socket)
    weir_udp_send (g_socket_get_fd (socket), &to->address, datagram, size);
}

gchar *
webrtc_port_get_token (WebrtcPort *self, guint32 connection)
{
  return self->tcp ? webrtc_tcp_get_token (self->tcp, connection) : NULL;
}

void
webrtc_port_disconnect (WebrtcPort *self, guint32 connection)
{
  if (self->tcp)
    webrtc_tcp_end (self->tcp, connection);
}

// ---- sockets ----

static GSocket *
open_udp (const gchar *address, guint16 number, GError **error)
{
  GSocketAddress *at = g_inet_socket_address_new_from_string (address, number);
  const GSocketFamily family = g_socket_address_get_family (at);
  GSocket *socket = g_socket_new (family, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, error);

  // Beside a socket of IPv4, which has the port there.
  if (socket && family == G_SOCKET_FAMILY_IPV6)
    g_socket_set_option (socket, IPPROTO_IPV6, IPV6_V6ONLY, TRUE, NULL);
  if (socket && !g_socket_bind (socket, at, FALSE, error))
    g_clear_object (&socket);
  if (socket) {
    // How long a datagram waits for this process says nothing of a publisher's line.
    g_socket_set_option (socket, SOL_SOCKET, SO_TIMESTAMPNS, TRUE, NULL);
    g_socket_set_blocking (socket, FALSE);
    weir_udp_set_buffer (g_socket_get_fd (socket), RECEIVE_BUFFER);
  }
  g_object_unref (at);
  return socket;
}

static guint16
get_number (GSocket *socket)
{
  GSocketAddress *bound = g_socket_get_local_address (socket, NULL);
  guint16 number = bound ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;

  g_clear_object (&bound);
  return number;
}

static void
close_sockets (WebrtcPort *self)
{
  for (guint i = 0; i < FAMILIES; i++)
    g_clear_object (&self->udp[i]);
  g_clear_pointer (&self->tcp, webrtc_tcp_free);
}

static gboolean
has_ipv6 (void)
{
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV6, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
  gboolean has = socket != NULL;

  g_clear_object (&socket);
  return has;
}

// Opens all sockets at one number. "::" has an IPv4 socket beside it, so that all addresses of
// datagrams have the form of their family.
static gboolean
open_at (WebrtcPort *self, guint16 number, GError **error)
{
  GInetAddress *inet = g_inet_address_new_from_string (self->address);
  const gboolean is_v6 = g_inet_address_get_family (inet) == G_SOCKET_FAMILY_IPV6;
  const gboolean is_all = is_v6 && g_inet_address_get_is_any (inet);
  gboolean ok = TRUE;

  if (!is_v6 || is_all) {
    self->udp[IPV4] = open_udp (is_all ? "0.0.0.0" : self->address, number, error);
    ok = self->udp[IPV4] != NULL;
    number = ok ? get_number (self->udp[IPV4]) : 0;
  }
  if (ok && is_v6 && (!is_all || has_ipv6 ())) {
    self->udp[IPV6] = open_udp (self->address, number, error);
    ok = self->udp[IPV6] != NULL;
    number = ok ? get_number (self->udp[IPV6]) : 0;
  }
  if (ok && self->has_tcp) {
    self->tcp =
        webrtc_tcp_new (self->loop, self->peers, self->refusals, self->address, number, error);
    ok = self->tcp != NULL;
  }
  self->number = number;
  g_object_unref (inet);
  if (!ok)
    close_sockets (self);
  return ok;
}

static gboolean
open_sockets (WebrtcPort *self, guint16 number, GError **error)
{
  GError *problem = NULL;

  for (guint i = 0; i < (number ? 1 : PORT_TRIES); i++) {
    g_clear_error (&problem);
    if (open_at (self, number, &problem))
      return TRUE;
  }
  g_propagate_prefixed_error (
      error, problem, "cannot listen on %s port %u: ", self->address, number);
  return FALSE;
}

static gboolean
watch_sockets (WebrtcPort *self, GError **error)
{
  loop_join (self->loop, &self->watch, &loop_ops);
  for (guint i = 0; i < FAMILIES; i++) {
    if (self->udp[i] && !loop_watch (&self->watch, i, g_socket_get_fd (self->udp[i]), EPOLLIN)) {
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot wait for a socket: %s",
          g_strerror (errno));
      return FALSE;
    }
  }
  return TRUE;
}

// ---- construction ----

WebrtcPort *
webrtc_port_new (const WebrtcPortSettings *settings, GError **error)
{
  static const LoopSettings loop = { .name = "webrtc", .scratch = WEBRTC_TCP_SCRATCH };
  WebrtcPort *self = g_new0 (WebrtcPort, 1);

  self->address = g_strdup (settings->address);
  self->additional = g_strdupv ((gchar **) settings->additional_hosts);
  self->has_tcp = settings->has_tcp;
  self->refusals = webrtc_refusals_new ();
  self->peers = webrtc_peers_new (self->refusals);
  if (weir_receiver_init (&self->receiver, NULL) < 0)
    g_error ("out of memory");
  self->handshakes = webrtc_handshakes_new (error);
  if (self->handshakes)
    self->loop = loop_new (&loop, error);
  if (!self->loop || !open_sockets (self, settings->number, error) || !watch_sockets (self, error))
    g_clear_pointer (&self, webrtc_port_free);
  return self;
}

void
webrtc_port_free (WebrtcPort *self)
{
  // Work that is left tells the loop, and sessions go with the loop.
  if (self->handshakes)
    webrtc_handshakes_stop (self->handshakes);
  if (self->tcp)
    webrtc_tcp_stop (self->tcp);
  g_clear_pointer (&self->loop, loop_free);
  close_sockets (self);
  g_clear_pointer (&self->handshakes, webrtc_handshakes_free);
  webrtc_peers_free (self->peers);
  webrtc_refusals_free (self->refusals);
  weir_receiver_clear (&self->receiver);
  g_strfreev (self->additional);
  g_free (self->address);
  g_free (self);
}

guint16
webrtc_port_get_number (WebrtcPort *self)
{
  return self->number;
}

GSocket *
webrtc_port_get_socket (WebrtcPort *self, GSocketFamily family)
{
  return self->udp[family == G_SOCKET_FAMILY_IPV6 ? IPV6 : IPV4];
}

GPtrArray *
webrtc_port_get_candidates (WebrtcPort *self)
{
  return webrtc_candidates_new (
      self->address, (const gchar *const *) self->additional, self->has_tcp);
}

WebrtcPeers *
webrtc_port_get_peers (WebrtcPort *self)
{
  return self->peers;
}

WebrtcHandshakes *
webrtc_port_get_handshakes (WebrtcPort *self)
{
  return self->handshakes;
}

Loop *
webrtc_port_get_loop (WebrtcPort *self)
{
  return self->loop;
}
