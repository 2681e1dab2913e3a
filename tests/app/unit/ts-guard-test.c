// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "sources/ts_guard.h"

#define TS_PACKET 188
#define N_PACKETS 200

// The head of a PES packet without a time, which the guard makes stuffing where a packet begins,
// and the stuffing.
static const guint8 head[] = { 0x47, 0x40, 65, 0x10, 0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0 },
                    merged[] = { 0x47, 0, 65, 0x30, 8, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                      0xff };

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GByteArray *passed = gst_pad_get_element_private (pad);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_READ);
  g_byte_array_append (passed, map.data, (guint) map.size);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

// Returns what a demultiplexer gets in pieces of `piece` bytes. (transfer full)
static GByteArray *
pass (const guint8 *data, gsize size, gsize piece)
{
  GstElement *demux = gst_object_ref_sink (gst_bin_new (NULL));
  GstPad *pad = gst_pad_new ("sink", GST_PAD_SINK);
  GByteArray *passed = g_byte_array_new ();
  GstSegment segment;

  gst_pad_set_element_private (pad, passed);
  gst_pad_set_chain_function (pad, on_buffer);
  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (demux, pad);
  ts_guard_add (demux);
  gst_segment_init (&segment, GST_FORMAT_BYTES);
  gst_pad_send_event (pad, gst_event_new_stream_start ("test"));
  gst_pad_send_event (pad, gst_event_new_segment (&segment));
  for (gsize at = 0; at < size; at += piece)
    gst_pad_chain (pad, gst_buffer_new_memdup (data + at, MIN (piece, size - at)));
  gst_object_unref (demux);
  return passed;
}

// Packets of one stream, with the head above somewhere in each of them.
static void
fill (guint8 *data)
{
  for (guint n = 0; n < N_PACKETS; n++) {
    guint8 *packet = data + n * TS_PACKET;

    memset (packet, 0x55, TS_PACKET);
    memcpy (packet, (const guint8[]) { 0x47, 0, 65, 0x10 }, 4);
    memcpy (packet + 8 + n * 37 % 150, head, sizeof head);
  }
}

// The payload may look like the beginning of a packet.
static void
test_payload (void)
{
  static const gsize pieces[] = { 7 * TS_PACKET, 600, 1000, 4096, 18800, N_PACKETS * TS_PACKET };
  guint8 data[N_PACKETS * TS_PACKET];

  fill (data);
  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++) {
    GByteArray *passed = pass (data, sizeof data, pieces[i]);

    g_assert_cmpmem (passed->data, passed->len, data, sizeof data);
    g_byte_array_unref (passed);
  }
}

// Returns the number of heads that were made stuffing.
static guint
count_changes (const guint8 *data, gsize size, gsize piece)
{
  GByteArray *passed = pass (data, size, piece);
  guint n = 0;

  g_assert_cmpuint (passed->len, ==, size);
  for (gsize i = 0; i < size; i++) {
    if (passed->data[i] == data[i])
      continue;
    g_assert_cmpmem (data + i - 1, sizeof head, head, sizeof head);
    g_assert_cmpmem (passed->data + i - 1, sizeof merged, merged, sizeof merged);
    i += sizeof head - 2;
    n++;
  }
  g_byte_array_unref (passed);
  return n;
}

static void
test_packets (void)
{
  guint8 data[N_PACKETS * TS_PACKET];

  // Each fifth packet is one.
  fill (data);
  for (guint n = 0; n < N_PACKETS; n += 5)
    memcpy (data + n * TS_PACKET, head, sizeof head);
  g_assert_cmpuint (count_changes (data, sizeof data, 7 * TS_PACKET), ==, N_PACKETS / 5);
  g_assert_cmpuint (count_changes (data, sizeof data, sizeof data), ==, N_PACKETS / 5);

  // A run beside the first one. Another could begin at the end of the data.
  fill (data);
  for (guint n = 100; n < 103; n++)
    memcpy (data + n * TS_PACKET + 171, head, sizeof head);
  g_assert_cmpuint (count_changes (data, sizeof data, sizeof data), >=, 3);

  // Other sizes of packets.
  for (guint stride = 192; stride <= 208; stride += stride == 192 ? 12 : 4) {
    memset (data, 0x55, sizeof data);
    for (guint n = 0; n < 100; n++)
      memcpy (data + 5 + n * stride, head, sizeof head);
    g_assert_cmpuint (count_changes (data, sizeof data, 4096), >, 90);
    g_assert_cmpuint (count_changes (data, sizeof data, sizeof data), ==, 100);
  }
}

// Checks what becomes of a packet with this head, behind packets of another PID.
static void
check_head (const guint8 *before, gsize n_before, const guint8 *after)
{
  guint8 data[8 * TS_PACKET];
  GByteArray *passed;

  memset (data, 0x55, sizeof data);
  for (guint n = 0; n < 8; n++)
    memcpy (data + n * TS_PACKET, (const guint8[]) { 0x47, 0, 66, 0x10 }, 4);
  memcpy (data + 5 * TS_PACKET, before, n_before);
  passed = pass (data, sizeof data, sizeof data);
  g_assert_cmpmem (passed->data + 5 * TS_PACKET, n_before, after, n_before);
  g_byte_array_unref (passed);
}

static void
test_heads (void)
{
  // With two bytes of stuffing, in an adaptation field without and with flags.
  static const guint8 long_head[] = { 0x47, 0x41, 65, 0x10, 0, 0, 1, 0xe0, 0, 9, 0x80, 0, 2, 0xff,
    0xff, 7 },
                      long_merged[] = { 0x47, 1, 65, 0x30, 10, 0, 0xff, 0xff, 0xff, 0xff, 0xff,
                        0xff, 0xff, 0xff, 0xff, 7 };
  static const guint8 empty[] = { 0x47, 0x40, 65, 0x30, 0, 0, 0, 1, 0xc0, 0, 0, 0x80, 0, 0, 7 },
                      empty_merged[] = { 0x47, 0, 65, 0x30, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xff,
                        0xff, 0xff, 0xff, 7 };
  static const guint8 clock[] = { 0x47, 0x40, 65, 0x30, 1, 0x40, 0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0,
    7 },
                      clock_merged[] = { 0x47, 0, 65, 0x30, 10, 0x40, 0xff, 0xff, 0xff, 0xff, 0xff,
                        0xff, 0xff, 0xff, 0xff, 7 };
  // Heads that cannot become stuffing: without the two bits 10, and longer than the packet.
  static const guint8 bits[] = { 0x47, 0x40, 65, 0x10, 0, 0, 1, 0xe0, 0, 0, 0, 0, 0 },
                      bits_invalid[] = { 0x47, 0x40, 65, 0x10, 0, 0, 0xff, 0xe0, 0, 0, 0, 0, 0 };
  static const guint8 filled[] = { 0x47, 0x40, 65, 0x10, 0, 0, 1, 0xe0, 0, 0, 0x80, 0, 175 },
                      filled_invalid[] = { 0x47, 0x40, 65, 0x10, 0, 0, 0xff, 0xe0, 0, 0, 0x80, 0,
                        175 };

  check_head (long_head, sizeof long_head, long_merged);
  check_head (empty, sizeof empty, empty_merged);
  check_head (clock, sizeof clock, clock_merged);
  check_head (bits, sizeof bits, bits_invalid);
  check_head (filled, sizeof filled, filled_invalid);
}

// What a demultiplexer gets in pieces may end within a head, of which it must not get one without a
// time.
static void
test_cut_heads (void)
{
  static const guint8 long_head[] = { 0x47, 0x40, 65, 0x10, 0, 0, 1, 0xe0, 0, 0, 0x80, 0, 50 };
  guint8 data[8 * TS_PACKET];

  for (gsize cut = 12; cut <= 4 + 9 + 50; cut++) {
    GByteArray *passed;

    memset (data, 0x55, sizeof data);
    for (guint n = 0; n < 8; n++)
      memcpy (data + n * TS_PACKET, (const guint8[]) { 0x47, 0, 66, 0x10 }, 4);
    memcpy (data + 5 * TS_PACKET, long_head, sizeof long_head);
    passed = pass (data, sizeof data, 5 * TS_PACKET + cut);
    g_assert_cmpuint (passed->len, ==, sizeof data);
    g_assert_cmphex (passed->data[5 * TS_PACKET + 6], ==, 0xff);
    g_byte_array_unref (passed);
  }
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ts-guard/what-looks-like-a-packet-in-a-payload-stays", test_payload);
  g_test_add_func ("/ts-guard/packets-of-each-size-are-found", test_packets);
  g_test_add_func ("/ts-guard/heads-without-a-time-become-stuffing", test_heads);
  g_test_add_func ("/ts-guard/cut-heads-are-made-invalid", test_cut_heads);
  return g_test_run ();
}
