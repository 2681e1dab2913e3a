// SPDX-License-Identifier: LGPL-2.1-or-later
#include "properties_private.h"

WeirUdpConfig
fanout_properties_get_udp (WeirFanoutSink *self)
{
  WeirUdpConfig config;

  GST_OBJECT_LOCK (self);
  config = (WeirUdpConfig) {
    .socket = self->socket ? g_object_ref (self->socket) : NULL,
    .socket_v6 = self->socket_v6 ? g_object_ref (self->socket_v6) : NULL,
    .bind_address = g_strdup (self->bind_address),
    .bind_port = self->bind_port,
    .buffer_size = self->buffer_size,
    .qos_dscp = self->qos_dscp,
    .multicast_iface = g_strdup (self->multicast_iface),
    .auto_multicast = self->auto_multicast,
    .ttl = self->ttl,
    .ttl_mc = self->ttl_mc,
    .loop = self->loop,
  };
  GST_OBJECT_UNLOCK (self);
  return config;
}

void
fanout_properties_clear_udp (WeirUdpConfig *config)
{
  g_clear_object (&config->socket);
  g_clear_object (&config->socket_v6);
  g_free ((gchar *) config->bind_address);
  g_free ((gchar *) config->multicast_iface);
}

static void
set_socket (WeirFanoutSink *self, GSocket **which, const GValue *value)
{
  GSocket *old;
  gboolean close;

  g_mutex_lock (&self->lock);
  GST_OBJECT_LOCK (self);
  old = g_steal_pointer (which);
  *which = g_value_dup_object (value);
  close = self->close_socket && old && old != *which && old != self->sockets.v4
          && old != self->sockets.v6;
  GST_OBJECT_UNLOCK (self);
  g_mutex_unlock (&self->lock);
  if (close)
    g_socket_close (old, NULL);
  g_clear_object (&old);
}

static void
set_qos (WeirFanoutSink *self, gint qos_dscp)
{
  GST_OBJECT_LOCK (self);
  self->qos_dscp = qos_dscp;
  GST_OBJECT_UNLOCK (self);
  g_mutex_lock (&self->control);
  weir_udp_sockets_set_qos (&self->sockets, qos_dscp);
  g_mutex_unlock (&self->control);
}

// Sets a property that the engine uses. Returns FALSE if `id` is another property.
static gboolean
set_setting (WeirFanoutSink *self, guint id, const GValue *value)
{
  WeirFanoutSettings *settings = &self->settings;
  gboolean ours = TRUE;

  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_SEND_DUPLICATES:
      settings->send_duplicates = g_value_get_boolean (value);
      break;
    case PROP_GSO:
      settings->gso = (WeirGso) g_value_get_enum (value);
      break;
    case PROP_MAX_COALESCE:
      settings->coalesce_ns = (gint64) g_value_get_uint64 (value);
      break;
    case PROP_JOIN:
      settings->join_at_keyframe = g_value_get_enum (value) == JOIN_KEYFRAME;
      break;
    case PROP_CATCH_UP:
      settings->catch_up_live = g_value_get_enum (value) == CATCH_UP_LIVE;
      break;
    case PROP_CATCH_UP_RATE:
      settings->catch_up_rate = g_value_get_uint (value);
      break;
    case PROP_WINDOW_PACKETS:
      settings->bounds.packets = g_value_get_uint64 (value);
      break;
    case PROP_WINDOW_TIME:
      settings->bounds.time_ns = (gint64) g_value_get_uint64 (value);
      settings->keep_window = TRUE;
      break;
    case PROP_DROP_POLICY:
      settings->overrun = (WeirOverrun) g_value_get_enum (value);
      break;
    case PROP_INLINE_READERS:
      settings->inline_readers = g_value_get_uint (value);
      break;
    case PROP_SPREAD:
      settings->spread_ns = (gint64) g_value_get_uint64 (value);
      break;
    case PROP_PRIORITY:
      self->priority = g_value_get_uint (value);
      break;
    default:
      ours = FALSE;
      break;
  }
  if (ours)
    weir_fanout_set (self->fanout, settings);
  g_mutex_unlock (&self->lock);
  return ours;
}

// Returns FALSE if `id` is not a property that the engine uses.
static gboolean
get_setting (WeirFanoutSink *self, guint id, GValue *value)
{
  const WeirFanoutSettings *settings = &self->settings;
  gboolean ours = TRUE;

  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_SEND_DUPLICATES:
      g_value_set_boolean (value, settings->send_duplicates);
      break;
    case PROP_GSO:
      g_value_set_enum (value, settings->gso);
      break;
    case PROP_MAX_COALESCE:
      g_value_set_uint64 (value, (guint64) settings->coalesce_ns);
      break;
    case PROP_JOIN:
      g_value_set_enum (value, settings->join_at_keyframe ? JOIN_KEYFRAME : JOIN_LIVE);
      break;
    case PROP_CATCH_UP:
      g_value_set_enum (value, settings->catch_up_live ? CATCH_UP_LIVE : CATCH_UP_DELAY);
      break;
    case PROP_CATCH_UP_RATE:
      g_value_set_uint (value, settings->catch_up_rate);
      break;
    case PROP_WINDOW_BYTES:
      g_value_set_uint64 (value, settings->bounds.bytes);
      break;
    case PROP_WINDOW_PACKETS:
      g_value_set_uint64 (value, settings->bounds.packets);
      break;
    case PROP_WINDOW_TIME:
      g_value_set_uint64 (value, (guint64) settings->bounds.time_ns);
      break;
    case PROP_DROP_POLICY:
      g_value_set_enum (value, settings->overrun);
      break;
    case PROP_INLINE_READERS:
      g_value_set_uint (value, settings->inline_readers);
      break;
    case PROP_SPREAD:
      g_value_set_uint64 (value, (guint64) settings->spread_ns);
      break;
    case PROP_PRIORITY:
      g_value_set_uint (value, self->priority);
      break;
    case PROP_DELAY:
      g_value_set_uint64 (
          value, self->delay_ns == WEIR_DELAY_OLDEST ? G_MAXUINT64 : (guint64) self->delay_ns);
      break;
    default:
      ours = FALSE;
      break;
  }
  g_mutex_unlock (&self->lock);
  return ours;
}

// While the element is started, keeps the old value and posts a warning if a frame might not fit
// into `bytes`. Before that, start() refuses such a value.
static void
set_window_bytes (WeirFanoutSink *self, gsize bytes)
{
  gboolean refused;
  gsize kept;

  g_mutex_lock (&self->lock);
  refused = self->started && bytes < WEIR_WINDOW_BYTES_MIN;
  if (!refused) {
    self->settings.bounds.bytes = bytes;
    weir_fanout_set (self->fanout, &self->settings);
  }
  kept = self->settings.bounds.bytes;
  g_mutex_unlock (&self->lock);
  if (refused)
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS,
        ("window-bytes is too small; the window keeps its size"),
        ("window-bytes=%" G_GSIZE_FORMAT
         " may not hold a frame; the minimum is %d, the window keeps %" G_GSIZE_FORMAT,
            bytes, WEIR_WINDOW_BYTES_MIN, kept));
}

// With a delay the window keeps packets up to its bounds, even while there is no reader.
static void
set_delay (WeirFanoutSink *self, guint64 delay)
{
  if (delay > 0) {
    g_mutex_lock (&self->lock);
    self->settings.keep_window = TRUE;
    weir_fanout_set (self->fanout, &self->settings);
    g_mutex_unlock (&self->lock);
  }
  fanout_readers_set_delay (self, (gint64) MIN (delay, (guint64) WEIR_DELAY_OLDEST));
}

void
fanout_properties_keep_window (WeirFanoutSink *self)
{
  g_mutex_lock (&self->lock);
  if (self->settings.trim) {
    self->settings.trim = FALSE;
    weir_fanout_set (self->fanout, &self->settings);
  }
  g_mutex_unlock (&self->lock);
}

static void
set_simple (WeirFanoutSink *self, guint id, const GValue *value, GParamSpec *pspec)
{
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_CLOSE_SOCKET:
      self->close_socket = g_value_get_boolean (value);
      break;
    case PROP_AUTO_MULTICAST:
      self->auto_multicast = g_value_get_boolean (value);
      break;
    case PROP_MULTICAST_IFACE:
      g_free (self->multicast_iface);
      self->multicast_iface = g_value_dup_string (value);
      break;
    case PROP_TTL:
      self->ttl = g_value_get_int (value);
      break;
    case PROP_TTL_MC:
      self->ttl_mc = g_value_get_int (value);
      break;
    case PROP_LOOP:
      self->loop = g_value_get_boolean (value);
      break;
    case PROP_FORCE_IPV4:
      self->force_ipv4 = g_value_get_boolean (value);
      break;
    case PROP_BUFFER_SIZE:
      self->buffer_size = g_value_get_int (value);
      break;
    case PROP_BIND_ADDRESS:
      g_free (self->bind_address);
      self->bind_address = g_value_dup_string (value);
      break;
    case PROP_BIND_PORT:
      self->bind_port = g_value_get_int (value);
      break;
    case PROP_SPILL_DIR:
      g_free (self->spill_dir);
      self->spill_dir = g_value_dup_string (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (self, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

void
fanout_properties_set (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (object);

  switch (id) {
    case PROP_SOCKET:
      set_socket (self, &self->socket, value);
      break;
    case PROP_SOCKET_V6:
      set_socket (self, &self->socket_v6, value);
      break;
    case PROP_CLIENTS:
      fanout_readers_set_clients (self, g_value_get_string (value));
      break;
    case PROP_QOS_DSCP:
      set_qos (self, g_value_get_int (value));
      break;
    case PROP_WINDOW_BYTES:
      set_window_bytes (self, (gsize) MIN (g_value_get_uint64 (value), G_MAXSIZE));
      break;
    case PROP_DELAY:
      set_delay (self, g_value_get_uint64 (value));
      break;
    case PROP_MAX_PACING_RATE:
      fanout_readers_set_max_pacing_rate (self, g_value_get_uint64 (value));
      break;
    case PROP_KERNEL:
      fanout_clones_set_mode (self, (WeirKernelMode) g_value_get_enum (value));
      break;
    default:
      if (!set_setting (self, id, value))
        set_simple (self, id, value, pspec);
      break;
  }
}

// `which` points to a field of `self`.
static void
get_socket (WeirFanoutSink *self, GSocket *const *which, GValue *value)
{
  g_mutex_lock (&self->lock);
  GST_OBJECT_LOCK (self);
  g_value_set_object (value, *which);
  GST_OBJECT_UNLOCK (self);
  g_mutex_unlock (&self->lock);
}

static void
get_simple (WeirFanoutSink *self, guint id, GValue *value, GParamSpec *pspec)
{
  g_mutex_lock (&self->lock);
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_CLOSE_SOCKET:
      g_value_set_boolean (value, self->close_socket);
      break;
    case PROP_AUTO_MULTICAST:
      g_value_set_boolean (value, self->auto_multicast);
      break;
    case PROP_MULTICAST_IFACE:
      g_value_set_string (value, self->multicast_iface);
      break;
    case PROP_TTL:
      g_value_set_int (value, self->ttl);
      break;
    case PROP_TTL_MC:
      g_value_set_int (value, self->ttl_mc);
      break;
    case PROP_LOOP:
      g_value_set_boolean (value, self->loop);
      break;
    case PROP_FORCE_IPV4:
      g_value_set_boolean (value, self->force_ipv4);
      break;
    case PROP_QOS_DSCP:
      g_value_set_int (value, self->qos_dscp);
      break;
    case PROP_BUFFER_SIZE:
      g_value_set_int (value, self->buffer_size);
      break;
    case PROP_BIND_ADDRESS:
      g_value_set_string (value, self->bind_address);
      break;
    case PROP_BIND_PORT:
      g_value_set_int (value, self->bind_port);
      break;
    case PROP_SPILL_DIR:
      g_value_set_string (value, self->spill_dir);
      break;
    case PROP_MAX_PACING_RATE:
      g_value_set_uint64 (value, self->max_pacing_rate);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (self, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
  g_mutex_unlock (&self->lock);
}

static WeirFanoutCounters
get_counters (WeirFanoutSink *self)
{
  WeirFanoutCounters counters;

  weir_fanout_counters (self->fanout, &counters);
  return counters;
}

void
fanout_properties_get (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (object);

  switch (id) {
    case PROP_BYTES_TO_SERVE:
      g_value_set_uint64 (value, get_counters (self).bytes_in);
      break;
    case PROP_BYTES_SERVED:
      g_value_set_uint64 (value, get_counters (self).bytes);
      break;
    case PROP_SOCKET:
      get_socket (self, &self->socket, value);
      break;
    case PROP_SOCKET_V6:
      get_socket (self, &self->socket_v6, value);
      break;
    case PROP_USED_SOCKET:
      get_socket (self, &self->sockets.v4, value);
      break;
    case PROP_USED_SOCKET_V6:
      get_socket (self, &self->sockets.v6, value);
      break;
    case PROP_KERNEL:
      g_value_set_enum (value, fanout_clones_get_mode (self));
      break;
    case PROP_CLIENTS:
      g_value_take_string (value, fanout_readers_get_clients (self));
      break;
    case PROP_FANOUT_STATS:
      g_value_take_boxed (value, fanout_readers_get_sums (self));
      break;
    default:
      if (!get_setting (self, id, value))
        get_simple (self, id, value, pspec);
      break;
  }
}

void
fanout_properties_init (WeirFanoutSink *self)
{
  self->close_socket = DEFAULT_CLOSE_SOCKET;
  self->auto_multicast = DEFAULT_AUTO_MULTICAST;
  self->ttl = DEFAULT_TTL;
  self->ttl_mc = DEFAULT_TTL_MC;
  self->loop = DEFAULT_LOOP;
  self->force_ipv4 = DEFAULT_FORCE_IPV4;
  self->qos_dscp = DEFAULT_QOS_DSCP;
  self->buffer_size = DEFAULT_BUFFER_SIZE;
  self->bind_port = DEFAULT_BIND_PORT;
  self->priority = DEFAULT_PRIORITY;
  self->kernel = DEFAULT_KERNEL;
  self->settings = (WeirFanoutSettings) {
    .gso = DEFAULT_GSO,
    .send_duplicates = DEFAULT_SEND_DUPLICATES,
    .join_at_keyframe = DEFAULT_JOIN == JOIN_KEYFRAME,
    .catch_up_live = DEFAULT_CATCH_UP == CATCH_UP_LIVE,
    .catch_up_rate = DEFAULT_CATCH_UP_RATE,
    .inline_readers = DEFAULT_INLINE_READERS,
    .spread_ns = DEFAULT_SPREAD,
    .coalesce_ns = DEFAULT_MAX_COALESCE,
    .bounds = { .bytes = DEFAULT_WINDOW_BYTES,
        .packets = DEFAULT_WINDOW_PACKETS,
        .time_ns = DEFAULT_WINDOW_TIME },
    .overrun = DEFAULT_DROP_POLICY,
    .trim = TRUE,
  };
}

void
fanout_properties_finalize (WeirFanoutSink *self)
{
  g_clear_object (&self->socket);
  g_clear_object (&self->socket_v6);
  g_free (self->multicast_iface);
  g_free (self->bind_address);
  g_free (self->spill_dir);
}
