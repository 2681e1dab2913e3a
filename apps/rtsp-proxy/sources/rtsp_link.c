// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/rtsp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "sources/rtsp_loop.h"

// Bytes read from one connection before the others get their turn.
#define READ_MAX (RTSP_LOOP_SCRATCH - RTSP_KEPT_MAX - 1)
// The same for TLS, in reads of at most 16 KB.
#define TLS_READS 64

struct _RtspLink {
  LoopWatch watch; // first
  gint fd;
  gint refs; // the connecting, the loop and the callbacks hold references
  const RtspLinkOps *ops;
  gpointer data;
  gchar *host;
  guint16 port;
  GCancellable *cancellable;
  GSocketConnection *connection; // NULL until connected
  GPollableInputStream *input;   // of the connection
  GPollableOutputStream *output;
  RtspParser parser;
  GByteArray *waiting; // bytes that had no room, or NULL
  gboolean tls, watches, freed;
  TlsTrust trust;
  gchar *distrust; // why the certificate is not trusted, or NULL; atomic
};

static void
link_unref (RtspLink *self)
{
  if (--self->refs > 0)
    return;
  rtsp_parser_clear (&self->parser);
  g_clear_pointer (&self->waiting, g_byte_array_unref);
  g_clear_object (&self->connection);
  g_clear_object (&self->cancellable);
  tls_trust_clear (&self->trust);
  g_free (self->distrust);
  g_free (self->host);
  g_free (self);
}

static void
stop_watching (RtspLink *self)
{
  if (!self->watches)
    return;
  self->watches = FALSE;
  loop_watch (&self->watch, 0, self->fd, 0);
  loop_leave (&self->watch);
}

// Reports the end of the connection, once.
static void
fail_link (RtspLink *self, const gchar *reason)
{
  stop_watching (self);
  rtsp_parser_stop (&self->parser);
  if (!self->freed)
    self->ops->closed (self->data, reason);
}

void
rtsp_link_free (RtspLink *self)
{
  self->freed = TRUE;
  stop_watching (self);
  rtsp_parser_stop (&self->parser);
  g_cancellable_cancel (self->cancellable);
  // First the socket: TLS ends with a message, and would wait for room for it.
  if (self->connection)
    g_socket_close (g_socket_connection_get_socket (self->connection), NULL);
  g_clear_object (&self->connection);
  link_unref (self);
}

// ---- reading and writing ----

// Returns FALSE if nothing more can be read now.
static gboolean
read_once (RtspLink *self, guint8 *scratch)
{
  gsize kept = rtsp_parser_restore (&self->parser, scratch);
  GError *error = NULL;
  gssize n = g_pollable_input_stream_read_nonblocking (
      self->input, scratch + kept, READ_MAX, NULL, &error);
  const gchar *wrong = rtsp_parser_take (&self->parser, scratch, kept + (gsize) MAX (n, 0));
  gchar *reason;

  if (self->parser.stopped) {
    g_clear_error (&error);
  } else if (n < 0) {
    if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
      fail_link (self, error->message);
    g_error_free (error);
  } else if (wrong) {
    reason = g_strdup_printf ("the upstream sends invalid data: %s", wrong);
    fail_link (self, reason);
    g_free (reason);
  } else if (n == 0) {
    fail_link (self, "the upstream closed the connection");
  }
  return n > 0 && !self->parser.stopped;
}

// The epoll does not see data that TLS has read but not returned.
static void
read_more (RtspLink *self, guint8 *scratch)
{
  guint left = self->tls ? TLS_READS : 1;

  while (left-- > 0 && read_once (self, scratch))
    ;
}

static void
wait_for (RtspLink *self, guint32 events)
{
  loop_watch (&self->watch, 0, self->fd, events);
}

static void
write_waiting (RtspLink *self)
{
  while (self->waiting) {
    GError *error = NULL;
    gssize n = g_pollable_output_stream_write_nonblocking (
        self->output, self->waiting->data, self->waiting->len, NULL, &error);

    if (n < 0) {
      if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        fail_link (self, error->message);
      g_error_free (error);
      return;
    }
    g_byte_array_remove_range (self->waiting, 0, (guint) n);
    if (self->waiting->len == 0)
      g_clear_pointer (&self->waiting, g_byte_array_unref);
  }
  wait_for (self, EPOLLIN);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  RtspLink *self = (RtspLink *) watch;

  self->refs++;
  if (self->waiting)
    write_waiting (self);
  if (!self->parser.stopped)
    read_more (self, loop_get_scratch (watch));
  link_unref (self);
}

static void
on_left (LoopWatch *watch)
{
  link_unref ((RtspLink *) watch);
}

void
rtsp_link_send (RtspLink *self, gconstpointer bytes, gsize len)
{
  gssize n = 0;

  if (!self->watches)
    return;
  if (!self->waiting) {
    n = g_pollable_output_stream_write_nonblocking (self->output, bytes, len, NULL, NULL);
    n = MAX (n, 0); // reading tells of a fault
    if ((gsize) n == len)
      return;
    self->waiting = g_byte_array_new ();
    wait_for (self, EPOLLIN | EPOLLOUT);
  }
  if (self->waiting->len + len > RTSP_LINK_BACKLOG)
    fail_link (self, "the upstream does not read what is sent to it");
  else
    g_byte_array_append (self->waiting, (const guint8 *) bytes + n, (guint) (len - (gsize) n));
}

void
rtsp_link_expect (RtspLink *self, guint8 channel)
{
  rtsp_parser_expect (&self->parser, channel);
}

gboolean
rtsp_link_is_full (const RtspLink *self)
{
  return self->waiting != NULL;
}

// ---- connecting ----

static void
on_connected (GObject *client, GAsyncResult *result, gpointer data)
{
  static const LoopOps ops = { .ready = on_ready, .left = on_left };
  RtspLink *self = data;
  GError *error = NULL;
  GSocketConnection *connection =
      g_socket_client_connect_to_host_finish (G_SOCKET_CLIENT (client), result, &error);
  GSocket *socket;

  if (self->freed || !connection) {
    if (!self->freed)
      fail_link (self, self->distrust ? self->distrust : error->message);
    g_clear_object (&connection);
    g_clear_error (&error);
    link_unref (self);
    return;
  }
  self->connection = connection;
  self->input = G_POLLABLE_INPUT_STREAM (g_io_stream_get_input_stream (G_IO_STREAM (connection)));
  self->output =
      G_POLLABLE_OUTPUT_STREAM (g_io_stream_get_output_stream (G_IO_STREAM (connection)));
  socket = g_socket_connection_get_socket (connection);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
  g_socket_set_timeout (socket, 0);
  self->fd = g_socket_get_fd (socket);
  self->watches = loop_join_fd (rtsp_loop_get (NULL), &self->watch, &ops, self->fd, EPOLLIN);
  if (self->watches) {
    self->ops->connected (self->data); // the reference is the loop's now
  } else {
    fail_link (self, "cannot watch the connection");
    link_unref (self);
  }
}

// Called in any thread during the handshake, while the connecting holds a reference.
static gboolean
on_certificate (GTlsConnection *connection, GTlsCertificate *certificate,
    GTlsCertificateFlags faults, gpointer data)
{
  RtspLink *self = data;
  gchar *reason = tls_trust_check (&self->trust, certificate, faults);

  if (!reason)
    return TRUE;
  if (!g_atomic_pointer_compare_and_exchange (&self->distrust, NULL, reason))
    g_free (reason);
  return FALSE;
}

static void
on_event (GSocketClient *client, GSocketClientEvent event, GSocketConnectable *connectable,
    GIOStream *stream, gpointer data)
{
  RtspLink *self = data;
  GError *error = NULL;
  GTlsDatabase *database = NULL;

  if (event != G_SOCKET_CLIENT_TLS_HANDSHAKING)
    return;
  if (self->trust.ca && !self->trust.fingerprint)
    database = tls_trust_load (&self->trust, &error);
  // Without a database each certificate has a fault, and is judged by its fingerprint.
  if (database || error || self->trust.fingerprint)
    g_tls_connection_set_database (G_TLS_CONNECTION (stream), database);
  if (error && !self->distrust)
    self->distrust = g_strdup_printf ("cannot read tls-ca: %s", error->message);
  g_clear_error (&error);
  g_clear_object (&database);
  g_signal_connect (stream, "accept-certificate", G_CALLBACK (on_certificate), self);
}

// Has the TLS library read the system's certificates, which takes a while the first time.
static void
load_certificates (GTask *task, gpointer client, gpointer unused, GCancellable *cancellable)
{
  GTlsDatabase *database = g_tls_backend_get_default_database (g_tls_backend_get_default ());

  g_clear_object (&database);
  g_task_return_boolean (task, TRUE);
}

static void
connect_now (RtspLink *self, GSocketClient *client)
{
  g_socket_client_connect_to_host_async (
      client, self->host, self->port, self->cancellable, on_connected, self);
}

static void
on_loaded (GObject *client, GAsyncResult *result, gpointer data)
{
  connect_now (data, G_SOCKET_CLIENT (client));
}

RtspLink *
rtsp_link_new (const gchar *host, guint16 port, const TlsTrust *trust, guint timeout_ms,
    const RtspLinkOps *ops, gpointer data)
{
  RtspLink *self = g_new0 (RtspLink, 1);
  GSocketClient *client = g_socket_client_new ();
  GTask *task;

  self->refs = 2; // the caller's and the callback's
  self->host = g_strdup (host);
  self->port = port;
  self->tls = trust != NULL;
  self->ops = ops;
  self->data = data;
  self->cancellable = g_cancellable_new ();
  rtsp_parser_init (&self->parser, &ops->messages, data);
  g_socket_client_set_tls (client, self->tls);
  g_socket_client_set_enable_proxy (client, FALSE);
  g_socket_client_set_timeout (client, (timeout_ms + 999) / 1000);
  if (self->tls) {
    tls_trust_copy (&self->trust, trust);
    g_signal_connect (client, "event", G_CALLBACK (on_event), self);
    task = g_task_new (client, NULL, on_loaded, self);
    g_task_run_in_thread (task, load_certificates);
    g_object_unref (task);
  } else {
    connect_now (self, client);
  }
  g_object_unref (client);
  return self;
}

GSocketAddress *
rtsp_link_get_peer (const RtspLink *self)
{
  return self->connection ? g_socket_connection_get_remote_address (self->connection, NULL) : NULL;
}

GSocketAddress *
rtsp_link_get_own (const RtspLink *self)
{
  return self->connection ? g_socket_connection_get_local_address (self->connection, NULL) : NULL;
}
