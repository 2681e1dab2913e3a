// SPDX-License-Identifier: LGPL-2.1-or-later
// WeirConnection with TCP sockets.
#include "fanout/connection.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  WeirConnection *connection;
  gchar *token;
  int peer;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  guint n_closed;
  gchar *reason;
  GThread *thread; // that emitted `closed`
} Fixture;

static void
on_closed (GObject *object, const gchar *reason, Fixture *f)
{
  // No lock is held, so the handler may call anything.
  weir_connection_close (f->token, "again");
  g_assert_null (weir_connection_lookup (f->token));
  pthread_mutex_lock (&f->lock);
  f->n_closed++;
  g_free (f->reason);
  f->reason = g_strdup (reason);
  f->thread = g_thread_self ();
  pthread_cond_signal (&f->changed);
  pthread_mutex_unlock (&f->lock);
}

static void
wait_closed (Fixture *f, const gchar *reason)
{
  pthread_mutex_lock (&f->lock);
  while (f->n_closed == 0)
    pthread_cond_wait (&f->changed, &f->lock);
  g_assert_cmpuint (f->n_closed, ==, 1);
  g_assert_cmpstr (f->reason, ==, reason);
  g_assert_true (f->thread != g_thread_self ());
  pthread_mutex_unlock (&f->lock);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  int fds[2];
  GSocket *socket;

  pthread_mutex_init (&f->lock, NULL);
  pthread_cond_init (&f->changed, NULL);
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
  socket = g_socket_new_from_fd (fds[0], NULL);
  f->connection = g_object_new (WEIR_TYPE_CONNECTION, "socket", socket, NULL);
  g_object_unref (socket);
  f->peer = fds[1];
  g_object_get (f->connection, "token", &f->token, NULL);
  g_signal_connect (f->connection, "closed", G_CALLBACK (on_closed), f);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  g_clear_object (&f->connection);
  pthread_cond_destroy (&f->changed);
  pthread_mutex_destroy (&f->lock);
  close (f->peer);
  g_free (f->token);
  g_free (f->reason);
}

static gboolean
send_bytes (Fixture *f, const void *data, gsize len)
{
  GBytes *bytes = g_bytes_new (data, len);
  gboolean ok = FALSE;

  g_signal_emit_by_name (f->connection, "send", bytes, &ok);
  g_bytes_unref (bytes);
  return ok;
}

static void
sends_in_order_with_a_sink (Fixture *f, gconstpointer unused)
{
  WeirConn *conn = weir_connection_lookup (f->token);
  struct iovec packet = { (void *) "abc", 3 };
  gchar got[32] = { 0 };

  g_assert_nonnull (conn);
  g_assert_true (send_bytes (f, "answer", 6));
  g_assert_cmpint (weir_conn_send (conn, WEIR_FRAMING_INTERLEAVED, 2, &packet, 1), ==, 1);
  g_assert_true (send_bytes (f, "more", 4));
  g_assert_cmpint (recv (f->peer, got, 17, MSG_WAITALL), ==, 17);
  g_assert_cmpmem (got, 17, "answer$\2\0\3abcmore", 17);
  weir_conn_unref (conn);
}

static void
closes_for_a_reason_once (Fixture *f, gconstpointer by_token)
{
  WeirConn *conn = weir_connection_lookup (f->token);
  gchar byte, *reason;

  g_object_get (f->connection, "close-reason", &reason, NULL);
  g_assert_null (reason);
  if (by_token)
    weir_connection_close (f->token, "too slow");
  else
    g_signal_emit_by_name (f->connection, "close", "too slow");
  g_signal_emit_by_name (f->connection, "close", "another");
  g_object_get (f->connection, "close-reason", &reason, NULL);
  g_assert_cmpstr (reason, ==, "too slow");
  g_free (reason);
  wait_closed (f, "too slow");
  g_assert_false (send_bytes (f, "x", 1));
  g_assert_cmpint (weir_conn_error (conn), !=, 0);
  // The peer sees the end although a sink still has a reference.
  g_assert_cmpint (recv (f->peer, &byte, 1, 0), ==, 0);
  weir_conn_unref (conn);
}

static void
reports_that_the_peer_has_gone (Fixture *f, gconstpointer unused)
{
  gchar *reason;

  close (f->peer);
  f->peer = -1;
  while (send_bytes (f, "x", 1))
    ;
  wait_closed (f, g_strerror (EPIPE));
  g_object_get (f->connection, "close-reason", &reason, NULL);
  g_assert_null (reason);
}

static void
closes_a_client_that_does_not_read (Fixture *f, gconstpointer unused)
{
  static gchar answer[5000];
  guint n = 0;

  while (send_bytes (f, answer, sizeof answer))
    g_assert_cmpuint (n++, <, 10000);
  wait_closed (f, "the client does not read its responses");
}

static void
ends_with_the_object (Fixture *f, gconstpointer unused)
{
  gchar byte;

  g_clear_object (&f->connection);
  g_assert_null (weir_connection_lookup (f->token));
  g_assert_cmpint (recv (f->peer, &byte, 1, 0), ==, 0);
  g_assert_cmpuint (f->n_closed, ==, 0);
}

static void
a_token_names_one_connection (Fixture *f, gconstpointer unused)
{
  gchar *other = g_strdup (f->token);

  g_assert_true (weir_connection_is_token (f->token));
  other[31] = other[31] == '0' ? '1' : '0';
  g_assert_null (weir_connection_lookup (other));
  g_assert_null (weir_connection_lookup (""));
  g_assert_false (weir_connection_is_token ("127.0.0.1"));
  g_assert_false (weir_connection_is_token ("0123456789abcdef0123456789abcdeF"));
  g_assert_false (weir_connection_is_token ("0123456789abcdef0123456789abcdef0"));
  g_free (other);
}

// ---- a slow handler ----

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  gboolean entered, may_leave, left, has_room;
} Slow;

static void
set (Slow *slow, gboolean *what)
{
  pthread_mutex_lock (&slow->lock);
  *what = TRUE;
  pthread_cond_broadcast (&slow->changed);
  pthread_mutex_unlock (&slow->lock);
}

static gboolean
wait_for (Slow *slow, const gboolean *what, int seconds)
{
  gboolean came;
  struct timespec until;
  int r = 0;

  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += seconds;
  pthread_mutex_lock (&slow->lock);
  while (!*what && r == 0)
    r = pthread_cond_timedwait (&slow->changed, &slow->lock, &until);
  came = *what;
  pthread_mutex_unlock (&slow->lock);
  return came;
}

static void
on_closed_slowly (GObject *object, const gchar *reason, Slow *slow)
{
  set (slow, &slow->entered);
  wait_for (slow, &slow->may_leave, 20);
  set (slow, &slow->left);
}

static void
on_room (void *slow)
{
  set (slow, &((Slow *) slow)->has_room);
}

// While a handler of `closed` is slow, a full connection still continues when it has room.
static void
a_slow_handler_delays_no_connection (Fixture *f, gconstpointer unused)
{
  static gchar bytes[60000];
  struct iovec packet = { bytes, sizeof bytes };
  static Slow slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
  Fixture other = { 0 };
  WeirConn *conn;

  set_up (&other, NULL);
  conn = weir_connection_lookup (other.token);
  g_assert_true (weir_conn_watch (conn, on_room, &slow));
  while (weir_conn_send (conn, WEIR_FRAMING_NONE, 0, &packet, 1) > 0)
    ;
  g_signal_connect (f->connection, "closed", G_CALLBACK (on_closed_slowly), &slow);
  g_signal_emit_by_name (f->connection, "close", "enough");
  g_assert_true (wait_for (&slow, &slow.entered, 5));
  while (recv (other.peer, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
  g_assert_true (wait_for (&slow, &slow.has_room, 5));
  set (&slow, &slow.may_leave);
  g_assert_true (wait_for (&slow, &slow.left, 5));
  wait_closed (f, "enough");
  weir_conn_unwatch (conn, on_room, &slow);
  weir_conn_unref (conn);
  tear_down (&other, NULL);
}

static void
tokens_are_unique (void)
{
  GHashTable *seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < 2000; i++) {
    Fixture f = { 0 };

    set_up (&f, NULL);
    g_assert_true (g_hash_table_add (seen, g_steal_pointer (&f.token)));
    f.token = g_strdup ("");
    tear_down (&f, NULL);
  }
  g_hash_table_unref (seen);
}

static void
an_unconnected_socket_is_closed (void)
{
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  WeirConnection *connection = g_object_new (WEIR_TYPE_CONNECTION, "socket", socket, NULL);
  GBytes *bytes = g_bytes_new_static ("x", 1);
  gboolean ok = TRUE;
  gchar *token;

  g_object_get (connection, "token", &token, NULL);
  g_assert_null (weir_connection_lookup (token));
  g_signal_emit_by_name (connection, "send", bytes, &ok);
  g_assert_false (ok);
  g_signal_emit_by_name (connection, "close", "x");
  g_bytes_unref (bytes);
  g_free (token);
  g_object_unref (connection);
  g_object_unref (socket);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(function, name, data)                                                                  \
  g_test_add ("/connection/" name, Fixture, data, set_up, function, tear_down)
  ADD (sends_in_order_with_a_sink, "sends_in_order_with_a_sink", NULL);
  ADD (closes_for_a_reason_once, "closes_for_a_reason_once", NULL);
  ADD (closes_for_a_reason_once, "closes_by_token", "");
  ADD (reports_that_the_peer_has_gone, "reports_that_the_peer_has_gone", NULL);
  ADD (closes_a_client_that_does_not_read, "closes_a_client_that_does_not_read", NULL);
  ADD (a_slow_handler_delays_no_connection, "a_slow_handler_delays_no_connection", NULL);
  ADD (ends_with_the_object, "ends_with_the_object", NULL);
  ADD (a_token_names_one_connection, "a_token_names_one_connection", NULL);
  g_test_add_func ("/connection/tokens_are_unique", tokens_are_unique);
  g_test_add_func ("/connection/an_unconnected_socket_is_closed", an_unconnected_socket_is_closed);
  return g_test_run ();
}
