// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanoutsink_private.h"

#include "enumtype.h"

enum {
  PROP_0,
  PROP_BYTES_TO_SERVE,
  PROP_BYTES_SERVED,
  PROP_SOCKET,
  PROP_SOCKET_V6,
  PROP_CLOSE_SOCKET,
  PROP_USED_SOCKET,
  PROP_USED_SOCKET_V6,
  PROP_CLIENTS,
  PROP_AUTO_MULTICAST,
  PROP_MULTICAST_IFACE,
  PROP_TTL,
  PROP_TTL_MC,
  PROP_LOOP,
  PROP_FORCE_IPV4,
  PROP_QOS_DSCP,
  PROP_SEND_DUPLICATES,
  PROP_BUFFER_SIZE,
  PROP_BIND_ADDRESS,
  PROP_BIND_PORT,
  PROP_GSO,
  PROP_MAX_COALESCE,
  PROP_JOIN,
  PROP_CATCH_UP,
  PROP_CATCH_UP_RATE,
  PROP_WINDOW_BYTES,
  PROP_WINDOW_PACKETS,
  PROP_WINDOW_TIME,
  PROP_SPILL_DIR,
  PROP_DROP_POLICY,
  PROP_PRIORITY,
  PROP_DELAY,
  PROP_INLINE_READERS,
  PROP_SPREAD,
  PROP_MAX_PACING_RATE,
  PROP_FANOUT_STATS,
};

#define DEFAULT_CLOSE_SOCKET TRUE
#define DEFAULT_AUTO_MULTICAST TRUE
#define DEFAULT_TTL 64
#define DEFAULT_TTL_MC 1
#define DEFAULT_LOOP TRUE
#define DEFAULT_FORCE_IPV4 FALSE
#define DEFAULT_QOS_DSCP -1
#define DEFAULT_SEND_DUPLICATES TRUE
#define DEFAULT_BUFFER_SIZE 0
#define DEFAULT_BIND_PORT 0
#define DEFAULT_GSO WEIR_GSO_AUTO
#define DEFAULT_MAX_COALESCE (2 * GST_MSECOND)
#define DEFAULT_JOIN JOIN_LIVE
#define DEFAULT_CATCH_UP CATCH_UP_LIVE
#define DEFAULT_CATCH_UP_RATE 8
#define DEFAULT_WINDOW_BYTES (8 * 1024 * 1024)
#define DEFAULT_WINDOW_PACKETS 65536
#define DEFAULT_WINDOW_TIME (10 * GST_SECOND)
#define DEFAULT_DROP_POLICY WEIR_OVERRUN_TO_JOIN
#define DEFAULT_INLINE_READERS 32
#define DEFAULT_SPREAD 0

#define WEIR_TYPE_FANOUT_SINK_GSO (weir_enum_type (&gso_type, "WeirFanoutSinkGso", gso_values))
#define WEIR_TYPE_FANOUT_SINK_JOIN (weir_enum_type (&join_type, "WeirFanoutSinkJoin", join_values))
#define WEIR_TYPE_FANOUT_SINK_CATCH_UP                                                             \
  (weir_enum_type (&catch_up_type, "WeirFanoutSinkCatchUp", catch_up_values))
#define WEIR_TYPE_FANOUT_SINK_DROP_POLICY                                                          \
  (weir_enum_type (&drop_policy_type, "WeirFanoutSinkDropPolicy", drop_policy_values))

static gsize gso_type, join_type, catch_up_type, drop_policy_type;

static const GEnumValue gso_values[] = {
  { WEIR_GSO_AUTO,
      "Segmented sends; after a refusal, single packets for 1 s, then 2 s, up to 1 min", "auto" },
  { WEIR_GSO_ON, "Segmented sends; after a refusal, tried again with the next frame", "on" },
  { WEIR_GSO_OFF, "One message per packet", "off" },
  { 0, NULL, NULL },
};

enum { JOIN_LIVE, JOIN_KEYFRAME };
static const GEnumValue join_values[] = {
  { JOIN_LIVE, "At the live edge, with the frame that is arriving", "live" },
  { JOIN_KEYFRAME, "At the newest keyframe in the window", "keyframe" },
  { 0, NULL, NULL },
};

enum { CATCH_UP_LIVE, CATCH_UP_DELAY };
static const GEnumValue catch_up_values[] = {
  { CATCH_UP_LIVE, "Compress timestamps so that they end at the live edge", "live" },
  { CATCH_UP_DELAY, "Keep timestamps: the player stays behind the live edge", "delay" },
  { 0, NULL, NULL },
};

static const GEnumValue drop_policy_values[] = {
  { WEIR_OVERRUN_TO_JOIN, "The slowest reader continues at the next keyframe", "slowest" },
  { WEIR_OVERRUN_TO_TAIL, "The slowest reader continues at the oldest packet in the window",
      "head" },
  { WEIR_OVERRUN_TAIL_DROP, "New packets are dropped while a reader needs old ones", "tail" },
  { 0, NULL, NULL },
};

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

static void
set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
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

static void
get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
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

static void
install_multiudpsink_properties (GObjectClass *klass)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  g_object_class_install_property (klass, PROP_BYTES_TO_SERVE,
      g_param_spec_uint64 ("bytes-to-serve", "Bytes to serve", "Bytes of all packets that arrived",
          0, G_MAXUINT64, 0, ro));
  g_object_class_install_property (klass, PROP_BYTES_SERVED,
      g_param_spec_uint64 (
          "bytes-served", "Bytes served", "Bytes sent to all readers", 0, G_MAXUINT64, 0, ro));
  g_object_class_install_property (klass, PROP_SOCKET,
      g_param_spec_object ("socket", "Socket Handle",
          "Socket to send from; NULL opens one. Read when the element starts", G_TYPE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_SOCKET_V6,
      g_param_spec_object ("socket-v6", "Socket Handle IPv6",
          "Socket to send from over IPv6; NULL opens one. Read when the element starts",
          G_TYPE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_CLOSE_SOCKET,
      g_param_spec_boolean ("close-socket", "Close socket",
          "Close `socket` and `socket-v6` when the element stops", DEFAULT_CLOSE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_USED_SOCKET,
      g_param_spec_object ("used-socket", "Used Socket Handle",
          "IPv4 socket in use; NULL while the element is stopped", G_TYPE_SOCKET, ro));
  g_object_class_install_property (klass, PROP_USED_SOCKET_V6,
      g_param_spec_object ("used-socket-v6", "Used Socket Handle IPv6",
          "IPv6 socket in use; NULL if there is none", G_TYPE_SOCKET, ro));
  /**
   * WeirFanoutSink:clients:
   *
   * Readers as `host:port`, separated by commas, with brackets around an IPv6 address. Setting the
   * property replaces all readers; reading it takes time in proportion to their number. An entry
   * that is not valid, or cannot be served, is skipped with a warning in the log.
   */
  g_object_class_install_property (klass, PROP_CLIENTS,
      g_param_spec_string ("clients", "Clients",
          "Readers as host:port or [IPv6]:port, separated by commas; setting it replaces all "
          "readers",
          NULL, rw));
  g_object_class_install_property (klass, PROP_AUTO_MULTICAST,
      g_param_spec_boolean ("auto-multicast", "Automatically join/leave multicast groups",
          "Join the multicast group when a reader in it is added, and leave it with the last one",
          DEFAULT_AUTO_MULTICAST, rw));
  g_object_class_install_property (klass, PROP_MULTICAST_IFACE,
      g_param_spec_string ("multicast-iface", "Multicast Interface",
          "Network interface to send from and to join multicast groups on; NULL for any", NULL,
          rw));
  g_object_class_install_property (klass, PROP_TTL,
      g_param_spec_int ("ttl", "Unicast TTL",
          "Time to live of unicast packets, in hops; read when a reader is added", 0, 255,
          DEFAULT_TTL, rw));
  g_object_class_install_property (klass, PROP_TTL_MC,
      g_param_spec_int ("ttl-mc", "Multicast TTL",
          "Time to live of multicast packets, in hops; read when a reader is added", 0, 255,
          DEFAULT_TTL_MC, rw));
  g_object_class_install_property (klass, PROP_LOOP,
      g_param_spec_boolean ("loop", "Multicast Loopback",
          "Deliver multicast packets to this machine too; read when a reader is added",
          DEFAULT_LOOP, rw));
  g_object_class_install_property (klass, PROP_FORCE_IPV4,
      g_param_spec_boolean ("force-ipv4", "Force IPv4", "Has no effect", DEFAULT_FORCE_IPV4,
          rw | G_PARAM_DEPRECATED));
  g_object_class_install_property (klass, PROP_QOS_DSCP,
      g_param_spec_int ("qos-dscp", "QoS diff srv code point",
          "Differentiated services code point; -1 for the system's default", -1, 63,
          DEFAULT_QOS_DSCP, rw));
  g_object_class_install_property (klass, PROP_SEND_DUPLICATES,
      g_param_spec_boolean ("send-duplicates", "Send Duplicates",
          "Send each packet to a reader as many times as the reader was added",
          DEFAULT_SEND_DUPLICATES, rw));
  g_object_class_install_property (klass, PROP_BUFFER_SIZE,
      g_param_spec_int ("buffer-size", "Buffer Size",
          "Send buffer of each UDP socket in bytes; 0 for 1 MiB, or the system's default if larger",
          0, G_MAXINT, DEFAULT_BUFFER_SIZE, rw));
  g_object_class_install_property (klass, PROP_BIND_ADDRESS,
      g_param_spec_string (
          "bind-address", "Bind Address", "Address to send from; NULL for any", NULL, rw));
  g_object_class_install_property (klass, PROP_BIND_PORT,
      g_param_spec_int ("bind-port", "Bind Port", "Port to send from; 0 for any", 0, G_MAXUINT16,
          DEFAULT_BIND_PORT, rw));
}

static void
install_sending (GObjectClass *klass)
{
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  /**
   * WeirFanoutSink:gso:
   *
   * Lets the element send several packets to a reader in one segmented send. If the path to a
   * reader refuses it, the packets are sent one by one. `auto` then sends that reader single
   * packets for 1 s, after the next refusal for 2 s, and so on up to 1 min; `on` tries again with
   * the next frame. Setting another value resets these times.
   */
  g_object_class_install_property (klass, PROP_GSO,
      g_param_spec_enum ("gso", "Segmented sends",
          "Send several packets to a reader in one segmented send (UDP_SEGMENT)",
          WEIR_TYPE_FANOUT_SINK_GSO, DEFAULT_GSO, rw));
  /**
   * WeirFanoutSink:max-coalesce:
   *
   * Longest time in ns that a packet waits for the rest of its frame. With 0 it waits only for the
   * rest of the buffer list that it arrived in.
   */
  g_object_class_install_property (klass, PROP_MAX_COALESCE,
      g_param_spec_uint64 ("max-coalesce", "Longest coalescing",
          "Longest time in ns that a packet waits for the rest of its frame; 0 sends at once", 0,
          10 * GST_SECOND, DEFAULT_MAX_COALESCE, rw));
  /**
   * WeirFanoutSink:priority:
   *
   * Priority of readers that are added from now on: 0 is served first, 7 last. When the CPU cannot
   * serve all readers in time, readers with a higher number wait, and are the first to fall behind
   * and to be thinned. See also #WeirFanoutSink::set-priority.
   */
  g_object_class_install_property (klass, PROP_PRIORITY,
      g_param_spec_uint ("priority", "Priority",
          "Priority of new readers, from 0 (served first) to 7 (served last)", 0,
          WEIR_PRIORITIES - 1, DEFAULT_PRIORITY, rw));
  /**
   * WeirFanoutSink:delay:
   *
   * Delay in ns behind the live edge of readers that are added from now on, unless
   * #WeirFanoutSink::set-delay sets another one; %G_MAXUINT64 for the oldest join point in the
   * window. #WeirFanoutSink:window-time must cover the delay; see #WeirFanoutSink::set-delay.
   * Readers that are added before the first packet, as with #WeirFanoutSink:clients, get the first
   * packet that long after it arrived.
   */
  g_object_class_install_property (klass, PROP_DELAY,
      g_param_spec_uint64 ("delay", "Delay",
          "Delay of new readers behind the live edge, in ns; 2^64-1 for the oldest join point", 0,
          G_MAXUINT64, 0, rw));
  /**
   * WeirFanoutSink:inline-readers:
   *
   * Largest number of readers that the streaming thread serves by itself, which saves waking other
   * threads. If there are more, the shared threads serve all of them.
   */
  g_object_class_install_property (klass, PROP_INLINE_READERS,
      g_param_spec_uint ("inline-readers", "Inline readers",
          "The streaming thread serves up to this many readers; if there are more, shared threads "
          "do",
          0, G_MAXUINT, DEFAULT_INLINE_READERS, rw));
  /**
   * WeirFanoutSink:spread:
   *
   * Time in ns over which the element spreads the sends of a frame to all readers, 64 readers at a
   * time, so that thousands of readers do not cause one burst. Use at most half a frame's duration,
   * or frames pile up. 0 sends as fast as possible.
   */
  g_object_class_install_property (klass, PROP_SPREAD,
      g_param_spec_uint64 ("spread", "Spread",
          "Spread the sends of a frame to all readers over this time, in ns; 0 sends at once", 0,
          GST_SECOND, DEFAULT_SPREAD, rw));
  /**
   * WeirFanoutSink:max-pacing-rate:
   *
   * Rate limit in bits per second for what the kernel sends to each reader (SO_MAX_PACING_RATE), so
   * that a keyframe does not overflow a narrow line; 0 for no limit. It always works for TCP. For
   * UDP it works only if the queueing discipline of the network device is `fq`, which handles a
   * segmented send as one packet; #WeirFanoutSink:gso `off` makes it pace each packet. The kernel
   * does not raise the limit of a UDP socket once it was lowered. Elsewhere, put `ratepacer` before
   * this element and set #WeirFanoutSink:max-coalesce to 0: `mode=bitrate` keeps to a rate,
   * `max-burst=N` spreads a frame over its duration. Each burst is then one send to each reader.
   *
   * Set a limit above the stream's rate, with room for readers that catch up: a reader that
   * receives less than the stream's rate falls behind and is thinned. Sinks that share a connection
   * share its limit; the last one set holds. Removing the reader removes the limit.
   */
  g_object_class_install_property (klass, PROP_MAX_PACING_RATE,
      g_param_spec_uint64 ("max-pacing-rate", "Highest pacing rate",
          "Kernel rate limit for each reader, in bits per second; 0 for none. For UDP it needs the "
          "queueing discipline fq",
          0, G_MAXUINT64, 0, rw));
}

static void
install_window (GObjectClass *klass)
{
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  /**
   * WeirFanoutSink:join:
   *
   * Packet with which readers that are added from now on begin. `keyframe` needs RTP caps with the
   * encoding name H264, H265, VP8, VP9, AV1 or MPV. Audio begins at the live edge, in sync with the
   * video. Multicast readers begin at the live edge.
   */
  g_object_class_install_property (klass, PROP_JOIN,
      g_param_spec_enum ("join", "Join", "Packet that a new reader begins with",
          WEIR_TYPE_FANOUT_SINK_JOIN, DEFAULT_JOIN, rw));
  /**
   * WeirFanoutSink:catch-up:
   *
   * RTP timestamps of a reader that begins before the live edge. `live` compresses
   * them so that they end at the live edge: the player shows the first picture at once, plays the
   * rest fast, and is live. `delay` keeps them: the player stays behind by the distance at which it
   * began.
   */
  g_object_class_install_property (klass, PROP_CATCH_UP,
      g_param_spec_enum ("catch-up", "Catch-up",
          "RTP timestamps of a reader that begins before the live edge",
          WEIR_TYPE_FANOUT_SINK_CATCH_UP, DEFAULT_CATCH_UP, rw));
  /**
   * WeirFanoutSink:catch-up-rate:
   *
   * Speed at which a reader that begins before the live edge gets the packets up to it, as a
   * multiple of the stream's speed.
   */
  g_object_class_install_property (klass, PROP_CATCH_UP_RATE,
      g_param_spec_uint ("catch-up-rate", "Catch-up rate",
          "Speed of a reader that catches up with the live edge, as a multiple of the stream's", 2,
          1000, DEFAULT_CATCH_UP_RATE, rw));
  /**
   * WeirFanoutSink:window-bytes:
   *
   * Size of the window in bytes. A frame may not fit into less than 256 KiB: the element does not
   * start with a smaller value, and while it is started it posts a warning and keeps the old value.
   */
  g_object_class_install_property (klass, PROP_WINDOW_BYTES,
      g_param_spec_uint64 ("window-bytes", "Window bytes",
          "Largest number of bytes in the window, at least 262144", 0, G_MAXINT64,
          DEFAULT_WINDOW_BYTES, rw));
  g_object_class_install_property (klass, PROP_WINDOW_PACKETS,
      g_param_spec_uint64 ("window-packets", "Window packets",
          "Largest number of packets in the window, 48 bytes of memory each", 64, 1 << 24,
          DEFAULT_WINDOW_PACKETS, rw));
  /**
   * WeirFanoutSink:window-time:
   *
   * Longest time that a packet stays in the window, in ns. With #WeirFanoutSink:join `keyframe` the
   * newest keyframe and the packets after it stay regardless of their age. Until the property or
   * #WeirFanoutSink:delay is set, and with #WeirFanoutSink:join `live` and only UDP readers, the
   * window holds at most 1 s.
   */
  g_object_class_install_property (klass, PROP_WINDOW_TIME,
      g_param_spec_uint64 ("window-time", "Window time",
          "Longest time that a packet stays in the window, in ns", 0, 24 * 3600 * GST_SECOND,
          DEFAULT_WINDOW_TIME, rw));
  /**
   * WeirFanoutSink:spill-dir:
   *
   * Folder for the file that holds the window, for a window that is too large for memory; NULL
   * keeps the window in memory. The file has no name, is mapped into memory, and is freed when the
   * element stops. If the disk is full, the window becomes smaller, but not below 8 MiB, and the
   * element posts the element message `fanout-spill-full` with the field `capacity` (#guint64), the
   * new size in bytes. The streaming thread writes to the mapping, so it waits for the disk when
   * the system has too many dirty pages. Read when the element goes to PAUSED.
   */
  g_object_class_install_property (klass, PROP_SPILL_DIR,
      g_param_spec_string ("spill-dir", "Folder of the window's file",
          "Folder for the window's file; NULL keeps the window in memory", NULL,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * WeirFanoutSink:drop-policy:
   *
   * Rule for dropping packets when the window is full and a reader still needs its oldest packets.
   */
  g_object_class_install_property (klass, PROP_DROP_POLICY,
      g_param_spec_enum ("drop-policy", "Drop policy",
          "Rule for dropping packets when the window is full", WEIR_TYPE_FANOUT_SINK_DROP_POLICY,
          DEFAULT_DROP_POLICY, rw));
  /**
   * WeirFanoutSink:fanout-stats:
   *
   * Totals since the element went to PAUSED. `readers` (#guint) is the number of readers now.
   * #guint64: `packets-in`, `bytes-in` (arrived), `packets-refused` (larger than 65507 bytes, or
   * dropped by #WeirFanoutSink:drop-policy `tail`), `packets-opaque` (neither RTP nor RTCP),
   * `packets-due` (to all readers; packets-due = packets-sent + dropped), `packets-sent`,
   * `bytes-sent`, `dropped`, by reason `dropped-would-block`, `dropped-no-buffers`,
   * `dropped-too-big`, `dropped-error`, `dropped-flushed`, `dropped-overrun`, `dropped-thinned`,
   * `dropped-catch-up`, `dropped-layers`, and `left-out`, the sum of the last three; `bursts`
   * (frames or parts of frames), `sends` (UDP messages), `gso-sends` (segmented ones),
   * `gso-fallbacks` (refused ones), `blocked` (how often a socket had no room). `segments` is an
   * array of #guint64: the number of sends with 1, 2 to 3, 4 to 7, ... 32 to 63, and 64 packets.
   * `layers` is an array with a structure for each layer of the stream: `spatial`, `quality`,
   * `temporal` (#gint), `bitrate` (#guint64, bits per second of this layer alone, a moving
   * average), `frame-rate` (#gdouble, frames per second), `bytes` (#guint64). Python reads the
   * arrays with `get_array()`.
   */
  g_object_class_install_property (klass, PROP_FANOUT_STATS,
      g_param_spec_boxed ("fanout-stats", "Statistics of all readers",
          "Totals of all readers since the element went to PAUSED", GST_TYPE_STRUCTURE,
          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

void
fanout_properties_install (GObjectClass *klass)
{
  klass->set_property = set_property;
  klass->get_property = get_property;
  install_multiudpsink_properties (klass);
  install_sending (klass);
  install_window (klass);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_GSO, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_JOIN, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_CATCH_UP, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_DROP_POLICY, 0);
}
