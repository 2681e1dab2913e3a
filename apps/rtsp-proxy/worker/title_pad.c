// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/title_pad.h"

#include <string.h>

#include "isolate/title_wire.h"
#include "rtp/fragments.h"
#include "rtp/rtp.h"

#define MARKER 0x80 // of the second byte of RTP

// Time of the packets in a message. A message for each frame would wake a thread of the proxy and
// one of the worker for each.
#define BATCH_NS (200 * GST_MSECOND)

struct _TitlePad {
  TitlePadConfig config;
  GstPad *pad;
  // Of the track's thread, or of the thread that flushes:
  WireMessage *batch, *event;
  gboolean is_video;
  gboolean stated;       // the state was sent, since the start or a flush
  GstClockTime begun_at; // of the first packet in the batch
  GstClockTime first_at; // of the first packet since the start or a flush
  gboolean is_far;       // see has_gone_far()
  gboolean numbered;     // `seq` is the number of the next packet
  guint16 seq;
  gint mtu; // atomic
};

// ---- to the proxy ----

// Returns FALSE if the track flushes, or the proxy has closed the title.
static gboolean
send_message (TitlePad *self, const WireMessage *message)
{
  return title_outbox_put (self->config.outbox, self->config.number, message,
      message == self->batch ? self->begun_at : GST_CLOCK_TIME_NONE);
}

static gboolean
send_state (TitlePad *self)
{
  GstQuery *query;
  gboolean seekable = FALSE;
  gint64 duration = -1;

  if (self->stated)
    return TRUE;
  self->stated = TRUE;
  gst_pad_peer_query_duration (self->pad, GST_FORMAT_TIME, &duration);
  query = gst_query_new_seeking (GST_FORMAT_TIME);
  if (gst_pad_peer_query (self->pad, query))
    gst_query_parse_seeking (query, NULL, &seekable, NULL, NULL);
  gst_query_unref (query);
  title_wire_put_state (self->event,
      self->config.get_lead (self->config.owner, self->config.number), duration, seekable);
  return send_message (self, self->event);
}

static void
begin_batch (TitlePad *self)
{
  wire_begin (self->batch, (WireType) TITLE_WIRE_PACKETS);
}

static gboolean
send_batch (TitlePad *self)
{
  gboolean sent = self->batch->len <= 1 || (send_state (self) && send_message (self, self->batch));

  begin_batch (self);
  return sent;
}

// ---- from the payloader ----

// Reports whether the batch is to be sent after this packet, which is in it. The first frame after
// the start or a seek is sent at once: the proxy waits for it.
static gboolean
is_last (TitlePad *self, GstBuffer *buffer, const guint8 *packet)
{
  GstClockTime at = GST_BUFFER_DTS_OR_PTS (buffer);

  if (self->is_video && !(packet[1] & MARKER))
    return FALSE;
  return !self->stated || !GST_CLOCK_TIME_IS_VALID (at) || at < self->begun_at
         || at - self->begun_at >= BATCH_NS;
}

// Returns where the packet goes, or NULL if it does not fit into the batch.
static guint8 *
put (TitlePad *self, GstBuffer *buffer, gsize len)
{
  if (self->batch->len <= 1)
    self->begun_at = GST_BUFFER_DTS_OR_PTS (buffer);
  if (!GST_CLOCK_TIME_IS_VALID (self->first_at))
    self->first_at = self->begun_at;
  return title_wire_put_packet (self->batch, buffer, len);
}

// Takes a packet: `n_head` bytes of `head`, and `n` bytes of `buffer`, from `from` on. With a
// codec, it gets a sequence number of its own.
static gboolean
take_packet (
    TitlePad *self, GstBuffer *buffer, const guint8 *head, gsize n_head, gsize from, gsize n)
{
  guint8 *packet = put (self, buffer, n_head + n);
  gboolean ok = TRUE;

  if (!packet) {
    ok = send_batch (self);
    packet = put (self, buffer, n_head + n);
  }
  if (!packet) {
    GST_WARNING_OBJECT (self->pad, "a packet of %" G_GSIZE_FORMAT " bytes is too long", n_head + n);
    self->seq++; // so readers count it as lost
    return ok;
  }
  memcpy (packet, head, n_head);
  gst_buffer_extract (buffer, from, packet + n_head, n);
  if (self->config.codec)
    weir_rtp_set_seq (packet, self->seq++);
  return ok && (is_last (self, buffer, packet) ? send_batch (self) : TRUE);
}

// Takes the packet that is `buffer`. `head` has its first bytes.
static gboolean
take_whole (TitlePad *self, GstBuffer *buffer, const guint8 *head, gsize len)
{
  const gsize n_head = MIN (len, WEIR_FRAGMENTS_HEAD);

  return take_packet (self, buffer, head, n_head, n_head, len - n_head);
}

// Takes a packet of any length that holds one NAL unit, as packets of the MTU. `head` has its first
// bytes. A unit of a type that is RTP's own cannot be split.
static gboolean
take_unit (TitlePad *self, GstBuffer *buffer, const guint8 *head, gsize len)
{
  const gsize mtu = (gsize) g_atomic_int_get (&self->mtu);
  guint8 own[WEIR_FRAGMENTS_HEAD];
  gboolean ok = TRUE;
  WeirFragments fragments;
  gsize n_head, from, n;

  if (!weir_fragments_begin (&fragments, head, len, self->config.codec, mtu))
    return take_whole (self, buffer, head, len);
  while (ok && (n_head = weir_fragments_next (&fragments, own, &from, &n)) > 0)
    ok = take_packet (self, buffer, own, n_head, from, n);
  return ok;
}

// The buffer of a NAL unit has two memories, which mapping would join into a third.
static gboolean
take (TitlePad *self, GstBuffer *buffer)
{
  const gsize len = gst_buffer_get_size (buffer), n_head = MIN (len, WEIR_RTP_HEADER_MAX);
  guint8 head[WEIR_FRAGMENTS_HEAD], last = 0;
  WeirRtp rtp;

  gst_buffer_extract (buffer, 0, head, sizeof head);
  if (weir_rtp_is_padded (head, n_head))
    gst_buffer_extract (buffer, len - 1, &last, 1);
  if (weir_rtp_parse_head (head, n_head, len, last, &rtp) < 0)
    return TRUE;
  if (!self->numbered)
    self->seq = rtp.seq;
  self->numbered = TRUE;
  return self->config.codec ? take_unit (self, buffer, head, len)
                            : take_whole (self, buffer, head, len);
}

// Reports, once after the start or a seek, whether so much of the track has been read that a track
// without data begins late.
static gboolean
has_gone_far (TitlePad *self)
{
  if (self->is_far || !GST_CLOCK_TIME_IS_VALID (self->first_at)
      || self->begun_at < self->first_at + TITLE_OUTBOX_TIME)
    return FALSE;
  return self->is_far = TRUE;
}

// Waits for the proxy, if it takes the title more slowly than it is read.
static GstFlowReturn
finish (TitlePad *self, gboolean ok)
{
  gboolean full = ok && title_outbox_is_full (self->config.outbox, self->config.number);

  if (full || (ok && has_gone_far (self)))
    self->config.far (self->config.owner);
  if (full)
    title_outbox_wait (self->config.outbox, self->config.number);
  return ok ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *packet)
{
  gboolean ok = take (gst_pad_get_element_private (pad), packet);

  gst_buffer_unref (packet);
  return finish (gst_pad_get_element_private (pad), ok);
}

static GstFlowReturn
on_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  guint n = gst_buffer_list_length (list);
  gboolean ok = TRUE;

  for (guint i = 0; i < n && ok; i++)
    ok = take (gst_pad_get_element_private (pad), gst_buffer_list_get (list, i));
  gst_buffer_list_unref (list);
  return finish (gst_pad_get_element_private (pad), ok);
}

static void
begin_flush (TitlePad *self)
{
  guint32 serial;

  title_outbox_flush (self->config.outbox, self->config.number, TRUE);
  self->config.flushes (self->config.owner, &serial);
}

// Tells the proxy that the packets after this are of the new position.
static void
end_flush (TitlePad *self)
{
  guint32 serial;

  title_outbox_flush (self->config.outbox, self->config.number, FALSE);
  self->stated = self->is_far = FALSE;
  self->first_at = GST_CLOCK_TIME_NONE;
  begin_batch (self);
  if (!self->config.flushes (self->config.owner, &serial))
    return;
  wire_begin (self->event, (WireType) TITLE_WIRE_FLUSHED);
  wire_put (self->event, serial, 4);
  send_message (self, self->event);
}

static void
send_caps (TitlePad *self, GstEvent *event)
{
  const gchar *media;
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  media = gst_structure_get_string (gst_caps_get_structure (caps, 0), "media");
  self->is_video = !g_strcmp0 (media, "video");
  wire_begin (self->event, (WireType) TITLE_WIRE_CAPS);
  wire_put_caps (self->event, caps);
  send_message (self, self->event);
}

static void
put_gap (WireMessage *message, GstClockTime at, GstClockTime duration)
{
  wire_begin (message, (WireType) TITLE_WIRE_GAP);
  wire_put (message, at, 8);
  wire_put (message, duration, 8);
}

static void
send_gap (TitlePad *self, GstEvent *event)
{
  GstClockTime at, duration;

  gst_event_parse_gap (event, &at, &duration);
  if (!GST_CLOCK_TIME_IS_VALID (at))
    return;
  send_state (self);
  put_gap (self->event, at, duration);
  send_message (self, self->event);
}

// Sends a serialised event, after the packets before it.
static void
send_event (TitlePad *self, GstEvent *event)
{
  const GstSegment *segment;

  send_batch (self);
  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS:
      send_caps (self, event);
      break;
    case GST_EVENT_SEGMENT:
      gst_event_parse_segment (event, &segment);
      title_wire_put_segment (self->event, segment);
      send_message (self, self->event);
      break;
    case GST_EVENT_GAP:
      send_gap (self, event);
      break;
    case GST_EVENT_EOS:
      wire_begin (self->event, (WireType) TITLE_WIRE_EOS);
      send_message (self, self->event);
      break;
    default:
      break;
  }
}

static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  TitlePad *self = gst_pad_get_element_private (pad);

  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START)
    begin_flush (self);
  else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    end_flush (self);
  else if (GST_EVENT_IS_SERIALIZED (event))
    send_event (self, event);
  gst_event_unref (event);
  return TRUE;
}

// ---- from the proxy ----

gboolean
title_pad_push_event (TitlePad *self, GstEvent *event)
{
  return gst_pad_push_event (self->pad, event);
}

void
title_pad_fill_gap (TitlePad *self)
{
  g_autoptr (GstEvent) event = gst_pad_get_sticky_event (self->pad, GST_EVENT_SEGMENT, 0);
  const GstSegment *segment;
  g_autofree WireMessage *message = NULL;

  if (event && title_outbox_is_empty (self->config.outbox, self->config.number)) {
    message = g_new (WireMessage, 1);
    gst_event_parse_segment (event, &segment);
    put_gap (message, segment->start, GST_CLOCK_TIME_NONE);
    send_message (self, message);
  }
}

// ---- construction ----

TitlePad *
title_pad_new (const TitlePadConfig *config, GstPad *src)
{
  TitlePad *self = g_new0 (TitlePad, 1);

  self->config = *config;
  self->begun_at = self->first_at = GST_CLOCK_TIME_NONE;
  title_pad_set_mtu (self, config->mtu);
  self->batch = g_new (WireMessage, 1);
  self->event = g_new (WireMessage, 1);
  begin_batch (self);
  self->pad = gst_pad_new (NULL, GST_PAD_SINK);
  gst_pad_set_element_private (self->pad, self);
  gst_pad_set_chain_function (self->pad, on_buffer);
  gst_pad_set_chain_list_function (self->pad, on_list);
  gst_pad_set_event_function (self->pad, on_event);
  gst_pad_set_active (self->pad, TRUE);
  gst_pad_link (src, self->pad);
  return self;
}

void
title_pad_set_mtu (TitlePad *self, guint mtu)
{
  g_atomic_int_set (&self->mtu, (gint) MIN (mtu, G_MAXUINT16));
}

void
title_pad_free (TitlePad *self)
{
  gst_pad_set_active (self->pad, FALSE);
  gst_object_unref (self->pad);
  g_free (self->batch);
  g_free (self->event);
  g_free (self);
}
