// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/title_wire.h"

#include <string.h>

#include "relay/relay.h"
#include "rtp/rtp.h"
#include "weir.h"

#define PACKET_HEAD 30
#define RATE_MAX 1000.0
#define MTU_MIN 28
#define FLAGS_PASSED                                                                               \
  (GST_BUFFER_FLAG_DISCONT | GST_BUFFER_FLAG_RESYNC | GST_BUFFER_FLAG_MARKER                       \
      | GST_BUFFER_FLAG_HEADER | GST_BUFFER_FLAG_DELTA_UNIT | GST_BUFFER_FLAG_DROPPABLE)

static void
put_double (WireMessage *self, gdouble number)
{
  union {
    gdouble number;
    guint64 bits;
  } both = { .number = number };

  wire_put (self, both.bits, 8);
}

static gdouble
read_double (WeirBytes *b)
{
  union {
    guint64 bits;
    gdouble number;
  } both;

  weir_bytes_u64 (b, &both.bits);
  return both.number;
}

// Reads a time in ns. A time that is neither valid nor GST_CLOCK_TIME_NONE is a mistake.
static GstClockTime
read_time (WeirBytes *b, gboolean may_be_none)
{
  guint64 time;

  weir_bytes_u64 (b, &time);
  if (time > G_MAXINT64 && !(may_be_none && time == GST_CLOCK_TIME_NONE))
    b->failed = TRUE;
  return time;
}

static gboolean
is_read (const WeirBytes *b)
{
  return !b->failed && weir_bytes_left (b) == 0;
}

// ---- tracks ----

void
title_wire_put_state (WireMessage *self, GstClockTime lead, gint64 duration, gboolean seekable)
{
  wire_begin (self, (WireType) TITLE_WIRE_STATE);
  wire_put (self, lead, 8);
  wire_put (self, (guint64) duration, 8);
  wire_put (self, seekable, 1);
}

void
title_wire_put_segment (WireMessage *self, const GstSegment *segment)
{
  const guint64 times[] = { segment->base, segment->offset, segment->start, segment->stop,
    segment->time, segment->position, segment->duration };

  wire_begin (self, (WireType) TITLE_WIRE_SEGMENT);
  wire_put (self, segment->flags, 4);
  put_double (self, segment->rate);
  put_double (self, segment->applied_rate);
  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    wire_put (self, times[i], 8);
}

guint8 *
title_wire_put_packet (WireMessage *self, GstBuffer *buffer, gsize len)
{
  if (self->len + PACKET_HEAD + len > WIRE_MAX || len > G_MAXUINT16)
    return NULL;
  wire_put (self, GST_BUFFER_PTS (buffer), 8);
  wire_put (self, GST_BUFFER_DTS (buffer), 8);
  wire_put (self, GST_BUFFER_DURATION (buffer), 8);
  wire_put (self, GST_BUFFER_FLAGS (buffer) & FLAGS_PASSED, 4);
  wire_put (self, len, 2);
  self->len += len;
  return self->data + self->len - len;
}

static void
read_state (WeirBytes *b, const TitleTrackHandler *handler, gpointer owner)
{
  GstClockTime lead = read_time (b, TRUE), duration = read_time (b, TRUE);
  guint8 seekable;

  weir_bytes_u8 (b, &seekable);
  if (is_read (b))
    handler->state (owner, lead, (gint64) duration, seekable != 0);
}

static void
read_caps (WeirBytes *b, const TitleTrackHandler *handler, gpointer owner)
{
  g_autoptr (GstCaps) caps = wire_read_caps (b);

  if (caps && is_read (b))
    handler->caps (owner, caps);
}

static gboolean
is_rate (gdouble rate)
{
  return rate > 1 / RATE_MAX && rate < RATE_MAX; // false for NaN
}

static void
read_segment (WeirBytes *b, const TitleTrackHandler *handler, gpointer owner)
{
  GstSegment segment;
  guint32 flags;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  weir_bytes_u32 (b, &flags);
  segment.flags = (GstSegmentFlags) flags;
  segment.rate = read_double (b);
  segment.applied_rate = read_double (b);
  segment.base = read_time (b, FALSE);
  segment.offset = read_time (b, FALSE);
  segment.start = read_time (b, FALSE);
  segment.stop = read_time (b, TRUE);
  segment.time = read_time (b, TRUE);
  segment.position = read_time (b, TRUE);
  segment.duration = read_time (b, TRUE);
  if (!is_rate (segment.rate) || !is_rate (segment.applied_rate) || segment.stop < segment.start)
    b->failed = TRUE;
  if (is_read (b))
    handler->segment (owner, &segment);
}

typedef struct {
  GstClockTime pts, dts, duration;
  guint32 flags;
  const guint8 *data;
  guint16 len;
} Packet;

// Returns FALSE if the next packet is malformed.
static gboolean
read_packet (WeirBytes *b, Packet *packet)
{
  WeirRtp rtp;

  packet->pts = read_time (b, TRUE);
  packet->dts = read_time (b, TRUE);
  packet->duration = read_time (b, TRUE);
  weir_bytes_u32 (b, &packet->flags);
  weir_bytes_u16 (b, &packet->len);
  weir_bytes_take (b, packet->len, &packet->data);
  if (!b->failed && weir_rtp_parse (packet->data, packet->len, &rtp) < 0)
    b->failed = TRUE;
  return !b->failed;
}

static GstBuffer *
make_buffer (const Packet *packets, guint n)
{
  guint16 lengths[TITLE_WIRE_TOGETHER];
  gsize size = 0;
  GstBuffer *buffer;
  guint8 *data;

  for (guint i = 0; i < n; i++)
    size += lengths[i] = packets[i].len;
  data = g_malloc (size);
  buffer = gst_buffer_new_wrapped (data, size);
  for (guint i = 0; i < n; i++) {
    memcpy (data, packets[i].data, packets[i].len);
    data += packets[i].len;
    GST_BUFFER_FLAG_SET (buffer, packets[i].flags & FLAGS_PASSED);
  }
  GST_BUFFER_PTS (buffer) = packets->pts;
  GST_BUFFER_DTS (buffer) = packets->dts;
  GST_BUFFER_DURATION (buffer) = packets->duration;
  if (n > 1)
    weir_buffer_set_packets (buffer, lengths, n);
  return buffer;
}

static void
read_packets (WeirBytes *b, const TitleTrackHandler *handler, guint together, gpointer owner)
{
  g_autoptr (GstBufferList) buffers = gst_buffer_list_new ();
  Packet run[TITLE_WIRE_TOGETHER], next;
  guint n = 0;

  while (weir_bytes_left (b) > 0 && read_packet (b, &next)) {
    if (n > 0 && (n == together || next.pts != run->pts || next.dts != run->dts)) {
      gst_buffer_list_add (buffers, make_buffer (run, n));
      n = 0;
    }
    run[n++] = next;
  }
  if (n > 0)
    gst_buffer_list_add (buffers, make_buffer (run, n));
  if (!b->failed && gst_buffer_list_length (buffers) > 0)
    handler->packets (owner, gst_buffer_list_ref (buffers));
}

static void
read_gap (WeirBytes *b, const TitleTrackHandler *handler, gpointer owner)
{
  GstClockTime at = read_time (b, FALSE), duration = read_time (b, TRUE);

  if (is_read (b))
    handler->gap (owner, at, duration);
}

static void
read_flushed (WeirBytes *b, const TitleTrackHandler *handler, gpointer owner)
{
  guint32 serial;

  weir_bytes_u32 (b, &serial);
  if (is_read (b))
    handler->flushed (owner, serial);
}

gboolean
title_wire_read_track (
    const guint8 *data, gsize len, const TitleTrackHandler *handler, guint together, gpointer owner)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type;

  weir_bytes_u8 (&b, &type);
  switch (b.failed ? 0 : type) {
    case TITLE_WIRE_STATE:
      read_state (&b, handler, owner);
      break;
    case TITLE_WIRE_CAPS:
      read_caps (&b, handler, owner);
      break;
    case TITLE_WIRE_SEGMENT:
      read_segment (&b, handler, owner);
      break;
    case TITLE_WIRE_PACKETS:
      read_packets (&b, handler, together, owner);
      break;
    case TITLE_WIRE_GAP:
      read_gap (&b, handler, owner);
      break;
    case TITLE_WIRE_EOS:
      if (is_read (&b))
        handler->eos (owner);
      break;
    case TITLE_WIRE_FLUSHED:
      read_flushed (&b, handler, owner);
      break;
    default:
      return FALSE;
  }
  return is_read (&b);
}

void
title_wire_put_taken (WireMessage *self, guint32 n)
{
  wire_begin (self, (WireType) TITLE_WIRE_TAKEN);
  wire_put (self, n, 4);
}

gboolean
title_wire_read_taken (const guint8 *data, gsize len, guint32 *n)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type;

  weir_bytes_u8 (&b, &type);
  weir_bytes_u32 (&b, n);
  return is_read (&b) && type == TITLE_WIRE_TAKEN;
}

// ---- control, from a worker ----

static GQuark
get_domain (guint i)
{
  switch (i) {
    case 0:
      return GST_CORE_ERROR;
    case 1:
      return GST_LIBRARY_ERROR;
    case 2:
      return GST_RESOURCE_ERROR;
    default:
      return GST_STREAM_ERROR;
  }
}

void
title_wire_put_error (WireMessage *self, const GError *error, const gchar *debug)
{
  g_autofree gchar *message = g_strndup (error->message, WIRE_TEXT_MAX);
  g_autofree gchar *details = debug ? g_strndup (debug, WIRE_TEXT_MAX) : NULL;
  guint domain = 0;

  while (domain < 3 && error->domain != get_domain (domain))
    domain++;
  wire_begin (self, (WireType) TITLE_WIRE_ERROR);
  wire_put (self, domain, 1);
  wire_put (self, (guint8) error->code, 1);
  wire_put_text (self, message);
  wire_put_text (self, details);
}

void
title_wire_put_left_out (WireMessage *self, const gchar *text)
{
  g_autofree gchar *beginning = g_strndup (text, WIRE_TEXT_MAX);

  wire_begin (self, (WireType) TITLE_WIRE_LEFT_OUT);
  wire_put_text (self, beginning);
}

static void
read_left_out (WeirBytes *b, const TitleControlHandler *handler, gpointer owner)
{
  g_autofree gchar *text = wire_dup_message (b, WIRE_TEXT_MAX);

  if (text && is_read (b))
    handler->left_out (owner, text);
}

static void
read_track (WeirBytes *b, const TitleControlHandler *handler, gpointer owner)
{
  guint8 track, payload_type;
  guint32 mtu;

  weir_bytes_u8 (b, &track);
  weir_bytes_u8 (b, &payload_type);
  weir_bytes_u32 (b, &mtu);
  if (track >= RELAY_MAX_TRACKS || payload_type > 127 || mtu < MTU_MIN)
    b->failed = TRUE;
  if (is_read (b))
    handler->track (owner, track, payload_type, mtu);
}

static void
read_seek (WeirBytes *b, TitleWireType type, const TitleControlHandler *handler, gpointer owner)
{
  guint32 serial;
  guint8 ok = 0;

  weir_bytes_u32 (b, &serial);
  if (type == TITLE_WIRE_SEEKED)
    weir_bytes_u8 (b, &ok);
  if (is_read (b) && type == TITLE_WIRE_SEEKED)
    handler->seeked (owner, serial, ok != 0);
  else if (is_read (b))
    handler->flushing (owner, serial);
}

// Line breaks of the debug details are kept, because the details begin after the first one.
static void
read_error (WeirBytes *b, const TitleControlHandler *handler, gpointer owner)
{
  g_autofree gchar *message = NULL, *debug = NULL, *valid = NULL;
  guint8 domain, code;
  g_autoptr (GError) error = NULL;

  weir_bytes_u8 (b, &domain);
  weir_bytes_u8 (b, &code);
  message = wire_dup_message (b, WIRE_TEXT_MAX);
  debug = wire_dup_text (b, WIRE_TEXT_MAX);
  if (message && debug && is_read (b)) {
    valid = g_utf8_make_valid (debug, -1);
    for (gchar *c = valid; *c; c++) {
      if (((guchar) *c < 0x20 && *c != '\n') || *c == 0x7f)
        *c = '?';
    }
    error = g_error_new_literal (get_domain (domain), code, message);
    handler->failed (owner, error, valid);
  }
}

gboolean
title_wire_read_control (
    const guint8 *data, gsize len, const TitleControlHandler *handler, gpointer owner)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type, raw;

  weir_bytes_u8 (&b, &type);
  switch (b.failed ? 0 : type) {
    case TITLE_WIRE_ALIVE:
      break;
    case TITLE_WIRE_TRACK:
      read_track (&b, handler, owner);
      break;
    case TITLE_WIRE_LEFT_OUT:
      read_left_out (&b, handler, owner);
      break;
    case TITLE_WIRE_COMPLETE:
      weir_bytes_u8 (&b, &raw);
      if (is_read (&b))
        handler->complete (owner, raw != 0);
      break;
    case TITLE_WIRE_FLUSHING:
    case TITLE_WIRE_SEEKED:
      read_seek (&b, type, handler, owner);
      break;
    case TITLE_WIRE_ERROR:
      read_error (&b, handler, owner);
      break;
    default:
      return FALSE;
  }
  return is_read (&b);
}

// ---- control, to a worker ----

void
title_wire_put_command (WireMessage *self, const TitleCommand *command)
{
  wire_begin (self, (WireType) command->type);
  wire_put (self, command->track, 1);
  wire_put (self, command->value, 4);
  if (command->type != TITLE_WIRE_SEEK)
    return;
  put_double (self, command->rate);
  wire_put (self, command->flags, 4);
  wire_put (self, command->start_type, 1);
  wire_put (self, (guint64) command->start, 8);
  wire_put (self, command->stop_type, 1);
  wire_put (self, (guint64) command->stop, 8);
}

gboolean
title_wire_read_command (const guint8 *data, gsize len, TitleCommand *command)
{
  WeirBytes b = weir_bytes (data, len);
  guint64 start = 0, stop = 0;
  guint8 type;

  *command = (TitleCommand) { 0 };
  weir_bytes_u8 (&b, &type);
  command->type = type;
  weir_bytes_u8 (&b, &command->track);
  weir_bytes_u32 (&b, &command->value);
  if (type == TITLE_WIRE_SEEK) {
    command->rate = read_double (&b);
    weir_bytes_u32 (&b, &command->flags);
    weir_bytes_u8 (&b, &command->start_type);
    weir_bytes_u64 (&b, &start);
    weir_bytes_u8 (&b, &command->stop_type);
    weir_bytes_u64 (&b, &stop);
    command->start = (gint64) start;
    command->stop = (gint64) stop;
  }
  return is_read (&b) && command->track < RELAY_MAX_TRACKS;
}
