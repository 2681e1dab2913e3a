// SPDX-License-Identifier: LGPL-2.1-or-later
// rtpmp1spay: bytes, times, and streams that are cut or are none.
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gst/rtp/rtp.h>

#include "core/disks/put.h"

#define CAPS "video/mpeg,mpegversion=1,systemstream=true"
#define SCR_MAX ((G_GUINT64_CONSTANT (1) << 33) - 1)
#define STEP 3601      // ticks between packs: no whole number of ns
#define PACK_SIZE 2048 // bytes
#define ROOM 1388      // with the MTU by default, 1400
#define OFFSET 1000    // of timestamps

static void
append_pack (GByteArray *stream, guint64 scr, guint size)
{
  guint8 head[18] = { 0, 0, 1, 0xba };

  scr &= SCR_MAX;
  head[4] = (guint8) (0x21 | (scr >> 30) << 1);
  weir_put (head + 5, 2, (scr >> 15 & 0x7fff) << 1 | 1);
  weir_put (head + 7, 2, (scr & 0x7fff) << 1 | 1);
  weir_put (head + 9, 3, 0x800001 | 3000 << 1);
  weir_put (head + 12, 4, 0x1e0);
  weir_put (head + 16, 2, size - sizeof head);
  g_byte_array_append (stream, head, sizeof head);
  // What looks like the header of a pack inside of a packet is none.
  for (guint i = sizeof head; i < size; i++)
    g_byte_array_append (stream, head + i % 12, 1);
}

static GByteArray *
make_stream (guint64 scr, guint n, guint size)
{
  GByteArray *stream = g_byte_array_new ();

  for (guint i = 0; i < n; i++)
    append_pack (stream, scr + i * STEP, size);
  return stream;
}

static GstHarness *
make_harness (void)
{
  GstHarness *h = gst_harness_new_parse ("rtpmp1spay timestamp-offset=1000");

  gst_harness_set_src_caps_str (h, CAPS);
  return h;
}

static guint64
skipped (GstHarness *h)
{
  GstElement *pay = gst_harness_find_element (h, "rtpmp1spay");
  guint64 n;

  g_object_get (pay, "skipped", &n, NULL);
  gst_object_unref (pay);
  return n;
}

static void
push (GstHarness *h, const GByteArray *stream, guint piece)
{
  for (guint at = 0; at < stream->len; at += piece)
    g_assert_cmpint (gst_harness_push (h,
                         gst_buffer_new_memdup (stream->data + at, MIN (piece, stream->len - at))),
        ==, GST_FLOW_OK);
}

typedef struct {
  guint len, timestamp;
  gboolean marker;
} Packet;

// Returns the payloads one after the other, and sets what the packets are.
static GByteArray *
pull (GstHarness *h, GArray *packets)
{
  GByteArray *got = g_byte_array_new ();
  GstBuffer *buffer;

  while ((buffer = gst_harness_try_pull (h))) {
    GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
    Packet packet;

    g_assert_true (gst_rtp_buffer_map (buffer, GST_MAP_READ, &rtp));
    packet = (Packet) { gst_rtp_buffer_get_payload_len (&rtp), gst_rtp_buffer_get_timestamp (&rtp),
      gst_rtp_buffer_get_marker (&rtp) };
    g_array_append_val (packets, packet);
    g_byte_array_append (got, gst_rtp_buffer_get_payload (&rtp), packet.len);
    gst_rtp_buffer_unmap (&rtp);
    gst_buffer_unref (buffer);
  }
  return got;
}

// Sends the stream in pieces. Returns its packets, which must have all its bytes but those that are
// counted as skipped, at its end.
static GArray *
send_all (GstHarness *h, const GByteArray *stream, guint piece)
{
  GArray *packets = g_array_new (FALSE, FALSE, sizeof (Packet));
  GByteArray *got;

  push (h, stream, piece);
  gst_harness_push_event (h, gst_event_new_eos ());
  got = pull (h, packets);
  g_assert_cmpmem (got->data, got->len, stream->data, stream->len - skipped (h));
  g_byte_array_unref (got);
  return packets;
}

static void
check_packet (GArray *packets, guint i, guint len, guint ticks, gboolean marker)
{
  Packet packet = g_array_index (packets, Packet, i);

  g_assert_cmpuint (packet.len, ==, len);
  g_assert_cmpuint (packet.timestamp, ==, OFFSET + ticks);
  g_assert_cmpint (packet.marker, ==, marker);
}

// The SCR wraps within the stream.
static void
test_long_packs (void)
{
  for (guint piece = 1; piece < 5000; piece = 7 * piece + 1) {
    GByteArray *stream = make_stream (SCR_MAX - 4 * STEP - 7, 10, PACK_SIZE);
    GstHarness *h = make_harness ();
    GArray *packets = send_all (h, stream, piece);

    g_assert_cmpuint (packets->len, ==, 20);
    for (guint i = 0; i < 10; i++) {
      check_packet (packets, 2 * i, ROOM, i * STEP, FALSE);
      check_packet (packets, 2 * i + 1, PACK_SIZE - ROOM, i * STEP, FALSE);
    }
    g_assert_cmpuint (skipped (h), ==, 0);
    g_array_unref (packets);
    g_byte_array_unref (stream);
    gst_harness_teardown (h);
  }
}

static void
test_short_packs (void)
{
  GByteArray *stream = make_stream (1, 7, 400);
  GstHarness *h = make_harness ();
  GArray *packets = send_all (h, stream, 999);

  g_assert_cmpuint (packets->len, ==, 3);
  check_packet (packets, 0, 1200, 0, FALSE);
  check_packet (packets, 1, 1200, 3 * STEP, FALSE);
  check_packet (packets, 2, 400, 6 * STEP, FALSE);
  g_assert_cmpuint (skipped (h), ==, 0);
  g_array_unref (packets);
  g_byte_array_unref (stream);
  gst_harness_teardown (h);
}

static void
test_jump (void)
{
  GByteArray *stream = make_stream (90000, 2, 400);
  GstHarness *h = make_harness ();
  GArray *packets;

  append_pack (stream, 7, 400);
  append_pack (stream, 7 + STEP, 400);
  packets = send_all (h, stream, 5000);
  g_assert_cmpuint (packets->len, ==, 2);
  check_packet (packets, 0, 800, 0, FALSE);
  check_packet (packets, 1, 800, STEP, TRUE);
  g_array_unref (packets);
  g_byte_array_unref (stream);
  gst_harness_teardown (h);
}

static void
test_times_of_buffers (void)
{
  GByteArray *stream = make_stream (5, 2, PACK_SIZE);
  GstHarness *h = make_harness ();
  GstBuffer *buffer = gst_buffer_new_memdup (stream->data, stream->len);
  static const GstClockTime ns[] = { 0, 0, 40011112, 40011112 }; // from the first on

  GST_BUFFER_PTS (buffer) = 3 * GST_SECOND;
  gst_harness_push (h, buffer);
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < G_N_ELEMENTS (ns); i++) {
    buffer = gst_harness_pull (h);
    g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, 3 * GST_SECOND + ns[i]);
    gst_buffer_unref (buffer);
  }
  g_byte_array_unref (stream);
  gst_harness_teardown (h);
}

static void
test_cut_streams (void)
{
  for (guint cut = 1; cut < 400; cut++) {
    GByteArray *stream = make_stream (5, 3, 400);
    GstHarness *h = make_harness ();

    g_byte_array_set_size (stream, stream->len - cut);
    g_array_unref (send_all (h, stream, 100));
    g_assert_cmpuint (skipped (h), <, 12); // a part of a header
    g_byte_array_unref (stream);
    gst_harness_teardown (h);
  }
}

static void
test_zero_bytes_between (void)
{
  GByteArray *stream = make_stream (0, 1, 400);
  GstHarness *h = make_harness ();

  for (guint i = 0; i < 5000; i++)
    g_byte_array_append (stream, (const guint8 *) "", 1);
  append_pack (stream, STEP, 400);
  g_array_unref (send_all (h, stream, 777));
  g_assert_cmpuint (skipped (h), ==, 0);
  g_byte_array_unref (stream);
  gst_harness_teardown (h);
}

static void
test_garbage_before_and_between (void)
{
  GByteArray *stream = make_stream (0, 1, 400), *got, *garbage = g_byte_array_new ();
  GArray *packets = g_array_new (FALSE, FALSE, sizeof (Packet));
  GstHarness *h = make_harness ();

  for (guint i = 0; i < 5000; i++)
    g_byte_array_append (garbage, (guint8[]) { (guint8) (i % 3 == 2) }, 1);
  push (h, garbage, 777);
  push (h, stream, 777);
  push (h, garbage, 777);
  push (h, stream, 777);
  gst_harness_push_event (h, gst_event_new_eos ());
  got = pull (h, packets);
  g_assert_cmpuint (got->len, ==, 2 * stream->len);
  g_assert_cmpmem (got->data, 400, stream->data, 400);
  g_assert_cmpmem (got->data + 400, 400, stream->data, 400);
  g_assert_cmpuint (skipped (h), ==, 2 * garbage->len);
  g_array_unref (packets);
  g_byte_array_unref (got);
  g_byte_array_unref (garbage);
  g_byte_array_unref (stream);
  gst_harness_teardown (h);
}

static void
test_stream_without_packs (void)
{
  GstElement *pipeline =
      gst_parse_launch ("fakesrc num-buffers=20 filltype=zero sizetype=fixed sizemax=1000 ! " CAPS
                        " ! rtpmp1spay ! fakesink",
          NULL);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;
  GError *error;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 30 * GST_SECOND, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  g_assert_nonnull (message);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  g_assert_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE);
  g_error_free (error);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
}

static void
test_empty_stream (void)
{
  GstElement *pipeline = gst_parse_launch ("fakesrc num-buffers=0 ! rtpmp1spay ! fakesink", NULL);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 30 * GST_SECOND, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  g_assert_nonnull (message);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/rtpmp1spay/long-packs-are-cut-and-have-the-times-of-their-scr", test_long_packs);
  g_test_add_func ("/rtpmp1spay/short-packs-share-packets", test_short_packs);
  g_test_add_func ("/rtpmp1spay/a-jump-of-the-scr-is-marked", test_jump);
  g_test_add_func ("/rtpmp1spay/times-begin-with-those-of-the-buffers", test_times_of_buffers);
  g_test_add_func ("/rtpmp1spay/a-cut-stream-is-sent-as-far-as-it-goes", test_cut_streams);
  g_test_add_func ("/rtpmp1spay/zero-bytes-between-packs-are-sent", test_zero_bytes_between);
  g_test_add_func ("/rtpmp1spay/garbage-is-dropped-and-counted", test_garbage_before_and_between);
  g_test_add_func ("/rtpmp1spay/a-stream-without-packs-is-an-error", test_stream_without_packs);
  g_test_add_func ("/rtpmp1spay/an-empty-stream-ends", test_empty_stream);
  return g_test_run ();
}
