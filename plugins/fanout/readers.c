// SPDX-License-Identifier: LGPL-2.1-or-later
// Adds and removes the readers of a fanoutsink.
#include "fanoutsink_private.h"

#include "srtp.h"

#include <string.h>

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

#define COMING_MAX 4096 // readers with choices that are not added yet

// ---- adding. Call with `control` held ----

void
fanout_readers_set_route (WeirFanoutSink *self, Name *name)
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
  fanout_clones_set_route (self, name);
}

gboolean
fanout_readers_start (WeirFanoutSink *self, const WeirUdpConfig *config, GError **error)
{
  for (GList *l = self->names.head; l; l = l->next) {
    Name *name = l->data;

    fanout_readers_set_route (self, name);
    if (name->inet && !weir_udp_sockets_enter (&self->sockets, config, name->inet, error))
      return FALSE;
  }
  if (self->max_pacing_rate)
    weir_udp_sockets_set_max_pacing_rate (&self->sockets, self->max_pacing_rate);
  return TRUE;
}

// Sets the rate limit of a reader's connection, which other sinks may share.
static void
pace (const Name *name, guint64 bits_per_s)
{
  WeirConn *conn = name->inet ? NULL : weir_connection_lookup (name->destination);

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

// Removes the rate limit of a connection, and leaves a multicast group if no other reader is in it.
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

Coming *
fanout_readers_get_coming (WeirFanoutSink *self, const gchar *host, gint port, gint64 now_ns)
{
  gchar *key = fanout_name_make_key (host, port);
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

gboolean
fanout_readers_make_plan (WeirFanoutSink *self, Coming *coming, gint64 now_ns, WeirPlan *plan)
{
  gboolean known =
      coming && coming->kept
          ? weir_fanout_plan_again (self->fanout, &coming->next, coming->delay_ns, now_ns, plan)
          : weir_fanout_plan (self->fanout, coming ? coming->layers : WEIR_LAYER_SET_ALL,
                delay_of (self, coming), now_ns, plan);

  if (coming)
    coming->planned = known;
  if (coming && known)
    coming->plan = *plan;
  return known;
}

// Returns the plan for a reader that is being added, or NULL. Call with `lock` held.
static const WeirPlan *
get_plan (WeirFanoutSink *self, Coming *coming, gint64 now_ns)
{
  WeirPlan plan;

  if (coming && coming->kept
      && (!coming->planned || now_ns - coming->plan.made_ns > (gint64) GST_SECOND))
    fanout_readers_make_plan (self, coming, now_ns, &plan);
  return coming && coming->planned ? &coming->plan : NULL;
}

// Takes ownership of `name`. Returns FALSE and an error if the reader cannot be served.
static gboolean
add_fresh (WeirFanoutSink *self, Name *name, GError **error)
{
  gint64 now_ns = weir_now_ns ();
  Coming *coming;
  gint64 delay_ns;
  gboolean returns;
  int r;

  if (!enter (self, name, error)) {
    fanout_name_free (name);
    return FALSE;
  }
  fanout_readers_set_route (self, name);
  name->count = 1;
  name->connect_ns = g_get_real_time () * 1000;
  if (self->max_pacing_rate)
    pace (name, self->max_pacing_rate);

  g_mutex_lock (&self->lock);
  coming = g_hash_table_lookup (self->coming, name->key);
  if (coming)
    weir_reader_set_layers (name->reader, coming->layers);
  delay_ns = delay_of (self, coming);
  returns = coming && coming->kept;
  weir_reader_set_delay (name->reader, delay_ns);
  name->own_delay = has_own_delay (coming) || returns;
  r = weir_fanout_add (
      self->fanout, name->reader, self->priority, get_plan (self, coming, now_ns), now_ns);
  g_hash_table_remove (self->coming, name->key);
  if (r == 0) {
    g_hash_table_insert (self->by_key, name->key, name);
    g_queue_push_tail_link (&self->names, &name->link);
  }
  g_mutex_unlock (&self->lock);

  if (r == 0 && !returns)
    weir_fanout_await (self->fanout, name->reader, delay_ns, now_ns);
  if (r < 0) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT, g_strerror (-r));
    leave (self, name);
    fanout_name_free (name);
  }
  return r == 0;
}

// Takes ownership of `fresh`, which may be NULL if a reader with this key exists.
static gboolean
add_name (WeirFanoutSink *self, const gchar *key, Name *fresh, GError **error)
{
  Name *name = g_hash_table_lookup (self->by_key, key);

  if (!name)
    return fresh && add_fresh (self, fresh, error);
  fanout_name_free (fresh);
  g_mutex_lock (&self->lock);
  name->count++;
  weir_reader_set_times (name->reader, name->count);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static gboolean
add_reader (WeirFanoutSink *self, const gchar *host, gint port, GError **error)
{
  gchar *key = fanout_name_make_key (host, port);
  Name *fresh = NULL;
  GCancellable *cancellable;
  gboolean known, added;

  g_mutex_lock (&self->lock);
  known = g_hash_table_contains (self->by_key, key);
  cancellable = g_object_ref (self->cancellable);
  g_mutex_unlock (&self->lock);
  if (!known)
    fresh = fanout_name_new (host, port, cancellable, error);

  g_mutex_lock (&self->control);
  // Another thread may have removed the reader meanwhile.
  if (known && !g_hash_table_contains (self->by_key, key)) {
    g_mutex_unlock (&self->control);
    fresh = fanout_name_new (host, port, cancellable, error);
    g_mutex_lock (&self->control);
  }
  added = add_name (self, key, fresh, error);
  g_mutex_unlock (&self->control);

  g_object_unref (cancellable);
  g_free (key);
  if (added) {
    gchar *plain = fanout_name_strip_brackets (host);

    fanout_signals_client_added (self, plain, port);
    g_free (plain);
  }
  return added;
}

void
fanout_readers_add (WeirFanoutSink *self, const gchar *host, gint port)
{
  GError *err = NULL;

  if (!host)
    GST_WARNING_OBJECT (self, "add: host is missing");
  else if (*host && !add_reader (self, host, port, &err))
    GST_WARNING_OBJECT (self, "add: %s port %d: %s", host, port, err->message);
  g_clear_error (&err);
}

// ---- removing ----

// Keeps the position of a reader that is removed while it is paused: it continues there when it is
// added again. A guest has none in the sink's own window. Call with `control` held.
static void
keep_position (WeirFanoutSink *self, Name *name)
{
  gint64 now_ns = weir_now_ns ();
  WeirPlan next;
  Coming *coming;

  if (name->guest_of)
    return;
  weir_fanout_next (self->fanout, name->reader, now_ns, &next);
  if (!next.paused_ns || !next.known)
    return;
  g_mutex_lock (&self->lock);
  coming = fanout_readers_get_coming (self, name->host, name->port, now_ns);
  if (coming) {
    coming->kept = TRUE;
    coming->next = next;
    coming->layers = weir_reader_get_layers (name->reader);
  }
  g_mutex_unlock (&self->lock);
}

// Emits client-removed, whose handlers can still get the reader's statistics, and frees `name`.
static void
announce_removal (WeirFanoutSink *self, Name *name)
{
  name->disconnect_ns = g_get_real_time () * 1000;
  g_mutex_lock (&self->lock);
  self->leaving = name;
  g_mutex_unlock (&self->lock);
  fanout_signals_client_removed (self, name->host, name->port);
  g_mutex_lock (&self->lock);
  if (self->leaving == name)
    self->leaving = NULL;
  g_mutex_unlock (&self->lock);
  fanout_name_free (name);
}

// Returns FALSE if there is no such reader.
static gboolean
remove_name (WeirFanoutSink *self, const gchar *host, gint port)
{
  gchar *key = fanout_name_make_key (host, port);
  Name *name;
  gboolean removed = FALSE;

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name) {
    removed = --name->count == 0;
    if (!removed) {
      weir_reader_set_times (name->reader, name->count);
    } else {
      g_hash_table_remove (self->by_key, key);
      g_queue_unlink (&self->names, &name->link);
    }
  }
  g_mutex_unlock (&self->lock);
  if (removed) {
    keep_position (self, name);
    weir_fanout_remove (fanout_name_get_fanout (self, name), name->reader);
    leave (self, name);
  }
  g_mutex_unlock (&self->control);

  g_free (key);
  if (removed) {
    fanout_news_tell_of (self, name);
    announce_removal (self, name);
  }
  return name != NULL;
}

void
fanout_readers_remove (WeirFanoutSink *self, const gchar *host, gint port)
{
  if (host && *host && !remove_name (self, host, port) && !weir_connection_is_token (host)
      && !weir_srtp_is_token (host))
    fanout_actions_warn_no_reader (self, "remove", host, port);
}

void
fanout_readers_clear (WeirFanoutSink *self)
{
  GQueue removed = G_QUEUE_INIT;
  GList *l;

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  g_hash_table_remove_all (self->by_key);
  removed = self->names;
  g_queue_init (&self->names);
  g_mutex_unlock (&self->lock);

  for (l = removed.head; l; l = l->next) {
    weir_fanout_remove (fanout_name_get_fanout (self, l->data), ((Name *) l->data)->reader);
    leave (self, l->data);
  }
  g_mutex_unlock (&self->control);
  while ((l = g_queue_pop_head_link (&removed)))
    fanout_name_free (l->data);
}

void
fanout_readers_end_guests (WeirFanoutSink *self)
{
  GPtrArray *guests = g_ptr_array_new_with_free_func (g_free);

  g_mutex_lock (&self->lock);
  for (GList *l = self->names.head; l; l = l->next) {
    const Name *name = l->data;

    if (name->guest_of)
      g_ptr_array_add (guests, g_strdup (name->key));
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < guests->len; i++) {
    gchar *key = g_ptr_array_index (guests, i), *space = strrchr (key, ' ');

    *space = '\0';
    while (remove_name (self, key, atoi (space + 1)))
      ;
  }
  g_ptr_array_unref (guests);
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
  fanout_clones_update (self);
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
      weir_fanout_await (fanout_name_get_fanout (self, name), name->reader, delay_ns, now_ns);
  }
  g_mutex_unlock (&self->control);
}

Name *
fanout_readers_find (WeirFanoutSink *self, const gchar *host, gint port)
{
  gchar *key = fanout_name_make_key (host ? host : "", port);
  Name *name = g_hash_table_lookup (self->by_key, key);

  g_free (key);
  return name;
}

// ---- sockets ----

// The data of a handler of `closed`, for a reader that add-socket() added.
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
  GST_INFO_OBJECT (self, "the connection of reader %s closed: %s", closed->token, reason);
  remove_name (self, closed->token, closed->channel);
  g_object_unref (self);
}

gchar *
fanout_readers_add_socket (
    WeirFanoutSink *self, GSocket *socket, WeirFraming framing, guint channel)
{
  WeirConnection *connection;
  GError *err = NULL;
  gchar *token = NULL;
  Name *name;
  Closed *closed;
  gboolean added = FALSE;

  if (!socket) {
    GST_WARNING_OBJECT (self, "add-socket: socket is missing");
    return NULL;
  }
  if ((guint) framing > WEIR_FRAMING_INTERLEAVED) {
    GST_WARNING_OBJECT (self, "add-socket: framing must be from 0 to 2, not %d", (gint) framing);
    return NULL;
  }
  if (weir_connection_is_on (socket)) {
    GST_WARNING_OBJECT (self, "add-socket: socket already has a writer");
    return NULL;
  }
  connection = g_object_new (WEIR_TYPE_CONNECTION, "socket", socket, NULL);
  g_object_get (connection, "token", &token, NULL);
  name = fanout_name_new_conn (token, (gint) channel, framing, &err);
  if (name) {
    name->connection = g_object_ref (connection);
    g_mutex_lock (&self->control);
    added = add_fresh (self, name, &err);
    g_mutex_unlock (&self->control);
  }
  if (!added)
    GST_WARNING_OBJECT (self, "add-socket: %s",
        weir_connection_is_open (token) ? err->message : "socket is not a connected stream socket");
  g_clear_error (&err);
  if (added) {
    closed = g_new0 (Closed, 1);
    g_weak_ref_init (&closed->sink, self);
    closed->token = g_strdup (token);
    closed->channel = (gint) channel;
    g_signal_connect_data (connection, "closed", G_CALLBACK (on_closed), closed, closed_free, 0);
    fanout_signals_client_added (self, token, (gint) channel);
    // If the connection closed before the handler was connected, the signal does not come.
    added = weir_connection_is_open (token);
    if (!added)
      remove_name (self, token, (gint) channel);
  }
  if (!added)
    g_clear_pointer (&token, g_free);
  g_object_unref (connection);
  return token;
}

// ---- the property ----

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

  if (!fanout_name_parse (client, &host, &port))
    g_warning ("%s: clients: '%s' is not host:port, such as 127.0.0.1:5004 or [::1]:5004",
        GST_OBJECT_NAME (self), client);
  else if (!add_reader (self, host, port, &err))
    g_warning ("%s: clients: '%s': %s", GST_OBJECT_NAME (self), client, err->message);
  g_clear_error (&err);
  g_free (host);
}

// Replaces all readers by the entries of a list such as "host:port,[2001:db8::1]:port". Skips an
// entry that is not valid or cannot be served, with a warning.
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

// ---- class ----

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
