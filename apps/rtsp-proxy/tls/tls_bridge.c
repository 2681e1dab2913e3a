// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_bridge.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files_left.h"

// TLS 1.2 with forward secrecy and authenticated encryption only, and TLS 1.3.
#define PRIORITY                                                                                   \
  "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-AES-128-CBC:-AES-256-CBC:-CAMELLIA-128-CBC:"   \
  "-CAMELLIA-256-CBC"

// Records carried in each direction before other connections get their turn.
#define TURN 8
// Messages of a handshake that are handled before others get their turn.
#define HANDSHAKE_TURN 16
// Longest handshake message. GnuTLS would take 128 KiB.
#define HANDSHAKE_BYTES 16384
// Bytes that the kernel keeps unsent, so that a slow client shows early.
#define UNSENT_MAX (64 * 1024)
// Seconds without acknowledgement until the kernel closes a connection.
#define GIVE_UP_S 60
#define NS_PER_S G_GINT64_CONSTANT (1000000000)

enum { NET, PLAIN, N_SOCKETS }; // the client's socket; the bridge's end of the pair

typedef struct {
  LoopWatch watch; // first
  Loop *next;      // that the bridge moves to when it has left
  const TlsBridgeOps *ops;
  gpointer owner;
  GSocket *connection; // of the client
  TlsPair *pair;
  gnutls_session_t session;
  gint fds[N_SOCKETS];
  guint32 events[N_SOCKETS]; // that the loop waits for
  guint8 *in;                // bytes of the client that had no room in the pair, or NULL
  gsize in_at, in_len;
  gboolean shaken;      // the handshake has succeeded
  gboolean out_waits;   // GnuTLS holds a record that the client's socket had no room for
  gboolean net_ended;   // the client sends no more
  gboolean plain_ended; // the server has closed its socket
} TlsBridge;

// Waits for these events; 0: for none, so that the end of the socket is not reported either.
static void
wait_for (TlsBridge *self, guint number, guint32 events)
{
  if (events == self->events[number])
    return;
  if (loop_watch (&self->watch, number, self->fds[number], events))
    self->events[number] = events;
  else
    loop_leave (&self->watch);
}

// ---- the end ----

static void
bridge_free (TlsBridge *self)
{
  gnutls_deinit (self->session);
  self->ops->ended (self->owner);
  g_socket_close (self->connection, NULL);
  if (self->fds[PLAIN] >= 0)
    close (self->fds[PLAIN]);
  g_object_unref (self->connection);
  tls_pair_unref (self->pair);
  g_free (self->in);
  g_free (self);
}

static void
bridge_end (TlsBridge *self)
{
  wait_for (self, NET, 0);
  wait_for (self, PLAIN, 0);
  loop_leave (&self->watch);
}

static void
fail_handshake (TlsBridge *self, TlsResult result, const gchar *reason)
{
  self->ops->done (self->owner, self->connection, result, reason, -1);
  bridge_end (self);
}

static void
on_deadline (LoopWatch *watch, gint64 now)
{
  TlsBridge *self = (TlsBridge *) watch;

  if (self->shaken)
    bridge_end (self);
  else
    fail_handshake (self, TLS_RESULT_TIMEOUT, "the handshake took too long");
}

// ---- the client to the server ----

// Writes to the server's socket, and keeps what has no room.
static void
pass_in (TlsBridge *self, const guint8 *bytes, gsize len)
{
  gssize n = send (self->fds[PLAIN], bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

  if (n < 0 && errno != EAGAIN && errno != EINTR) {
    self->net_ended = TRUE; // the server has closed; reading from its socket finds that too
    return;
  }
  n = MAX (n, 0);
  if ((gsize) n == len)
    return;
  self->in = g_memdup2 (bytes + n, len - (gsize) n);
  self->in_at = 0;
  self->in_len = len - (gsize) n;
}

static void
flush_in (TlsBridge *self)
{
  gssize n;

  if (!self->in)
    return;
  n = send (self->fds[PLAIN], self->in + self->in_at, self->in_len, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n > 0) {
    self->in_at += (gsize) n;
    self->in_len -= (gsize) n;
  }
  if (n <= 0 || self->in_len == 0)
    g_clear_pointer (&self->in, g_free);
}

static void
end_in (TlsBridge *self)
{
  self->net_ended = TRUE;
  shutdown (self->fds[PLAIN], SHUT_WR);
}

// Returns FALSE if the connection has failed.
static gboolean
carry_in (TlsBridge *self)
{
  guint8 *scratch = loop_get_scratch (&self->watch);

  for (guint i = 0; i < TURN && !self->in && !self->net_ended; i++) {
    gssize n = gnutls_record_recv (self->session, scratch, TLS_BRIDGE_SCRATCH);

    if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
      break;
    if (n < 0 && n != GNUTLS_E_PREMATURE_TERMINATION && n != GNUTLS_E_WARNING_ALERT_RECEIVED)
      return FALSE;
    if (n > 0)
      pass_in (self, scratch, (gsize) n);
    else if (n != GNUTLS_E_WARNING_ALERT_RECEIVED)
      end_in (self);
  }
  return TRUE;
}

// ---- the server to the client ----

// Returns FALSE if the connection has failed.
static gboolean
flush_out (TlsBridge *self)
{
  gssize n = self->out_waits ? gnutls_record_send (self->session, NULL, 0) : 0;

  if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
    return TRUE;
  self->out_waits = FALSE;
  return n >= 0;
}

static gboolean
carry_out (TlsBridge *self)
{
  // The client may have asked for shorter records.
  gsize most = MIN (gnutls_record_get_max_size (self->session), TLS_BRIDGE_SCRATCH);
  guint8 *scratch = loop_get_scratch (&self->watch);

  for (guint i = 0; i < TURN && !self->out_waits && !self->plain_ended; i++) {
    gssize n = recv (self->fds[PLAIN], scratch, most, MSG_DONTWAIT), sent;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    if (n <= 0) {
      self->plain_ended = TRUE;
      loop_set_due (&self->watch, clock_now () + TLS_LINGER_S * NS_PER_S);
      break;
    }
    sent = gnutls_record_send (self->session, scratch, (gsize) n);
    // GnuTLS then has encrypted the record, and sends it with the next call.
    self->out_waits = sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED;
    if (!self->out_waits && sent != n)
      return FALSE;
  }
  return TRUE;
}

// ---- carrying ----

// Watches for what can go on. A socket with nothing to wait for is not watched, because its end
// would be reported again and again.
static void
watch (TlsBridge *self)
{
  gboolean reads_net = !self->net_ended && !self->in;
  gboolean reads_plain = !self->plain_ended && !self->out_waits;

  wait_for (self, NET, (reads_net ? EPOLLIN : 0u) | (self->out_waits ? EPOLLOUT : 0u));
  wait_for (self, PLAIN, (reads_plain ? EPOLLIN : 0u) | (self->in ? EPOLLOUT : 0u));
}

static void
carry (TlsBridge *self)
{
  flush_in (self);
  if (!flush_out (self) || !carry_out (self) || !carry_in (self)) {
    bridge_end (self);
  } else if (self->plain_ended && !self->out_waits) {
    gnutls_bye (self->session, GNUTLS_SHUT_WR);
    bridge_end (self);
  } else {
    watch (self);
  }
}

// ---- the handshake ----

static void
finish_handshake (TlsBridge *self)
{
  int ends[2];

  if (!files_are_left (FILES_FOR_CONNECTION)) {
    fail_handshake (self, TLS_RESULT_FAILED, FILES_PROBLEM);
    return;
  }
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
    fail_handshake (self, TLS_RESULT_FAILED, g_strerror (errno));
    return;
  }
  self->fds[PLAIN] = ends[0];
  self->shaken = TRUE;
  self->next = self->ops->done (self->owner, self->connection, TLS_RESULT_OK, NULL, ends[1]);
  bridge_end (self);
}

static void
refuse (TlsBridge *self, int error)
{
  gnutls_alert_send_appropriate (self->session, error);
  fail_handshake (self, TLS_RESULT_FAILED,
      error == GNUTLS_E_PREMATURE_TERMINATION ? "the client closed the connection"
                                              : gnutls_strerror (error));
}

static void
shake (TlsBridge *self)
{
  int r = GNUTLS_E_AGAIN;

  for (guint i = 0; i < HANDSHAKE_TURN; i++) {
    r = gnutls_handshake (self->session);
    if (r == 0 || r == GNUTLS_E_AGAIN || gnutls_error_is_fatal (r))
      break;
  }
  if (r == 0)
    finish_handshake (self);
  else if (gnutls_error_is_fatal (r))
    refuse (self, r);
  else
    wait_for (self, NET, gnutls_record_get_direction (self->session) ? EPOLLOUT : EPOLLIN);
}

// ---- the loop ----

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  TlsBridge *self = (TlsBridge *) watch;

  if (self->events[number] == 0) // another event of the same round has changed that
    return;
  if (self->shaken)
    carry (self);
  else
    shake (self);
}

static void join (TlsBridge *self, Loop *loop, gint64 deadline);

static void
on_left (LoopWatch *watch)
{
  TlsBridge *self = (TlsBridge *) watch;

  if (self->next)
    join (self, g_steal_pointer (&self->next), LOOP_NEVER);
  else
    bridge_free (self);
}

// Lets the bridge join a loop, in which it may end at once. It begins when the client's socket can
// be read or written.
static void
join (TlsBridge *self, Loop *loop, gint64 deadline)
{
  static const LoopOps ops = { on_ready, on_deadline, on_left };

  loop_join (loop, &self->watch, &ops);
  loop_set_due (&self->watch, deadline);
  self->events[NET] = EPOLLIN | EPOLLOUT;
  if (!loop_watch (&self->watch, NET, self->fds[NET], EPOLLIN | EPOLLOUT))
    loop_leave (&self->watch);
}

static gnutls_priority_t
get_priority (void)
{
  static gsize made;
  gnutls_priority_t priority = NULL;

  if (g_once_init_enter (&made)) {
    // A policy of the system can forbid what is named here.
    if (gnutls_priority_init (&priority, PRIORITY, NULL) < 0)
      gnutls_priority_init (&priority, "NORMAL", NULL);
    g_once_init_leave (&made, (gsize) priority);
  }
  return (gnutls_priority_t) made;
}

static void
tune (GSocket *socket)
{
  g_socket_set_option (socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_MAX, NULL);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_USER_TIMEOUT, GIVE_UP_S * 1000, NULL);
  g_socket_set_keepalive (socket, TRUE);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_KEEPIDLE, GIVE_UP_S / 2, NULL);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_KEEPINTVL, GIVE_UP_S / 6, NULL);
}

gboolean
tls_bridge_start (
    Loop *loop, GSocket *connection, TlsPair *pair, const TlsBridgeOps *ops, gpointer owner)
{
  gnutls_session_t session;
  TlsBridge *self;

  if (gnutls_init (&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS)
      < 0)
    return FALSE;
  if (gnutls_priority_set (session, get_priority ()) < 0
      || gnutls_credentials_set (session, GNUTLS_CRD_CERTIFICATE, tls_pair_get_credentials (pair))
             < 0) {
    gnutls_deinit (session);
    return FALSE;
  }
  gnutls_handshake_set_max_packet_length (session, HANDSHAKE_BYTES);
  gnutls_handshake_set_timeout (session, GNUTLS_INDEFINITE_TIMEOUT); // the loop has the deadline
  gnutls_transport_set_int (session, g_socket_get_fd (connection));
  tune (connection);
  self = g_new0 (TlsBridge, 1);
  self->ops = ops;
  self->owner = owner;
  self->connection = g_object_ref (connection);
  self->pair = tls_pair_ref (pair);
  self->session = session;
  self->fds[NET] = g_socket_get_fd (connection);
  self->fds[PLAIN] = -1;
  join (self, loop, clock_now () + TLS_HANDSHAKE_S * NS_PER_S);
  return TRUE;
}
