// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/block_cache.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "broadcast/packet_ranges.h"
#include "broadcast/packet_writer.h"
#include "schedule/segments.h"

#define BLOCKS 63 // segments of 1, 2, 4, ... 32 blocks
#define FRAMES_A_BLOCK 25
#define PACKET_BYTES 400
#define READING_MAX 4 // blocks that threads of the cache read at a time

// Makes a file of two tracks with a packet of each in each of 25 frames a second.
static PacketFile *
make (guint n_blocks)
{
  PacketWriter *writer = packet_writer_new (g_get_tmp_dir (), 64u << 20, NULL);
  GstCaps *caps = gst_caps_from_string ("application/x-rtp, media=(string)video, payload=(int)96, "
                                        "clock-rate=(int)90000, timestamp-offset=(uint)0");
  PacketFile *file;

  for (guint i = 0; i < 2; i++)
    g_assert_true (packet_writer_add_track (writer, caps, NULL));
  for (guint i = 0; i < n_blocks * FRAMES_A_BLOCK * 2; i++) {
    guint8 bytes[PACKET_BYTES] = { 0x80, 96 };
    GstBuffer *packet = gst_buffer_new_memdup (bytes, sizeof bytes);

    gst_buffer_memset (packet, 12, (guint8) i, PACKET_BYTES - 12);
    g_assert_true (packet_writer_add (writer, i % 2, (gint64) (i / 2) * 40000000, packet, NULL));
    gst_buffer_unref (packet);
  }
  file = packet_writer_finish (writer, NULL);
  g_assert_nonnull (file);
  g_assert_cmpuint (file->n_blocks, ==, n_blocks);
  packet_writer_free (writer);
  gst_caps_unref (caps);
  return file;
}

static gsize
use (BlockCache *cache, PacketFile *file, guint32 number)
{
  PacketBlock *block = block_cache_ask (cache, file, number);
  GBytes *bytes;
  gsize size;

  g_assert_cmpint (packet_block_wait (block, &bytes), ==, 0);
  size = g_bytes_get_size (bytes);
  packet_block_unref (block);
  return size;
}

static void
check_stats (BlockCache *cache, guint64 asked, guint64 hits, guint64 bytes_read)
{
  BlockCacheStats stats;

  block_cache_get_stats (cache, &stats);
  g_assert_cmpuint (stats.asked, ==, asked);
  g_assert_cmpuint (stats.hits, ==, hits);
  g_assert_cmpuint (stats.bytes_read, ==, bytes_read);
}

static void
blocks_that_are_kept_are_not_read_again (void)
{
  PacketFile *file = make (3);
  const gsize size = packet_file_block_bytes (file, 0);
  BlockCache *cache = block_cache_new (size, WEIR_POLICY_LFU);

  for (guint i = 0; i < 4; i++)
    g_assert_cmpuint (use (cache, file, 0), ==, size);
  check_stats (cache, 4, 3, size);
  // Block 0 has been asked for more often, so the others are not kept.
  use (cache, file, 1);
  use (cache, file, 1);
  use (cache, file, 0);
  check_stats (cache, 7, 4, 3 * size);
  block_cache_forget (cache, file);
  use (cache, file, 0);
  check_stats (cache, 8, 4, 4 * size);
  block_cache_unref (cache);
  packet_file_unref (file);
}

static void
a_block_in_use_is_read_once_for_all (void)
{
  PacketFile *file = make (2);
  BlockCache *cache = block_cache_new (0, WEIR_POLICY_LFU);
  PacketBlock *blocks[10];
  GBytes *bytes;

  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
    blocks[i] = block_cache_ask (cache, file, 1);
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++) {
    g_assert_true (blocks[i] == blocks[0]);
    g_assert_cmpuint (packet_block_number (blocks[i]), ==, 1);
    g_assert_cmpint (packet_block_wait (blocks[i], &bytes), ==, 0);
  }
  // The file and the cache may go before the block.
  packet_file_unref (file);
  block_cache_unref (cache);
  g_assert_cmpint (packet_block_get (blocks[0], &bytes), ==, 0);
  g_assert_cmpuint (g_bytes_get_size (bytes), ==, FRAMES_A_BLOCK * 2 * (PACKET_BYTES + 8));
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
    packet_block_unref (blocks[i]);
}

static void
a_failed_read_is_told_and_tried_again (void)
{
  PacketFile *file = make (2);
  BlockCache *cache = block_cache_new (1u << 20, WEIR_POLICY_LFU);
  PacketBlock *block;
  GBytes *bytes;

  g_assert_cmpint (ftruncate (file->fd, 100), ==, 0);
  for (guint i = 0; i < 2; i++) {
    block = block_cache_ask (cache, file, 1);
    g_assert_cmpint (packet_block_wait (block, &bytes), ==, -EIO);
    packet_block_unref (block);
  }
  check_stats (cache, 2, 0, 0);
  block_cache_unref (cache);
  packet_file_unref (file);
}

// A thread may come to a block before it is given back, so this is tried until some are left out.
static void
what_nobody_wants_any_more_is_not_read (void)
{
  PacketFile *file = make (BLOCKS);
  const gsize size = packet_file_block_bytes (file, 0);
  BlockCache *cache = block_cache_new (0, WEIR_POLICY_LFU);
  BlockCacheStats stats;
  guint64 left = 0;

  for (guint round = 0; round < 1000 && left <= READING_MAX; round++) {
    for (guint i = 1; i < BLOCKS; i++)
      packet_block_unref (block_cache_ask (cache, file, i));
    use (cache, file, 0); // the others were taken before
    block_cache_get_stats (cache, &stats);
    left = stats.asked - stats.hits - stats.bytes_read / size;
  }
  g_assert_cmpuint (left, >, READING_MAX);
  block_cache_unref (cache);
  packet_file_unref (file);
}

// Sends all segments of a geometric broadcast for 10 periods of the last one. Returns what is read.
static guint64
read_by (WeirPolicyRule rule, guint kept)
{
  PacketFile *file = make (BLOCKS);
  BlockCache *cache = block_cache_new (kept * packet_file_block_bytes (file, 0), rule);
  WeirSegment segments[WEIR_SEGMENTS_MAX];
  const gint n = weir_segments_cut (WEIR_CUT_GDB, BLOCKS, 1, 0, 0, segments);
  BlockCacheStats stats;

  g_assert_cmpint (n, ==, 6);
  for (guint round = 0; round < 10 * 32; round++) {
    for (gint i = 0; i < n; i++)
      use (cache, file, segments[i].from + round % (guint) segments[i].period);
  }
  block_cache_get_stats (cache, &stats);
  block_cache_forget (cache, file);
  block_cache_unref (cache);
  packet_file_unref (file);
  return stats.bytes_read;
}

static void
lfu_reads_no_more_than_lru (void)
{
  for (guint kept = 0; kept <= BLOCKS; kept += 9) {
    const guint64 lfu = read_by (WEIR_POLICY_LFU, kept), lru = read_by (WEIR_POLICY_LRU, kept);

    g_test_message (
        "%u blocks kept: LFU reads %" G_GUINT64_FORMAT ", LRU %" G_GUINT64_FORMAT, kept, lfu, lru);
    g_assert_cmpuint (lfu, <=, lru);
  }
  // The first three segments fit, and are read once.
  g_assert_cmpuint (read_by (WEIR_POLICY_LFU, 8), <, read_by (WEIR_POLICY_LRU, 8) * 6 / 10);
}

// ---- frames ----

// Writes a video with a picture at each of these times and returns the time of its frames.
static gint64
frame_of (const gint64 *times, guint n)
{
  PacketWriter *writer = packet_writer_new (g_get_tmp_dir (), 64u << 20, NULL);
  GstCaps *caps = gst_caps_from_string ("application/x-rtp, media=(string)video, payload=(int)96, "
                                        "clock-rate=(int)90000, timestamp-offset=(uint)0");
  guint8 bytes[PACKET_BYTES] = { 0x80, 96 };
  GstBuffer *packet = gst_buffer_new_memdup (bytes, sizeof bytes);
  PacketFile *file;
  gint64 frame_ns;

  g_assert_true (packet_writer_add_track (writer, caps, NULL));
  for (guint i = 0; i < n; i++)
    g_assert_true (packet_writer_add (writer, 0, times[i], packet, NULL));
  file = packet_writer_finish (writer, NULL);
  frame_ns = file->frame_ns;
  packet_file_unref (file);
  packet_writer_free (writer);
  gst_buffer_unref (packet);
  gst_caps_unref (caps);
  return frame_ns;
}

static void
the_frame_is_found_from_the_times_of_pictures (void)
{
  gint64 times[1000];
  guint n = 0;

  // 29.97 pictures a second, rounded to ms; some are missing.
  for (guint i = 0; n < G_N_ELEMENTS (times); i++) {
    if (i % 100 != 50 && i % 100 != 51)
      times[n++] = ((gint64) i * 1001 / 30 + 5) * 1000000;
  }
  g_assert_cmpint (ABS (frame_of (times, n) - 33366667), <, 2000);
  // One picture comes at another time.
  times[500] += 10000000;
  g_assert_cmpint (frame_of (times, n), ==, PACKET_FRAME_NS);
  // No rate is constant.
  for (guint i = 0; i < n; i++)
    times[i] = (gint64) i * i * 1000000;
  g_assert_cmpint (frame_of (times, 200), ==, PACKET_FRAME_NS);
  g_assert_cmpint (frame_of (times, 1), ==, PACKET_FRAME_NS);
}

// ---- ranges ----

static void
ranges_are_checked (void)
{
  static const struct {
    const gchar *text;
    gint code; // 0: valid
    guint n;
  } table[] = {
    { "0 0-49", 0, 1 },
    { "0 0-0\n1 3-7\n", 0, 2 },
    { "0 0-0\r\n1 3-7\r\n", 0, 2 },
    { "", G_IO_ERROR_INVALID_ARGUMENT },
    { "\n", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0-0\n\n", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0-", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 -1", G_IO_ERROR_INVALID_ARGUMENT },
    { " 0 0-1", G_IO_ERROR_INVALID_ARGUMENT },
    { "0  0-1", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0-1 ", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 +0-1", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0-1x", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0-4294967297", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 4294967296-1", G_IO_ERROR_INVALID_ARGUMENT },
    { "live", G_IO_ERROR_INVALID_ARGUMENT },
    { "0 0-50", G_IO_ERROR_INVALID_DATA },
    { "0 5-4", G_IO_ERROR_INVALID_DATA },
    { "2 0-0", G_IO_ERROR_INVALID_DATA },
    { "0 0-1\n0 999999999-999999999", G_IO_ERROR_INVALID_DATA },
  };
  PacketFile *file = make (2); // 50 packets of each track
  PacketRange ranges[PACKET_RANGES_MAX];

  for (guint i = 0; i < G_N_ELEMENTS (table); i++) {
    GError *error = NULL;
    const guint n =
        packet_ranges_parse (file, table[i].text, strlen (table[i].text), ranges, &error);

    g_test_message ("%s", table[i].text);
    g_assert_cmpuint (n, ==, table[i].n);
    if (table[i].code == 0)
      g_assert_no_error (error);
    else
      g_assert_error (error, G_IO_ERROR, table[i].code);
    g_clear_error (&error);
  }
  packet_file_unref (file);
}

static void
too_many_ranges_are_refused (void)
{
  PacketFile *file = make (1);
  PacketRange ranges[PACKET_RANGES_MAX];
  GString *text = g_string_new (NULL);
  GError *error = NULL;

  for (guint i = 0; i < PACKET_RANGES_MAX; i++)
    g_string_append (text, "0 1-1\n");
  g_assert_cmpuint (
      packet_ranges_parse (file, text->str, text->len, ranges, NULL), ==, PACKET_RANGES_MAX);
  g_string_append (text, "0 1-1\n");
  g_assert_cmpuint (packet_ranges_parse (file, text->str, text->len, ranges, &error), ==, 0);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT);
  g_error_free (error);
  g_string_free (text, TRUE);
  packet_file_unref (file);
}

// Reads ranges and checks that these packets come, and no others.
static void
check_read (PacketFile *file, const gchar *text, guint max_packets, gsize max_bytes, guint n)
{
  BlockCache *cache = block_cache_new (0, WEIR_POLICY_LFU);
  PacketRange ranges[PACKET_RANGES_MAX];
  const guint n_ranges = packet_ranges_parse (file, text, strlen (text), ranges, NULL);
  guint n_packets, range = 0;
  GError *error = NULL;
  GBytes *body = packet_ranges_read (
      cache, file, ranges, n_ranges, max_packets, max_bytes, &n_packets, &error);
  const guint8 *at, *end;
  PacketRecord record;

  g_assert_no_error (error);
  g_assert_cmpuint (n_packets, ==, n);
  at = g_bytes_get_data (body, NULL);
  end = at + g_bytes_get_size (body);
  for (guint32 next = ranges[0].from; packet_record_next (&at, end, &record); n--) {
    const guint32 in_file = record.number * 2 + record.track;

    g_assert_cmpuint (record.track, ==, ranges[range].track);
    g_assert_cmpuint (record.number, ==, next);
    g_assert_cmpuint (record.packet[PACKET_BYTES - 1], ==, in_file & 0xff);
    next = next == ranges[range].to ? ranges[++range].from : next + 1;
  }
  g_assert_cmpuint (n, ==, 0);
  g_assert_true (at == end);
  g_bytes_unref (body);
  block_cache_unref (cache);
}

static void
ranges_are_read_up_to_a_bound (void)
{
  PacketFile *file = make (4); // 100 packets of each track

  check_read (file, "0 0-0", 256, 1u << 20, 1);
  check_read (file, "1 99-99", 256, 1u << 20, 1);
  check_read (file, "0 0-99\n1 0-99", 256, 1u << 20, 200);
  check_read (file, "1 20-30\n0 24-26\n1 20-20", 256, 1u << 20, 15);
  check_read (file, "0 0-99\n1 0-99", 120, 1u << 20, 120);
  check_read (file, "0 0-99", 256, 10 * (PACKET_BYTES + 8) + 5, 10);
  packet_file_unref (file);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (NULL, NULL);
  g_test_add_func ("/block-cache/blocks-that-are-kept-are-not-read-again",
      blocks_that_are_kept_are_not_read_again);
  g_test_add_func (
      "/block-cache/a-block-in-use-is-read-once-for-all", a_block_in_use_is_read_once_for_all);
  g_test_add_func (
      "/block-cache/a-failed-read-is-told-and-tried-again", a_failed_read_is_told_and_tried_again);
  g_test_add_func ("/block-cache/what-nobody-wants-any-more-is-not-read",
      what_nobody_wants_any_more_is_not_read);
  g_test_add_func ("/block-cache/lfu-reads-no-more-than-lru", lfu_reads_no_more_than_lru);
  g_test_add_func ("/packet-writer/the-frame-is-found-from-the-times-of-pictures",
      the_frame_is_found_from_the_times_of_pictures);
  g_test_add_func ("/packet-ranges/ranges-are-checked", ranges_are_checked);
  g_test_add_func ("/packet-ranges/too-many-ranges-are-refused", too_many_ranges_are_refused);
  g_test_add_func ("/packet-ranges/ranges-are-read-up-to-a-bound", ranges_are_read_up_to_a_bound);
  return g_test_run ();
}
