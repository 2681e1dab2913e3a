// SPDX-License-Identifier: LGPL-2.1-or-later
// The readers of a fanoutsink by their names: those who come, go, and are asked about.
#include "fanoutsink_private.h"

#include "enumtype.h"
#include "gioaddress.h"
#include <string.h>

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

enum {
  SIGNAL_ADD,
  SIGNAL_REMOVE,
  SIGNAL_CLEAR,
  SIGNAL_GET_STATS,
  SIGNAL_PLAN,
  SIGNAL_SET_PRIORITY,
  SIGNAL_SET_LAYERS,
  SIGNAL_SET_DELAY,
  SIGNAL_PAUSE,
  SIGNAL_RESUME,
  SIGNAL_ADD_SOCKET,
  SIGNAL_CLIENT_ADDED,
  SIGNAL_CLIENT_REMOVED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

#define COMING_MAX 4096

// What was asked for a reader that is about to be added, and what it was told.
typedef struct {
  gint64 asked_ns;
  gboolean planned;
  WeirPlan plan;
  WeirLayerSet layers;
  gint64 delay_ns; // -1: none was asked for
  // It was there, and paused: what it was to get next.
  gboolean kept;
  WeirPlan next;
} Coming;

/* Names */

static void
name_free (Name *name)
{
  if (!name)
    return;
  if (name->connection)
    g_signal_emit_by_name (name->connection, "close", "removed from the sink");
  g_clear_object (&name->connection);
  g_clear_object (&name->inet);
  g_clear_pointer (&name->reader, weir_reader_unref);
  g_free (name->key);
  g_free (name->host);
  g_free (name);
}

// An IPv6 address may stand in brackets.
static gchar *
strip_brackets (const gchar *host)
{
  gsize len = strlen (host);

  return len > 2 && host[0] == '[' && host[len - 1] == ']' ? g_strndup (host + 1, len - 2)
                                                           : g_strdup (host);
}

static gchar *
make_key (const gchar *host, gint port)
{
  gchar *plain = strip_brackets (host);
  gchar *key = g_strdup_printf ("%s %d", plain, port);

  g_free (plain);
  return key;
}

// "host:port", "[2001:db8::1]:port". FALSE: it is neither.
static gboolean
parse_client (const gchar *text, gchar **host, gint *port)
{
  const gchar *colon = strrchr (text, ':');
  gboolean in_brackets = colon && text[0] == '[' && colon[-1] == ']';
  guint64 number;

  if (!colon || colon == text || (!in_brackets && strchr (text, ':') != colon)
      || !g_ascii_string_to_unsigned (colon + 1, 10, 1, 65535, &number, NULL))
    return FALSE;
  *host = g_strndup (text, (gsize) (colon - text));
  *port = (gint) number;
  return TRUE;
}

static Name *
name_alloc (const gchar *host, gint port)
{
  Name *name = g_new0 (Name, 1);

  name->key = make_key (host, port);
  name->host = strip_brackets (host);
  name->port = port;
  name->link.data = name;
  return name;
}

static Name *
name_new_conn (const gchar *token, gint channel, WeirFraming framing, GError **error)
{
  WeirConn *conn = weir_connection_lookup (token);
  Name *name;

  if (!conn || channel < 0 || channel > 255) {
    g_set_error_literal (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        conn ? "there is no such channel" : "the connection is not there");
    g_clear_pointer (&conn, weir_conn_unref);
    return NULL;
  }
  name = name_alloc (token, channel);
  name->reader = weir_reader_new_conn (conn, framing, (guint8) channel);
  weir_conn_unref (conn);
  return name;
}

// Resolves a name. Takes no lock, and may take its time.
static Name *
name_new (const gchar *host, gint port, GCancellable *cancellable, GError **error)
{
  Name *name = NULL;
  GSocketAddress *address;
  GInetAddress *inet;

  if (weir_connection_is_token (host))
    return name_new_conn (host, port, WEIR_FRAMING_INTERLEAVED, error);
  if (port < 1 || port > 65535) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "there is no such port");
    return NULL;
  }
  name = name_alloc (host, port);
  // This one takes an IPv6 scope too.
  address = g_inet_socket_address_new_from_string (name->host, (guint) port);
  if (!address && (inet = weir_udp_resolve (name->host, cancellable, error))) {
    address = g_inet_socket_address_new (inet, (guint16) port);
    g_object_unref (inet);
  }
  if (!address) {
    name_free (name);
    return NULL;
  }
  name->reader = weir_reader_new_udp ();
  name->inet = g_object_ref (g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)));
  if (!weir_address_from_gio (address, &name->address)) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "this is no socket address");
    g_clear_pointer (&name, name_free);
  }
  g_object_unref (address);
  return name;
}

/* Coming. With `control` held. */

// The socket that reaches a reader, and its address in that socket's family.
static void
set_route (WeirFanoutSink *self, Name *name)
{
  WeirAddress address = name->address;
  gboolean v4 = address.any.sa_family == AF_INET;
  GSocket *socket;

  if (!name->inet)
    return;
  socket = weir_udp_sockets_pick (&self->sockets, v4 ? G_SOCKET_FAMILY_IPV4 : G_SOCKET_FAMILY_IPV6);
  if (socket && v4 && socket == self->sockets.v6)
    weir_address_map_to_v6 (&address);
  weir_reader_set_route (name->reader, socket ? g_socket_get_fd (socket) : -1, &address);
}

gboolean
fanout_readers_start (WeirFanoutSink *self, const WeirUdpConfig *config, GError **error)
{
  for (GList *l = self->names.head; l; l = l->next) {
    Name *name = l->data;

    set_route (self, name);
    if (name->inet && !weir_udp_sockets_enter (&self->sockets, config, name->inet, error))
      return FALSE;
  }
  if (self->max_pacing_rate)
    weir_udp_sockets_set_max_pacing_rate (&self->sockets, self->max_pacing_rate);
  return TRUE;
}

// Whoever else sends on its connection is paced with it.
static void
pace (const Name *name, guint64 bits_per_s)
{
  WeirConn *conn = name->inet ? NULL : weir_connection_lookup (name->host);

  if (!conn)
    return;
  weir_conn_set_max_pacing_rate (conn, bits_per_s);
  weir_conn_unref (conn);
}

static gboolean
enter (WeirFanoutSink *self, Name *name, GError **error)
{
  WeirUdpConfig config;
  gboolean ok;

  if (!self->started || !name->inet)
    return TRUE;
  config = fanout_properties_get_udp (self);
  ok = weir_udp_sockets_enter (&self->sockets, &config, name->inet, error);
  fanout_properties_clear_udp (&config);
  return ok;
}

// Leaves a group when the last name in it goes, and a connection as it was found.
static void
leave (WeirFanoutSink *self, Name *name)
{
  WeirUdpConfig config;

  if (self->max_pacing_rate)
    pace (name, 0);
  if (!self->started || !name->inet || !g_inet_address_get_is_multicast (name->inet))
    return;
  for (GList *l = self->names.head; l; l = l->next) {
    const Name *other = l->data;

    if (other->inet && g_inet_address_equal (other->inet, name->inet))
      return;
  }
  config = fanout_properties_get_udp (self);
  weir_udp_sockets_leave (&self->sockets, &config, name->inet);
  fanout_properties_clear_udp (&config);
}

static gboolean
is_old (gpointer key, gpointer coming, gpointer now_ns)
{
  return *(gint64 *) now_ns - ((Coming *) coming)->asked_ns > (gint64) GST_SECOND;
}

// What is known of a reader that may come; NULL if too many may. With `lock` held.
static Coming *
get_coming (WeirFanoutSink *self, const gchar *host, gint port, gint64 now_ns)
{
  gchar *key = make_key (host, port);
  Coming *coming = g_hash_table_lookup (self->coming, key);

  if (!coming && g_hash_table_size (self->coming) >= COMING_MAX)
    g_hash_table_foreach_remove (self->coming, is_old, &now_ns);
  if (!coming && g_hash_table_size (self->coming) < COMING_MAX) {
    coming = g_new0 (Coming, 1);
    coming->layers = WEIR_LAYER_SET_ALL;
    coming->delay_ns = -1;
    g_hash_table_insert (self->coming, g_strdup (key), coming);
  }
  if (coming)
    coming->asked_ns = now_ns;
  g_free (key);
  return coming;
}

static gboolean
has_own_delay (const Coming *coming)
{
  return coming && coming->delay_ns >= 0;
}

static gint64
delay_of (WeirFanoutSink *self, const Coming *coming)
{
  return has_own_delay (coming) ? coming->delay_ns : self->delay_ns;
}

// What a reader that is about to be added will begin with. With `lock` held.
static gboolean
make_plan (WeirFanoutSink *self, Coming *coming, gint64 now_ns, WeirPlan *plan)
{
  gboolean known =
      coming && coming->kept
          ? weir_fanout_plan_again (self->fanout, &coming->next, coming->delay_ns, now_ns, plan)
          : weir_fanout_plan (self->fanout, delay_of (self, coming), now_ns, plan);

  if (coming)
    coming->planned = known;
  if (coming && known)
    coming->plan = *plan;
  return known;
}

// What it was told, if anything, if that is not too long ago. With `lock` held.
static const WeirPlan *
get_plan (WeirFanoutSink *self, Coming *coming, gint64 now_ns)
{
  WeirPlan plan;

  if (coming && coming->kept
      && (!coming->planned || now_ns - coming->plan.made_ns > (gint64) GST_SECOND))
    make_plan (self, coming, now_ns, &plan);
  return coming && coming->planned ? &coming->plan : NULL;
}

// Takes the name. FALSE if it can't be served.
static gboolean
add_fresh (WeirFanoutSink *self, Name *name, GError **error)
{
  gint64 now_ns = weir_now_ns ();
  Coming *coming;
  gint64 delay_ns;
  int r;

  if (!enter (self, name, error)) {
    name_free (name);
    return FALSE;
  }
  set_route (self, name);
  name->count = 1;
  name->connect_ns = g_get_real_time () * 1000;
  if (self->max_pacing_rate)
    pace (name, self->max_pacing_rate);

  g_mutex_lock (&self->lock);
  coming = g_hash_table_lookup (self->coming, name->key);
  if (coming)
    weir_reader_set_layers (name->reader, coming->layers);
  weir_reader_set_delay (name->reader, delay_of (self, coming));
  name->own_delay = has_own_delay (coming) || (coming && coming->kept);
  r = weir_fanout_add (
      self->fanout, name->reader, self->priority, get_plan (self, coming, now_ns), now_ns);
  g_hash_table_remove (self->coming, name->key);
  delay_ns = self->delay_ns;
  if (r == 0) {
    g_hash_table_insert (self->by_key, name->key, name);
    g_queue_push_tail_link (&self->names, &name->link);
  }
  g_mutex_unlock (&self->lock);

  if (r == 0 && !name->own_delay)
    weir_fanout_await (self->fanout, name->reader, delay_ns, now_ns);
  if (r < 0) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT, g_strerror (-r));
    leave (self, name);
    name_free (name);
  }
  return r == 0;
}

// Takes `fresh`, which may be NULL if there is such a reader already.
static gboolean
add_name (WeirFanoutSink *self, const gchar *key, Name *fresh, GError **error)
{
  Name *name = g_hash_table_lookup (self->by_key, key);

  if (!name)
    return fresh && add_fresh (self, fresh, error);
  name_free (fresh);
  g_mutex_lock (&self->lock);
  name->count++;
  weir_reader_set_times (name->reader, name->count);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static gboolean
add_reader (WeirFanoutSink *self, const gchar *host, gint port, GError **error)
{
  gchar *key = make_key (host, port);
  Name *fresh = NULL;
  GCancellable *cancellable;
  gboolean known, added;

  g_mutex_lock (&self->lock);
  known = g_hash_table_contains (self->by_key, key);
  cancellable = g_object_ref (self->cancellable);
  g_mutex_unlock (&self->lock);
  if (!known)
    fresh = name_new (host, port, cancellable, error);

  g_mutex_lock (&self->control);
  // It may have been removed since it was looked up.
  if (known && !g_hash_table_contains (self->by_key, key)) {
    g_mutex_unlock (&self->control);
    fresh = name_new (host, port, cancellable, error);
    g_mutex_lock (&self->control);
  }
  added = add_name (self, key, fresh, error);
  g_mutex_unlock (&self->control);

  g_object_unref (cancellable);
  g_free (key);
  if (added) {
    gchar *plain = strip_brackets (host);

    g_signal_emit (self, signals[SIGNAL_CLIENT_ADDED], 0, plain, port);
    g_free (plain);
  }
  return added;
}

static void
add (WeirFanoutSink *self, const gchar *host, gint port)
{
  GError *err = NULL;

  if (!host)
    GST_WARNING_OBJECT (self, "refusing a reader without a host");
  else if (*host && !add_reader (self, host, port, &err))
    GST_WARNING_OBJECT (self, "refusing %s port %d: %s", host, port, err->message);
  g_clear_error (&err);
}

/* Going */

// Who is paused when it goes has its place when it comes again. With `control` held.
static void
keep_place (WeirFanoutSink *self, Name *name)
{
  gint64 now_ns = weir_now_ns ();
  WeirPlan next;
  Coming *coming;

  weir_fanout_next (self->fanout, name->reader, now_ns, &next);
  if (!next.paused_ns || !next.known)
    return;
  g_mutex_lock (&self->lock);
  coming = get_coming (self, name->host, name->port, now_ns);
  if (coming) {
    coming->kept = TRUE;
    coming->next = next;
    coming->layers = weir_reader_get_layers (name->reader);
  }
  g_mutex_unlock (&self->lock);
}

// Emits client-removed, from within which the reader's statistics can be asked, and frees it.
static void
say_goodbye (WeirFanoutSink *self, Name *name)
{
  name->disconnect_ns = g_get_real_time () * 1000;
  g_mutex_lock (&self->lock);
  self->leaving = name;
  g_mutex_unlock (&self->lock);
  g_signal_emit (self, signals[SIGNAL_CLIENT_REMOVED], 0, name->host, name->port);
  g_mutex_lock (&self->lock);
  if (self->leaving == name)
    self->leaving = NULL;
  g_mutex_unlock (&self->lock);
  name_free (name);
}

// FALSE if there is no such reader.
static gboolean
remove_name (WeirFanoutSink *self, const gchar *host, gint port)
{
  gchar *key = make_key (host, port);
  Name *name;
  gboolean gone = FALSE;

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name) {
    gone = --name->count == 0;
    if (!gone) {
      weir_reader_set_times (name->reader, name->count);
    } else {
      g_hash_table_remove (self->by_key, key);
      g_queue_unlink (&self->names, &name->link);
    }
  }
  g_mutex_unlock (&self->lock);
  if (gone) {
    keep_place (self, name);
    weir_fanout_remove (self->fanout, name->reader);
    leave (self, name);
  }
  g_mutex_unlock (&self->control);

  g_free (key);
  if (gone)
    say_goodbye (self, name);
  return name != NULL;
}

static void
remove (WeirFanoutSink *self, const gchar *host, gint port)
{
  if (host && *host && !remove_name (self, host, port) && !weir_connection_is_token (host))
    GST_WARNING_OBJECT (self, "there is no reader %s port %d to remove", host, port);
}

void
fanout_readers_clear (WeirFanoutSink *self)
{
  GQueue gone = G_QUEUE_INIT;
  GList *l;

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  g_hash_table_remove_all (self->by_key);
  gone = self->names;
  g_queue_init (&self->names);
  g_mutex_unlock (&self->lock);

  for (l = gone.head; l; l = l->next) {
    weir_fanout_remove (self->fanout, ((Name *) l->data)->reader);
    leave (self, l->data);
  }
  g_mutex_unlock (&self->control);
  while ((l = g_queue_pop_head_link (&gone)))
    name_free (l->data);
}

void
fanout_readers_set_max_pacing_rate (WeirFanoutSink *self, guint64 bits_per_s)
{
  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  self->max_pacing_rate = bits_per_s;
  g_mutex_unlock (&self->lock);
  weir_udp_sockets_set_max_pacing_rate (&self->sockets, bits_per_s);
  for (GList *l = self->names.head; l; l = l->next)
    pace (l->data, bits_per_s);
  g_mutex_unlock (&self->control);
}

void
fanout_readers_set_delay (WeirFanoutSink *self, gint64 delay_ns)
{
  gint64 now_ns = weir_now_ns ();

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  self->delay_ns = delay_ns;
  g_mutex_unlock (&self->lock);
  for (GList *l = self->names.head; l; l = l->next) {
    const Name *name = l->data;

    if (!name->own_delay)
      weir_fanout_await (self->fanout, name->reader, delay_ns, now_ns);
  }
  g_mutex_unlock (&self->control);
}

/* Sockets */

// Its connection broke, or its reader took nothing for too long.
typedef struct {
  GWeakRef sink;
  gchar *token;
  gint channel;
} Closed;

static void
closed_free (gpointer data, GClosure *unused)
{
  Closed *closed = data;

  g_weak_ref_clear (&closed->sink);
  g_free (closed->token);
  g_free (closed);
}

static void
on_closed (WeirConnection *connection, const gchar *reason, Closed *closed)
{
  WeirFanoutSink *self = g_weak_ref_get (&closed->sink);

  if (!self)
    return;
  GST_INFO_OBJECT (self, "reader %s has closed: %s", closed->token, reason);
  remove_name (self, closed->token, closed->channel);
  g_object_unref (self);
}

static gchar *
add_socket (WeirFanoutSink *self, GSocket *socket, WeirFraming framing, guint channel)
{
  WeirConnection *connection;
  GError *err = NULL;
  gchar *token = NULL;
  Name *name;
  Closed *closed;
  gboolean added = FALSE;

  if (!socket) {
    GST_WARNING_OBJECT (self, "refusing a reader without a socket");
    return NULL;
  }
  if ((guint) framing > WEIR_FRAMING_INTERLEAVED) {
    GST_WARNING_OBJECT (self, "refusing a socket: there is no framing %d", (gint) framing);
    return NULL;
  }
  if (weir_connection_is_on (socket)) {
    GST_WARNING_OBJECT (self, "refusing a socket that is written to already");
    return NULL;
  }
  connection = g_object_new (WEIR_TYPE_CONNECTION, "socket", socket, NULL);
  g_object_get (connection, "token", &token, NULL);
  name = name_new_conn (token, (gint) channel, framing, &err);
  if (name) {
    name->connection = g_object_ref (connection);
    g_mutex_lock (&self->control);
    added = add_fresh (self, name, &err);
    g_mutex_unlock (&self->control);
  }
  if (!added)
    GST_WARNING_OBJECT (self, "refusing a socket: %s", err->message);
  g_clear_error (&err);
  if (added) {
    closed = g_new0 (Closed, 1);
    g_weak_ref_init (&closed->sink, self);
    closed->token = g_strdup (token);
    closed->channel = (gint) channel;
    g_signal_connect_data (connection, "closed", G_CALLBACK (on_closed), closed, closed_free, 0);
    g_signal_emit (self, signals[SIGNAL_CLIENT_ADDED], 0, token, (gint) channel);
    // Of an end before the signal was connected, it does not tell.
    added = weir_connection_is_open (token);
    if (!added)
      remove_name (self, token, (gint) channel);
  }
  if (!added)
    g_clear_pointer (&token, g_free);
  g_object_unref (connection);
  return token;
}

/* What is asked about them */

// A reader that is there: to be asked under `control`, as it may be just served.
static Name *
find_name (WeirFanoutSink *self, const gchar *host, gint port)
{
  gchar *key = make_key (host ? host : "", port);
  Name *name = g_hash_table_lookup (self->by_key, key);

  g_free (key);
  return name;
}

static GstStructure *
plan (WeirFanoutSink *self, const gchar *host, gint port)
{
  gint64 now_ns = weir_now_ns ();
  WeirPlan plan = { 0 };
  GstStructure *s = NULL;
  Name *name;

  g_mutex_lock (&self->control);
  name = find_name (self, host, port);
  if (name)
    weir_fanout_next (self->fanout, name->reader, now_ns, &plan);
  g_mutex_unlock (&self->control);
  if (!name && host) {
    g_mutex_lock (&self->lock);
    make_plan (self, get_coming (self, host, port, now_ns), now_ns, &plan);
    g_mutex_unlock (&self->lock);
  }

  if (plan.known)
    s = gst_structure_new ("fanoutsink-plan", "seq", G_TYPE_UINT, (guint) plan.seq, "delay",
        G_TYPE_UINT64, (guint64) MAX (plan.delay_ns, 0), "moved", G_TYPE_BOOLEAN, plan.moved, NULL);
  if (plan.rtp_time_known)
    gst_structure_set (s, "rtptime", G_TYPE_UINT, plan.rtp_time, NULL);
  return s;
}

static gboolean
set_priority (WeirFanoutSink *self, const gchar *host, gint port, guint priority)
{
  Name *name;
  int r = -ENOENT;

  g_mutex_lock (&self->control);
  name = find_name (self, host, port);
  if (name && priority < WEIR_CLASSES)
    r = weir_fanout_set_class (self->fanout, name->reader, priority);
  g_mutex_unlock (&self->control);
  if (r < 0)
    GST_WARNING_OBJECT (self, "can't give %s port %d priority %u", host, port, priority);
  return r == 0;
}

static gboolean
set_layers (
    WeirFanoutSink *self, const gchar *host, gint port, gint spatial, gint quality, gint temporal)
{
  gboolean valid = host && spatial >= -1 && spatial < WEIR_SPATIAL_LAYERS && quality >= -1
                   && quality < 16 && temporal >= -1 && temporal < 8;
  WeirLayerSet layers = { (gint8) spatial, (gint8) temporal, (gint8) quality };
  Coming *coming;
  gchar *key;
  Name *name;

  if (!valid) {
    GST_WARNING_OBJECT (self, "there are no layers %d.%d.%d", spatial, quality, temporal);
    return FALSE;
  }
  key = make_key (host, port);
  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name)
    weir_reader_set_layers (name->reader, layers);
  else if ((coming = get_coming (self, host, port, weir_now_ns ())))
    coming->layers = layers;
  g_mutex_unlock (&self->lock);
  g_free (key);
  return name != NULL;
}

static gboolean
set_delay (WeirFanoutSink *self, const gchar *host, gint port, guint64 delay)
{
  gint64 delay_ns = delay < WEIR_DELAY_OLDEST ? (gint64) delay : WEIR_DELAY_OLDEST;
  int r = -ENOENT;
  Coming *coming;
  Name *name;

  g_mutex_lock (&self->control);
  name = find_name (self, host, port);
  if (name)
    name->own_delay = TRUE;
  if (name)
    r = weir_fanout_set_delay (self->fanout, name->reader, delay_ns, weir_now_ns (), NULL);
  g_mutex_unlock (&self->control);
  if (!name && host) {
    g_mutex_lock (&self->lock);
    coming = get_coming (self, host, port, weir_now_ns ());
    if (coming) {
      coming->delay_ns = delay_ns;
      coming->planned = FALSE;
    }
    g_mutex_unlock (&self->lock);
  }
  return r == 0;
}

// FALSE if there is no such reader, or it is a group.
static gboolean
set_paused (WeirFanoutSink *self, const gchar *host, gint port, gboolean paused)
{
  int r = -ENOENT;
  Name *name;

  g_mutex_lock (&self->control);
  name = find_name (self, host, port);
  if (name && paused)
    r = weir_fanout_pause (self->fanout, name->reader, weir_now_ns ());
  else if (name)
    r = weir_fanout_resume (self->fanout, name->reader, weir_now_ns (), NULL);
  g_mutex_unlock (&self->control);
  return r == 0;
}

static gboolean
pause_reader (WeirFanoutSink *self, const gchar *host, gint port)
{
  return set_paused (self, host, port, TRUE);
}

static gboolean
resume_reader (WeirFanoutSink *self, const gchar *host, gint port)
{
  return set_paused (self, host, port, FALSE);
}

static void
set_drops (GstStructure *s, const uint64_t *dropped)
{
  guint64 left_out =
      dropped[WEIR_DROP_LAYERS] + dropped[WEIR_DROP_THINNED] + dropped[WEIR_DROP_CATCH_UP];
  guint64 sum = 0;

  for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
    gchar *field = g_strconcat ("dropped-", weir_drop_name (reason), NULL);

    gst_structure_set (s, field, G_TYPE_UINT64, (guint64) dropped[reason], NULL);
    g_free (field);
    sum += dropped[reason];
  }
  gst_structure_set (s, "dropped", G_TYPE_UINT64, sum, "left-out", G_TYPE_UINT64, left_out, NULL);
}

static void
set_reader_layers (GstStructure *s, WeirLayerSet wanted, WeirLayerSet now)
{
  gst_structure_set (s, "wanted-spatial", G_TYPE_INT, wanted.spatial, "wanted-quality", G_TYPE_INT,
      wanted.quality, "wanted-temporal", G_TYPE_INT, wanted.temporal, "spatial", G_TYPE_INT,
      now.spatial, "quality", G_TYPE_INT, now.quality, "temporal", G_TYPE_INT, now.temporal, NULL);
}

static void
set_rates (WeirFanoutSink *self, GstStructure *s)
{
  GValue array = G_VALUE_INIT, value = G_VALUE_INIT;
  WeirRates rates;

  weir_fanout_rates (self->fanout, &rates);
  g_value_init (&array, GST_TYPE_ARRAY);
  for (gsize i = 0; i < rates.n; i++) {
    const WeirLayerRate *layer = &rates.layers[i];

    g_value_init (&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed (
        &value, gst_structure_new ("layer", "spatial", G_TYPE_INT, layer->spatial, "quality",
                    G_TYPE_INT, layer->quality, "temporal", G_TYPE_INT, layer->temporal, "bitrate",
                    G_TYPE_UINT64, (guint64) layer->bitrate, "frame-rate", G_TYPE_DOUBLE,
                    layer->frame_rate, "bytes", G_TYPE_UINT64, (guint64) layer->total_bytes, NULL));
    gst_value_array_append_and_take_value (&array, &value);
  }
  gst_structure_take_value (s, "layers", &array);
}

static GstStructure *
get_stats (WeirFanoutSink *self, const gchar *host, gint port)
{
  GstStructure *s = gst_structure_new_empty ("multiudpsink-stats");
  gchar *key = make_key (host ? host : "", port);
  const Name *name;

  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (!name && self->leaving && g_str_equal (self->leaving->key, key))
    name = self->leaving;
  if (name) {
    WeirReaderCounters c;

    weir_reader_counters (self->fanout, name->reader, weir_now_ns (), &c);
    gst_structure_set (s, "bytes-sent", G_TYPE_UINT64, (guint64) c.bytes, "packets-sent",
        G_TYPE_UINT64, (guint64) c.packets, "connect-time", G_TYPE_UINT64,
        (guint64) name->connect_ns, "disconnect-time", G_TYPE_UINT64, (guint64) name->disconnect_ns,
        "packets-due", G_TYPE_UINT64, (guint64) c.due, "lag-packets", G_TYPE_UINT64,
        (guint64) c.lag_packets, "lag", G_TYPE_UINT64, (guint64) MAX (c.lag_ns, 0), "state",
        G_TYPE_STRING, weir_reader_state_name (c.state), "catching-up", G_TYPE_BOOLEAN,
        c.catching_up, "priority", G_TYPE_UINT, c.class, "delay", G_TYPE_UINT64,
        (guint64) MAX (c.delay_ns, 0), "paused", G_TYPE_BOOLEAN, c.paused, "moved", G_TYPE_UINT64,
        (guint64) c.moved, NULL);
    set_drops (s, c.dropped);
    set_reader_layers (s, c.wanted_layers, c.current_layers);
  }
  g_mutex_unlock (&self->lock);

  if (!name)
    GST_WARNING_OBJECT (self, "there is no reader %s port %d", host, port);
  g_free (key);
  return s;
}

gchar *
fanout_readers_take_failed (WeirFanoutSink *self, gint *error, guint *n_others)
{
  gchar *failed = NULL;

  *n_others = 0;
  g_mutex_lock (&self->lock);
  for (GList *l = self->names.head; l; l = l->next) {
    const Name *name = l->data;
    gint e = weir_reader_take_error (name->reader);

    if (e && failed)
      ++*n_others;
    if (!e || failed)
      continue;
    failed = g_strdup_printf ("%s port %d", name->host, name->port);
    *error = e;
  }
  g_mutex_unlock (&self->lock);
  return failed;
}

GstStructure *
fanout_readers_get_sums (WeirFanoutSink *self)
{
  WeirFanoutCounters c;
  GValue segments = G_VALUE_INIT, n = G_VALUE_INIT;
  GstStructure *s;

  weir_fanout_counters (self->fanout, &c);
  s = gst_structure_new ("application/x-weir-fanoutsink-stats", "readers", G_TYPE_UINT,
      (guint) weir_fanout_n_readers (self->fanout), "packets-in", G_TYPE_UINT64,
      (guint64) c.packets_in, "bytes-in", G_TYPE_UINT64, (guint64) c.bytes_in, "packets-refused",
      G_TYPE_UINT64, (guint64) c.packets_refused, "packets-opaque", G_TYPE_UINT64,
      (guint64) c.packets_opaque, "packets-due", G_TYPE_UINT64, (guint64) c.due, "packets-sent",
      G_TYPE_UINT64, (guint64) c.packets, "bytes-sent", G_TYPE_UINT64, (guint64) c.bytes, "bursts",
      G_TYPE_UINT64, (guint64) c.bursts, "sends", G_TYPE_UINT64, (guint64) c.sends.sends,
      "gso-sends", G_TYPE_UINT64, (guint64) c.sends.gso_sends, "gso-fallbacks", G_TYPE_UINT64,
      (guint64) c.sends.fallbacks, "blocked", G_TYPE_UINT64, (guint64) c.sends.blocked, NULL);
  set_drops (s, c.dropped);
  set_rates (self, s);

  g_value_init (&segments, GST_TYPE_ARRAY);
  g_value_init (&n, G_TYPE_UINT64);
  for (guint i = 0; i < WEIR_SEGMENT_CLASSES; i++) {
    g_value_set_uint64 (&n, c.sends.segments[i]);
    gst_value_array_append_value (&segments, &n);
  }
  gst_structure_take_value (s, "segments", &segments);
  return s;
}

gchar *
fanout_readers_get_clients (WeirFanoutSink *self)
{
  GString *out = g_string_new (NULL);

  g_mutex_lock (&self->lock);
  for (GList *l = self->names.head; l; l = l->next) {
    const Name *name = l->data;
    gboolean v6 = strchr (name->host, ':') != NULL;

    for (guint i = 0; i < name->count; i++)
      g_string_append_printf (out, "%s%s%s%s:%d", out->len ? "," : "", v6 ? "[" : "", name->host,
          v6 ? "]" : "", name->port);
  }
  g_mutex_unlock (&self->lock);
  return g_string_free (out, FALSE);
}

static void
add_client (WeirFanoutSink *self, const gchar *client)
{
  GError *err = NULL;
  gchar *host = NULL;
  gint port;

  if (!parse_client (client, &host, &port))
    g_warning ("%s: clients: '%s' is not host:port, as 127.0.0.1:5004 or [::1]:5004 is",
        GST_OBJECT_NAME (self), client);
  else if (!add_reader (self, host, port, &err))
    g_warning ("%s: clients: '%s' is refused: %s", GST_OBJECT_NAME (self), client, err->message);
  g_clear_error (&err);
  g_free (host);
}

// "host:port,[2001:db8::1]:port". What can't be read, or reached, is left out with a warning.
void
fanout_readers_set_clients (WeirFanoutSink *self, const gchar *clients)
{
  gchar **list = g_strsplit (clients ? clients : "", ",", 0);

  fanout_readers_clear (self);
  for (gchar **at = list; *at; at++) {
    if (*g_strstrip (*at))
      add_client (self, *at);
  }
  g_strfreev (list);
}

/* Class */

void
fanout_readers_init (WeirFanoutSink *self)
{
  g_queue_init (&self->names);
  self->by_key = g_hash_table_new (g_str_hash, g_str_equal);
  self->coming = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
}

void
fanout_readers_finalize (WeirFanoutSink *self)
{
  fanout_readers_clear (self);
  g_hash_table_unref (self->by_key);
  g_hash_table_unref (self->coming);
}

#define WEIR_TYPE_FANOUT_SINK_FRAMING (framing_get_type ())
static GType
framing_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { WEIR_FRAMING_NONE, "None", "none" },
    { WEIR_FRAMING_RFC4571, "A length of two bytes (RFC 4571)", "rfc4571" },
    { WEIR_FRAMING_INTERLEAVED, "As in RTSP (RFC 2326, 10.12)", "interleaved" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirFanoutSinkFraming", values);
}

static void
install_multiudpsink_signals (GType type)
{
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  /**
   * WeirFanoutSink::add:
   * @host: the reader's address or name, an IPv6 address with brackets or without, or the token of
   * a connection (see weir.h); empty: nobody
   * @port: its port, or the connection's channel for interleaved frames
   *
   * Adds a reader. One that was added several times has to be removed as many times.
   */
  signals[SIGNAL_ADD] = g_signal_new_class_handler ("add", type, action, G_CALLBACK (add), NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::remove:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   */
  signals[SIGNAL_REMOVE] = g_signal_new_class_handler ("remove", type, action, G_CALLBACK (remove),
      NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::clear:
   *
   * Removes all readers, without a signal for each.
   */
  signals[SIGNAL_CLEAR] = g_signal_new_class_handler (
      "clear", type, action, G_CALLBACK (fanout_readers_clear), NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * WeirFanoutSink::get-stats:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * Returns: #guint64 fields `bytes-sent`, `packets-sent`, `connect-time` and `disconnect-time` (ns
   * since the epoch), `packets-due`, `dropped`, `dropped-` with each reason, `lag-packets` and
   * `lag` (ns: how long the next packet has been due to it; 0 at its place); `delay`, a #guint64:
   * how far (ns) its place is behind the live edge; `paused`, a #gboolean; `moved`, a #guint64: how
   * often the window's edge moved it; `state`: `ok`, `no-upper-layers`, `references`, `keyframes`
   * or `closed`; `catching-up`, a boolean; `priority`, a #guint; `left-out`, a #guint64: of
   * `dropped`, what was left out on purpose and is missing in no sequence (`dropped-layers`,
   * `dropped-thinned` and `dropped-catch-up`); the layers that it is to get, `wanted-spatial`,
   * `wanted-quality` and `wanted-temporal`, and those that it gets now, `spatial`, `quality` and
   * `temporal`, #gint, -1 for all. Without fields if there is no such reader.
   */
  signals[SIGNAL_GET_STATS] = g_signal_new_class_handler ("get-stats", type, action,
      G_CALLBACK (get_stats), NULL, NULL, NULL, GST_TYPE_STRUCTURE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::client-added:
   * @host: the reader's address or name
   * @port: its port
   */
  signals[SIGNAL_CLIENT_ADDED] = g_signal_new ("client-added", type, G_SIGNAL_RUN_LAST, 0, NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::client-removed:
   * @host: the reader's address or name
   * @port: its port
   *
   * A reader was removed as often as it was added, or its socket closed. Its statistics can still
   * be asked. In the latter case it comes from a thread of the plugin's.
   */
  signals[SIGNAL_CLIENT_REMOVED] = g_signal_new ("client-removed", type, G_SIGNAL_RUN_LAST, 0, NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
}

void
fanout_readers_install_signals (GType type)
{
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  install_multiudpsink_signals (type);
  /**
   * WeirFanoutSink::plan:
   * @host: as it will be given to #WeirFanoutSink::add
   * @port: its port
   *
   * Says with which packet a reader will begin if it is added within 2 s, or has begun at its place
   * in the last 2 s, for RTP-Info (RFC 2326, 12.33); later, what comes next.
   *
   * Returns: (nullable): `seq`, a #guint; `delay`, a #guint64: the one that it gets (ns), which is
   * less than it was to have where the window is shorter; `moved`, a #gboolean: whether the
   * window's edge has come past its place; and, if it is known, `rtptime`, a #guint. %NULL if
   * nothing is known.
   */
  signals[SIGNAL_PLAN] = g_signal_new_class_handler ("plan", type, action, G_CALLBACK (plan), NULL,
      NULL, NULL, GST_TYPE_STRUCTURE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::set-priority:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   * @priority: 0 (first) to 7 (last)
   *
   * Returns: %FALSE if there is no such reader, or no such priority.
   */
  signals[SIGNAL_SET_PRIORITY] =
      g_signal_new_class_handler ("set-priority", type, action, G_CALLBACK (set_priority), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT);
  /**
   * WeirFanoutSink::set-layers:
   * @host: as given to #WeirFanoutSink::add, or as it will be
   * @port: its port
   * @spatial: the highest spatial layer that it gets, -1 = all
   * @quality: the highest quality layer of that, -1 = all
   * @temporal: the highest temporal layer, -1 = all
   *
   * Chooses a reader's layers. The change is made where a decoder survives it: down in temporal
   * layers at once, up at the next picture of the lowest, spatial layers at an IDR of the new one
   * (with VP9 and AV1, down at once); where a key picture would help, one is asked for upstream, at
   * most once a second. What is left out takes no sequence number. A reader that is not there yet
   * will begin with these layers.
   *
   * Returns: %FALSE if there are no such layers, or the reader is not there (yet).
   */
  signals[SIGNAL_SET_LAYERS] =
      g_signal_new_class_handler ("set-layers", type, action, G_CALLBACK (set_layers), NULL, NULL,
          NULL, G_TYPE_BOOLEAN, 5, G_TYPE_STRING, G_TYPE_INT, G_TYPE_INT, G_TYPE_INT, G_TYPE_INT);
  /**
   * WeirFanoutSink::set-delay:
   * @host: as given to #WeirFanoutSink::add, or as it will be
   * @port: its port
   * @delay: how far behind the live edge its place is to be, in ns; 0: at it; %G_MAXUINT64: at the
   * oldest join point
   *
   * Gives a reader a place of its own: it gets each packet so long after that came in. It begins at
   * the join point before its place, or at the oldest one, with less delay, if the window does not
   * go back so far; #WeirFanoutSink::plan tells. Sequence numbers go on, and so do timestamps: they
   * are ahead of the stream's by the delay, so sender reports hold for every reader if they are
   * sent without a delay. Tracks that belong together need the same delay.
   *
   * #WeirFanoutSink:window-time says how far back there is something. Set before the stream comes;
   * it should exceed the longest delay by 1 s and the distance of keyframes.
   *
   * Returns: %FALSE for a multicast group, or if the reader is not there (yet).
   */
  signals[SIGNAL_SET_DELAY] =
      g_signal_new_class_handler ("set-delay", type, action, G_CALLBACK (set_delay), NULL, NULL,
          NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT64);
  /**
   * WeirFanoutSink::pause:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * A reader gets nothing, and keeps its place. If the window's edge comes past it, it is moved to
   * the next join point, which `moved` of its statistics counts. One that is removed while it is
   * paused goes on there, with its numbers, if it is added again.
   *
   * Returns: %FALSE if there is no such reader, or it is a multicast group.
   */
  signals[SIGNAL_PAUSE] = g_signal_new_class_handler ("pause", type, action,
      G_CALLBACK (pause_reader), NULL, NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::resume:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * A reader that is paused goes on where it was, with more delay by the time that it was paused
   * for.
   *
   * Returns: %FALSE if there is no such reader, or it is a multicast group.
   */
  signals[SIGNAL_RESUME] = g_signal_new_class_handler ("resume", type, action,
      G_CALLBACK (resume_reader), NULL, NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::add-socket:
   * @socket: a connected stream socket; the sink writes to it, and nobody else should
   * @framing: `none`, `rfc4571` or `interleaved`
   * @channel: for `interleaved`: 0 to 255
   *
   * Adds a reader by its socket, to which nothing else writes. It is removed with
   * #WeirFanoutSink::remove, with the token as its host and the channel as its port, or when the
   * socket closes.
   *
   * Returns: (nullable): a token by which the reader is named from now on; %NULL if the socket is
   * not connected or no stream, is written to already or has just closed, and if there is no such
   * framing or channel.
   */
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_FRAMING, 0);
  signals[SIGNAL_ADD_SOCKET] =
      g_signal_new_class_handler ("add-socket", type, action, G_CALLBACK (add_socket), NULL, NULL,
          NULL, G_TYPE_STRING, 3, G_TYPE_SOCKET, WEIR_TYPE_FANOUT_SINK_FRAMING, G_TYPE_UINT);
}
