// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_front.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h> // glibc's header may lack tcpi_bytes_received
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"
#include "base/main_loop.h"
#include "tls/tls_bridge.h"
#include "tls/tls_pending.h"

#define LOOPS_MAX 4
#define TOO_MANY "too many TLS handshakes at once"
#define TLS "TLS: "

struct _TlsFront {
  TlsKeys *keys;
  Loop *handshakes;
  Loop *loops[LOOPS_MAX]; // that carry bytes
  guint n_loops;
  gint next;   // atomic: the loop of the next connection
  gint n_open; // atomic

  GMutex lock; // guards all below
  TlsCounts counts;
  TlsPending *pending; // of Arrival
};

// A connection that is being made.
typedef struct {
  TlsFront *front;
  gchar *host;         // of the client, for the log
  GSocket *connection; // of the bridge; valid while the handshake is under way
  GSocket *listening;
  TlsFrontFunc taken;
  gpointer data;
} Arrival;

// ---- addresses ----

static GQuark
peer_quark (void)
{
  return g_quark_from_static_string ("weir-tls-peer");
}

GSocketAddress *
tls_front_get_peer (GSocket *client)
{
  return g_object_get_qdata (G_OBJECT (client), peer_quark ());
}

// ---- switching ----

static GQuark
plain_quark (void)
{
  return g_quark_from_static_string ("weir-tls-plain");
}

static void
close_plain (gpointer fd)
{
  close (GPOINTER_TO_INT (fd));
}

void
tls_front_switch (GSocket *client)
{
  gpointer plain = g_object_get_qdata (G_OBJECT (client), plain_quark ());

  if (!plain)
    return;
  // gst-rtsp-server asks a socket for internet addresses, which those of a pair do not have. So it
  // gets a socket of the connection first, and this puts the pair's in its place.
  dup3 (GPOINTER_TO_INT (plain), g_socket_get_fd (client), O_CLOEXEC);
  g_object_set_qdata (G_OBJECT (client), plain_quark (), NULL);
}

// Returns a socket with the addresses of `connection`, for tls_front_switch() to `plain`. Takes
// ownership of `plain`. Returns NULL if no file is left.
static GSocket *
make_client (GSocket *connection, gint plain)
{
  gint fd = fcntl (g_socket_get_fd (connection), F_DUPFD_CLOEXEC, 0);
  GSocket *client = fd >= 0 ? g_socket_new_from_fd (fd, NULL) : NULL;
  GSocketAddress *peer = client ? g_socket_get_remote_address (client, NULL) : NULL;

  if (!peer) {
    g_clear_object (&client);
    close (plain);
    return NULL;
  }
  g_object_set_qdata_full (G_OBJECT (client), peer_quark (), peer, g_object_unref);
  g_object_set_qdata_full (G_OBJECT (client), plain_quark (), GINT_TO_POINTER (plain), close_plain);
  return client;
}

static gchar *
dup_host (GSocketAddress *address)
{
  return G_IS_INET_SOCKET_ADDRESS (address)
             ? g_inet_address_to_string (
                   g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)))
             : g_strdup ("?");
}

// ---- handshakes ----

static gboolean
is_silent (gpointer handshake)
{
  const Arrival *arrival = handshake;
  struct tcp_info info = { 0 };
  socklen_t len = sizeof info;

  return getsockopt (g_socket_get_fd (arrival->connection), IPPROTO_TCP, TCP_INFO, &info, &len) == 0
         && info.tcpi_bytes_received == 0;
}

// Counts a handshake that begins. Returns FALSE if there are too many. `ended` (transfer full) is
// the host of another one that has to end for it, or NULL.
static gboolean
begin_pending (TlsFront *self, const gchar *key, Arrival *arrival, gchar **ended)
{
  gpointer other;
  gboolean ok;

  g_mutex_lock (&self->lock);
  ok = tls_pending_add (self->pending, key, arrival, &other);
  self->counts.refused += !ok || other;
  *ended = other ? g_strdup (((Arrival *) other)->host) : NULL;
  // With the lock held, as the bridge may close its socket later. The bridge then finds the end of
  // the connection, and the handshake fails.
  if (other)
    g_socket_shutdown (((Arrival *) other)->connection, TRUE, TRUE, NULL);
  g_mutex_unlock (&self->lock);
  return ok;
}

// Returns FALSE if the handshake was ended for another one, and so is counted already.
static gboolean
end_pending (Arrival *arrival)
{
  TlsFront *self = arrival->front;
  gboolean was;

  g_mutex_lock (&self->lock);
  was = tls_pending_remove (self->pending, arrival);
  g_mutex_unlock (&self->lock);
  return was;
}

static void
count_result (TlsFront *self, TlsResult result)
{
  g_mutex_lock (&self->lock);
  self->counts.ok += result == TLS_RESULT_OK;
  self->counts.failed += result == TLS_RESULT_FAILED;
  self->counts.timeout += result == TLS_RESULT_TIMEOUT;
  g_mutex_unlock (&self->lock);
}

static void
log_refused (const gchar *host, const gchar *where, const gchar *reason)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };

  log_event_limited (&limit, "client %s refused: %s%s", host, where, reason);
}

static void
arrival_free (Arrival *self)
{
  g_object_unref (self->listening);
  g_free (self->host);
  g_free (self);
}

// ---- the bridge's owner; in a loop's thread ----

typedef struct {
  TlsFrontFunc taken;
  gpointer data;
  GSocket *client, *listening;
} Taken;

static gboolean
hand_over (gpointer data)
{
  Taken *taken = data;

  if (!g_socket_is_closed (taken->listening))
    taken->taken (g_steal_pointer (&taken->client), taken->data);
  return G_SOURCE_REMOVE;
}

static void
free_taken (gpointer data)
{
  Taken *taken = data;

  g_clear_object (&taken->client);
  g_object_unref (taken->listening);
  g_free (taken);
}

static Loop *
on_done (gpointer owner, GSocket *connection, TlsResult result, const gchar *reason, gint plain)
{
  Arrival *arrival = owner;
  TlsFront *self = arrival->front;
  gboolean counts = end_pending (arrival);
  GSocket *client;
  Taken *taken;

  if (counts)
    count_result (self, result);
  if (result != TLS_RESULT_OK) {
    if (counts)
      log_refused (arrival->host, TLS, reason);
    return NULL;
  }
  client = make_client (connection, plain);
  if (client) {
    taken = g_new (Taken, 1);
    *taken = (Taken) { arrival->taken, arrival->data, client, g_object_ref (arrival->listening) };
    g_idle_add_full (G_PRIORITY_DEFAULT, hand_over, taken, free_taken);
  } else {
    log_refused (arrival->host, TLS, g_strerror (errno)); // the bridge finds its socket closed
  }
  return self->loops[(guint) g_atomic_int_add (&self->next, 1) % self->n_loops];
}

static void
on_ended (gpointer owner)
{
  Arrival *arrival = owner;

  end_pending (arrival); // without on_done(), for example if the front is being freed
  g_atomic_int_add (&arrival->front->n_open, -1);
  arrival_free (arrival);
}

static const TlsBridgeOps bridge_ops = { on_done, on_ended };

// ---- accepting ----

static void
start (TlsFront *self, Arrival *arrival)
{
  TlsPair *pair = tls_keys_dup_pair (self->keys);

  g_atomic_int_inc (&self->n_open);
  if (!tls_bridge_start (self->handshakes, arrival->connection, pair, &bridge_ops, arrival)) {
    count_result (self, TLS_RESULT_FAILED);
    on_ended (arrival);
  }
  tls_pair_unref (pair);
}

void
tls_front_accept (TlsFront *self, GSocket *listening, TlsFrontFunc taken, gpointer data)
{
  g_autoptr (GSocket) connection = g_socket_accept (listening, NULL, NULL);
  g_autoptr (GSocketAddress) peer =
      connection ? g_socket_get_remote_address (connection, NULL) : NULL;
  g_autofree gchar *host = peer ? dup_host (peer) : NULL, *ended = NULL;
  g_autofree gchar *key = host ? address_dup_key_of_text (host) : NULL;
  Arrival *arrival;

  if (key) {
    arrival = g_new (Arrival, 1);
    *arrival =
        (Arrival) { self, g_strdup (host), connection, g_object_ref (listening), taken, data };
    if (begin_pending (self, key, arrival, &ended)) {
      start (self, arrival);
    } else {
      log_refused (host, "", TOO_MANY);
      arrival_free (arrival);
    }
    if (ended)
      log_refused (ended, "", TOO_MANY "; this one makes room for another");
  }
}

guint
tls_front_n_open (TlsFront *self)
{
  return (guint) g_atomic_int_get (&self->n_open);
}

void
tls_front_count (TlsFront *self, TlsCounts *counts)
{
  g_mutex_lock (&self->lock);
  *counts = self->counts;
  g_mutex_unlock (&self->lock);
}

// ---- construction ----

static Loop *
start_loop (const gchar *name, GError **error)
{
  return loop_new (&(LoopSettings) { .name = name, .scratch = TLS_BRIDGE_SCRATCH }, error);
}

static gboolean
start_loops (TlsFront *self, GError **error)
{
  guint wanted = CLAMP (g_get_num_processors (), 1, LOOPS_MAX);

  self->handshakes = start_loop ("tls-handshakes", error);
  if (!self->handshakes)
    return FALSE;
  for (; self->n_loops < wanted; self->n_loops++) {
    self->loops[self->n_loops] = start_loop ("tls-readers", error);
    if (!self->loops[self->n_loops])
      return FALSE;
  }
  return TRUE;
}

TlsFront *
tls_front_new (TlsKeys *keys, GError **error)
{
  TlsFront *self = g_new0 (TlsFront, 1);

  g_mutex_init (&self->lock);
  self->keys = keys;
  self->pending = tls_pending_new (TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_OF_ADDRESS_MAX, is_silent);
  if (start_loops (self, error))
    return self;
  tls_front_free (self);
  return NULL;
}

void
tls_front_free (TlsFront *self)
{
  g_clear_pointer (&self->handshakes, loop_free);
  for (guint i = 0; i < self->n_loops; i++)
    loop_free (self->loops[i]);
  // What the loops have sent to the main thread last.
  main_loop_drain ();
  tls_pending_free (self->pending);
  g_mutex_clear (&self->lock);
  g_free (self);
}
