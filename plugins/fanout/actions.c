// SPDX-License-Identifier: LGPL-2.1-or-later
// The handlers of the action signals for one reader, or for packets of the window.
#include "fanoutsink_private.h"

#include "srtp.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

#define QUALITY_LAYERS 16
#define TEMPORAL_LAYERS 8

void
fanout_actions_warn_no_reader (
    WeirFanoutSink *self, const gchar *action, const gchar *host, gint port)
{
  if (host)
    GST_WARNING_OBJECT (self, "%s: no reader %s port %d", action, host, port);
  else
    GST_WARNING_OBJECT (self, "%s: host is missing", action);
}

GstStructure *
fanout_actions_plan (WeirFanoutSink *self, const gchar *host, gint port)
{
  gint64 now_ns = weir_now_ns ();
  WeirPlan plan = { 0 };
  GstStructure *s = NULL;
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    weir_fanout_next (fanout_name_get_fanout (self, name), name->reader, now_ns, &plan);
  g_mutex_unlock (&self->control);
  if (!name && host) {
    g_mutex_lock (&self->lock);
    fanout_readers_make_plan (
        self, fanout_readers_get_coming (self, host, port, now_ns), now_ns, &plan);
    g_mutex_unlock (&self->lock);
    plan.seq = weir_srtp_map_seq (host, plan.seq);
  }

  if (plan.known)
    s = gst_structure_new ("fanoutsink-plan", "seq", G_TYPE_UINT, (guint) plan.seq, "delay",
        G_TYPE_UINT64, (guint64) MAX (plan.delay_ns, 0), "moved", G_TYPE_BOOLEAN, plan.moved, NULL);
  if (plan.rtp_time_known)
    gst_structure_set (s, "rtptime", G_TYPE_UINT, plan.rtp_time, NULL);
  return s;
}

gboolean
fanout_actions_set_priority (WeirFanoutSink *self, const gchar *host, gint port, guint priority)
{
  Name *name;
  int r = 0;

  if (priority >= WEIR_PRIORITIES) {
    GST_WARNING_OBJECT (
        self, "set-priority: priority must be from 0 to %d, not %u", WEIR_PRIORITIES - 1, priority);
    return FALSE;
  }
  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    r = weir_fanout_set_priority (fanout_name_get_fanout (self, name), name->reader, priority);
  g_mutex_unlock (&self->control);
  if (!name)
    fanout_actions_warn_no_reader (self, "set-priority", host, port);
  else if (r < 0)
    GST_WARNING_OBJECT (self, "set-priority: %s port %d: %s", host, port, g_strerror (-r));
  return name && r == 0;
}

static gboolean
is_layer (WeirFanoutSink *self, const gchar *argument, gint layer, gint n_layers)
{
  if (layer >= -1 && layer < n_layers)
    return TRUE;
  GST_WARNING_OBJECT (
      self, "set-layers: %s must be from -1 to %d, not %d", argument, n_layers - 1, layer);
  return FALSE;
}

gboolean
fanout_actions_set_layers (
    WeirFanoutSink *self, const gchar *host, gint port, gint spatial, gint quality, gint temporal)
{
  WeirLayerSet layers = { (gint8) spatial, (gint8) temporal, (gint8) quality };
  Coming *coming;
  gchar *key;
  Name *name;

  if (!host) {
    fanout_actions_warn_no_reader (self, "set-layers", host, port);
    return FALSE;
  }
  if (!is_layer (self, "spatial", spatial, WEIR_SPATIAL_LAYERS)
      || !is_layer (self, "quality", quality, QUALITY_LAYERS)
      || !is_layer (self, "temporal", temporal, TEMPORAL_LAYERS))
    return FALSE;
  key = fanout_name_make_key (host, port);
  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name)
    weir_reader_set_layers (name->reader, layers);
  else if ((coming = fanout_readers_get_coming (self, host, port, weir_now_ns ())))
    coming->layers = layers;
  g_mutex_unlock (&self->lock);
  g_free (key);
  return name != NULL;
}

gboolean
fanout_actions_restrict (WeirFanoutSink *self, const gchar *host, gint port, guint restriction)
{
  Name *name;

  if (restriction > WEIR_READER_KEYFRAMES) {
    GST_WARNING_OBJECT (self, "restrict: the restriction must be from 0 to %d, not %u",
        WEIR_READER_KEYFRAMES, restriction);
    return FALSE;
  }
  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    weir_reader_restrict (name->reader, (WeirReaderState) restriction);
  g_mutex_unlock (&self->control);
  if (!name)
    fanout_actions_warn_no_reader (self, "restrict", host, port);
  return name != NULL;
}

// Describes an error of the engine, which refuses multicast groups with -EINVAL.
static const gchar *
why_not (int error)
{
  return error == -EINVAL ? "a multicast group is always at the live edge" : g_strerror (-error);
}

gboolean
fanout_actions_set_delay (WeirFanoutSink *self, const gchar *host, gint port, guint64 delay)
{
  gint64 delay_ns = delay < WEIR_DELAY_OLDEST ? (gint64) delay : WEIR_DELAY_OLDEST;
  int r = -ENOENT;
  Coming *coming;
  Name *name;

  if (delay_ns > 0)
    fanout_properties_keep_window (self);
  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    name->own_delay = TRUE;
  if (name)
    r = weir_fanout_set_delay (
        fanout_name_get_fanout (self, name), name->reader, delay_ns, weir_now_ns (), NULL);
  g_mutex_unlock (&self->control);
  if (!host)
    fanout_actions_warn_no_reader (self, "set-delay", host, port);
  if (name && r < 0)
    GST_WARNING_OBJECT (self, "set-delay: %s port %d: %s", host, port, why_not (r));
  if (!name && host) {
    g_mutex_lock (&self->lock);
    coming = fanout_readers_get_coming (self, host, port, weir_now_ns ());
    if (coming) {
      coming->delay_ns = delay_ns;
      coming->planned = FALSE;
    }
    g_mutex_unlock (&self->lock);
  }
  return r == 0;
}

// Returns FALSE if there is no such reader, or it is a multicast group.
static gboolean
set_paused (WeirFanoutSink *self, const gchar *host, gint port, gboolean paused)
{
  const gchar *action = paused ? "pause" : "resume";
  int r = 0;
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name && paused)
    r = weir_fanout_pause (fanout_name_get_fanout (self, name), name->reader, weir_now_ns ());
  else if (name)
    r = weir_fanout_resume (
        fanout_name_get_fanout (self, name), name->reader, weir_now_ns (), NULL);
  g_mutex_unlock (&self->control);
  if (!name)
    fanout_actions_warn_no_reader (self, action, host, port);
  else if (r < 0)
    GST_WARNING_OBJECT (self, "%s: %s port %d: %s", action, host, port, why_not (r));
  return name && r == 0;
}

gboolean
fanout_actions_pause (WeirFanoutSink *self, const gchar *host, gint port)
{
  return set_paused (self, host, port, TRUE);
}

gboolean
fanout_actions_resume (WeirFanoutSink *self, const gchar *host, gint port)
{
  return set_paused (self, host, port, FALSE);
}

gboolean
fanout_actions_rejoin (WeirFanoutSink *self, const gchar *host, gint port)
{
  gboolean joins;
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  joins = name
          && weir_fanout_rejoin (fanout_name_get_fanout (self, name), name->reader, weir_now_ns ());
  g_mutex_unlock (&self->control);
  return joins;
}

// A reader, and the sink whose window serves it.
typedef struct {
  WeirReader *reader; // NULL: there is none
  WeirFanoutSink *at;
} Served;

// Returns references.
static Served
ref_served (WeirFanoutSink *self, const gchar *host, gint port)
{
  Served served = { NULL, NULL };
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    served = (Served) { weir_reader_ref (name->reader),
      g_object_ref (name->guest_of ? name->guest_of : self) };
  g_mutex_unlock (&self->control);
  return served;
}

static void
unref_served (Served *served)
{
  weir_reader_unref (served->reader);
  g_object_unref (served->at);
}

guint
fanout_actions_resend (
    WeirFanoutSink *self, const gchar *host, gint port, GBytes *seqs, guint64 round_trip)
{
  gsize size = 0;
  const guint8 *data = seqs ? g_bytes_get_data (seqs, &size) : NULL;
  Served served = { NULL, NULL };
  guint16 *copy;
  guint n_sent;

  if (data)
    served = ref_served (self, host, port);
  if (!served.reader)
    return 0;
  copy = g_memdup2 (data, size); // aligned
  n_sent = weir_fanout_resend (served.at->fanout, served.reader, copy, size / sizeof *copy,
      (gint64) MIN (round_trip, GST_SECOND), weir_now_ns ());
  g_free (copy);
  unref_served (&served);
  return n_sent;
}

gboolean
fanout_actions_probe (
    WeirFanoutSink *self, const gchar *host, gint port, guint64 bits, guint duration)
{
  Served served = ref_served (self, host, port);
  gboolean probes;

  if (!served.reader)
    return FALSE;
  probes = weir_fanout_probe (served.at->fanout, served.reader, bits,
               (gint64) duration * GST_MSECOND, weir_now_ns ())
           == 0;
  unref_served (&served);
  return probes;
}

// Copies RTP packets of a span to `list`, and adds their number to `*n`.
static void
copy_packets (const WeirSpan *span, GstBufferList *list, guint *n, guint n_max)
{
  for (size_t i = 0; i < span->n && *n < n_max; i++) {
    const WeirPacket *packet = &span->packets[i];

    if (!(packet->flags & WEIR_PACKET_RTP))
      continue;
    gst_buffer_list_add (list, gst_buffer_new_memdup (weir_packet_data (packet), packet->length));
    ++*n;
  }
}

GstBufferList *
fanout_actions_get_packets (WeirFanoutSink *self, gint from, guint n_max)
{
  GstBufferList *list = gst_buffer_list_new ();
  gint64 position = weir_fanout_find (self->fanout, from < 0 ? -1 : from & 0xffff);
  guint n = 0;
  WeirSpan span;

  while (n < n_max && weir_fanout_span (self->fanout, position, &span)) {
    copy_packets (&span, list, &n, n_max);
    position = span.first + (gint64) span.n;
    weir_span_clear (&span);
  }
  return list;
}
