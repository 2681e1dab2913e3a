// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reads the receiver reports of UDP readers before gst-rtsp-server's RTP session does.
//
// The RTP session would keep a source with statistics and timers for each reader, and search all
// readers by address text at the first report, only to keep an RTSP session alive. Here that takes
// one look-up in a hash table. Any host can send RTCP to the port and make the RTP session keep a
// source for each invented SSRC, so packets that gst-rtsp-server does not need are counted and
// dropped.
//
// gst-rtsp-server still gets feedback (RFC 4585), RTCP of connections that it serves itself, and,
// if the stream is available by multicast, RTCP from unknown addresses. With its own SRTP it gets
// all RTCP, because that cannot be read here. RTCP of a reader that uses Weir's SRTP is decrypted
// first; what is not authentic is dropped, and is no sign of life.

#include "reports.h"

#include <errno.h>

#include <gst/net/gstnetaddressmeta.h>

#include "feedback.h"
#include "gioaddress.h"
#include "life.h"
#include "relaymedia.h"
#include "rtp/rtcp_read.h"
#include "srtp.h"
#include "weir-rtsp.h"

#define SECURE (GST_RTSP_PROFILE_SAVP | GST_RTSP_PROFILE_SAVPF)

typedef struct _Reader Reader;

// An address from which a reader sends RTCP. If several readers have the same address, its packets
// count for the newest reader.
typedef struct _Origin {
  WeirAddress address;
  Reader *reader; // NULL if the origin is not in the table
  struct _Origin *older;
} Origin;

// The state of a stream. The probes on its pads and its readers have references.
typedef struct {
  gboolean multicast, secure;

  GMutex lock;         // guards all below; only weir_life_touch() takes another lock under it
  GHashTable *origins; // WeirAddress of an Origin -> that Origin
  WeirSrLog sent;
  guint64 n_reports, n_passed, n_strangers, n_malformed;
} Reports;

// A reader: qdata of its transport.
struct _Reader {
  Reports *reports;
  Life *life;
  GObject *srtp;   // a WeirSrtp, or NULL
  gboolean secret; // which encrypts
  Origin rtp, rtcp;
  guint64 *n_stored; // changes of `block`; atomic, with references of the program

  // Guarded by the lock of `reports`.
  guint64 n_reports;
  gboolean known; // whether the fields below are valid
  WeirRtcpBlock block;
  gint64 received_ns, round_trip_ns;
};

static GQuark
reports_quark (void)
{
  return g_quark_from_static_string ("weir-reports");
}

static GQuark
reader_quark (void)
{
  return g_quark_from_static_string ("weir-reader");
}

static gint64
now_ns (void)
{
  return g_get_monotonic_time () * 1000;
}

// ---- addresses ----

static guint
hash_address (gconstpointer key)
{
  const WeirAddress *address = key;
  const guint8 *bytes = key;
  guint32 hash = 2166136261u;

  for (socklen_t i = 0; i < weir_address_len (address); i++)
    hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static gboolean
equal_addresses (gconstpointer a, gconstpointer b)
{
  const WeirAddress *x = a, *y = b;

  return x->any.sa_family == y->any.sa_family && memcmp (x, y, weir_address_len (x)) == 0;
}

// A transport's destination lacks the scope of a link-local address.
static void
clear_scope (WeirAddress *address)
{
  if (address->any.sa_family == AF_INET6)
    address->v6.sin6_scope_id = 0;
}

static gboolean
make_address (const gchar *host, gint port, WeirAddress *out)
{
  if (!weir_address_from_text (host, port, out))
    return FALSE;
  clear_scope (out);
  return TRUE;
}

// ---- readers ----

static void
add_origin (Reports *self, Origin *origin, Reader *reader)
{
  origin->reader = reader;
  origin->older = g_hash_table_lookup (self->origins, &origin->address);
  g_hash_table_replace (self->origins, &origin->address, origin);
}

static void
remove_origin (Reports *self, Origin *origin)
{
  Origin *newest = origin->reader ? g_hash_table_lookup (self->origins, &origin->address) : NULL;

  if (newest == origin && origin->older)
    g_hash_table_replace (self->origins, &origin->older->address, origin->older);
  else if (newest == origin)
    g_hash_table_remove (self->origins, &origin->address);
  for (; newest && newest != origin; newest = newest->older) {
    if (newest->older == origin) {
      newest->older = origin->older;
      break;
    }
  }
}

static void
clear_reports (gpointer data)
{
  Reports *self = data;

  g_hash_table_unref (self->origins);
  g_mutex_clear (&self->lock);
}

static void
unref_reports (gpointer reports)
{
  g_atomic_rc_box_release_full (reports, clear_reports);
}

static void
clear_reader (gpointer data)
{
  Reader *self = data;

  g_mutex_lock (&self->reports->lock);
  remove_origin (self->reports, &self->rtp);
  remove_origin (self->reports, &self->rtcp);
  g_mutex_unlock (&self->reports->lock);
  unref_reports (self->reports);
  g_atomic_rc_box_release (self->n_stored);
  weir_life_unref (self->life);
  g_clear_object (&self->srtp);
}

static void
unref_reader (gpointer reader)
{
  g_atomic_rc_box_release_full (reader, clear_reader);
}

static gpointer
ref_reader (gpointer reader, gpointer unused)
{
  return reader ? g_atomic_rc_box_acquire (reader) : NULL;
}

static Reader *
reader_new (Reports *reports, GstRTSPSession *session, GstRTSPStreamTransport *served)
{
  const GstRTSPTransport *transport = gst_rtsp_stream_transport_get_transport (served);
  const GstRTSPRange *ports = &transport->client_port;
  Reader *self = g_atomic_rc_box_new0 (Reader);

  self->reports = g_atomic_rc_box_acquire (reports);
  self->n_stored = g_atomic_rc_box_new0 (guint64);
  self->life = weir_life_of (session);
  self->srtp = weir_srtp_dup (served);
  self->secret = weir_transport_has_srtp (served);
  weir_life_set_heard (self->life, FALSE);
  g_mutex_lock (&reports->lock);
  // Some readers send reports from their RTP port.
  if (make_address (transport->destination, ports->min, &self->rtp.address))
    add_origin (reports, &self->rtp, self);
  if (ports->max != ports->min
      && make_address (transport->destination, ports->max, &self->rtcp.address))
    add_origin (reports, &self->rtcp, self);
  g_mutex_unlock (&reports->lock);
  return self;
}

// ---- reports ----

// Stores the report block about this stream. A report without one still keeps the reader's session
// alive.
static void
note_blocks (Reports *self, Reader *reader, const WeirRtcpReport *report, gint64 now)
{
  for (gsize i = 0; i < report->n_blocks; i++) {
    if (!weir_sr_log_has (&self->sent, report->blocks[i].ssrc))
      continue;
    reader->known = TRUE;
    reader->block = report->blocks[i];
    reader->received_ns = now;
    reader->round_trip_ns = weir_sr_log_round_trip (&self->sent, &reader->block, now);
    __atomic_add_fetch (reader->n_stored, 1, __ATOMIC_RELAXED);
    return;
  }
}

static GstPadProbeReturn
take_from_reader (Reports *self, Reader *reader, int status, const WeirRtcpReport *report)
{
  gboolean passes = status < 0 || report->more;

  // A BYE does not keep the session alive.
  if (status < 0 || !report->bye)
    weir_life_touch (reader->life);
  if (status == 0) {
    self->n_reports++;
    reader->n_reports++;
    note_blocks (self, reader, report, now_ns ());
  }
  self->n_passed += passes;
  return passes ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

static GstPadProbeReturn
take_from_stranger (Reports *self)
{
  self->n_strangers++;
  return self->multicast ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

static GstPadProbeReturn
take (Reports *self, const WeirAddress *from, int status, const WeirRtcpReport *report)
{
  GstPadProbeReturn ret = GST_PAD_PROBE_DROP;
  Origin *origin;

  g_mutex_lock (&self->lock);
  origin = g_hash_table_lookup (self->origins, from);
  if (origin)
    weir_life_set_heard (origin->reader->life, TRUE);
  if (self->secure)
    ret = GST_PAD_PROBE_OK;
  else if (status == -EBADMSG)
    self->n_malformed++;
  else if (origin)
    ret = take_from_reader (self, origin->reader, status, report);
  else
    ret = take_from_stranger (self);
  g_mutex_unlock (&self->lock);
  return ret;
}

// Returns the WeirSrtp of the reader at an address (transfer full), or NULL.
static GObject *
dup_srtp (Reports *self, const WeirAddress *from)
{
  GObject *srtp = NULL;
  Origin *origin;

  g_mutex_lock (&self->lock);
  origin = g_hash_table_lookup (self->origins, from);
  if (origin && origin->reader->srtp)
    srtp = g_object_ref (origin->reader->srtp);
  g_mutex_unlock (&self->lock);
  return srtp;
}

// Handles RTCP of a TCP reader (feedback.h), which the RTP session does not know.
static GstPadProbeReturn
take_feedback (GstPad *pad, GstBuffer *buffer)
{
  GstMapInfo map;

  if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    weir_feedback_take (pad, map.data, map.size);
    gst_buffer_unmap (buffer, &map);
  }
  return GST_PAD_PROBE_DROP;
}

// Decrypts an RTCP packet in place if its reader uses SRTP. Returns its length, or -1 if it is to
// be dropped. The lock is not held meanwhile.
static gssize
unprotect (Reports *self, const WeirAddress *from, guint8 *data, gsize len)
{
  GObject *srtp = dup_srtp (self, from);
  gssize plain = (gssize) len;

  if (srtp)
    plain = weir_srtp_unprotect (srtp, data, len);
  g_clear_object (&srtp);
  return plain;
}

// Does so in the buffer of a probe, which it may replace. `srtp` may be NULL.
static gboolean
unprotect_probed (GObject *srtp, GstPadProbeInfo *info)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  gboolean ok;

  if (!srtp)
    return TRUE;
  ok = weir_srtp_unprotect_buffer (srtp, &buffer);
  GST_PAD_PROBE_INFO_DATA (info) = buffer;
  g_object_unref (srtp);
  return ok;
}

static GstPadProbeReturn
on_received (GstPad *pad, GstPadProbeInfo *info, gpointer reports)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  GstNetAddressMeta *meta = gst_buffer_get_net_address_meta (buffer);
  WeirRtcpReport report;
  WeirAddress from;
  GstPadProbeReturn ret;
  GObject *sender = weir_srtp_dup_of_sender (buffer);
  GstMapInfo map;
  gboolean sound;
  int status;

  if (!meta || sender)
    return unprotect_probed (sender, info) ? take_feedback (pad, GST_PAD_PROBE_INFO_BUFFER (info))
                                           : GST_PAD_PROBE_DROP;
  // A datagram may come from port 0.
  if (!weir_address_from_gio (meta->addr, &from))
    return GST_PAD_PROBE_DROP;
  clear_scope (&from);
  if (!unprotect_probed (dup_srtp (reports, &from), info))
    return GST_PAD_PROBE_DROP;
  buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return GST_PAD_PROBE_DROP;
  status = weir_rtcp_read (map.data, map.size, &report);
  sound = ((Reports *) reports)->secure || weir_rtcp_is_sound (map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  // The RTP session trusts the lengths in a packet.
  if (!sound) {
    status = status < 0 ? -EBADMSG : 0;
    report.more = false;
  }
  ret = take (reports, &from, status, &report);
  return sound ? ret : GST_PAD_PROBE_DROP;
}

static void
note_sent (Reports *self, const WeirNtpMap *sr)
{
  g_mutex_lock (&self->lock);
  weir_sr_log_add (&self->sent, sr, now_ns ());
  g_mutex_unlock (&self->lock);
}

static GstPadProbeReturn
on_sent (GstPad *pad, GstPadProbeInfo *info, gpointer reports)
{
  WeirNtpMap sr;
  GstMapInfo map;

  if (!gst_buffer_map (GST_PAD_PROBE_INFO_BUFFER (info), &map, GST_MAP_READ))
    return GST_PAD_PROBE_OK;
  if (weir_rtcp_find_sr (map.data, map.size, &sr) == 0)
    note_sent (reports, &sr);
  gst_buffer_unmap (GST_PAD_PROBE_INFO_BUFFER (info), &map);
  return GST_PAD_PROBE_OK;
}

// ---- streams ----

static gint
compare_has_pad (gconstpointer item, gconstpointer name)
{
  GstPad *pad = gst_element_get_static_pad (g_value_get_object (item), name);
  gboolean has = pad != NULL;

  g_clear_object (&pad);
  return !has;
}

GstPad *
weir_reports_find_pad (GstRTSPStream *stream, const gchar *prefix)
{
  GstBin *bin = gst_rtsp_stream_get_joined_bin (stream);
  GstIterator *elements = bin ? gst_bin_iterate_elements (bin) : NULL;
  gchar *name = g_strdup_printf ("%s_%u", prefix, gst_rtsp_stream_get_index (stream));
  GValue item = G_VALUE_INIT;
  GstPad *pad = NULL;

  if (elements && gst_iterator_find_custom (elements, compare_has_pad, &item, name)) {
    pad = gst_element_get_static_pad (g_value_get_object (&item), name);
    g_value_unset (&item);
  }
  g_free (name);
  g_clear_pointer (&elements, gst_iterator_free);
  g_clear_object (&bin);
  return pad;
}

static void
watch_pad (GstRTSPStream *stream, const gchar *prefix, GstPadProbeCallback probe, Reports *reports)
{
  GstPad *pad = weir_reports_find_pad (stream, prefix);

  // A media that was prepared again has other pads.
  if (pad && g_object_get_qdata (G_OBJECT (pad), reports_quark ()) != reports) {
    g_object_set_qdata (G_OBJECT (pad), reports_quark (), reports);
    gst_pad_add_probe (
        pad, GST_PAD_PROBE_TYPE_BUFFER, probe, g_atomic_rc_box_acquire (reports), unref_reports);
  }
  g_clear_object (&pad);
}

static Reports *
reports_new (GstRTSPStream *stream)
{
  Reports *self = g_atomic_rc_box_new0 (Reports);

  g_mutex_init (&self->lock);
  self->origins = g_hash_table_new (hash_address, equal_addresses);
  self->multicast = (gst_rtsp_stream_get_protocols (stream) & GST_RTSP_LOWER_TRANS_UDP_MCAST) != 0;
  self->secure = (gst_rtsp_stream_get_profiles (stream) & SECURE) != 0;
  return self;
}

// Returns the Reports of a stream, and watches its pads if there are any. Several threads may call
// this at once.
static Reports *
watch_stream (GstRTSPStream *stream, gboolean pads)
{
  static GMutex making;
  Reports *self;

  g_mutex_lock (&making);
  self = g_object_get_qdata (G_OBJECT (stream), reports_quark ());
  if (!self) {
    self = reports_new (stream);
    g_object_set_qdata_full (G_OBJECT (stream), reports_quark (), self, unref_reports);
  }
  if (pads) {
    watch_pad (stream, "recv_rtcp_sink", on_received, self);
    if (!self->secure)
      watch_pad (stream, "send_rtcp_src", on_sent, self);
  }
  g_mutex_unlock (&making);
  return self;
}

void
weir_reports_watch (GstRTSPContext *ctx)
{
  const GstRTSPTransport *transport = gst_rtsp_stream_transport_get_transport (ctx->trans);
  Reader *reader = NULL;
  Reports *reports;

  if (!gst_rtsp_stream_is_sender (ctx->stream))
    return;
  reports = watch_stream (ctx->stream, !weir_is_relay_media (ctx->media));
  if (transport->lower_transport == GST_RTSP_LOWER_TRANS_UDP)
    reader = reader_new (reports, ctx->session, ctx->trans);
  // This replaces the reader of an earlier SETUP.
  g_object_set_qdata_full (
      G_OBJECT (ctx->trans), reader_quark (), reader, reader ? unref_reader : NULL);
}

// ---- streams of a relay media ----

void
weir_reports_note_sent (GstRTSPStream *stream, const WeirNtpMap *sr)
{
  Reports *self = g_object_get_qdata (G_OBJECT (stream), reports_quark ());

  if (self)
    note_sent (self, sr);
}

gboolean
weir_reports_take (GstRTSPStream *stream, const WeirAddress *from, guint8 *data, gsize *len)
{
  Reports *self = g_object_get_qdata (G_OBJECT (stream), reports_quark ());
  WeirAddress origin = *from;
  WeirRtcpReport report;
  gssize plain;

  if (!self)
    return FALSE;
  clear_scope (&origin);
  plain = unprotect (self, &origin, data, *len);
  if (plain < 0)
    return FALSE;
  *len = (gsize) plain;
  return take (self, &origin, weir_rtcp_read (data, *len, &report), &report) == GST_PAD_PROBE_OK;
}

void
weir_reports_hear (GstRTSPStream *stream, const WeirAddress *from)
{
  Reports *self = g_object_get_qdata (G_OBJECT (stream), reports_quark ());
  WeirAddress address = *from;
  Origin *origin;

  if (!self)
    return;
  clear_scope (&address);
  g_mutex_lock (&self->lock);
  origin = g_hash_table_lookup (self->origins, &address);
  if (origin && !origin->reader->secret)
    weir_life_set_heard (origin->reader->life, TRUE);
  g_mutex_unlock (&self->lock);
}

// ---- statistics ----

guint64 *
weir_transport_ref_report_count (GstRTSPStreamTransport *transport)
{
  Reader *reader = g_object_dup_qdata (G_OBJECT (transport), reader_quark (), ref_reader, NULL);
  guint64 *count = reader ? g_atomic_rc_box_acquire (reader->n_stored) : NULL;

  g_clear_pointer (&reader, unref_reader);
  return count;
}

GstStructure *
weir_transport_get_report (GstRTSPStreamTransport *transport)
{
  Reader *reader = g_object_dup_qdata (G_OBJECT (transport), reader_quark (), ref_reader, NULL);
  GstStructure *report = NULL;

  if (!reader)
    return NULL;
  g_mutex_lock (&reader->reports->lock);
  if (reader->known) {
    const WeirRtcpBlock *block = &reader->block;

    report = gst_structure_new ("application/x-weir-report", "reports", G_TYPE_UINT64,
        reader->n_reports, "age", G_TYPE_INT64, now_ns () - reader->received_ns, "ssrc",
        G_TYPE_UINT, block->ssrc, "fraction-lost", G_TYPE_DOUBLE, block->fraction_lost / 256.0,
        "packets-lost", G_TYPE_INT, block->lost, "highest-seq", G_TYPE_UINT, block->highest_seq,
        "jitter", G_TYPE_UINT, block->jitter, NULL);
    if (reader->round_trip_ns >= 0)
      gst_structure_set (report, "round-trip", G_TYPE_INT64, reader->round_trip_ns, NULL);
  }
  g_mutex_unlock (&reader->reports->lock);
  unref_reader (reader);
  return report;
}

GstStructure *
weir_stream_get_report_counts (GstRTSPStream *stream)
{
  Reports *self = g_object_get_qdata (G_OBJECT (stream), reports_quark ());
  GstStructure *counts;

  if (!self || self->secure)
    return NULL;
  g_mutex_lock (&self->lock);
  counts = gst_structure_new ("application/x-weir-report-counts", "reports", G_TYPE_UINT64,
      self->n_reports, "passed", G_TYPE_UINT64, self->n_passed, "strangers", G_TYPE_UINT64,
      self->n_strangers, "malformed", G_TYPE_UINT64, self->n_malformed, NULL);
  g_mutex_unlock (&self->lock);
  return counts;
}
