// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-fanoutsink
 * @title: fanoutsink
 * @short_description: serves one stream to many readers over UDP
 *
 * It stands wherever `multiudpsink` stands: it has that element's properties, action signals and
 * signals, with the same types and defaults. It differs in how it sends. A frame's packets are
 * collected into a batch and each reader gets the batch in as few sends as possible, segmented by
 * the kernel (UDP_SEGMENT), which costs a fraction of a send for each packet. Where the kernel or
 * the path refuses that, it goes on with one message a packet without losing any; see
 * #WeirFanoutSink:gso.
 *
 * A batch is sent when the RTP marker bit ends the frame, when it is full (64 packets or 65507
 * bytes), or when its first packet has waited #WeirFanoutSink:max-coalesce. RTCP, and what is not
 * RTP, does not wait; a buffer list of such packets stays together.
 *
 * Threads: the streaming thread copies packets into batches; one thread of the element sends them.
 * At most 8 batches exist: when all wait to be sent, the streaming thread waits too, as it does in
 * `multiudpsink`. All readers share one or two sockets. When a socket has no room the sender waits
 * for it at most 100 ms in a batch, then drops for the readers whose turn it is; each batch begins
 * at another reader. Every packet due to a reader is sent or counted as dropped, with the reason,
 * in `get-stats` and #WeirFanoutSink:fanout-stats. A reader that can't be reached posts no message.
 *
 * EOS goes through when everything is sent. On the way to READY the element gives what is queued
 * 50 ms and counts the rest as flushed.
 *
 * It never changes a packet, retransmits, or paces. A packet over 65507 bytes is refused.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 ! rtpvp8pay ! fanoutsink
 * clients=127.0.0.1:5004,127.0.0.1:5006 gst-launch-1.0 udpsrc port=5004
 * caps="application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8" ! rtpvp8depay ! vp8dec !
 * autovideosink
 * ]|
 */
#include "config.h"

#include "fanoutsink.h"

#include "core/batch.h"
#include "core/readers.h"
#include "core/send.h"
#include "udpsockets.h"

#include <string.h>

#include <gio/gio.h>

GST_DEBUG_CATEGORY_STATIC (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

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
  PROP_FANOUT_STATS,
};

enum {
  SIGNAL_ADD,
  SIGNAL_REMOVE,
  SIGNAL_CLEAR,
  SIGNAL_GET_STATS,
  SIGNAL_CLIENT_ADDED,
  SIGNAL_CLIENT_REMOVED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

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

#define N_BATCHES 8
#define PASS_BUDGET (100 * GST_MSECOND)
#define STOP_GRACE (50 * G_TIME_SPAN_MILLISECOND)

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

// A reader under the name by which it was added. Two names may be one address.
typedef struct {
  gchar *key; // "host port"
  gchar *host;
  gint port;
  guint count;
  GInetAddress *inet;
  struct sockaddr_storage address;
  socklen_t address_len;
  GList link; // in self->names
} Name;

// Sums over all readers, also those who left.
typedef struct {
  guint64 packets_in;
  guint64 bytes_in;
  guint64 packets_refused;
  guint64 batches;
  guint64 packets_due;
  guint64 packets_sent;
  guint64 bytes_sent;
  guint64 dropped[WEIR_N_DROPS];
  guint64 sends, gso_sends, gso_fallbacks, waits;
} Sums;

struct _WeirFanoutSink {
  GstBaseSink parent;

  // Order: control, lock, object lock. None is held across a send, a signal, or a look-up of a
  // name. Nobody who streams takes `control`, under which readers come and go and sockets are set
  // up.
  GMutex control;
  GMutex lock;
  GCond work; // for the sender thread
  GCond room; // a batch came back: for the streaming thread, and for whoever waits for the end

  // Under `control`; read under `lock` too.
  WeirUdpSockets sockets;
  gboolean started;
  GHashTable *by_key; // Name.key -> Name
  GQueue names;       // of Name, as added
  WeirReaders readers;

  // Under `lock`.
  Name *leaving; // for get-stats from within client-removed
  WeirReader leaving_record;
  WeirBatch *pool[N_BATCHES];
  WeirBatch *spare[N_BATCHES]; // a stack
  guint n_spare;
  WeirBatch *ready[N_BATCHES]; // a ring
  guint ready_first, n_ready;
  WeirBatch *filling;
  gboolean filling_armed; // the thread knows that a batch is filling
  gboolean sending;
  gboolean flushing;
  gboolean stopping;
  gboolean targets_stale;
  gboolean warned_too_big;
  Sums sums;
  GThread *thread;
  GCancellable *cancellable; // made new under `lock`

  // The sender thread's, while there is one. (`sender.cancelled` is set by others.)
  WeirSender sender;
  WeirSendTarget *targets;
  WeirSendResult *results;
  gsize n_targets, targets_capacity;
  guint64 targets_generation;
  gsize next_first;

  // Under the object lock.
  GSocket *socket;
  GSocket *socket_v6;
  gboolean close_socket;
  gboolean auto_multicast;
  gchar *multicast_iface;
  gint ttl;
  gint ttl_mc;
  gboolean loop;
  gboolean force_ipv4;
  gint qos_dscp;
  gint buffer_size;
  gchar *bind_address;
  gint bind_port;

  // Under `lock`.
  gboolean send_duplicates;
  WeirGso gso;
  GstClockTime max_coalesce;
};

#define WEIR_TYPE_FANOUT_SINK_GSO (weir_fanout_sink_gso_get_type ())
static GType
weir_fanout_sink_gso_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { WEIR_GSO_AUTO, "Segmented sends, until one is refused", "auto" },
    { WEIR_GSO_ON, "Segmented sends, tried again after one is refused", "on" },
    { WEIR_GSO_OFF, "One message a packet", "off" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("WeirFanoutSinkGso", values));
  return type;
}

G_DEFINE_FINAL_TYPE (WeirFanoutSink, weir_fanout_sink, GST_TYPE_BASE_SINK)
GST_ELEMENT_REGISTER_DEFINE (fanoutsink, "fanoutsink", GST_RANK_NONE, WEIR_TYPE_FANOUT_SINK)

/* Data: the streaming thread. With `lock` held. */

static gint64
now_ns (void)
{
  return g_get_monotonic_time () * 1000;
}

static void
hand_over (WeirFanoutSink *self)
{
  if (!self->filling || self->filling->n == 0)
    return;
  self->ready[(self->ready_first + self->n_ready++) % N_BATCHES] = self->filling;
  self->filling = NULL;
  self->filling_armed = FALSE;
}

// Waits until there is a batch to fill. The lock is released while it waits.
static GstFlowReturn
get_filling (WeirFanoutSink *self)
{
  while (!self->filling) {
    if (self->flushing) {
      GstFlowReturn ret;

      g_mutex_unlock (&self->lock);
      ret = gst_base_sink_wait_preroll (GST_BASE_SINK (self));
      g_mutex_lock (&self->lock);
      if (ret != GST_FLOW_OK)
        return ret;
    } else if (!self->thread) {
      return GST_FLOW_FLUSHING;
    } else if (self->n_spare > 0) {
      self->filling = self->spare[--self->n_spare];
      weir_batch_clear (self->filling);
    } else {
      g_cond_signal (&self->work);
      g_cond_wait (&self->room, &self->lock);
    }
  }
  return GST_FLOW_OK;
}

// Copies a packet into a batch. `urgent` is set if it should not wait beyond this render call.
static GstFlowReturn
take_packet (WeirFanoutSink *self, GstBuffer *buffer, gboolean *urgent)
{
  gsize size = gst_buffer_get_size (buffer);
  guint8 *room = NULL;

  if (size == 0)
    return GST_FLOW_OK;
  if (size > WEIR_BATCH_BYTES) {
    self->sums.packets_refused++;
    if (!self->warned_too_big)
      GST_WARNING_OBJECT (self, "refusing a packet of %" G_GSIZE_FORMAT " bytes, %d is the most",
          size, WEIR_BATCH_BYTES);
    self->warned_too_big = TRUE;
    return GST_FLOW_OK;
  }

  while (!room) {
    GstFlowReturn ret = get_filling (self);

    if (ret != GST_FLOW_OK)
      return ret;
    if (!(room = weir_batch_reserve (self->filling, size)))
      hand_over (self);
  }
  if (gst_buffer_extract (buffer, 0, room, size) != size) {
    self->sums.packets_refused++;
    GST_WARNING_OBJECT (self, "could not read %" GST_PTR_FORMAT, buffer);
    return GST_FLOW_OK;
  }
  self->sums.packets_in++;
  self->sums.bytes_in += size;

  switch (weir_batch_commit (self->filling, size, now_ns ())) {
    case WEIR_BATCH_FRAME:
    case WEIR_BATCH_FULL:
      hand_over (self);
      break;
    case WEIR_BATCH_URGENT:
      *urgent = TRUE;
      break;
    case WEIR_BATCH_OPEN:
      break;
  }
  return GST_FLOW_OK;
}

static GstFlowReturn
take_packets (WeirFanoutSink *self, GstBuffer *buffer, GstBufferList *list)
{
  guint n = list ? gst_buffer_list_length (list) : 1;
  gboolean urgent = FALSE;
  GstFlowReturn ret = GST_FLOW_OK;

  g_mutex_lock (&self->lock);
  if (self->readers.n == 0)
    n = 0;
  for (guint i = 0; i < n && ret == GST_FLOW_OK; i++)
    ret = take_packet (self, list ? gst_buffer_list_get (list, i) : buffer, &urgent);
  if (urgent || self->max_coalesce == 0)
    hand_over (self);
  if (self->n_ready > 0 || (self->filling && !self->filling_armed))
    g_cond_signal (&self->work);
  g_mutex_unlock (&self->lock);
  return ret;
}

static GstFlowReturn
weir_fanout_sink_render (GstBaseSink *sink, GstBuffer *buffer)
{
  return take_packets (WEIR_FANOUT_SINK (sink), buffer, NULL);
}

static GstFlowReturn
weir_fanout_sink_render_list (GstBaseSink *sink, GstBufferList *list)
{
  return take_packets (WEIR_FANOUT_SINK (sink), NULL, list);
}

/* Data: the sender thread */

// Lists who is to be sent to, and through which socket. With `lock` held.
static void
take_snapshot (WeirFanoutSink *self)
{
  gsize n = self->readers.n;

  if (!self->targets_stale && self->targets_generation == self->readers.generation)
    return;
  if (n > self->targets_capacity) {
    self->targets_capacity = MAX (n, self->targets_capacity * 2);
    self->targets = g_renew (WeirSendTarget, self->targets, self->targets_capacity);
    self->results = g_renew (WeirSendResult, self->results, self->targets_capacity);
  }
  for (gsize i = 0; i < n; i++) {
    const WeirReader *reader = &self->readers.records[i];
    WeirSendTarget *target = &self->targets[i];
    GSocketFamily family =
        reader->address.ss_family == AF_INET6 ? G_SOCKET_FAMILY_IPV6 : G_SOCKET_FAMILY_IPV4;
    GSocket *socket = weir_udp_sockets_pick (&self->sockets, family);

    *target = (WeirSendTarget) {
      .address = reader->address,
      .address_len = reader->address_len,
      .fd = socket ? g_socket_get_fd (socket) : -1,
      .times = self->send_duplicates ? reader->refcount : 1,
      .handle = reader->handle,
    };
    if (socket && family == G_SOCKET_FAMILY_IPV4 && socket == self->sockets.v6)
      weir_address_map_to_v6 (&target->address, &target->address_len);
  }
  self->n_targets = n;
  self->targets_generation = self->readers.generation;
  self->targets_stale = FALSE;
}

// Books the pass on the readers that are still there, and in the sums. With `lock` held.
static void
account (WeirFanoutSink *self, const WeirBatch *batch)
{
  for (gsize i = 0; i < self->n_targets; i++) {
    const WeirSendResult *result = &self->results[i];
    WeirReader *reader = weir_readers_get (&self->readers, self->targets[i].handle);

    if (reader) {
      reader->packets_sent += result->packets;
      reader->bytes_sent += result->bytes;
    }
    self->sums.packets_due += (guint64) batch->n * self->targets[i].times;
    self->sums.packets_sent += result->packets;
    self->sums.bytes_sent += result->bytes;
    for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
      if (reader)
        reader->dropped[reason] += result->dropped[reason];
      self->sums.dropped[reason] += result->dropped[reason];
    }
  }
  self->sums.batches++;
  self->sums.sends = self->sender.n_sends;
  self->sums.gso_sends = self->sender.n_gso_sends;
  self->sums.gso_fallbacks = self->sender.n_fallbacks;
  self->sums.waits = self->sender.n_waits;
}

// The next batch to send, or NULL when the element stops. With `lock` held, released to wait.
static WeirBatch *
wait_for_work (WeirFanoutSink *self)
{
  while (!self->stopping) {
    if (self->n_ready > 0) {
      WeirBatch *batch = self->ready[self->ready_first];

      self->ready_first = (self->ready_first + 1) % N_BATCHES;
      self->n_ready--;
      return batch;
    }
    if (self->filling && self->filling->n > 0) {
      gint64 due = weir_batch_due_ns (self->filling, (gint64) MIN (self->max_coalesce, G_MAXINT64));

      self->filling_armed = TRUE;
      if (now_ns () >= due)
        hand_over (self);
      else
        g_cond_wait_until (&self->work, &self->lock, (due + 999) / 1000);
    } else {
      g_cond_wait (&self->work, &self->lock);
    }
  }
  return NULL;
}

static gpointer
sender_thread (gpointer data)
{
  WeirFanoutSink *self = data;
  WeirBatch *batch;

  g_mutex_lock (&self->lock);
  while ((batch = wait_for_work (self))) {
    self->sending = TRUE;
    take_snapshot (self);
    weir_sender_set_gso (&self->sender, self->gso);
    g_mutex_unlock (&self->lock);

    weir_send_pass (&self->sender, batch, self->targets, self->n_targets, self->next_first++,
        PASS_BUDGET, self->results);

    g_mutex_lock (&self->lock);
    account (self, batch);
    self->sending = FALSE;
    self->spare[self->n_spare++] = batch;
    g_cond_broadcast (&self->room);
  }
  g_mutex_unlock (&self->lock);
  return NULL;
}

// Waits until all is sent; gives up when flushing, or at the deadline (0: none). With `lock` held.
static void
drain (WeirFanoutSink *self, gint64 deadline)
{
  hand_over (self);
  g_cond_signal (&self->work);
  while (self->thread && (self->n_ready > 0 || self->sending)) {
    if (deadline == 0 && self->flushing)
      return;
    if (deadline == 0)
      g_cond_wait (&self->room, &self->lock);
    else if (!g_cond_wait_until (&self->room, &self->lock, deadline))
      return;
  }
}

// Throws away what is not being sent, and counts it for every reader. With `lock` held.
static void
discard_queued (WeirFanoutSink *self)
{
  guint64 n = 0;

  hand_over (self);
  while (self->n_ready > 0) {
    WeirBatch *batch = self->ready[self->ready_first];

    n += batch->n;
    self->spare[self->n_spare++] = batch;
    self->ready_first = (self->ready_first + 1) % N_BATCHES;
    self->n_ready--;
  }
  for (gsize i = 0; n > 0 && i < self->readers.n; i++) {
    WeirReader *reader = &self->readers.records[i];
    guint64 due = n * (self->send_duplicates ? reader->refcount : 1);

    reader->dropped[WEIR_DROP_FLUSHED] += due;
    self->sums.dropped[WEIR_DROP_FLUSHED] += due;
    self->sums.packets_due += due;
  }
}

/* Events */

static gboolean
weir_fanout_sink_event (GstBaseSink *sink, GstEvent *event)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
    g_mutex_lock (&self->lock);
    drain (self, 0);
    g_mutex_unlock (&self->lock);
  }
  return GST_BASE_SINK_CLASS (weir_fanout_sink_parent_class)->event (sink, event);
}

/* Readers */

// The configuration as it is now, with references and copies of its own.
static WeirUdpConfig
get_config (WeirFanoutSink *self)
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

static void
clear_config (WeirUdpConfig *config)
{
  g_clear_object (&config->socket);
  g_clear_object (&config->socket_v6);
  g_free ((gchar *) config->bind_address);
  g_free ((gchar *) config->multicast_iface);
}

static void
name_free (Name *name)
{
  if (!name)
    return;
  g_clear_object (&name->inet);
  g_free (name->key);
  g_free (name->host);
  g_free (name);
}

static gchar *
make_key (const gchar *host, gint port)
{
  return g_strdup_printf ("%s %d", host, port);
}

// Resolves a name. Takes no lock, and may take its time.
static Name *
name_new (WeirFanoutSink *self, const gchar *host, gint port, GCancellable *cancellable)
{
  Name *name;
  GSocketAddress *address;
  GError *err = NULL;

  if (port < 1 || port > 65535) {
    GST_WARNING_OBJECT (self, "refusing %s port %d: no such port", host, port);
    return NULL;
  }
  // This one takes an IPv6 scope too.
  address = g_inet_socket_address_new_from_string (host, (guint) port);
  if (!address) {
    GInetAddress *inet = weir_udp_resolve (host, cancellable, &err);

    if (!inet) {
      GST_WARNING_OBJECT (self, "refusing %s port %d: %s", host, port, err->message);
      g_clear_error (&err);
      return NULL;
    }
    address = g_inet_socket_address_new (inet, (guint16) port);
    g_object_unref (inet);
  }

  name = g_new0 (Name, 1);
  name->key = make_key (host, port);
  name->host = g_strdup (host);
  name->port = port;
  name->link.data = name;
  name->inet = g_object_ref (g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)));
  name->address_len = (socklen_t) g_socket_address_get_native_size (address);
  if (name->address_len > (socklen_t) sizeof name->address
      || !g_socket_address_to_native (address, &name->address, sizeof name->address, &err)) {
    GST_WARNING_OBJECT (self, "refusing %s port %d: no socket address", host, port);
    g_clear_error (&err);
    name_free (name);
    name = NULL;
  }
  g_object_unref (address);
  return name;
}

static gboolean
enter_reader (WeirFanoutSink *self, Name *name, GError **error)
{
  WeirUdpConfig config = get_config (self);
  gboolean ok = weir_udp_sockets_enter (&self->sockets, &config, name->inet, error);

  clear_config (&config);
  return ok;
}

// Leaves a group when the last name in it goes. With `control` held.
static void
leave_reader (WeirFanoutSink *self, Name *name)
{
  WeirUdpConfig config;

  if (!g_inet_address_get_is_multicast (name->inet))
    return;
  for (GList *l = self->names.head; l; l = l->next) {
    if (g_inet_address_equal (((Name *) l->data)->inet, name->inet))
      return;
  }
  config = get_config (self);
  weir_udp_sockets_leave (&self->sockets, &config, name->inet);
  clear_config (&config);
}

// With `control` held. Takes the name, unless there is one already.
static gboolean
add_name (WeirFanoutSink *self, const gchar *key, Name *fresh)
{
  Name *name = g_hash_table_lookup (self->by_key, key);
  GError *err = NULL;
  int r;

  if (!name && self->started && !enter_reader (self, fresh, &err)) {
    GST_WARNING_OBJECT (self, "refusing %s port %d: %s", fresh->host, fresh->port, err->message);
    g_clear_error (&err);
    name_free (fresh);
    return FALSE;
  }
  if (name) {
    name_free (fresh);
  } else {
    name = fresh;
  }

  g_mutex_lock (&self->lock);
  r = weir_readers_add (&self->readers, (struct sockaddr *) &name->address, name->address_len,
      g_get_real_time () * 1000, NULL);
  if (r >= 0 && name->count++ == 0) {
    g_hash_table_insert (self->by_key, name->key, name);
    g_queue_push_tail_link (&self->names, &name->link);
  }
  g_mutex_unlock (&self->lock);

  if (r < 0) {
    GST_WARNING_OBJECT (self, "refusing %s port %d: %s", name->host, name->port, g_strerror (-r));
    if (name->count == 0)
      name_free (name);
  }
  return r >= 0;
}

static void
weir_fanout_sink_add (WeirFanoutSink *self, const gchar *host, gint port)
{
  gchar *key;
  Name *fresh = NULL;
  GCancellable *cancellable;
  gboolean known, added = FALSE;

  if (!host) {
    GST_WARNING_OBJECT (self, "refusing a reader without a host");
    return;
  }
  key = make_key (host, port);
  g_mutex_lock (&self->lock);
  known = g_hash_table_contains (self->by_key, key);
  cancellable = g_object_ref (self->cancellable);
  g_mutex_unlock (&self->lock);
  if (!known)
    fresh = name_new (self, host, port, cancellable);

  g_mutex_lock (&self->control);
  // It may have been removed since it was looked up.
  if (known && !g_hash_table_contains (self->by_key, key)) {
    g_mutex_unlock (&self->control);
    known = FALSE;
    fresh = name_new (self, host, port, cancellable);
    g_mutex_lock (&self->control);
  }
  if (known || fresh)
    added = add_name (self, key, fresh);
  g_mutex_unlock (&self->control);

  g_object_unref (cancellable);
  g_free (key);
  if (added)
    g_signal_emit (self, signals[SIGNAL_CLIENT_ADDED], 0, host, port);
}

static void
weir_fanout_sink_remove (WeirFanoutSink *self, const gchar *host, gint port)
{
  gchar *key;
  Name *name, *gone = NULL;
  WeirReader record = { 0 };

  if (!host)
    return;
  key = make_key (host, port);
  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name) {
    const WeirReader *reader =
        weir_readers_find (&self->readers, (struct sockaddr *) &name->address, name->address_len);

    if (reader)
      record = *reader;
    record.disconnect_ns = g_get_real_time () * 1000;
    weir_readers_remove (&self->readers, (struct sockaddr *) &name->address, name->address_len,
        record.disconnect_ns, NULL);
    if (--name->count == 0) {
      gone = name;
      g_hash_table_remove (self->by_key, key);
      g_queue_unlink (&self->names, &name->link);
    }
  }
  g_mutex_unlock (&self->lock);
  if (gone && self->started)
    leave_reader (self, gone);
  g_mutex_unlock (&self->control);

  if (!name)
    GST_WARNING_OBJECT (self, "there is no reader %s port %d to remove", host, port);
  if (gone) {
    // Its statistics can be asked from within the signal.
    g_mutex_lock (&self->lock);
    self->leaving = gone;
    self->leaving_record = record;
    g_mutex_unlock (&self->lock);
    g_signal_emit (self, signals[SIGNAL_CLIENT_REMOVED], 0, host, port);
    g_mutex_lock (&self->lock);
    if (self->leaving == gone)
      self->leaving = NULL;
    g_mutex_unlock (&self->lock);
    name_free (gone);
  }
  g_free (key);
}

static void
weir_fanout_sink_clear (WeirFanoutSink *self)
{
  GQueue gone = G_QUEUE_INIT;
  GList *l;

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  weir_readers_remove_all (&self->readers);
  g_hash_table_remove_all (self->by_key);
  gone = self->names;
  g_queue_init (&self->names);
  g_mutex_unlock (&self->lock);

  while ((l = g_queue_pop_head_link (&gone))) {
    if (self->started)
      leave_reader (self, l->data);
    name_free (l->data);
  }
  g_mutex_unlock (&self->control);
}

static void
set_drops (GstStructure *s, const uint64_t *dropped)
{
  guint64 sum = 0;

  for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
    gchar *field = g_strconcat ("dropped-", weir_drop_name (reason), NULL);

    gst_structure_set (s, field, G_TYPE_UINT64, (guint64) dropped[reason], NULL);
    g_free (field);
    sum += dropped[reason];
  }
  gst_structure_set (s, "dropped", G_TYPE_UINT64, sum, NULL);
}

static GstStructure *
weir_fanout_sink_get_stats (WeirFanoutSink *self, const gchar *host, gint port)
{
  GstStructure *s = gst_structure_new_empty ("multiudpsink-stats");
  gchar *key = make_key (host ? host : "", port);
  const WeirReader *reader = NULL;
  Name *name;

  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name)
    reader =
        weir_readers_find (&self->readers, (struct sockaddr *) &name->address, name->address_len);
  else if (self->leaving && g_str_equal (self->leaving->key, key))
    reader = &self->leaving_record;
  if (reader) {
    gst_structure_set (s, "bytes-sent", G_TYPE_UINT64, (guint64) reader->bytes_sent, "packets-sent",
        G_TYPE_UINT64, (guint64) reader->packets_sent, "connect-time", G_TYPE_UINT64,
        (guint64) reader->connect_ns, "disconnect-time", G_TYPE_UINT64,
        (guint64) reader->disconnect_ns, NULL);
    set_drops (s, reader->dropped);
  }
  g_mutex_unlock (&self->lock);

  if (!reader)
    GST_WARNING_OBJECT (self, "there is no reader %s port %d", host, port);
  g_free (key);
  return s;
}

static gchar *
get_clients (WeirFanoutSink *self)
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

// "host:port,[2001:db8::1]:port". What can't be read is skipped with a warning.
static void
set_clients (WeirFanoutSink *self, const gchar *clients)
{
  gchar **list = g_strsplit (clients ? clients : "", ",", 0);

  weir_fanout_sink_clear (self);
  for (gchar **at = list; *at; at++) {
    gchar *host = g_strstrip (*at);
    gchar *colon = strrchr (host, ':');
    guint64 port;

    if (*host == '\0')
      continue;
    if (!colon || !g_ascii_string_to_unsigned (colon + 1, 10, 1, 65535, &port, NULL)) {
      GST_WARNING_OBJECT (self, "clients: '%s' is not host:port", *at);
      continue;
    }
    *colon = '\0';
    if (host[0] == '[' && colon > host + 1 && colon[-1] == ']') {
      colon[-1] = '\0';
      host++;
    }
    weir_fanout_sink_add (self, host, (gint) port);
  }
  g_strfreev (list);
}

static GstStructure *
get_fanout_stats (WeirFanoutSink *self)
{
  const Sums *sums = &self->sums;
  GstStructure *s;

  g_mutex_lock (&self->lock);
  s = gst_structure_new ("fanoutsink-stats", "readers", G_TYPE_UINT, (guint) self->readers.n,
      "packets-in", G_TYPE_UINT64, sums->packets_in, "bytes-in", G_TYPE_UINT64, sums->bytes_in,
      "packets-refused", G_TYPE_UINT64, sums->packets_refused, "packets-due", G_TYPE_UINT64,
      sums->packets_due, "packets-sent", G_TYPE_UINT64, sums->packets_sent, "bytes-sent",
      G_TYPE_UINT64, sums->bytes_sent, "batches", G_TYPE_UINT64, sums->batches, "sends",
      G_TYPE_UINT64, sums->sends, "gso-sends", G_TYPE_UINT64, sums->gso_sends, "gso-fallbacks",
      G_TYPE_UINT64, sums->gso_fallbacks, "waits", G_TYPE_UINT64, sums->waits, NULL);
  set_drops (s, sums->dropped);
  g_mutex_unlock (&self->lock);
  return s;
}

/* Start and stop */

static gboolean
weir_fanout_sink_start (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  WeirUdpConfig config = get_config (self);
  WeirUdpSockets sockets;
  gboolean buffer_short;
  GError *err = NULL;

  if (!weir_udp_sockets_open (&sockets, &config, self->cancellable, &buffer_short, &err)) {
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_WRITE, ("Could not open a socket to send from."),
        ("%s", err->message));
    goto failed;
  }
  if (buffer_short)
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, (NULL),
        ("The send buffer is smaller than the %d bytes asked (see net.core.wmem_max).",
            config.buffer_size));

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  self->sockets = sockets;
  g_mutex_unlock (&self->lock);
  for (GList *l = self->names.head; l && !err; l = l->next)
    enter_reader (self, l->data, &err);
  if (err) {
    gboolean close = self->close_socket;

    g_mutex_lock (&self->lock);
    weir_udp_sockets_close (&self->sockets, close);
    g_mutex_unlock (&self->lock);
    g_mutex_unlock (&self->control);
    GST_ELEMENT_ERROR (
        self, RESOURCE, SETTINGS, ("A reader can't be served."), ("%s", err->message));
    goto failed;
  }

  g_mutex_lock (&self->lock);
  memset (&self->sums, 0, sizeof self->sums);
  for (guint i = 0; i < N_BATCHES; i++) {
    self->pool[i] = g_new (WeirBatch, 1);
    self->spare[i] = self->pool[i];
  }
  self->n_spare = N_BATCHES;
  self->ready_first = self->n_ready = 0;
  self->stopping = self->flushing = FALSE;
  self->warned_too_big = FALSE;
  self->targets_stale = TRUE;
  weir_sender_init (&self->sender, self->gso, NULL);
  self->thread = g_thread_new ("fanoutsink", sender_thread, self);
  g_mutex_unlock (&self->lock);
  self->started = TRUE;
  g_mutex_unlock (&self->control);
  clear_config (&config);
  return TRUE;

failed:
  g_clear_error (&err);
  clear_config (&config);
  return FALSE;
}

static gboolean
weir_fanout_sink_stop (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);
  GThread *thread;
  gboolean close;

  atomic_store (&self->sender.cancelled, true);
  g_mutex_lock (&self->lock);
  self->stopping = TRUE;
  thread = g_steal_pointer (&self->thread);
  g_cond_broadcast (&self->work);
  g_cond_broadcast (&self->room);
  g_mutex_unlock (&self->lock);
  if (thread)
    g_thread_join (thread);

  GST_OBJECT_LOCK (self);
  close = self->close_socket;
  GST_OBJECT_UNLOCK (self);

  g_mutex_lock (&self->control);
  g_mutex_lock (&self->lock);
  discard_queued (self);
  for (guint i = 0; i < N_BATCHES; i++)
    g_clear_pointer (&self->pool[i], g_free);
  self->n_spare = 0;
  weir_udp_sockets_close (&self->sockets, close);
  self->started = FALSE;
  g_mutex_unlock (&self->lock);
  g_mutex_unlock (&self->control);
  return TRUE;
}

static gboolean
weir_fanout_sink_unlock (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);

  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  g_cancellable_cancel (self->cancellable);
  g_cond_broadcast (&self->room);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static gboolean
weir_fanout_sink_unlock_stop (GstBaseSink *sink)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (sink);

  g_mutex_lock (&self->lock);
  self->flushing = FALSE;
  g_object_unref (self->cancellable);
  self->cancellable = g_cancellable_new ();
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static GstStateChangeReturn
weir_fanout_sink_change_state (GstElement *element, GstStateChange transition)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (element);
  GstStateChangeReturn ret =
      GST_ELEMENT_CLASS (weir_fanout_sink_parent_class)->change_state (element, transition);

  if (transition != GST_STATE_CHANGE_PAUSED_TO_READY)
    return ret;
  // The last packets, an RTCP BYE among them, get a moment; then they count as flushed.
  g_mutex_lock (&self->lock);
  drain (self, g_get_monotonic_time () + STOP_GRACE);
  if (self->n_ready > 0 || self->sending) {
    atomic_store (&self->sender.cancelled, true);
    discard_queued (self);
    while (self->thread && self->sending)
      g_cond_wait (&self->room, &self->lock);
    atomic_store (&self->sender.cancelled, false);
  }
  g_mutex_unlock (&self->lock);
  return ret;
}

/* Properties */

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

// What the sender and the streaming thread read, they read under `lock`.
static void
set_under_lock (WeirFanoutSink *self, guint id, const GValue *value)
{
  g_mutex_lock (&self->lock);
  if (id == PROP_SEND_DUPLICATES)
    self->send_duplicates = g_value_get_boolean (value);
  else if (id == PROP_GSO)
    self->gso = (WeirGso) g_value_get_enum (value);
  else
    self->max_coalesce = g_value_get_uint64 (value);
  self->targets_stale = TRUE;
  g_cond_signal (&self->work);
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
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (self, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_fanout_sink_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
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
      set_clients (self, g_value_get_string (value));
      break;
    case PROP_QOS_DSCP:
      set_qos (self, g_value_get_int (value));
      break;
    case PROP_SEND_DUPLICATES:
    case PROP_GSO:
    case PROP_MAX_COALESCE:
      set_under_lock (self, id, value);
      break;
    default:
      set_simple (self, id, value, pspec);
      break;
  }
}

static void
get_simple (WeirFanoutSink *self, guint id, GValue *value, GParamSpec *pspec)
{
  g_mutex_lock (&self->lock);
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_BYTES_TO_SERVE:
      g_value_set_uint64 (value, self->sums.bytes_in);
      break;
    case PROP_BYTES_SERVED:
      g_value_set_uint64 (value, self->sums.bytes_sent);
      break;
    case PROP_SOCKET:
      g_value_set_object (value, self->socket);
      break;
    case PROP_SOCKET_V6:
      g_value_set_object (value, self->socket_v6);
      break;
    case PROP_CLOSE_SOCKET:
      g_value_set_boolean (value, self->close_socket);
      break;
    case PROP_USED_SOCKET:
      g_value_set_object (value, self->sockets.v4);
      break;
    case PROP_USED_SOCKET_V6:
      g_value_set_object (value, self->sockets.v6);
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
    case PROP_SEND_DUPLICATES:
      g_value_set_boolean (value, self->send_duplicates);
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
    case PROP_GSO:
      g_value_set_enum (value, self->gso);
      break;
    case PROP_MAX_COALESCE:
      g_value_set_uint64 (value, self->max_coalesce);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (self, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
  g_mutex_unlock (&self->lock);
}

static void
weir_fanout_sink_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (object);

  switch (id) {
    case PROP_CLIENTS:
      g_value_take_string (value, get_clients (self));
      break;
    case PROP_FANOUT_STATS:
      g_value_take_boxed (value, get_fanout_stats (self));
      break;
    default:
      get_simple (self, id, value, pspec);
      break;
  }
}

static void
weir_fanout_sink_init (WeirFanoutSink *self)
{
  g_mutex_init (&self->control);
  g_mutex_init (&self->lock);
  g_cond_init (&self->work);
  g_cond_init (&self->room);
  g_queue_init (&self->names);
  self->by_key = g_hash_table_new (g_str_hash, g_str_equal);
  weir_readers_init (&self->readers);
  weir_sender_init (&self->sender, DEFAULT_GSO, NULL);
  self->cancellable = g_cancellable_new ();
  self->close_socket = DEFAULT_CLOSE_SOCKET;
  self->auto_multicast = DEFAULT_AUTO_MULTICAST;
  self->ttl = DEFAULT_TTL;
  self->ttl_mc = DEFAULT_TTL_MC;
  self->loop = DEFAULT_LOOP;
  self->force_ipv4 = DEFAULT_FORCE_IPV4;
  self->qos_dscp = DEFAULT_QOS_DSCP;
  self->buffer_size = DEFAULT_BUFFER_SIZE;
  self->bind_port = DEFAULT_BIND_PORT;
  self->send_duplicates = DEFAULT_SEND_DUPLICATES;
  self->gso = DEFAULT_GSO;
  self->max_coalesce = DEFAULT_MAX_COALESCE;
}

static void
weir_fanout_sink_finalize (GObject *object)
{
  WeirFanoutSink *self = WEIR_FANOUT_SINK (object);

  weir_fanout_sink_clear (self);
  g_hash_table_unref (self->by_key);
  weir_readers_free (&self->readers);
  g_clear_object (&self->socket);
  g_clear_object (&self->socket_v6);
  g_object_unref (self->cancellable);
  g_free (self->multicast_iface);
  g_free (self->bind_address);
  g_free (self->targets);
  g_free (self->results);
  g_mutex_clear (&self->control);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->work);
  g_cond_clear (&self->room);
  G_OBJECT_CLASS (weir_fanout_sink_parent_class)->finalize (object);
}

/* Class */

static void
install_multiudpsink_properties (GObjectClass *klass)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  g_object_class_install_property (klass, PROP_BYTES_TO_SERVE,
      g_param_spec_uint64 ("bytes-to-serve", "Bytes to serve",
          "Bytes that came in to be served to readers", 0, G_MAXUINT64, 0, ro));
  g_object_class_install_property (klass, PROP_BYTES_SERVED,
      g_param_spec_uint64 ("bytes-served", "Bytes served", "Bytes sent, to all readers together", 0,
          G_MAXUINT64, 0, ro));
  g_object_class_install_property (klass, PROP_SOCKET,
      g_param_spec_object ("socket", "Socket Handle",
          "Socket to send from (NULL = one is made). Read when the element starts", G_TYPE_SOCKET,
          rw));
  g_object_class_install_property (klass, PROP_SOCKET_V6,
      g_param_spec_object ("socket-v6", "Socket Handle IPv6",
          "Socket to send from over IPv6 (NULL = one is made). Read when the element starts",
          G_TYPE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_CLOSE_SOCKET,
      g_param_spec_boolean ("close-socket", "Close socket",
          "Close a socket that was given when the element stops", DEFAULT_CLOSE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_USED_SOCKET,
      g_param_spec_object ("used-socket", "Used Socket Handle",
          "Socket in use (NULL = none, the element is stopped)", G_TYPE_SOCKET, ro));
  g_object_class_install_property (klass, PROP_USED_SOCKET_V6,
      g_param_spec_object ("used-socket-v6", "Used Socket Handle IPv6",
          "Socket in use for IPv6 (NULL = none)", G_TYPE_SOCKET, ro));
  /**
   * WeirFanoutSink:clients:
   *
   * Readers as `host:port`, separated by commas; an IPv6 address stands in brackets. Setting it
   * removes the readers there are.
   */
  g_object_class_install_property (klass, PROP_CLIENTS,
      g_param_spec_string (
          "clients", "Clients", "Readers as host:port, separated by commas", NULL, rw));
  g_object_class_install_property (klass, PROP_AUTO_MULTICAST,
      g_param_spec_boolean ("auto-multicast", "Automatically join/leave multicast groups",
          "Join a multicast group when a reader in it is added", DEFAULT_AUTO_MULTICAST, rw));
  g_object_class_install_property (klass, PROP_MULTICAST_IFACE,
      g_param_spec_string ("multicast-iface", "Multicast Interface",
          "Network interface to send from and to join multicast groups on", NULL, rw));
  g_object_class_install_property (klass, PROP_TTL,
      g_param_spec_int ("ttl", "Unicast TTL", "Hops for unicast; taken when a reader is added", 0,
          255, DEFAULT_TTL, rw));
  g_object_class_install_property (klass, PROP_TTL_MC,
      g_param_spec_int ("ttl-mc", "Multicast TTL",
          "Hops for multicast; taken when a reader is added", 0, 255, DEFAULT_TTL_MC, rw));
  g_object_class_install_property (klass, PROP_LOOP,
      g_param_spec_boolean ("loop", "Multicast Loopback",
          "Let this machine receive its own multicast; taken when a reader is added", DEFAULT_LOOP,
          rw));
  g_object_class_install_property (klass, PROP_FORCE_IPV4,
      g_param_spec_boolean ("force-ipv4", "Force IPv4", "Has no effect (deprecated)",
          DEFAULT_FORCE_IPV4, rw | G_PARAM_DEPRECATED));
  g_object_class_install_property (klass, PROP_QOS_DSCP,
      g_param_spec_int ("qos-dscp", "QoS diff srv code point",
          "Differentiated services code point (-1 = leave as it is)", -1, 63, DEFAULT_QOS_DSCP,
          rw));
  g_object_class_install_property (klass, PROP_SEND_DUPLICATES,
      g_param_spec_boolean ("send-duplicates", "Send Duplicates",
          "Send to a reader as many times as it was added", DEFAULT_SEND_DUPLICATES, rw));
  g_object_class_install_property (klass, PROP_BUFFER_SIZE,
      g_param_spec_int ("buffer-size", "Buffer Size",
          "Size of the kernel's send buffer in bytes (0 = the system's default)", 0, G_MAXINT,
          DEFAULT_BUFFER_SIZE, rw));
  g_object_class_install_property (klass, PROP_BIND_ADDRESS,
      g_param_spec_string ("bind-address", "Bind Address", "Address to send from", NULL, rw));
  g_object_class_install_property (klass, PROP_BIND_PORT,
      g_param_spec_int ("bind-port", "Bind Port", "Port to send from (0 = any)", 0, G_MAXUINT16,
          DEFAULT_BIND_PORT, rw));
}

static void
install_own_properties (GObjectClass *klass)
{
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  /**
   * WeirFanoutSink:gso:
   *
   * Whether several packets go to a reader in one segmented send. `auto` stops doing so, for good,
   * for an address family on which the system refused one; `on` tries again with the next batch.
   * Either way what was refused is sent packet by packet. Setting another value begins anew.
   */
  g_object_class_install_property (klass, PROP_GSO,
      g_param_spec_enum ("gso", "Segmented sends", "Send several packets in one segmented send",
          WEIR_TYPE_FANOUT_SINK_GSO, DEFAULT_GSO, rw));
  /**
   * WeirFanoutSink:max-coalesce:
   *
   * The longest time in ns that a packet waits for the rest of its frame. 0: never longer than for
   * the rest of the buffer list with which it came.
   */
  g_object_class_install_property (klass, PROP_MAX_COALESCE,
      g_param_spec_uint64 ("max-coalesce", "Longest coalescing",
          "Longest time a packet waits for the rest of its frame, in ns (0 = none)", 0,
          10 * GST_SECOND, DEFAULT_MAX_COALESCE, rw));
  /**
   * WeirFanoutSink:fanout-stats:
   *
   * Sums since the element started: `readers` (now, #guint), and as #guint64 `packets-in`,
   * `bytes-in`, `packets-refused` (over 65507 bytes), `packets-due` (what all readers together
   * should have got), `packets-sent`, `bytes-sent`, `dropped` and by reason
   * `dropped-would-block`, `dropped-no-buffers`, `dropped-too-big`, `dropped-error`,
   * `dropped-flushed`; `batches`, `sends` (messages), `gso-sends` (of those, segmented),
   * `gso-fallbacks`, `waits` (for room in a socket). packets-due = packets-sent + dropped.
   */
  g_object_class_install_property (klass, PROP_FANOUT_STATS,
      g_param_spec_boxed ("fanout-stats", "Statistics of all readers",
          "Packets in, due, sent and dropped by reason, and sends, since the element started",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void
install_signals (GType type)
{
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  /**
   * WeirFanoutSink::add:
   * @host: the reader's address or name
   * @port: its port
   *
   * Adds a reader. One that was added several times has to be removed as many times.
   */
  signals[SIGNAL_ADD] =
      g_signal_new_class_handler ("add", type, action, G_CALLBACK (weir_fanout_sink_add), NULL,
          NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::remove:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   */
  signals[SIGNAL_REMOVE] =
      g_signal_new_class_handler ("remove", type, action, G_CALLBACK (weir_fanout_sink_remove),
          NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::clear:
   *
   * Removes all readers, without a signal for each.
   */
  signals[SIGNAL_CLEAR] = g_signal_new_class_handler (
      "clear", type, action, G_CALLBACK (weir_fanout_sink_clear), NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * WeirFanoutSink::get-stats:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * Returns: #guint64 fields `bytes-sent`, `packets-sent`, `connect-time` and `disconnect-time` (ns
   * since the epoch), `dropped`, and `dropped-` with each reason. Without fields if there is no
   * such reader.
   */
  signals[SIGNAL_GET_STATS] = g_signal_new_class_handler ("get-stats", type, action,
      G_CALLBACK (weir_fanout_sink_get_stats), NULL, NULL, NULL, GST_TYPE_STRUCTURE, 2,
      G_TYPE_STRING, G_TYPE_INT);
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
   * A reader was removed as often as it was added. Its statistics can still be asked.
   */
  signals[SIGNAL_CLIENT_REMOVED] = g_signal_new ("client-removed", type, G_SIGNAL_RUN_LAST, 0, NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
}

static void
weir_fanout_sink_class_init (WeirFanoutSinkClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSinkClass *sink_class = GST_BASE_SINK_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (fanoutsink_debug, "fanoutsink", 0, "One stream to many readers");

  gobject_class->set_property = weir_fanout_sink_set_property;
  gobject_class->get_property = weir_fanout_sink_get_property;
  gobject_class->finalize = weir_fanout_sink_finalize;
  element_class->change_state = weir_fanout_sink_change_state;
  sink_class->render = weir_fanout_sink_render;
  sink_class->render_list = weir_fanout_sink_render_list;
  sink_class->event = weir_fanout_sink_event;
  sink_class->start = weir_fanout_sink_start;
  sink_class->stop = weir_fanout_sink_stop;
  sink_class->unlock = weir_fanout_sink_unlock;
  sink_class->unlock_stop = weir_fanout_sink_unlock_stop;

  install_multiudpsink_properties (gobject_class);
  install_own_properties (gobject_class);
  install_signals (G_TYPE_FROM_CLASS (klass));

  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_GSO, 0);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_set_static_metadata (element_class, "Fan-out packet sender", "Sink/Network",
      "Serves one stream to many readers over UDP, a frame in one segmented send each", "Weir");
}
