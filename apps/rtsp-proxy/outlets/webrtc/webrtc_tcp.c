// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/element.h"
#include "base/port.h"

#define LENGTH 2
#define DATAGRAM_MAX 4096 // bytes; peers send what a packet of a network holds
#define READS_MAX 4       // of one connection, before others get their turn
#define NAMELESS_MAX 128  // connections without a session
#define NAMELESS_OF_ADDRESS_MAX 16
#define NAMELESS_NS (10 * G_GINT64_CONSTANT (1000000000))
#define END_NS (2 * G_GINT64_CONSTANT (1000000000))

struct _WebrtcTcp {
  Loop *loop;
  WebrtcPeers *peers;
  WebrtcRefusals *refusals;
  Port *port; // of the main thread

  GMutex lock;             // guards all below
  GHashTable *connections; // number -> Connection, without a reference
  guint32 last;
};

// The loop has the only reference; others look it up with the lock.
typedef struct {
  LoopWatch watch;
  WebrtcTcp *tcp;
  guint32 number;
  GSocket *socket;
  GObject *output; // WeirConnection
  WeirAddress address;

  // Of the loop's thread.
  WebrtcPeer *peer; // NULL until an authentic STUN request came
  guint8 *part;     // of a datagram that has not come as a whole
  gsize n_part;
} Connection;

static Connection *
from_watch (LoopWatch *watch)
{
  return (Connection *) ((gchar *) watch - G_STRUCT_OFFSET (Connection, watch));
}

// ---- a connection; the loop's thread ----

static void
on_left (LoopWatch *watch)
{
  Connection *self = from_watch (watch);

  g_clear_pointer (&self->peer, webrtc_peer_unref);
  g_object_unref (self->output);
  g_object_unref (self->socket);
  g_free (self->part);
  g_free (self);
}

static void
close_connection (Connection *self)
{
  WebrtcTcp *tcp = self->tcp;

  g_mutex_lock (&tcp->lock);
  g_hash_table_remove (tcp->connections, GUINT_TO_POINTER (self->number));
  g_mutex_unlock (&tcp->lock);
  loop_watch (&self->watch, 0, g_socket_get_fd (self->socket), 0);
  g_signal_emit_by_name (self->output, "close", "the client's connection ends");
  if (self->peer)
    self->peer->ops->disconnected (self->peer, self->number);
  loop_leave (&self->watch);
}

static void
on_due (LoopWatch *watch, gint64 now)
{
  close_connection (from_watch (watch));
}

static void
take_datagram (Connection *self, guint8 *datagram, gsize size)
{
  const WeirIceTuple from = { self->address, self->number };
  const gboolean was_nameless = !self->peer;

  webrtc_peers_take (self->tcp->peers, &from, &self->peer, datagram, size, clock_now ());
  if (was_nameless && self->peer)
    loop_set_due (&self->watch, LOOP_NEVER);
}

// Returns how many of the bytes are datagrams that came as a whole; -1 if one is too long.
static gssize
take_bytes (Connection *self, guint8 *bytes, gsize size)
{
  gsize at = 0;

  while (size - at >= LENGTH) {
    const gsize length = (gsize) bytes[at] << 8 | bytes[at + 1];

    if (length > DATAGRAM_MAX)
      return -1;
    if (size - at < LENGTH + length)
      break;
    take_datagram (self, bytes + at + LENGTH, length);
    at += LENGTH + length;
  }
  return (gssize) at;
}

// Returns FALSE if the connection is to be closed.
static gboolean
read_once (Connection *self, gboolean *is_empty)
{
  guint8 *bytes = loop_get_scratch (&self->watch);
  gsize size = self->n_part;
  gssize n, used;

  if (size > 0)
    memcpy (bytes, self->part, size);
  n = recv (g_socket_get_fd (self->socket), bytes + size, WEBRTC_TCP_SCRATCH - size, MSG_DONTWAIT);
  *is_empty = n < 0 && (errno == EAGAIN || errno == EINTR);
  if (*is_empty)
    return TRUE;
  used = n > 0 ? take_bytes (self, bytes, size + (gsize) n) : -1;
  if (used < 0)
    return FALSE;
  self->n_part = size + (gsize) n - (gsize) used;
  g_free (self->part);
  self->part = g_memdup2 (bytes + used, self->n_part);
  return TRUE;
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  Connection *self = from_watch (watch);
  gboolean is_empty = FALSE;

  for (guint i = 0; i < READS_MAX && !is_empty; i++) {
    if (!read_once (self, &is_empty)) {
      close_connection (self);
      return;
    }
  }
}

static const LoopOps connection_ops = { on_ready, on_due, on_left };

// ---- arrivals; the loop's thread ----

static gboolean
may_enter (WebrtcTcp *self, const WeirAddress *address)
{
  const guint64 key = webrtc_refusals_get_key (address);
  guint all = 0, of_address = 0;
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->connections);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const Connection *other = value;

    all += !other->peer;
    of_address += !other->peer && webrtc_refusals_get_key (&other->address) == key;
  }
  g_mutex_unlock (&self->lock);
  return all < NAMELESS_MAX && of_address < NAMELESS_OF_ADDRESS_MAX;
}

// Takes ownership of the socket.
static void
take_connection (WebrtcTcp *self, GSocket *socket, const WeirAddress *address)
{
  Connection *connection = g_new0 (Connection, 1);

  g_socket_set_blocking (socket, FALSE);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_NODELAY, TRUE, NULL);
  connection->tcp = self;
  connection->socket = socket;
  connection->output = g_object_new (g_type_from_name ("WeirConnection"), "socket", socket, NULL);
  connection->address = *address;
  g_mutex_lock (&self->lock);
  do {
    connection->number = ++self->last;
  } while (connection->number == 0
           || g_hash_table_contains (self->connections, GUINT_TO_POINTER (connection->number)));
  g_hash_table_insert (self->connections, GUINT_TO_POINTER (connection->number), connection);
  g_mutex_unlock (&self->lock);
  if (!loop_join_fd (
          self->loop, &connection->watch, &connection_ops, g_socket_get_fd (socket), EPOLLIN)) {
    loop_join (self->loop, &connection->watch, &connection_ops);
    close_connection (connection);
    return;
  }
  loop_set_due (&connection->watch, clock_now () + NAMELESS_NS);
}

static gboolean
get_address (GSocket *socket, WeirAddress *out)
{
  struct sockaddr_storage address;
  socklen_t len = sizeof address;

  return getpeername (g_socket_get_fd (socket), (struct sockaddr *) &address, &len) == 0
         && weir_address_normalise ((struct sockaddr *) &address, len, out) == 0;
}

typedef struct {
  WebrtcTcp *tcp;
  GSocket *socket;
} Arrival;

static void
on_arrival (gpointer data)
{
  Arrival *arrival = data;
  WebrtcTcp *self = arrival->tcp;
  WeirAddress address;

  if (get_address (arrival->socket, &address)) {
    if (may_enter (self, &address))
      take_connection (self, g_steal_pointer (&arrival->socket), &address);
    else
      webrtc_refusals_count (self->refusals, WEBRTC_REFUSED_BUSY, &address);
  }
  g_clear_object (&arrival->socket);
  g_free (arrival);
}

// The main thread calls.
static void
on_waiting (GSocket *listening, gpointer tcp)
{
  Arrival arrival = { tcp, g_socket_accept (listening, NULL, NULL) };

  if (arrival.socket)
    loop_post (arrival.tcp->loop, on_arrival, g_memdup2 (&arrival, sizeof arrival));
}

// ---- from any thread ----

void
webrtc_tcp_send (WebrtcTcp *self, guint32 number, const guint8 *datagram, gsize size)
{
  Connection *connection;
  GObject *output = NULL;
  guint8 *framed;
  GBytes *bytes;
  gboolean unused;

  g_mutex_lock (&self->lock);
  connection = g_hash_table_lookup (self->connections, GUINT_TO_POINTER (number));
  if (connection)
    output = g_object_ref (connection->output);
  g_mutex_unlock (&self->lock);
  if (!output)
    return;
  framed = g_malloc (LENGTH + size);
  framed[0] = (guint8) (size >> 8);
  framed[1] = (guint8) size;
  memcpy (framed + LENGTH, datagram, size);
  bytes = g_bytes_new_take (framed, LENGTH + size);
  g_signal_emit_by_name (output, "send", bytes, &unused);
  g_bytes_unref (bytes);
  g_object_unref (output);
}

gchar *
webrtc_tcp_get_token (WebrtcTcp *self, guint32 number)
{
  Connection *connection;
  gchar *token = NULL;

  g_mutex_lock (&self->lock);
  connection = g_hash_table_lookup (self->connections, GUINT_TO_POINTER (number));
  if (connection)
    g_object_get (connection->output, "token", &token, NULL);
  g_mutex_unlock (&self->lock);
  return token;
}

void
webrtc_tcp_end (WebrtcTcp *self, guint32 number)
{
  Connection *connection;

  g_mutex_lock (&self->lock);
  connection = g_hash_table_lookup (self->connections, GUINT_TO_POINTER (number));
  if (connection)
    loop_set_due (&connection->watch, clock_now () + END_NS);
  g_mutex_unlock (&self->lock);
}

// ---- construction ----

// The type of connections comes with the plugin of this element.
static gboolean
load_connections (GError **error)
{
  GstElement *sink = element_make ("fanoutsink", error);

  if (sink)
    gst_object_unref (gst_object_ref_sink (sink));
  return sink != NULL;
}

WebrtcTcp *
webrtc_tcp_new (Loop *loop, WebrtcPeers *peers, WebrtcRefusals *refusals, const gchar *address,
    guint16 number, GError **error)
{
  WebrtcTcp *self = g_new0 (WebrtcTcp, 1);

  self->loop = loop;
  self->peers = peers;
  self->refusals = refusals;
  g_mutex_init (&self->lock);
  self->connections = g_hash_table_new (NULL, NULL);
  if (load_connections (error))
    self->port = port_new (address, number, on_waiting, NULL, self, error);
  if (!self->port)
    g_clear_pointer (&self, webrtc_tcp_free);
  return self;
}

void
webrtc_tcp_stop (WebrtcTcp *self)
{
  g_clear_pointer (&self->port, port_free);
}

void
webrtc_tcp_free (WebrtcTcp *self)
{
  webrtc_tcp_stop (self);
  g_hash_table_unref (self->connections);
  g_mutex_clear (&self->lock);
  g_free (self);
}
