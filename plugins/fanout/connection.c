// SPDX-License-Identifier: LGPL-2.1-or-later
#include "connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TOKEN_BYTES 16

// The part of a WeirConnection to which the table and the thread that watches connections point.
typedef struct {
  GWeakRef object;
  WeirConn *conn;
  gint64 inode;     // of the socket
  gchar *peer;      // the peer's address, for the log
  atomic_flag told; // the end of the connection was reported
} Link;

struct _WeirConnection {
  GObject parent;
  GSocket *socket;
  gchar *token;
  Link *link; // NULL if the socket was not connected, or had another writer

  // Not a GMutex: ThreadSanitizer does not see GLib's locks in threads that GLib did not create.
  pthread_mutex_t lock; // guards all below
  gchar *reason;
  WeirTcpLine *line; // NULL until somebody asks
};

enum { PROP_0, PROP_SOCKET, PROP_TOKEN, PROP_CLOSE_REASON, PROP_WAITING, N_PROPS };
static GParamSpec *props[N_PROPS];

enum { SIGNAL_SEND, SIGNAL_CLOSE, SIGNAL_CLOSED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (WeirConnection, weir_connection, G_TYPE_OBJECT)

// ---- the table ----

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *table;   // token -> Link
static GHashTable *sockets; // inodes of sockets that have a WeirConnection

// Returns FALSE, and adds nothing, if the socket has another WeirConnection.
static gboolean
table_add (const gchar *token, Link *link)
{
  gboolean added;

  pthread_mutex_lock (&table_lock);
  if (!table) {
    table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    sockets = g_hash_table_new (g_int64_hash, g_int64_equal);
  }
  added = !g_hash_table_contains (sockets, &link->inode);
  if (added) {
    g_hash_table_insert (table, g_strdup (token), link);
    g_hash_table_add (sockets, &link->inode);
  }
  pthread_mutex_unlock (&table_lock);
  return added;
}

static void
table_remove (const gchar *token)
{
  Link *link;

  pthread_mutex_lock (&table_lock);
  link = table ? g_hash_table_lookup (table, token) : NULL;
  if (link) {
    g_hash_table_remove (sockets, &link->inode);
    g_hash_table_remove (table, token);
  }
  pthread_mutex_unlock (&table_lock);
}

// Returns a number that is the same for all file descriptors of a socket; 0 if it has none.
static gint64
get_inode (GSocket *socket)
{
  struct stat stat;

  return fstat (g_socket_get_fd (socket), &stat) == 0 ? (gint64) stat.st_ino : 0;
}

gboolean
weir_connection_is_on (GSocket *socket)
{
  gint64 inode = get_inode (socket);
  gboolean is_on;

  pthread_mutex_lock (&table_lock);
  is_on = sockets && g_hash_table_contains (sockets, &inode);
  pthread_mutex_unlock (&table_lock);
  return is_on;
}

gchar *
weir_connection_make_token (void)
{
  guint8 random[TOKEN_BYTES];
  gchar *token = g_malloc (2 * TOKEN_BYTES + 1);

  // A signal can interrupt the call until the kernel has seeded its generator.
  while (getrandom (random, sizeof random, 0) != sizeof random)
    ;
  for (guint i = 0; i < TOKEN_BYTES; i++)
    g_snprintf (token + 2 * i, 3, "%02x", random[i]);
  return token;
}

gboolean
weir_connection_is_token (const gchar *host)
{
  return strlen (host) == 2 * TOKEN_BYTES && strspn (host, "0123456789abcdef") == 2 * TOKEN_BYTES;
}

WeirConn *
weir_connection_lookup (const gchar *token)
{
  WeirConn *conn = NULL;
  Link *link;

  pthread_mutex_lock (&table_lock);
  link = table ? g_hash_table_lookup (table, token) : NULL;
  if (link && !weir_conn_error (link->conn))
    conn = weir_conn_ref (link->conn);
  pthread_mutex_unlock (&table_lock);
  return conn;
}

gboolean
weir_connection_is_open (const gchar *token)
{
  WeirConn *conn = weir_connection_lookup (token);

  if (!conn)
    return FALSE;
  weir_conn_unref (conn);
  return TRUE;
}

gchar *
weir_connection_dup_peer (const gchar *token)
{
  gchar *peer = NULL;
  Link *link;

  pthread_mutex_lock (&table_lock);
  link = table ? g_hash_table_lookup (table, token) : NULL;
  if (link)
    peer = g_strdup (link->peer);
  pthread_mutex_unlock (&table_lock);
  return peer;
}

static void close_for (WeirConnection *self, const gchar *reason);

void
weir_connection_close (const gchar *token, const gchar *reason)
{
  WeirConnection *self;
  Link *link;

  pthread_mutex_lock (&table_lock);
  link = table ? g_hash_table_lookup (table, token) : NULL;
  self = link ? g_weak_ref_get (&link->object) : NULL;
  pthread_mutex_unlock (&table_lock);
  if (self) {
    close_for (self, reason);
    g_object_unref (self);
  }
}

// ---- closing ----

static void
close_for (WeirConnection *self, const gchar *reason)
{
  if (!self->link)
    return;
  pthread_mutex_lock (&self->lock);
  if (!self->reason && !weir_conn_error (self->link->conn))
    self->reason = g_strdup (reason);
  pthread_mutex_unlock (&self->lock);
  table_remove (self->token);
  weir_conn_break (self->link->conn, ECANCELED);
}

// Returns the reason for which a sink or the program closed it, or NULL. Call with `lock` held.
static const gchar *
get_reason (WeirConnection *self)
{
  if (!self->reason && self->link && weir_conn_error (self->link->conn) == ETIMEDOUT)
    return WEIR_CONNECTION_STALLED;
  return self->reason;
}

// ---- the signal `closed` ----

// Handlers of `closed` may be slow, so a separate thread calls them. It runs while there are
// connections in the queue.
static struct {
  pthread_mutex_t lock; // guards all below
  GQueue closed;        // of WeirConnection, with references
  gboolean runs;
} telling = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
tell_closed (WeirConnection *self)
{
  const gchar *known;
  gchar *reason;

  pthread_mutex_lock (&self->lock);
  known = get_reason (self);
  reason = g_strdup (known ? known : g_strerror (weir_conn_error (self->link->conn)));
  pthread_mutex_unlock (&self->lock);
  g_signal_emit (self, signals[SIGNAL_CLOSED], 0, reason);
  g_free (reason);
}

static void *
tell_all (void *unused)
{
  WeirConnection *self;

  for (;;) {
    pthread_mutex_lock (&telling.lock);
    self = g_queue_pop_head (&telling.closed);
    telling.runs = self != NULL;
    pthread_mutex_unlock (&telling.lock);
    if (!self)
      return NULL;
    tell_closed (self);
    g_object_unref (self);
  }
}

// Emits `closed` from the other thread. Takes ownership of a reference to `self`.
static void
tell_soon (WeirConnection *self)
{
  pthread_t thread;

  pthread_mutex_lock (&telling.lock);
  g_queue_push_tail (&telling.closed, self);
  // If no thread can be created, the next call tries again.
  if (!telling.runs && pthread_create (&thread, NULL, tell_all, NULL) == 0) {
    telling.runs = TRUE;
    pthread_setname_np (thread, "weir-closed");
    pthread_detach (thread);
  }
  pthread_mutex_unlock (&telling.lock);
}

// Called when the connection has broken, and also when the socket has room, which is ignored. All
// connections share this thread, so no code of the program may run in it: the other thread releases
// the last reference to the object.
static void
on_writable (void *data)
{
  Link *link = data;
  WeirConnection *self;

  if (!weir_conn_error (link->conn)
      || atomic_flag_test_and_set_explicit (&link->told, memory_order_relaxed))
    return;
  self = g_weak_ref_get (&link->object);
  if (!self)
    return;
  table_remove (self->token);
  tell_soon (self);
}

static void
weir_connection_close_action (WeirConnection *self, const gchar *reason)
{
  close_for (self, reason);
}

// Call with `lock` held.
static gboolean
read_line (WeirConnection *self, WeirEstimateView *view, gint64 now)
{
  WeirTcpSample sample;

  if (!self->line)
    self->line = weir_tcp_line_new ();
  if (!self->line)
    return FALSE;
  if (weir_tcp_line_is_due (self->line, now)) {
    if (weir_conn_error (self->link->conn) || !weir_conn_sample (self->link->conn, &sample))
      return FALSE;
    weir_tcp_line_take (self->line, &sample, now);
  }
  *view = weir_tcp_line_view (self->line, now);
  return TRUE;
}

static gboolean
weir_connection_read_estimate_action (WeirConnection *self, gpointer view, guint64 now)
{
  gboolean known;

  if (!self->link)
    return FALSE;
  pthread_mutex_lock (&self->lock);
  known = read_line (self, view, (gint64) now);
  pthread_mutex_unlock (&self->lock);
  return known;
}

static gboolean
weir_connection_send_action (WeirConnection *self, GBytes *bytes)
{
  gsize len;
  gconstpointer data;
  int r;

  if (!self->link || !bytes)
    return FALSE;
  data = g_bytes_get_data (bytes, &len);
  r = weir_conn_send_control (self->link->conn, data, len);
  if (r == -ENOBUFS)
    close_for (self, "the client does not read its responses");
  return r == 0;
}

// ---- class ----

static gchar *
name_peer (GSocket *socket)
{
  GSocketAddress *address = g_socket_get_remote_address (socket, NULL);
  gchar *name = G_IS_INET_SOCKET_ADDRESS (address)
                    ? g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address))
                    : g_strdup ("on a Unix socket");

  g_clear_object (&address);
  return name;
}

static void
weir_connection_constructed (GObject *object)
{
  WeirConnection *self = WEIR_CONNECTION (object);
  WeirConn *conn = self->socket ? weir_conn_new (g_socket_get_fd (self->socket), NULL) : NULL;
  Link *link;

  G_OBJECT_CLASS (weir_connection_parent_class)->constructed (object);
  self->token = weir_connection_make_token ();
  if (!conn)
    return;
  link = g_new0 (Link, 1);
  link->conn = conn;
  link->inode = get_inode (self->socket);
  link->peer = name_peer (self->socket);
  atomic_flag_clear (&link->told);
  if (!table_add (self->token, link)) {
    weir_conn_unref (conn);
    g_free (link->peer);
    g_free (link);
    return;
  }
  self->link = link;
  g_weak_ref_init (&link->object, self);
  if (!weir_conn_watch (conn, on_writable, link))
    weir_conn_break (conn, ENOMEM);
}

static void
weir_connection_finalize (GObject *object)
{
  WeirConnection *self = WEIR_CONNECTION (object);

  if (self->link) {
    table_remove (self->token);
    weir_conn_unwatch (self->link->conn, on_writable, self->link);
    weir_conn_break (self->link->conn, ECANCELED);
    weir_conn_unref (self->link->conn);
    g_weak_ref_clear (&self->link->object);
    g_free (self->link->peer);
    g_free (self->link);
  }
  g_clear_object (&self->socket);
  weir_tcp_line_free (self->line);
  g_free (self->reason);
  g_free (self->token);
  pthread_mutex_destroy (&self->lock);
  G_OBJECT_CLASS (weir_connection_parent_class)->finalize (object);
}

static void
weir_connection_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  if (id == PROP_SOCKET)
    WEIR_CONNECTION (object)->socket = g_value_dup_object (value);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static guint64
n_waiting (WeirConnection *self)
{
  WeirConnCounters counters = { 0 };

  if (self->link)
    weir_conn_counters (self->link->conn, &counters);
  return counters.waiting;
}

static void
weir_connection_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirConnection *self = WEIR_CONNECTION (object);

  switch (id) {
    case PROP_TOKEN:
      g_value_set_string (value, self->token);
      break;
    case PROP_CLOSE_REASON:
      pthread_mutex_lock (&self->lock);
      g_value_set_string (value, get_reason (self));
      pthread_mutex_unlock (&self->lock);
      break;
    case PROP_WAITING:
      g_value_set_uint64 (value, n_waiting (WEIR_CONNECTION (object)));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
weir_connection_init (WeirConnection *self)
{
  pthread_mutex_init (&self->lock, NULL);
}

static void
weir_connection_class_init (WeirConnectionClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GType type = G_TYPE_FROM_CLASS (klass);
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  object_class->constructed = weir_connection_constructed;
  object_class->finalize = weir_connection_finalize;
  object_class->set_property = weir_connection_set_property;
  object_class->get_property = weir_connection_get_property;

  props[PROP_SOCKET] = g_param_spec_object ("socket", "Socket",
      "Connected stream socket. The program may read from it, but not write to it", G_TYPE_SOCKET,
      G_PARAM_WRITABLE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  props[PROP_TOKEN] = g_param_spec_string ("token", "Token",
      "Names this connection to fanoutsink elements, in place of a host", NULL,
      G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  props[PROP_CLOSE_REASON] = g_param_spec_string ("close-reason", "Close reason",
      "Reason given by the sink or program that closed it; NULL while it is open, or if the peer "
      "closed it",
      NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  props[PROP_WAITING] = g_param_spec_uint64 ("waiting", "Waiting",
      "Bytes of `send`, and of a packet, that the peer's slowness keeps from being written", 0,
      G_MAXUINT64, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);

  /**
   * WeirConnection::send:
   * @bytes: data to write, between two packets of sinks
   *
   * Returns: %FALSE if the connection is closed, or if this call closes it because the peer does
   * not read.
   */
  signals[SIGNAL_SEND] = g_signal_new_class_handler ("send", type, action,
      G_CALLBACK (weir_connection_send_action), NULL, NULL, NULL, G_TYPE_BOOLEAN, 1, G_TYPE_BYTES);
  // The header describes it.
  g_signal_new_class_handler ("read-estimate", type, action,
      G_CALLBACK (weir_connection_read_estimate_action), NULL, NULL, NULL, G_TYPE_BOOLEAN, 2,
      G_TYPE_POINTER, G_TYPE_UINT64);
  /**
   * WeirConnection::close:
   * @reason: the text that `close-reason` and `closed` report
   */
  signals[SIGNAL_CLOSE] = g_signal_new_class_handler ("close", type, action,
      G_CALLBACK (weir_connection_close_action), NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  /**
   * WeirConnection::closed:
   * @reason: why the connection closed
   *
   * The connection has closed. Comes once, from a thread of the plugin.
   */
  signals[SIGNAL_CLOSED] = g_signal_new (
      "closed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
}
