// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/live_broadcast.h"

#include "base/clock.h"
#include "base/log.h"
#include "broadcast/group_sink.h"
#include "broadcast/live_ranges.h"
#include "relay/relay_caps.h"
#include "rtp/rtcp.h"
#include "schedule/description.h"

#include <arpa/inet.h>
#include <gio/gio.h>
#include <gst/sdp/sdp.h>
#include <string.h>

#define VALID_S 60

struct _LiveBroadcast {
  gatomicrefcount refs;
  gchar *label;
  BroadcastConfig config;
  Relay *relay;

  GMutex lock;             // protects the fields below
  GPtrArray *sinks, *caps; // of GroupSink and GstCaps, by track; empty until the tracks are known
  guint64 id;              // of these tracks
  guint64 admitted, unicast_packets, unicast_bytes;
};

// ---- the relay's side ----

// Returns the sinks of all tracks, or none if one fails. (transfer full)
static GPtrArray *
make_sinks (LiveBroadcast *self, GPtrArray *caps)
{
  GPtrArray *sinks = g_ptr_array_new_with_free_func ((GDestroyNotify) group_sink_unref);
  GError *error = NULL;

  for (guint i = 0; i < caps->len && !error; i++) {
    GroupSink *sink = group_sink_new (
        self->label, &self->config, self->relay, i, g_ptr_array_index (caps, i), &error);

    if (sink)
      g_ptr_array_add (sinks, sink);
  }
  if (error) {
    log_event ("broadcast %s: %s", self->label, error->message);
    g_error_free (error);
    g_ptr_array_set_size (sinks, 0);
  }
  return sinks;
}

static void
on_begun (gpointer data, Relay *relay, GPtrArray *caps, gint64 start)
{
  LiveBroadcast *self = data;
  GPtrArray *sinks;
  g_autoptr (GPtrArray) old_sinks = NULL, old_caps = NULL;
  gboolean same;

  g_mutex_lock (&self->lock);
  same = relay_caps_are_equal (self->caps, caps);
  g_mutex_unlock (&self->lock);
  if (same)
    return;
  sinks = make_sinks (self, caps);
  g_mutex_lock (&self->lock);
  old_sinks = self->sinks;
  old_caps = self->caps;
  self->sinks = sinks;
  self->caps = g_ptr_array_ref (caps);
  self->id = (guint64) g_random_int () << 32 | g_random_int ();
  g_mutex_unlock (&self->lock);
}

// Returns the sink of a track, or NULL. (transfer full)
static GroupSink *
dup_sink (LiveBroadcast *self, guint track)
{
  GroupSink *sink = NULL;

  g_mutex_lock (&self->lock);
  if (track < self->sinks->len)
    sink = group_sink_ref (g_ptr_array_index (self->sinks, track));
  g_mutex_unlock (&self->lock);
  return sink;
}

static void
on_push (gpointer data, const RelayPacket *packet)
{
  GroupSink *sink = dup_sink (data, packet->track);

  if (sink)
    group_sink_push (sink, packet->buffer);
  else
    gst_buffer_unref (packet->buffer);
  g_clear_pointer (&sink, group_sink_unref);
}

static void
on_ended (gpointer self)
{
  live_broadcast_unref (self);
}

static const RelaySink functions = { .begun = on_begun, .push = on_push, .ended = on_ended };

LiveBroadcast *
live_broadcast_new (const gchar *label, const BroadcastConfig *config, Relay *relay)
{
  LiveBroadcast *self = g_new0 (LiveBroadcast, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->label = g_strdup (label);
  self->config = *config;
  self->config.iface = g_strdup (config->iface);
  self->relay = relay_ref (relay);
  self->sinks = g_ptr_array_new ();
  self->caps = g_ptr_array_new ();
  relay_add_sink (relay, &functions, live_broadcast_ref (self), G_MAXUINT32, 0);
  return self;
}

LiveBroadcast *
live_broadcast_ref (LiveBroadcast *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
live_broadcast_unref (LiveBroadcast *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_ptr_array_unref (self->sinks);
  g_ptr_array_unref (self->caps);
  relay_unref (self->relay);
  g_free (self->config.iface);
  g_free (self->label);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
live_broadcast_stop (LiveBroadcast *self)
{
  relay_remove_sink (self->relay, self);
}

// ---- the description ----

static gboolean
set_busy (GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "the mount has no media at the moment");
  return FALSE;
}

static void
add_media (GstSDPMessage *sdp, guint track, const GstCaps *caps)
{
  g_autofree gchar *control = g_strdup_printf ("stream=%u", track);
  GstSDPMedia *media;

  gst_sdp_media_new (&media);
  gst_sdp_media_set_media_from_caps (caps, media);
  gst_sdp_media_set_port_info (media, 0, 1);
  gst_sdp_media_set_proto (media, "RTP/AVP");
  gst_sdp_media_add_connection (media, "IN", "IP4", "0.0.0.0", 0, 0);
  gst_sdp_media_add_attribute (media, "control", control);
  gst_sdp_message_add_media (sdp, media);
  gst_sdp_media_free (media);
}

static gchar *
dup_sdp (const gchar *label, const GPtrArray *caps)
{
  GstSDPMessage *sdp;
  gchar *text;

  gst_sdp_message_new (&sdp);
  gst_sdp_message_set_version (sdp, "0");
  gst_sdp_message_set_origin (sdp, "-", "0", "1", "IN", "IP4", "127.0.0.1");
  gst_sdp_message_set_session_name (sdp, label);
  gst_sdp_message_add_time (sdp, "0", "0", NULL);
  gst_sdp_message_add_attribute (sdp, "control", "*");
  for (guint i = 0; i < caps->len; i++)
    add_media (sdp, i, g_ptr_array_index (caps, i));
  text = gst_sdp_message_as_text (sdp);
  gst_sdp_message_free (sdp);
  return text;
}

static void
set_address (WeirAddress *address, const gchar *host, guint16 port)
{
  address->v4.sin_family = AF_INET;
  address->v4.sin_port = g_htons (port);
  inet_pton (AF_INET, host, &address->v4.sin_addr);
}

// Stores the RTP timestamp of one instant of each track that has had packets: without sender
// reports, a client of the group synchronises the tracks by these.
static void
set_times (Relay *relay, WeirDescription *description)
{
  gint64 time = relay_get_time (relay);
  guint32 first;
  guint16 seq;

  for (guint i = 0; i < description->n_tracks; i++) {
    description->times[i].known = relay_get_rtp_info (relay, i, &seq, &first);
    description->times[i].timestamp = relay_get_timestamp (relay, i, time);
  }
}

static gchar *
add_group (const LiveBroadcast *self, const gchar *sdp, const gchar *id, const gchar *source)
{
  g_autofree WeirDescription *description = g_new0 (WeirDescription, 1);
  WeirDescribedChannel *channel = description->channels;
  gchar *text = NULL;

  description->ntp_now = weir_ntp_from_unix (1000 * g_get_real_time ()) >> 32;
  description->ntp_end = description->ntp_now + VALID_S;
  g_strlcpy (description->id, id, sizeof description->id);
  g_strlcpy (description->scheme, "live", sizeof description->scheme);
  description->now_ns = description->play_ns = clock_now ();
  for (const gchar *at = sdp; (at = strstr (at, "\nm=")); at++)
    description->n_tracks++;
  set_times (self->relay, description);
  description->n_channels = 1;
  set_address (&channel->group, self->config.groups, self->config.port);
  if (source)
    set_address (&channel->source, source, 0);
  channel->ttl = (guint8) self->config.ttl;
  weir_description_write (description, sdp, strlen (sdp), &text);
  return text;
}

gboolean
live_broadcast_describe (LiveBroadcast *self, const gchar *source_address, gchar **sdp,
    gchar **etag, guint *valid_s, GError **error)
{
  GPtrArray *caps;
  g_autofree gchar *plain = NULL;

  g_mutex_lock (&self->lock);
  caps = g_ptr_array_ref (self->sinks->len > 0 ? self->caps : self->sinks);
  *etag = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", self->id);
  self->admitted += caps->len > 0;
  g_mutex_unlock (&self->lock);
  if (caps->len == 0) {
    g_ptr_array_unref (caps);
    g_clear_pointer (etag, g_free);
    return set_busy (error);
  }
  plain = dup_sdp (self->label, caps);
  *sdp = add_group (self, plain, *etag, source_address);
  *valid_s = VALID_S;
  g_ptr_array_unref (caps);
  if (*sdp)
    return TRUE;
  g_clear_pointer (etag, g_free);
  return set_busy (error);
}

// ---- packets ----

typedef struct {
  GByteArray *body;
  guint n;
  gboolean full;
} Answer;

static void
add_packet (Answer *answer, guint track, guint16 seq, GstBuffer *packet)
{
  gsize size = gst_buffer_get_size (packet);
  guint8 header[8];
  guint at = answer->body->len;

  answer->full = answer->n == BROADCAST_PACKETS_MAX
                 || at + sizeof header + size > BROADCAST_BODY_MAX || size > G_MAXUINT16;
  if (answer->full)
    return;
  GST_WRITE_UINT32_BE (header, seq);
  GST_WRITE_UINT16_BE (header + 4, track);
  GST_WRITE_UINT16_BE (header + 6, size);
  g_byte_array_append (answer->body, header, sizeof header);
  g_byte_array_set_size (answer->body, answer->body->len + (guint) size);
  gst_buffer_extract (packet, 0, answer->body->data + at + sizeof header, size);
  answer->n++;
}

// Adds the packets from `from` on that are in a range of `n`; all with `from` -1.
static void
add_packets (Answer *answer, GroupSink *sink, guint track, gint from, guint n)
{
  g_autoptr (GstBufferList) list =
      group_sink_get_packets (sink, from, MIN (n, BROADCAST_PACKETS_MAX - answer->n));

  for (guint i = 0; i < gst_buffer_list_length (list) && !answer->full; i++) {
    GstBuffer *packet = gst_buffer_list_get (list, i);
    guint8 number[2];
    guint16 seq;

    gst_buffer_extract (packet, 2, number, sizeof number);
    seq = GST_READ_UINT16_BE (number);
    if (from < 0 || (guint16) (seq - from) < n)
      add_packet (answer, track, seq, packet);
  }
}

static gboolean
add_range (LiveBroadcast *self, Answer *answer, const LiveRange *range, GError **error)
{
  GroupSink *sink = dup_sink (self, range->track);

  if (!sink) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "there is no track %u", range->track);
    return FALSE;
  }
  add_packets (answer, sink, range->track, range->from, range->n);
  group_sink_unref (sink);
  return TRUE;
}

// Adds the packets of each track since its newest join point.
static void
add_live (LiveBroadcast *self, Answer *answer)
{
  GroupSink *sink;

  for (guint track = 0; !answer->full && (sink = dup_sink (self, track)); track++) {
    add_packets (answer, sink, track, -1, BROADCAST_PACKETS_MAX);
    group_sink_unref (sink);
  }
}

static gboolean
add_asked (LiveBroadcast *self, Answer *answer, const gchar *text, gsize length, GError **error)
{
  LiveRange ranges[LIVE_RANGES_MAX];
  gint n = live_ranges_parse (text, length, ranges, error);
  gboolean ok = n >= 0;

  if (n == 0)
    add_live (self, answer);
  for (gint i = 0; i < n && ok; i++)
    ok = add_range (self, answer, &ranges[i], error);
  return ok;
}

GBytes *
live_broadcast_read (LiveBroadcast *self, const gchar *ranges, gsize length, GError **error)
{
  Answer answer = { g_byte_array_new (), 0, FALSE };
  GroupSink *first = dup_sink (self, 0);
  gboolean ok = first ? add_asked (self, &answer, ranges, length, error) : set_busy (error);

  g_clear_pointer (&first, group_sink_unref);
  if (!ok) {
    g_byte_array_unref (answer.body);
    return NULL;
  }
  g_mutex_lock (&self->lock);
  self->unicast_packets += answer.n;
  self->unicast_bytes += answer.body->len;
  g_mutex_unlock (&self->lock);
  return g_byte_array_free_to_bytes (answer.body);
}

void
live_broadcast_get_stats (LiveBroadcast *self, BroadcastStats *stats)
{
  g_autoptr (GPtrArray) sinks = NULL;

  g_mutex_lock (&self->lock);
  *stats = (BroadcastStats) { .channels = self->sinks->len > 0,
    .admitted = self->admitted,
    .unicast_packets = self->unicast_packets,
    .unicast_bytes = self->unicast_bytes };
  sinks = g_ptr_array_ref (self->sinks);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < sinks->len; i++)
    group_sink_add_sent (g_ptr_array_index (sinks, i), &stats->packets_sent, &stats->bytes_sent);
}
