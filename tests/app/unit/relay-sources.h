// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A relay with two sources of picture and sound, and what comes out of it.

#include "relay/relay.h"
#include "rtp/rtp.h"

#define SECOND ((gint64) GST_SECOND)
#define MS (SECOND / 1000)
#define VIDEO 90000
#define AUDIO 48000
#define FRAME (40 * MS)
#define KEY 5 // NAL unit type of an IDR slice
#define DELTA 1

typedef struct {
  guint track;
  guint8 of;   // the source
  guint8 type; // of the NAL unit
  WeirRtp rtp;
  gint64 time;
} Out;

typedef struct {
  Relay *relay;
  RelaySource *a, *b;
  GArray *out; // of Out
  gint over;   // atomic: the threads end
} Fixture;

static GMutex out_lock;

// ---- packets out ----

static inline void
take_packet (gpointer data, const RelayPacket *packet)
{
  Out out = { .track = packet->track, .time = packet->time };
  GstMapInfo map;

  g_assert_true (gst_buffer_map (packet->buffer, &map, GST_MAP_READ));
  g_assert_cmpint (weir_rtp_parse (map.data, map.size, &out.rtp), ==, 0);
  out.of = map.data[WEIR_RTP_HEADER + 2];
  out.type = map.data[WEIR_RTP_HEADER] & 31;
  gst_buffer_unmap (packet->buffer, &map);
  gst_buffer_unref (packet->buffer);
  g_mutex_lock (&out_lock);
  g_array_append_val (data, out);
  g_mutex_unlock (&out_lock);
}

static inline void
ended (gpointer out)
{
}

static const RelaySink sink = { .push = take_packet, .ended = ended };

static inline Out
out_at (Fixture *f, guint i)
{
  g_assert_cmpuint (i, <, f->out->len);
  return g_array_index (f->out, Out, i);
}

// Checks that each track's numbers continue: no gap, and every frame later than the one before.
static inline void
check_numbers (Fixture *f)
{
  Out last[2] = { 0 };

  for (guint i = 0; i < f->out->len; i++) {
    Out out = out_at (f, i);
    Out *before = &last[out.track];

    if (before->rtp.ssrc) {
      g_assert_cmpuint (out.rtp.ssrc, ==, before->rtp.ssrc);
      g_assert_cmpuint (out.rtp.seq, ==, (guint16) (before->rtp.seq + 1));
      g_assert_cmpint ((gint32) (out.rtp.timestamp - before->rtp.timestamp), >, 0);
      g_assert_cmpint (out.time, >, before->time);
    }
    *before = out;
  }
}

static inline guint
count (Fixture *f, guint track, guint8 of)
{
  guint n = 0;

  for (guint i = 0; i < f->out->len; i++)
    n += out_at (f, i).track == track && out_at (f, i).of == of;
  return n;
}

// ---- packets in ----

static inline GstBuffer *
packet_new (guint8 type, guint16 seq, guint32 timestamp, guint32 ssrc)
{
  guint8 data[WEIR_RTP_HEADER + 4] = { 0x80, 0xe0 };

  data[WEIR_RTP_HEADER] = (guint8) (0x60 | type);
  data[WEIR_RTP_HEADER + 1] = 0x88; // first_mb_in_slice 0
  data[WEIR_RTP_HEADER + 2] = (guint8) (ssrc / 16);
  weir_rtp_set_seq (data, seq);
  weir_rtp_set_timestamp (data, timestamp);
  weir_rtp_set_ssrc (data, ssrc);
  return gst_buffer_new_memdup (data, sizeof data);
}

// The source `of` sends what it captured at `now`: a frame every 40 ms, a keyframe every `gop`
// frames, and sound with each. The sound takes `late` longer to arrive.
static inline void
send_at (RelaySource *source, guint8 of, guint gop, gint64 now, gint64 late)
{
  guint n = (guint) (now / FRAME);

  relay_push (source, 0,
      packet_new (n % gop ? DELTA : KEY, (guint16) (n + 1000u * of),
          (guint32) (now / 1000 * VIDEO / 1000000 + 7777 * of), of * 16u),
      now, RELAY_NO_BASE);
  relay_push (source, 1,
      packet_new (DELTA, (guint16) (n + 3000u * of),
          (guint32) ((now - late) / 1000 * AUDIO / 1000000 + 5555 * of), of * 16u + 1),
      now, RELAY_NO_BASE);
}

static inline void
begin (RelaySource *source)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (caps,
      gst_caps_from_string (
          "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"));
  g_ptr_array_add (caps,
      gst_caps_from_string (
          "application/x-rtp, media=audio, encoding-name=OPUS, clock-rate=48000, payload=97"));
  relay_source_begin (source, caps);
  g_ptr_array_unref (caps);
}

// ---- the end ----

static inline void
tear_down (Fixture *f, gconstpointer unused)
{
  relay_remove_sink (f->relay, f->out);
  relay_source_end (f->a);
  relay_source_end (f->b);
  relay_source_unref (f->a);
  relay_source_unref (f->b);
  relay_unref (f->relay);
  g_array_unref (f->out);
}
