// SPDX-License-Identifier: LGPL-2.1-or-later
// The statistics of one reader and of all readers.
#include "fanoutsink_private.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

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
  gst_structure_set (s, "keyframes-bitrate", G_TYPE_UINT64, (guint64) rates.key_bitrate,
      "references-bitrate", G_TYPE_UINT64, (guint64) rates.reference_bitrate, "last-keyframe",
      G_TYPE_UINT64, (guint64) rates.key_ns, NULL);
}

GstStructure *
fanout_readers_get_stats (WeirFanoutSink *self, const gchar *host, gint port)
{
  GstStructure *s = gst_structure_new_empty ("multiudpsink-stats");
  gchar *key = fanout_name_make_key (host ? host : "", port);
  gboolean kernel = fanout_clones_get_mode (self) != WEIR_KERNEL_OFF;
  const Name *name;

  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (!name && self->leaving && g_str_equal (self->leaving->key, key))
    name = self->leaving;
  if (name) {
    WeirReaderCounters c;

    weir_reader_counters (fanout_name_get_fanout (self, name), name->reader, weir_now_ns (), &c);
    gst_structure_set (s, "bytes-sent", G_TYPE_UINT64, (guint64) c.bytes, "packets-sent",
        G_TYPE_UINT64, (guint64) c.packets, "connect-time", G_TYPE_UINT64,
        (guint64) name->connect_ns, "disconnect-time", G_TYPE_UINT64, (guint64) name->disconnect_ns,
        "packets-due", G_TYPE_UINT64, (guint64) c.due, "lag-packets", G_TYPE_UINT64,
        (guint64) c.lag_packets, "lag", G_TYPE_UINT64, (guint64) MAX (c.lag_ns, 0), "state",
        G_TYPE_STRING, weir_reader_state_name (c.state), "catching-up", G_TYPE_BOOLEAN,
        c.catching_up, "priority", G_TYPE_UINT, c.priority, "delay", G_TYPE_UINT64,
        (guint64) MAX (c.delay_ns, 0), "paused", G_TYPE_BOOLEAN, c.paused, "moved", G_TYPE_UINT64,
        (guint64) c.moved, "resent", G_TYPE_UINT64, (guint64) c.resent, "resend-refused",
        G_TYPE_UINT64, (guint64) c.resend_refused, "probed", G_TYPE_UINT64, (guint64) c.probed,
        "kernel", G_TYPE_STRING, kernel ? weir_clones_name (c.clones) : "off", "guest",
        G_TYPE_BOOLEAN, name->guest_of != NULL, NULL);
    if (c.rtp_time_known)
      gst_structure_set (s, "rtptime", G_TYPE_UINT, (guint) c.rtp_time, NULL);
    set_drops (s, c.dropped);
    set_reader_layers (s, c.wanted_layers, c.current_layers);
  }
  g_mutex_unlock (&self->lock);

  if (!name)
    fanout_actions_warn_no_reader (self, "get-stats", host, port);
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
    failed = g_strdup (name->shown);
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
      (guint64) c.sends.fallbacks, "blocked", G_TYPE_UINT64, (guint64) c.sends.blocked, "triggers",
      G_TYPE_UINT64, (guint64) c.sends.triggers, "clones", G_TYPE_UINT64, (guint64) c.sends.clones,
      "clones-dropped", G_TYPE_UINT64, (guint64) c.sends.clones_dropped, "kernel-readers",
      G_TYPE_UINT, (guint) c.kernel_readers, NULL);
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
