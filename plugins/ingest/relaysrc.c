// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-relaysrc
 * @title: relaysrc
 * @short_description: receives one RTP stream over UDP, on threads shared by all relaysrc
 *
 * Receives one track of RTP over UDP, unicast or multicast, and pushes its packets as they came,
 * with their times of arrival. #WeirRelaySrc:uri says where and what: a `rtp://` URI with the
 * format in its query, or a session description, of which #WeirRelaySrc:track chooses the track.
 * Use one element for each track.
 *
 * The element restores the order of packets, within #WeirRelaySrc:reorder-packets and
 * #WeirRelaySrc:reorder-time. It refuses duplicates, packets of other payload types, and packets of
 * senders other than the first; another sender may take over after a second of silence. It sends
 * receiver reports, and keyframe requests (`GstForceKeyUnit`) if the session description has
 * `a=rtcp-fb` with PLI or FIR.
 *
 * This is a live source. Both timestamps of a buffer are the running time at which the kernel
 * received the packet. They never decrease. DISCONT marks the first buffer, the first one behind a
 * gap that was given up, and the first one of another sender.
 *
 * Threads: all elements of a process with the same #WeirRelaySrc:tick receive on shared threads,
 * one for each two processors, which wake once a tick while packets come. A shared thread must not
 * wait for a pipeline, or a slow one would delay all others. So it only puts packets into a bounded
 * queue, from which the element's own streaming thread pushes them. If the pipeline is too slow and
 * the queue is full (#WeirRelaySrc:max-packets, #WeirRelaySrc:max-bytes), new packets are dropped
 * and counted.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 ! rtpvp8pay ! udpsink host=127.0.0.1 port=5004
 * gst-launch-1.0 relaysrc uri="rtp://127.0.0.1:5004?encoding-name=VP8&payload=96" ! rtpjitterbuffer ! rtpvp8depay ! vp8dec ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include <unistd.h>

#include "core/ingest/udp.h"
#include "core/run/clock.h"
#include "elementname.h"
#include "ingest/description.h"
#include "ingest/relaysrc_private.h"
#include "ingest/sharedingest.h"
#include "keyevent.h"

GST_DEBUG_CATEGORY_STATIC (relaysrc_debug);
#define GST_CAT_DEFAULT relaysrc_debug

#define REORDER_BYTES (1 << 20) // most bytes that wait behind a gap
#define REPORT_INTERVAL (5 * GST_SECOND)

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));

G_DEFINE_FINAL_TYPE (WeirRelaySrc, weir_relay_src, GST_TYPE_PUSH_SRC)
GST_ELEMENT_REGISTER_DEFINE (relaysrc, "relaysrc", GST_RANK_NONE, WEIR_TYPE_RELAY_SRC)

// ---- receiving, on a shared thread ----

static void
on_packet (void *data, const WeirIngestPacket *packet)
{
  packet_queue_add (&((WeirRelaySrc *) data)->queue, packet);
}

static void
on_settled (void *data)
{
  packet_queue_signal (&((WeirRelaySrc *) data)->queue);
}

static const WeirIngestOps ingest_ops = { .track = { .packet = on_packet }, .settled = on_settled };

// ---- pushing, on the streaming thread ----

// Returns the running time now; GST_CLOCK_TIME_NONE without a clock.
static GstClockTime
running_time (WeirRelaySrc *self)
{
  GstClockTime base = gst_element_get_base_time (GST_ELEMENT (self)), now;
  GstClock *clock = gst_element_get_clock (GST_ELEMENT (self));

  if (!clock)
    return GST_CLOCK_TIME_NONE;
  now = gst_clock_get_time (clock);
  gst_object_unref (clock);
  return now > base ? now - base : 0;
}

// Stamps a packet with the running time of its arrival.
static void
stamp (WeirRelaySrc *self, const QueuedPacket *packet)
{
  GstClockTime now = running_time (self);
  GstClockTime age = (GstClockTime) MAX (weir_now_ns () - packet->arrival_ns, 0);

  if (!GST_CLOCK_TIME_IS_VALID (now))
    return;
  self->last = MAX (now > age ? now - age : 0, self->last);
  GST_BUFFER_PTS (packet->buffer) = GST_BUFFER_DTS (packet->buffer) = self->last;
}

// One buffer at a time: with gst_base_src_submit_buffer_list(), GStreamer 1.22 unrefs NULL if the
// element stops meanwhile.
static GstFlowReturn
weir_relay_src_create (GstPushSrc *push, GstBuffer **buffer)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (push);
  QueuedPacket packet;

  if (!packet_queue_take (&self->queue, &packet))
    return GST_FLOW_FLUSHING;
  stamp (self, &packet);
  *buffer = packet.buffer;
  return GST_FLOW_OK;
}

static gboolean
weir_relay_src_unlock (GstBaseSrc *base)
{
  packet_queue_set_flushing (&WEIR_RELAY_SRC (base)->queue, TRUE);
  return TRUE;
}

static gboolean
weir_relay_src_unlock_stop (GstBaseSrc *base)
{
  packet_queue_set_flushing (&WEIR_RELAY_SRC (base)->queue, FALSE);
  return TRUE;
}

// ---- start and stop ----

static RelaySrcSettings
dup_settings (WeirRelaySrc *self)
{
  RelaySrcSettings settings;

  GST_OBJECT_LOCK (self);
  settings = self->settings;
  settings.uri = g_strdup (settings.uri);
  settings.sdp = g_strdup (settings.sdp);
  GST_OBJECT_UNLOCK (self);
  return settings;
}

static gboolean
read_description (const RelaySrcSettings *settings, RelayDescription *out, GError **error)
{
  if (settings->sdp)
    return relay_description_from_sdp (settings->sdp, settings->track, out, error);
  if (settings->uri)
    return relay_description_from_uri (settings->uri, settings->track, out, error);
  g_set_error_literal (
      error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, "neither uri nor sdp is set");
  return FALSE;
}

static gboolean
open_socket (const RelayDescription *from, guint16 port, gboolean gro, gint *fd, GError **error)
{
  WeirAddress address = from->rtp;

  if (address.any.sa_family == AF_INET6)
    address.v6.sin6_port = g_htons (port);
  else
    address.v4.sin_port = g_htons (port);
  *fd = weir_udp_open (&address, from->iface, 0, gro);
  if (*fd >= 0)
    return TRUE;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ,
      "cannot receive on port %u: %s", port, g_strerror (-*fd));
  return FALSE;
}

static gboolean
open_sockets (const RelayDescription *from, WeirIngestSockets *out, GError **error)
{
  guint16 port = g_ntohs (
      from->rtp.any.sa_family == AF_INET6 ? from->rtp.v6.sin6_port : from->rtp.v4.sin_port);

  *out = WEIR_INGEST_NO_SOCKETS;
  if (!open_socket (from, port, TRUE, &out->rtp, error))
    return FALSE;
  if (from->rtcp_port == port || open_socket (from, from->rtcp_port, FALSE, &out->rtcp, error))
    return TRUE;
  close (out->rtp);
  return FALSE;
}

static WeirKeyRequest
key_request_of (const GstStructure *s)
{
  gboolean takes = FALSE;

  if (gst_structure_get_boolean (s, "rtcp-fb-nack-pli", &takes) && takes)
    return WEIR_KEY_PLI;
  return gst_structure_get_boolean (s, "rtcp-fb-ccm-fir", &takes) && takes ? WEIR_KEY_FIR
                                                                           : WEIR_KEY_NONE;
}

static WeirTrackSettings
track_settings (const RelaySrcSettings *settings, const RelayDescription *from, gboolean mux)
{
  const GstStructure *s = gst_caps_get_structure (from->caps, 0);
  WeirTrackSettings track = { .reorder = { settings->reorder_packets, REORDER_BYTES,
                                  (gint64) settings->reorder_time },
    .rtcp_mux = mux,
    .key = key_request_of (s),
    .report_interval_ns = REPORT_INTERVAL,
    .ssrc = g_random_int () };
  gint payload = 0, rate = 0;

  gst_structure_get_int (s, "payload", &payload);
  gst_structure_get_int (s, "clock-rate", &rate);
  track.payload_types[payload / 64 & 1] = G_GUINT64_CONSTANT (1) << (payload % 64);
  track.clock_rate = (guint32) MAX (rate, 0);
  // A name for this session only (RFC 7022).
  g_snprintf (track.cname, sizeof track.cname, "%08x%08x%08x", g_random_int (), g_random_int (),
      g_random_int ());
  return track;
}

static gboolean
begin_tracks (WeirRelaySrc *self, const RelaySrcSettings *settings, const RelayDescription *from,
    GError **error)
{
  WeirIngestSockets sockets;
  WeirTrackSettings track;
  gint result;

  if (!open_sockets (from, &sockets, error))
    return FALSE;
  track = track_settings (settings, from, sockets.rtcp < 0);
  packet_queue_open (&self->queue, settings->max_packets, settings->max_bytes);
  self->last = 0;
  g_mutex_lock (&self->lock);
  self->engine = weir_shared_ingest_ref ((gint64) settings->tick);
  result = weir_ingest_add (self->engine, &track, sockets, &ingest_ops, self, &self->input);
  g_mutex_unlock (&self->lock);
  if (result == 0)
    return TRUE;
  packet_queue_close (&self->queue);
  weir_shared_ingest_unref (g_steal_pointer (&self->engine));
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, "cannot start to receive: %s",
      g_strerror (-result));
  return FALSE;
}

static gboolean
weir_relay_src_start (GstBaseSrc *base)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (base);
  RelaySrcSettings settings = dup_settings (self);
  RelayDescription from = { 0 };
  GError *error = NULL;
  gboolean ok = read_description (&settings, &from, &error);

  ok = ok && begin_tracks (self, &settings, &from, &error);
  if (ok) {
    GST_OBJECT_LOCK (self);
    gst_caps_replace (&self->caps, from.caps);
    GST_OBJECT_UNLOCK (self);
  }
  if (!ok) {
    gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR,
        error->domain == GST_RESOURCE_ERROR ? error->code : GST_RESOURCE_ERROR_SETTINGS,
        g_strdup_printf ("relaysrc: %s", error->message), NULL, __FILE__, GST_FUNCTION, __LINE__);
    g_clear_error (&error);
  }
  relay_description_clear (&from);
  g_free (settings.uri);
  g_free (settings.sdp);
  return ok;
}

static gboolean
weir_relay_src_stop (GstBaseSrc *base)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (base);
  WeirIngestTrack *input;
  WeirIngest *engine;
  WeirIngestStats last = { 0 };

  g_mutex_lock (&self->lock);
  input = g_steal_pointer (&self->input);
  engine = g_steal_pointer (&self->engine);
  g_mutex_unlock (&self->lock);
  if (input)
    weir_ingest_remove (input, &last);
  if (engine)
    weir_shared_ingest_unref (engine);
  packet_queue_close (&self->queue);
  g_mutex_lock (&self->lock);
  self->stats = last;
  g_mutex_unlock (&self->lock);
  GST_OBJECT_LOCK (self);
  gst_clear_caps (&self->caps);
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

// ---- caps, queries and events ----

static GstCaps *
weir_relay_src_get_caps (GstBaseSrc *base, GstCaps *filter)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (base);
  GstCaps *caps, *both;

  GST_OBJECT_LOCK (self);
  caps = self->caps ? gst_caps_ref (self->caps) : NULL;
  GST_OBJECT_UNLOCK (self);
  if (!caps)
    caps = gst_pad_get_pad_template_caps (base->srcpad);
  if (!filter)
    return caps;
  both = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (caps);
  return both;
}

static gboolean
weir_relay_src_query (GstBaseSrc *base, GstQuery *query)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (base);
  GstClockTime latency;

  if (GST_QUERY_TYPE (query) != GST_QUERY_LATENCY)
    return GST_BASE_SRC_CLASS (weir_relay_src_parent_class)->query (base, query);
  GST_OBJECT_LOCK (self);
  latency =
      self->settings.tick + (self->settings.reorder_packets > 0 ? self->settings.reorder_time : 0);
  GST_OBJECT_UNLOCK (self);
  gst_query_set_latency (query, TRUE, latency, GST_CLOCK_TIME_NONE);
  return TRUE;
}

static gboolean
weir_relay_src_event (GstBaseSrc *base, GstEvent *event)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (base);

  if (!weir_key_event_is (event))
    return GST_BASE_SRC_CLASS (weir_relay_src_parent_class)->event (base, event);
  g_mutex_lock (&self->lock);
  if (self->input)
    weir_ingest_ask_key (self->input);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

// ---- life ----

static void
weir_relay_src_init (WeirRelaySrc *self)
{
  relay_src_init_settings (&self->settings);
  g_mutex_init (&self->lock);
  packet_queue_init (&self->queue);
  gst_base_src_set_live (GST_BASE_SRC (self), TRUE);
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}

static void
weir_relay_src_finalize (GObject *object)
{
  WeirRelaySrc *self = WEIR_RELAY_SRC (object);

  packet_queue_clear (&self->queue);
  g_mutex_clear (&self->lock);
  g_free (self->settings.uri);
  g_free (self->settings.sdp);
  G_OBJECT_CLASS (weir_relay_src_parent_class)->finalize (object);
}

static void
weir_relay_src_class_init (WeirRelaySrcClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *base_class = GST_BASE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (relaysrc_debug, "relaysrc", 0, "RTP receiver");

  gobject_class->set_property = relay_src_set_property;
  gobject_class->get_property = relay_src_get_property;
  gobject_class->finalize = weir_relay_src_finalize;
  base_class->start = weir_relay_src_start;
  base_class->stop = weir_relay_src_stop;
  base_class->unlock = weir_relay_src_unlock;
  base_class->unlock_stop = weir_relay_src_unlock_stop;
  base_class->get_caps = weir_relay_src_get_caps;
  base_class->query = weir_relay_src_query;
  base_class->event = weir_relay_src_event;
  GST_PUSH_SRC_CLASS (klass)->create = weir_relay_src_create;

  relay_src_install_properties (gobject_class);

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "RTP receiver", "Source/Network/RTP",
      "Receives one RTP stream over UDP, on threads shared by all relaysrc", "Weir");
}
