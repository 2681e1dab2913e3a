// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_outlet.h"

#include <srt/access_control.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "outlets/srt/srt_connection.h"
#include "outlets/srt/srt_port.h"
#include "outlets/srt/srt_problem.h"

#define BACKLOG 128
#define READY_MAX 256 // sockets of one kind that one wait returns
#define WAIT_MS 1000
#define TICK GST_SECOND
#define VERSION_MIN 0x010300 // the first with stream ids

struct _SrtOutlet {
  SrtContext *context;
  ListenAddress listen;
  SRTSOCKET listener;
  GThread *thread;
  gint stopping; // atomic

  GMutex lock;
  GHashTable *handshakes; // SRTSOCKET: SrtConnection; protected by `lock`

  // Atomic: the last handshake that libsrt has asked about, and what it has logged of it.
  SRTSOCKET last;
  gint problem; // SrtProblem

  // The thread's.
  GHashTable *connections; // SRTSOCKET: SrtConnection
  GHashTable *by_pipe;     // fd of a reader's pair: SrtConnection
  gint64 ticked;
};

// ---- handshakes; a thread of libsrt, which handles one after the other ----

// Returns the connection of a handshake (transfer full), or NULL.
static SrtConnection *
take_handshake (SrtOutlet *self, SRTSOCKET socket)
{
  gpointer connection = NULL;

  g_mutex_lock (&self->lock);
  g_hash_table_steal_extended (self->handshakes, GINT_TO_POINTER (socket), NULL, &connection);
  g_mutex_unlock (&self->lock);
  return connection;
}

// libsrt does not say that it has refused a handshake after it was asked about: it closes the
// socket. It says why in its log only.
static void
drop_handshakes (SrtOutlet *self)
{
  GList *sockets;

  g_mutex_lock (&self->lock);
  sockets = g_hash_table_get_keys (self->handshakes);
  g_mutex_unlock (&self->lock);
  for (GList *l = sockets; l; l = l->next) {
    SRTSOCKET socket = GPOINTER_TO_INT (l->data);
    gboolean is_last = socket == g_atomic_int_get (&self->last);
    SrtConnection *connection;

    if (srt_getsockstate (socket) < SRTS_BROKEN)
      continue;
    connection = take_handshake (self, socket);
    if (connection)
      srt_connection_refuse (
          connection, is_last ? g_atomic_int_get (&self->problem) : SRT_PROBLEM_UNKNOWN);
  }
  g_list_free (sockets);
}

static int
on_handshake (gpointer data, SRTSOCKET socket, int version, const struct sockaddr *address,
    const char *stream_id)
{
  SrtOutlet *self = data;
  gsize len =
      address->sa_family == AF_INET6 ? sizeof (struct sockaddr_in6) : sizeof (struct sockaddr_in);
  GSocketAddress *from = g_socket_address_new_from_native ((gpointer) address, len);
  SrtConnection *connection;
  int reject;

  drop_handshakes (self); // they hold no places that this one may need
  g_atomic_int_set (&self->last, socket);
  g_atomic_int_set (&self->problem, SRT_PROBLEM_UNKNOWN);
  connection = srt_connection_new (
      self->context, G_INET_SOCKET_ADDRESS (from), stream_id ? stream_id : "", socket, &reject);
  g_object_unref (from);
  if (!connection) {
    srt_setrejectreason (socket, reject);
    return -1;
  }
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->handshakes, GINT_TO_POINTER (socket), connection);
  g_mutex_unlock (&self->lock);
  return 0;
}

static void
on_log (gpointer data, int level, const char *file, int line, const char *area, const char *text)
{
  SrtProblem problem = srt_problem_find (text);

  if (problem != SRT_PROBLEM_UNKNOWN)
    g_atomic_int_set (&((SrtOutlet *) data)->problem, (gint) problem);
}

// ---- connections ----

static void
drop (SrtOutlet *self, SrtConnection *connection, const gchar *reason)
{
  g_hash_table_remove (self->by_pipe, GINT_TO_POINTER (srt_connection_get_pipe (connection)));
  g_hash_table_remove (self->connections, GINT_TO_POINTER (srt_connection_get_socket (connection)));
  srt_connection_free (connection, reason);
}

static void
run (SrtOutlet *self, SrtConnection *connection)
{
  gint pipe;

  if (!srt_connection_run (connection)) {
    drop (self, connection, "the connection has ended");
    return;
  }
  pipe = srt_connection_get_pipe (connection);
  if (pipe >= 0)
    g_hash_table_insert (self->by_pipe, GINT_TO_POINTER (pipe), connection);
}

static void
run_found (SrtOutlet *self, GHashTable *by, gint socket)
{
  SrtConnection *connection = g_hash_table_lookup (by, GINT_TO_POINTER (socket));

  if (connection)
    run (self, connection);
}

static void
run_all (SrtOutlet *self, gboolean tick)
{
  GList *all = g_hash_table_get_values (self->connections);

  for (GList *l = all; l; l = l->next) {
    if (tick)
      srt_connection_tick (l->data);
    run (self, l->data);
  }
  g_list_free (all);
}

static void
accept_all (SrtOutlet *self)
{
  SrtConnection *connection;
  SRTSOCKET socket;

  while ((socket = srt_accept (self->listener, NULL, NULL)) != SRT_INVALID_SOCK) {
    connection = take_handshake (self, socket);
    if (connection) {
      g_hash_table_insert (self->connections, GINT_TO_POINTER (socket), connection);
      srt_connection_begin (connection);
      run (self, connection);
    } else {
      srt_close (socket);
    }
  }
}

// ---- the thread ----

static void
run_ready (SrtOutlet *self, const SRTSOCKET *sockets, int n)
{
  for (int i = 0; i < n; i++) {
    if (sockets[i] == self->listener)
      accept_all (self);
    else
      run_found (self, self->connections, sockets[i]);
  }
}

static void
run_pipes (SrtOutlet *self, const SYSSOCKET *fds, int n)
{
  guint64 count;

  for (int i = 0; i < n; i++) {
    if (fds[i] != self->context->wake)
      run_found (self, self->by_pipe, fds[i]);
    else if (read (fds[i], &count, sizeof count) > 0)
      run_all (self, FALSE);
  }
}

static gpointer
serve (gpointer data)
{
  SrtOutlet *self = data;
  SRTSOCKET in[READY_MAX], out[READY_MAX];
  SYSSOCKET fds[READY_MAX];

  while (!g_atomic_int_get (&self->stopping)) {
    int n_in = READY_MAX, n_out = READY_MAX, n_fds = READY_MAX;

    if (srt_epoll_wait (
            self->context->epoll, in, &n_in, out, &n_out, WAIT_MS, fds, &n_fds, NULL, NULL)
        >= 0) {
      run_ready (self, in, MIN (n_in, READY_MAX));
      run_ready (self, out, MIN (n_out, READY_MAX));
      run_pipes (self, fds, MIN (n_fds, READY_MAX));
    }
    if (clock_now () - self->ticked > (gint64) TICK) {
      self->ticked = clock_now ();
      drop_handshakes (self);
      run_all (self, TRUE);
    }
  }
  return NULL;
}

// ---- construction ----

static gboolean
fail (GError **error, const gchar *what)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "SRT: %s: %s", what, srt_getlasterror_str ());
  return FALSE;
}

static gboolean
set_options (SRTSOCKET socket, const SrtConfig *config)
{
  const int32_t latency = (int32_t) config->latency_ms, version = VERSION_MIN;
  const bool no = false;

  return srt_setsockflag (socket, SRTO_RCVSYN, &no, sizeof no) >= 0
         && srt_setsockflag (socket, SRTO_SNDSYN, &no, sizeof no) >= 0
         && srt_setsockflag (socket, SRTO_LATENCY, &latency, sizeof latency) >= 0
         && srt_setsockflag (socket, SRTO_MINVERSION, &version, sizeof version) >= 0
         && (!config->passphrase
             || srt_setsockflag (
                    socket, SRTO_PASSPHRASE, config->passphrase, (int) strlen (config->passphrase))
                    >= 0);
}

static gboolean
bind_to (SrtOutlet *self, GError **error)
{
  gint port = srt_port_open (&self->listen, error);

  if (port < 0)
    return FALSE;
  if (srt_bind_acquire (self->listener, port) < 0) {
    close (port);
    return fail (error, "cannot use the port");
  }
  return srt_listen (self->listener, BACKLOG) >= 0 || fail (error, "cannot listen");
}

static gboolean
start (SrtOutlet *self, const SrtConfig *config, GError **error)
{
  int events = SRT_EPOLL_IN;

  self->context->epoll = srt_epoll_create ();
  self->context->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  self->listener = srt_create_socket ();
  if (self->context->epoll < 0 || self->context->wake < 0 || self->listener == SRT_INVALID_SOCK
      || !set_options (self->listener, config)
      || srt_listen_callback (self->listener, on_handshake, self) < 0)
    return fail (error, "cannot make a listener");
  if (!bind_to (self, error))
    return FALSE;
  srt_epoll_add_usock (self->context->epoll, self->listener, &events);
  srt_epoll_add_ssock (self->context->epoll, self->context->wake, &events);
  self->thread = g_thread_new ("srt", serve, self);
  return TRUE;
}

SrtOutlet *
srt_outlet_new (const SrtConfig *config, Mounts *mounts, Access *access, GError **error)
{
  SrtOutlet *self = g_new0 (SrtOutlet, 1);

  srt_startup ();
  // Inside, libsrt reports errors by C++ exceptions. The first one prepares the process for them,
  // and has ended it when it came while no files were left. So it comes now.
  srt_recvmsg (SRT_INVALID_SOCK, (char[1]) { 0 }, 1);
  srt_setloglevel (LOG_ERR);
  srt_setloghandler (self, on_log);
  g_mutex_init (&self->lock);
  self->context = g_atomic_rc_box_new0 (SrtContext);
  *self->context = (SrtContext) { mounts, access, connections_new (), -1, -1 };
  self->listen = (ListenAddress) { g_strdup (config->listen.address), config->listen.port };
  self->listener = SRT_INVALID_SOCK;
  self->handshakes = g_hash_table_new (NULL, NULL);
  self->connections = g_hash_table_new (NULL, NULL);
  self->by_pipe = g_hash_table_new (NULL, NULL);
  if (!start (self, config, error))
    g_clear_pointer (&self, srt_outlet_free);
  return self;
}

gchar *
srt_outlet_dup_url (SrtOutlet *self)
{
  return listen_address_dup_url (&self->listen, "srt");
}

// ---- the end ----

static void
drop_all (SrtOutlet *self)
{
  GList *all = g_hash_table_get_values (self->connections);

  for (GList *l = all; l; l = l->next)
    drop (self, l->data, "the proxy stops");
  g_list_free (all);
  all = g_hash_table_get_values (self->handshakes);
  for (GList *l = all; l; l = l->next)
    srt_connection_free (l->data, NULL);
  g_list_free (all);
}

void
srt_outlet_free (SrtOutlet *self)
{
  const guint64 one = 1;

  g_atomic_int_set (&self->stopping, 1);
  if (self->thread && write (self->context->wake, &one, sizeof one) >= 0)
    g_thread_join (self->thread);
  if (self->listener != SRT_INVALID_SOCK)
    srt_close (self->listener);
  drop_all (self);
  if (self->context->epoll >= 0)
    srt_epoll_release (self->context->epoll);
  g_hash_table_unref (self->handshakes);
  g_hash_table_unref (self->connections);
  g_hash_table_unref (self->by_pipe);
  g_mutex_clear (&self->lock);
  g_free (self->listen.address);
  srt_context_unref (self->context);
  g_free (self);
  srt_cleanup ();
}
