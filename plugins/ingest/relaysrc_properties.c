// SPDX-License-Identifier: LGPL-2.1-or-later

// Properties and statistics of relaysrc.
#include "config.h"

#include "ingest/relaysrc_private.h"

enum {
  PROP_0,
  PROP_URI,
  PROP_SDP,
  PROP_TRACK,
  PROP_TICK,
  PROP_REORDER_PACKETS,
  PROP_REORDER_TIME,
  PROP_MAX_PACKETS,
  PROP_MAX_BYTES,
  PROP_STATS,
};

#define DEFAULT_REORDER_PACKETS 64
#define DEFAULT_REORDER_TIME (20 * GST_MSECOND)
#define MAX_REORDER_TIME (10 * GST_SECOND)
#define DEFAULT_MAX_PACKETS 2048
#define DEFAULT_MAX_BYTES (8 << 20)
#define MAX_TRACK 31

void
relay_src_init_settings (RelaySrcSettings *settings)
{
  *settings = (RelaySrcSettings) { .tick = WEIR_INGEST_TICK_NS,
    .reorder_packets = DEFAULT_REORDER_PACKETS,
    .reorder_time = DEFAULT_REORDER_TIME,
    .max_packets = DEFAULT_MAX_PACKETS,
    .max_bytes = DEFAULT_MAX_BYTES };
}

static void
add_drops (GstStructure *s, const WeirIngestStats *stats)
{
  for (guint i = 0; i < WEIR_INGEST_N_DROPS; i++) {
    gchar *field = g_strconcat ("dropped-", weir_ingest_drop_name (i), NULL);

    gst_structure_set (s, field, G_TYPE_UINT64, (guint64) stats->dropped[i], NULL);
    g_free (field);
  }
}

// The caller owns the result.
static GstStructure *
make_stats (WeirRelaySrc *self)
{
  WeirIngestStats stats;
  PacketQueue *queue = &self->queue;
  GstStructure *s;

  g_mutex_lock (&self->lock);
  if (self->input)
    weir_ingest_stats (self->input, &stats);
  else
    stats = self->stats;
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&queue->lock);
  s = gst_structure_new ("application/x-weir-relaysrc-stats", "packets", G_TYPE_UINT64,
      queue->n_taken, "queued", G_TYPE_UINT64, (guint64) queue->n, "dropped-overflow",
      G_TYPE_UINT64, queue->n_overflow, NULL);
  stats.dropped[WEIR_INGEST_FLUSHED] += queue->n_flushed;
  g_mutex_unlock (&queue->lock);
  gst_structure_set (s, "datagrams", G_TYPE_UINT64, (guint64) stats.datagrams, "bytes",
      G_TYPE_UINT64, (guint64) stats.bytes, "rtcp", G_TYPE_UINT64, (guint64) stats.rtcp, "held",
      G_TYPE_UINT64, (guint64) stats.held, "kernel-drops", G_TYPE_UINT64,
      (guint64) stats.kernel_drops, "lost", G_TYPE_UINT64, (guint64) stats.lost, "reordered",
      G_TYPE_UINT64, (guint64) stats.reordered, "senders", G_TYPE_UINT64, (guint64) stats.runs,
      "reports-sent", G_TYPE_UINT64, (guint64) stats.reports_sent, "keys-asked", G_TYPE_UINT64,
      (guint64) stats.keys_asked, "jitter", G_TYPE_UINT64, (guint64) stats.jitter_ns, "ssrc",
      G_TYPE_UINT, (guint) stats.ssrc, "bye", G_TYPE_BOOLEAN, (gboolean) stats.bye, "buffer",
      G_TYPE_UINT64, (guint64) stats.buffer, NULL);
  add_drops (s, &stats);
  return s;
}

static void
set_string (gchar **to, const GValue *value)
{
  g_free (*to);
  *to = g_value_dup_string (value);
}

void
relay_src_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (object);
  RelaySrcSettings *settings = &self->settings;

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_URI:
      set_string (&settings->uri, value);
      break;
    case PROP_SDP:
      set_string (&settings->sdp, value);
      break;
    case PROP_TRACK:
      settings->track = g_value_get_uint (value);
      break;
    case PROP_TICK:
      settings->tick = g_value_get_uint64 (value);
      break;
    case PROP_REORDER_PACKETS:
      settings->reorder_packets = g_value_get_uint (value);
      break;
    case PROP_REORDER_TIME:
      settings->reorder_time = g_value_get_uint64 (value);
      break;
    case PROP_MAX_PACKETS:
      settings->max_packets = g_value_get_uint (value);
      break;
    case PROP_MAX_BYTES:
      settings->max_bytes = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

void
relay_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (object);
  const RelaySrcSettings *settings = &self->settings;

  if (id == PROP_STATS) {
    g_value_take_boxed (value, make_stats (self));
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_URI:
      g_value_set_string (value, settings->uri);
      break;
    case PROP_SDP:
      g_value_set_string (value, settings->sdp);
      break;
    case PROP_TRACK:
      g_value_set_uint (value, settings->track);
      break;
    case PROP_TICK:
      g_value_set_uint64 (value, settings->tick);
      break;
    case PROP_REORDER_PACKETS:
      g_value_set_uint (value, settings->reorder_packets);
      break;
    case PROP_REORDER_TIME:
      g_value_set_uint64 (value, settings->reorder_time);
      break;
    case PROP_MAX_PACKETS:
      g_value_set_uint (value, settings->max_packets);
      break;
    case PROP_MAX_BYTES:
      g_value_set_uint (value, settings->max_bytes);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

#define FLAGS (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY)

static void
install_source_properties (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_URI,
      g_param_spec_string ("uri", "URI",
          "rtp://ADDR:PORT?encoding-name=NAME&payload=N (also clock-rate, media, iface, and format "
          "parameters), or sdp:///FILE; unused if sdp is set",
          NULL, FLAGS));
  g_object_class_install_property (klass, PROP_SDP,
      g_param_spec_string ("sdp", "SDP", "Text of a session description", NULL, FLAGS));
  g_object_class_install_property (klass, PROP_TRACK,
      g_param_spec_uint ("track", "Track",
          "Number of the track in the session description, from 0; only tracks of RTP count", 0,
          MAX_TRACK, 0, FLAGS));
  g_object_class_install_property (klass, PROP_TICK,
      g_param_spec_uint64 ("tick", "Tick",
          "Shortest time in ns between two wakes of a receiving thread; 0 receives each packet at "
          "once",
          0, WEIR_INGEST_TICK_MAX_NS, WEIR_INGEST_TICK_NS, FLAGS));
}

static void
install_limit_properties (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_REORDER_PACKETS,
      g_param_spec_uint ("reorder-packets", "Reorder packets",
          "Size of the reorder window in packets; 0 pushes packets as they come", 0,
          WEIR_REORDER_PACKETS_MAX, DEFAULT_REORDER_PACKETS, FLAGS));
  g_object_class_install_property (klass, PROP_REORDER_TIME,
      g_param_spec_uint64 ("reorder-time", "Reorder time",
          "Longest time in ns that packets wait for a missing one; 0 pushes packets as they come",
          0, MAX_REORDER_TIME, DEFAULT_REORDER_TIME, FLAGS));
  g_object_class_install_property (klass, PROP_MAX_PACKETS,
      g_param_spec_uint ("max-packets", "Maximum packets",
          "Most packets that wait for the pipeline; further packets are dropped", 1, 65536,
          DEFAULT_MAX_PACKETS, FLAGS));
  g_object_class_install_property (klass, PROP_MAX_BYTES,
      g_param_spec_uint ("max-bytes", "Maximum bytes",
          "Most bytes that wait for the pipeline; further packets are dropped", 65536, G_MAXINT,
          DEFAULT_MAX_BYTES, FLAGS));
  /**
   * WeirRelaySrc:stats:
   *
   * Counts since the element went to PAUSED, #guint64 unless said otherwise. Each datagram is in
   * one of `packets` (pushed), `queued`, `held` (in the reorder window), `rtcp`, and the fields
   * that begin with `dropped-`. The page of the element explains all fields.
   */
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics", "Numbers of packets received, dropped and lost",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

void
relay_src_install_properties (GObjectClass *klass)
{
  install_source_properties (klass);
  install_limit_properties (klass);
}
