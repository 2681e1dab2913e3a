// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/window.h"

#include "packets.h"
#include "tap.h"

#define MS INT64_C (1000000)

static const WeirWindowBounds wide = { 64 << 20, 100000, INT64_C (1000000000000), false };
static WeirWindow window;
static uint16_t next_seq;
static int64_t now_ns;
static uint64_t lost;

static void
begin (WeirWindowBounds bounds, WeirCodec codec)
{
  CHECK_INT (weir_window_init (&window, bounds, codec), 0);
  next_seq = 65533;
  now_ns = 1000 * MS;
  lost = 0;
}

// Reserves room for a packet and fills it with bytes that depend on its position.
static uint8_t *
room (size_t len)
{
  uint8_t *data = weir_window_reserve (&window, len);

  CHECK (data);
  for (size_t i = 0; data && i < len; i++)
    data[i] = (uint8_t) (i * 3 + (size_t) window.head + window.n_staged * 7);
  return data;
}

static WeirStageState
stage_vp8 (size_t len, uint32_t timestamp, bool first, bool marker, bool key, bool discardable)
{
  uint8_t *data = room (len);

  put_rtp (data, next_seq++, timestamp, marker);
  put_vp8 (data + RTP_HEADER, first, key, discardable, 0);
  return weir_window_stage (&window, len, NULL, now_ns);
}

static WeirStageState
stage_h264 (unsigned type, uint32_t timestamp, bool marker)
{
  uint8_t *data = room (100);

  put_rtp (data, next_seq++, timestamp, marker);
  put_h264 (data + RTP_HEADER, type, 3, true);
  return weir_window_stage (&window, 100, NULL, now_ns);
}

static WeirStageState
stage_bytes (uint8_t first, uint8_t second, size_t len)
{
  uint8_t *data = room (len);

  data[0] = first;
  if (len > 1)
    data[1] = second;
  return weir_window_stage (&window, len, NULL, now_ns);
}

static void
publish (void)
{
  CHECK (weir_window_publish (&window, &lost));
  CHECK_INT (window.n_staged, 0);
}

// One packet that is a frame; `key` makes it a join point.
static void
frame (size_t len, uint32_t timestamp, bool key)
{
  CHECK_INT (stage_vp8 (len, timestamp, true, true, key, false), WEIR_STAGE_FRAME);
  publish ();
}

static unsigned
flags_at (int64_t position)
{
  return weir_window_at (&window, position)->flags;
}

static void
an_empty_window_has_no_join_point (void)
{
  begin (wide, WEIR_CODEC_VP8);
  CHECK_INT (window.head, 0);
  CHECK_INT (window.tail, 0);
  CHECK_INT (weir_window_live (&window), 0);
  CHECK_INT (weir_window_tail_after (&window), 0);
  CHECK (weir_window_next_join (&window, 0) == WEIR_NO_POSITION);
  CHECK (!weir_window_publish (&window, &lost));
  CHECK_INT (weir_window_drop_stage (&window), 0);
  weir_window_flush (&window);
  weir_window_free (&window);
}

static void
packets_of_invalid_length_are_refused (void)
{
  begin (wide, WEIR_CODEC_VP8);
  CHECK (!weir_window_reserve (&window, 0));
  CHECK (!weir_window_reserve (&window, WEIR_PACKET_MAX + 1));
  CHECK (!weir_window_reserve (&window, SIZE_MAX));
  for (int i = 0; i < WEIR_STAGE_PACKETS; i++)
    stage_vp8 (100, 0, i == 0, false, false, false);
  CHECK (!weir_window_reserve (&window, 1));
  publish ();
  CHECK (weir_window_reserve (&window, 1));
  weir_window_free (&window);
}

// Stages one packet alone.
static void
packets_set_their_flags (void)
{
  static const struct {
    uint8_t first, second;
    size_t len;
    WeirStageState state;
    unsigned flags, n_opaque;
  } cases[] = {
    { 0x80, 96, 1200, WEIR_STAGE_MORE, WEIR_PACKET_RTP | WEIR_PACKET_START, 0 },
    { 0x80, 0xe0, 1200, WEIR_STAGE_FRAME, WEIR_PACKET_RTP | WEIR_PACKET_START | WEIR_PACKET_MARKER,
        0 },
    { 0x80, 224, 28, WEIR_STAGE_FRAME, WEIR_PACKET_RTP | WEIR_PACKET_START | WEIR_PACKET_MARKER,
        0 },
    { 0x80, 200, 28, WEIR_STAGE_URGENT, WEIR_PACKET_START | WEIR_PACKET_JOIN | WEIR_PACKET_KEY, 0 },
    { 0x80, 192, 28, WEIR_STAGE_URGENT, 0, 0 },
    { 0x80, 223, 28, WEIR_STAGE_URGENT, 0, 0 },
    { 0x47, 96, 1316, WEIR_STAGE_URGENT, 0, 1 },
    { 0x80, 96, 11, WEIR_STAGE_URGENT, 0, 1 },
    { 0x80, 96, 1, WEIR_STAGE_URGENT, 0, 1 },
    { 0xbf, 96, 12, WEIR_STAGE_URGENT, 0, 1 }, // a header with wrong lengths
    { 0x80, 96, 65507, WEIR_STAGE_FULL, WEIR_PACKET_RTP | WEIR_PACKET_START, 0 },
    { 0x80, 96, 32754, WEIR_STAGE_FULL, WEIR_PACKET_RTP | WEIR_PACKET_START, 0 },
    { 0x80, 96, 32753, WEIR_STAGE_MORE, WEIR_PACKET_RTP | WEIR_PACKET_START, 0 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin (wide, WEIR_CODEC_H265);
    CHECK_INT (stage_bytes (cases[i].first, cases[i].second, cases[i].len), cases[i].state);
    publish ();
    CHECK_INT (flags_at (0) & ~(unsigned) WEIR_PACKET_DISCARDABLE,
        cases[i].flags | (cases[i].flags & WEIR_PACKET_RTP ? WEIR_PACKET_KEY : 0));
    CHECK_INT (window.n_opaque, cases[i].n_opaque);
    CHECK_INT (weir_window_at (&window, 0)->length, cases[i].len);
    weir_window_free (&window);
  }
}

// An RTCP sender report is a join point in a stream of RTCP, but not among pictures.
static void
a_sender_report_among_pictures_is_not_a_join_point (void)
{
  begin (wide, WEIR_CODEC_VP8);
  stage_bytes (0x80, 200, 28);
  stage_bytes (0x80, 201, 28);
  stage_bytes (0x80, 200, 28);
  publish ();
  CHECK_INT (window.last_join, 2);
  frame (100, 0, true);
  CHECK_INT (window.last_join, 3);
  stage_bytes (0x80, 200, 28);
  publish ();
  CHECK_INT (window.last_join, 3);
  CHECK_INT (flags_at (4), 0);
  weir_window_free (&window);
}

static void
every_audio_packet_is_a_frame (void)
{
  begin (wide, WEIR_CODEC_AUDIO);
  for (unsigned i = 0; i < 5; i++) {
    CHECK_INT (stage_bytes (0x80, i == 0 ? 0x80 | 97 : 97, 200), WEIR_STAGE_FRAME);
    publish ();
    CHECK (flags_at (i) & WEIR_PACKET_START && flags_at (i) & WEIR_PACKET_JOIN);
    CHECK (flags_at (i) & WEIR_PACKET_KEY && !(flags_at (i) & WEIR_PACKET_DISCARDABLE));
    CHECK_INT (window.last_join, i);
  }
  CHECK_INT (weir_window_next_join (&window, 1), 1);
  weir_window_free (&window);
}

// In a stream of an unknown codec all packets count the same, and none is a join point.
static void
an_unknown_codec_has_only_key_packets (void)
{
  begin (wide, WEIR_CODEC_OPAQUE);
  for (unsigned i = 0; i < 4; i++)
    stage_vp8 (100, i / 2 * 3000, i % 2 == 0, i % 2 == 1, true, true);
  publish ();
  for (unsigned i = 0; i < 4; i++)
    CHECK_INT (flags_at (i),
        WEIR_PACKET_RTP | WEIR_PACKET_KEY | (i % 2 ? WEIR_PACKET_MARKER : WEIR_PACKET_START));
  CHECK (window.last_join == WEIR_NO_POSITION);
  weir_window_free (&window);
}

// A stream with gradual refresh has no key frame: all packets count the same. The first key frame
// changes that, and another codec reverts it.
static void
a_stream_without_key_frames_has_only_key_packets (void)
{
  begin (wide, WEIR_CODEC_VP8);
  for (unsigned i = 0; i < 8; i++) {
    if (i == 6)
      weir_window_set_codec (&window, WEIR_CODEC_OPAQUE);
    frame (100, i * 3000, i == 3);
    CHECK_INT (!!(flags_at (i) & WEIR_PACKET_KEY), i <= 3 || i >= 6);
  }
  weir_window_free (&window);
}

// A frame ends with its marker, or with the timestamp of the next frame.
static void
frames_end_by_marker_or_timestamp (void)
{
  static const struct {
    uint32_t timestamp;
    bool marker, start;
  } cases[] = {
    { 0xfffff000, false, true },
    { 0xfffff000, true, false },
    { 0xfffff000, true, true }, // the packet after a marker begins a frame
    { 0x10, false, true },      // after the wrap
    { 0x20, false, true },      // the marker was lost
    { 0x20, false, false },
    { 0x10, false, true }, // reordered
    { 0x20, true, true },
  };

  begin (wide, WEIR_CODEC_VP8);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_INT (stage_vp8 (100, cases[i].timestamp, false, cases[i].marker, false, false),
        cases[i].marker ? WEIR_STAGE_FRAME : WEIR_STAGE_MORE);
    publish ();
    CHECK_INT (!!(flags_at ((int64_t) i) & WEIR_PACKET_START), cases[i].start);
    CHECK_INT (!!(flags_at ((int64_t) i) & WEIR_PACKET_MARKER), cases[i].marker);
    CHECK_INT (weir_window_at (&window, (int64_t) i)->seq, (uint16_t) (65533 + i));
  }
  CHECK_INT (weir_window_at (&window, 7)->rtp_time - weir_window_at (&window, 0)->rtp_time, 0x1020);
  CHECK_INT (window.newest_time, weir_window_at (&window, 7)->rtp_time);
  weir_window_free (&window);
}

// A key picture begins with its delimiter and parameter sets, however many of its packets are
// already published when it is recognised.
static void
a_join_point_is_the_start_of_its_frame (void)
{
  static const unsigned types[] = { 9, 7, 8, 5, 5 }; // delimiter, SPS, PPS, IDR, its second slice

  for (unsigned published = 0; published < 16; published++) {
    begin (wide, WEIR_CODEC_H264);
    stage_h264 (1, 0, true);
    publish ();
    for (unsigned i = 0; i < 5; i++) {
      stage_h264 (types[i], 3000, i == 4);
      if (published >> i & 1)
        publish ();
    }
    if (window.n_staged > 0)
      publish ();
    stage_h264 (1, 6000, true);
    publish ();

    CHECK_INT (window.last_join, 1);
    CHECK_INT (weir_window_next_join (&window, 0), 1);
    CHECK (weir_window_next_join (&window, 2) == WEIR_NO_POSITION);
    for (int64_t i = 0; i < 7; i++) {
      CHECK_INT (!!(flags_at (i) & WEIR_PACKET_JOIN), i == 1);
      CHECK_INT (
          !!(flags_at (i) & WEIR_PACKET_KEY), i <= 5); // all packets before the first join point
      CHECK_INT (!!(flags_at (i) & WEIR_PACKET_START), i <= 1 || i == 6);
    }
    weir_window_free (&window);
  }
}

// The window drops a frame's start before the frame is recognised as a keyframe.
static void
a_join_point_whose_start_was_dropped_is_ignored (void)
{
  WeirWindowBounds bounds = wide;

  bounds.packets = 2;
  begin (bounds, WEIR_CODEC_H264);
  for (unsigned i = 0; i < 3; i++) {
    stage_h264 (i ? 8 : 7, 3000, false);
    publish ();
  }
  stage_h264 (5, 3000, true);
  publish ();
  CHECK (window.last_join == WEIR_NO_POSITION);
  CHECK (weir_window_next_join (&window, 0) == WEIR_NO_POSITION);
  weir_window_free (&window);
}

// Later packets do not move the mark back to an older frame.
static void
the_last_join_point_stays_the_last (void)
{
  begin (wide, WEIR_CODEC_H264);
  stage_h264 (7, 3000, false);
  publish ();
  stage_h264 (5, 3000, true);
  publish ();
  CHECK_INT (window.last_join, 0);
  stage_bytes (0x47, 0, 100);
  publish ();
  CHECK_INT (window.last_join, 0);
  stage_h264 (5, 6000, true);
  publish ();
  CHECK_INT (window.last_join, 3);
  stage_bytes (0x47, 0, 100);
  publish ();
  CHECK_INT (window.last_join, 3);
  CHECK_INT (weir_window_next_join (&window, 1), 3);

  // A frame that was never published does not get the mark.
  stage_h264 (5, 9000, false);
  CHECK_INT (weir_window_drop_stage (&window), 1);
  stage_bytes (0x47, 0, 100);
  publish ();
  stage_bytes (0x47, 0, 100);
  publish ();
  CHECK_INT (window.last_join, 3);
  CHECK_INT (flags_at (5), 0);
  weir_window_free (&window);
}

static void
the_newest_time_counts_from_the_join_point (void)
{
  begin (wide, WEIR_CODEC_VP8);
  frame (100, 500000, true);
  frame (100, 506000, false);
  frame (100, 503000, false);
  CHECK_INT (window.newest_time, 506000);
  // The stream restarts with lower timestamps.
  frame (100, 9000, true);
  CHECK_INT (window.newest_time, 9000);
  frame (100, 15000, false);
  frame (100, 12000, false);
  CHECK_INT (window.newest_time, 15000);
  weir_window_free (&window);
}

static void
the_bound_in_bytes_holds (void)
{
  WeirWindowBounds bounds = wide;

  bounds.bytes = 5000;
  begin (bounds, WEIR_CODEC_VP8);
  for (unsigned i = 0; i < 10; i++)
    frame (1000, i * 3000, i == 0);
  CHECK_INT (window.tail, 5);
  CHECK_INT (window.bytes, 5000);
  CHECK (window.last_join == WEIR_NO_POSITION);
  frame (4500, 30000, false);
  CHECK_INT (window.tail, 10);
  // The newest packet stays, whatever its size.
  frame (60000, 33000, false);
  CHECK_INT (window.tail, 11);
  CHECK_INT (window.head, 12);
  weir_window_free (&window);
}

static void
the_bounds_in_packets_and_time_hold (void)
{
  WeirWindowBounds bounds = wide;

  bounds.packets = 7;
  begin (bounds, WEIR_CODEC_VP8);
  for (unsigned i = 0; i < 300; i++) {
    frame (100, i * 3000, false);
    CHECK_INT (window.tail, i < 7 ? 0 : i - 6);
  }
  weir_window_free (&window);

  bounds = wide;
  bounds.time_ns = 100 * MS;
  begin (bounds, WEIR_CODEC_VP8);
  for (unsigned i = 0; i < 20; i++) {
    frame (100, i * 3000, false);
    now_ns += 20 * MS;
  }
  CHECK_INT (window.tail, 14);
  now_ns += 1000 * MS;
  frame (100, 0, false);
  CHECK_INT (window.tail, 20);
  weir_window_free (&window);
}

// The time bound keeps the newest join point; bytes and packets drop it, and then time drops the
// rest.
static void
the_newest_join_point_is_kept (void)
{
  WeirWindowBounds bounds = wide;

  bounds.time_ns = 100 * MS;
  bounds.keep_join = true;
  begin (bounds, WEIR_CODEC_VP8);
  for (unsigned i = 0; i < 30; i++) {
    frame (100, i * 3000, i == 3 || i == 20);
    now_ns += 20 * MS;
    CHECK_INT (window.tail, i < 3    ? 0
                            : i < 8  ? (i > 5 ? i - 5 : 0)
                            : i < 20 ? 3
                            : i < 25 ? i - 5
                                     : 20);
    if (i == 19)
      CHECK_INT (window.last_join, 3);
  }
  window.bounds.packets = 10;
  stage_vp8 (100, 0, true, true, false, false);
  CHECK_INT (weir_window_tail_after (&window), 25);
  publish ();
  CHECK_INT (window.tail, 25);
  CHECK (window.last_join == WEIR_NO_POSITION);
  weir_window_free (&window);
}

static void
the_live_edge_is_the_start_of_the_newest_frame (void)
{
  begin (wide, WEIR_CODEC_VP8);
  frame (100, 0, true);
  CHECK_INT (weir_window_live (&window), 1);
  for (int i = 0; i < 3; i++) {
    stage_vp8 (100, 3000, i == 0, i == 2, false, false);
    CHECK_INT (weir_window_live (&window), 1);
    publish ();
    CHECK_INT (weir_window_live (&window), i < 2 ? 1 : 4);
  }
  stage_vp8 (100, 6000, true, false, false, false);
  stage_vp8 (100, 9000, true, false, false, false);
  publish ();
  CHECK_INT (weir_window_live (&window), 5);
  stage_bytes (0x47, 0, 100);
  publish ();
  CHECK_INT (weir_window_live (&window), 7);
  weir_window_free (&window);

  // If the frame's start is dropped, the live edge is the rest of the frame.
  begin ((WeirWindowBounds) { 1 << 20, 2, 1000 * MS, false }, WEIR_CODEC_VP8);
  for (int i = 0; i < 5; i++)
    stage_vp8 (100, 3000, i == 0, false, false, false);
  publish ();
  CHECK_INT (weir_window_live (&window), 3);
  weir_window_free (&window);
}

// Checks that the packets of a span lie back to back and fit into one send.
static void
check_span (const WeirSpan *span)
{
  const uint8_t *at = weir_packet_data (&span->packets[0]);
  size_t bytes = 0;

  CHECK (span->n > 0 && span->n <= WEIR_STAGE_PACKETS);
  for (size_t i = 0; i < span->n; i++) {
    CHECK (weir_packet_data (&span->packets[i]) == at + bytes);
    bytes += span->packets[i].length;
  }
  CHECK (bytes <= WEIR_PACKET_MAX);
}

static void
a_span_fits_into_one_send (void)
{
  static const struct {
    size_t n, len, span;
  } cases[] = { { 200, 1200, 54 }, { 200, 100, 64 }, { 10, 65507, 1 }, { 10, 32753, 2 },
    { 10, 32754, 1 }, { 3, 1, 3 } };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    WeirSpan span;

    begin (wide, WEIR_CODEC_OPAQUE);
    window.block_size = WEIR_BLOCK_BYTES;
    for (size_t k = 0; k < cases[i].n; k++) {
      stage_bytes (0, 0, cases[i].len);
      publish ();
    }
    weir_window_span (&window, 0, window.head, &span);
    CHECK_INT (span.n, cases[i].span);
    CHECK_INT (span.first, 0);
    check_span (&span);
    weir_span_clear (&span);
    weir_window_span (&window, 1, 2, &span);
    CHECK_INT (span.n, 1);
    CHECK_INT (span.first, 1);
    weir_span_clear (&span);
    weir_window_free (&window);
  }
}

static void
a_span_ends_with_its_block (void)
{
  WeirSpan span;

  begin (wide, WEIR_CODEC_OPAQUE);
  window.block_size = WEIR_BLOCK_BYTES;
  for (int i = 0; i < 9; i++) {
    stage_bytes (0, 0, 30000);
    publish ();
  }
  weir_window_span (&window, 7, window.head, &span);
  CHECK_INT (span.n, 1);
  weir_span_clear (&span);
  weir_window_span (&window, 8, window.head, &span);
  CHECK_INT (span.n, 1);
  CHECK (weir_window_at (&window, 7)->block != weir_window_at (&window, 8)->block);
  weir_span_clear (&span);
  weir_window_free (&window);
}

// Packets that were staged and dropped still lie between their neighbours.
static void
a_span_ends_where_packets_were_dropped (void)
{
  WeirSpan span;

  begin (wide, WEIR_CODEC_OPAQUE);
  stage_bytes (0, 1, 100);
  stage_bytes (0, 2, 100);
  publish ();
  stage_bytes (0, 3, 100);
  CHECK_INT (weir_window_drop_stage (&window), 1);
  stage_bytes (0, 4, 100);
  stage_bytes (0, 5, 100);
  publish ();
  weir_window_span (&window, 0, window.head, &span);
  CHECK_INT (span.n, 2);
  check_span (&span);
  weir_span_clear (&span);
  weir_window_span (&window, 2, window.head, &span);
  CHECK_INT (span.n, 2);
  CHECK_INT (weir_packet_data (&span.packets[0])[1], 4);
  check_span (&span);
  weir_span_clear (&span);
  weir_window_free (&window);
}

// Frames of five packets at `rate` bits per second, for `time_ns`. Each frame lies in one block.
static void
frames_at (uint64_t rate, int64_t time_ns)
{
  const int64_t frame_ns = rate > 10000000 ? 5 * MS : rate > 100000 ? 40 * MS : 400 * MS;
  const size_t len = rate * (uint64_t) frame_ns / 1000000000 / 8 / 5;
  WeirSpan span;

  for (int64_t end_ns = now_ns + time_ns; now_ns < end_ns; now_ns += frame_ns) {
    int64_t first = window.head;

    for (int i = 0; i < 5; i++)
      stage_vp8 (len, (uint32_t) (now_ns / MS * 90), i == 0, i == 4, false, false);
    publish ();
    weir_window_span (&window, first, window.head, &span);
    CHECK_INT (span.n, 5);
    weir_span_clear (&span);
  }
}

static void
the_size_of_blocks_follows_the_rate (void)
{
  static const struct {
    uint64_t rate;
    int64_t time_ns; // two blocks of the size before fill in this time
    size_t size;
  } steps[] = {
    { 15000, 1000 * MS, 4096 },
    { 1000000, 3000 * MS, 16384 },
    { 4000000, 3000 * MS, 65536 },
    { 50000000, 3000 * MS, 262144 },
    { 1000000, 8000 * MS, 16384 },
    { 15000, 40000 * MS, 4096 },
  };

  begin (wide, WEIR_CODEC_VP8);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    frames_at (steps[i].rate, steps[i].time_ns);
    CHECK_INT (window.block->size, steps[i].size);
  }
  weir_window_free (&window);
}

// While the rate is not known yet, the blocks of a fast stream grow.
static void
the_blocks_of_a_new_stream_grow_within_its_first_second (void)
{
  begin (wide, WEIR_CODEC_VP8);
  frames_at (1000000, 40 * MS);
  CHECK_INT (window.block->size, 8192); // a frame of 5 kB
  frames_at (20000000, 960 * MS);
  CHECK_INT (window.block->size, 262144);
  weir_window_free (&window);
}

static void
a_large_packet_gets_a_block_of_its_size (void)
{
  static const size_t lens[] = { 1, 4096, 4097, 20000, WEIR_PACKET_MAX };
  static const size_t sizes[] = { 4096, 4096, 8192, 32768, 65536 };

  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
    begin (wide, WEIR_CODEC_OPAQUE);
    stage_bytes (0, 0, lens[i]);
    publish ();
    CHECK_INT (window.block->size, sizes[i]);
    weir_window_free (&window);
  }
}

// More is staged than a block holds: the packets stay where they are.
static void
a_stage_larger_than_a_block_stays_in_place (void)
{
  begin (wide, WEIR_CODEC_OPAQUE);
  for (int i = 0; i < 5; i++) {
    uint8_t *data = room (60000);

    CHECK (data);
    weir_window_stage (&window, 60000, NULL, now_ns);
  }
  publish ();
  CHECK (weir_window_at (&window, 0)->block == weir_window_at (&window, 3)->block);
  CHECK (weir_window_at (&window, 0)->block != weir_window_at (&window, 4)->block);
  for (int64_t p = 0; p < 5; p++) {
    const uint8_t *data = weir_packet_data (weir_window_at (&window, p));

    CHECK_INT (data[1], (uint8_t) (3 + p * 7));
    CHECK_INT (data[59999], (uint8_t) (59999 * 3 + p * 7));
  }
  weir_window_free (&window);
}

static void
blocks_of_a_file_have_one_size (void)
{
  WeirBlockFile *file = weir_block_file_new ("/tmp");

  CHECK (file);
  begin (wide, WEIR_CODEC_VP8);
  weir_window_set_file (&window, file);
  frames_at (15000, 1000 * MS);
  CHECK_INT (window.block->size, 262144);
  weir_window_free (&window);
  weir_block_file_unref (file);
}

// Large packets are published before they exceed the smallest window.
static void
the_stage_fits_into_the_window (void)
{
  WeirWindowBounds bounds = wide;
  WeirStageState state = WEIR_STAGE_MORE;

  bounds.bytes = WEIR_WINDOW_BYTES_MIN;
  begin (bounds, WEIR_CODEC_VP8);
  for (int i = 0; state == WEIR_STAGE_MORE; i++)
    state = stage_vp8 (40000, 0, i == 0, false, true, false);
  CHECK_INT (state, WEIR_STAGE_FULL);
  publish ();
  CHECK_INT (window.tail, 0);
  weir_window_free (&window);
}

static void
positions_continue_after_a_flush (void)
{
  WeirSpan span;

  begin (wide, WEIR_CODEC_VP8);
  for (unsigned i = 0; i < 5; i++)
    frame (100, i * 3000, true);
  weir_window_span (&window, 0, 5, &span);
  stage_vp8 (100, 15000, true, false, true, false);
  weir_window_flush (&window);
  CHECK_INT (window.head, 5);
  CHECK_INT (window.tail, 5);
  CHECK_INT (window.bytes, 0);
  CHECK_INT (window.n_staged, 0);
  CHECK (window.last_join == WEIR_NO_POSITION);
  CHECK_INT (weir_window_live (&window), 5);
  frame (100, 18000, true);
  CHECK_INT (window.last_join, 5);
  check_span (&span); // still valid
  weir_span_clear (&span);
  weir_window_free (&window);
}

// ---- random steps, compared with a model: all packets in a plain array ----

#define HISTORY (1 << 16)
#define SPANS 24

typedef struct {
  uint32_t len;
  uint64_t pool_offset;
  int64_t arrival_ns, rtp_time;
  uint16_t seq;
  uint8_t flags;
  uint8_t head[16];
  size_t n_head;
} ModelPacket;

static struct {
  ModelPacket packets[HISTORY]; // the packet at position p is packets[p % HISTORY]
  int64_t tail, head, staged;   // staged packets lie from the head on
  WeirWindowBounds bounds;
  uint16_t seq;
  int64_t rtp_time;
  uint64_t n_opaque;
  // The current frame.
  bool in_frame, key, join, seen_key;
  int64_t frame_start, frame_time;
  int64_t late_join; // -1: none
} model;

static uint8_t pool[1 << 18]; // the bytes of all packets are somewhere in here

static ModelPacket *
model_at (int64_t position)
{
  return &model.packets[position % HISTORY];
}

static size_t
random_len (void)
{
  uint64_t r = random_below (1000);

  if (r < 700)
    return 1200;
  if (r < 900)
    return 17 + random_below (200);
  if (r < 988)
    return 1 + random_below (3000);
  return r < 999 ? 1 + random_below (20000) : 1 + random_below (WEIR_PACKET_MAX);
}

// Marks the current frame as a keyframe. Staged packets are marked at once, published packets by
// the next publish.
static void
model_key (int64_t position)
{
  int64_t from = model.frame_start < model.head ? model.head : model.frame_start;

  model.key = true;
  for (int64_t p = from; p <= position; p++)
    model_at (p)->flags |= model_at (p)->flags & WEIR_PACKET_RTP ? WEIR_PACKET_KEY : 0;
  if (model.join)
    return;
  model.join = true;
  if (model.frame_start >= model.head)
    model_at (model.frame_start)->flags |= WEIR_PACKET_JOIN;
  else
    model.late_join = model.frame_start;
}

static void
model_rtp (int64_t position, ModelPacket *packet)
{
  bool marker = random_percent (25), discardable = random_percent (20), join = false;
  unsigned kind = (unsigned) random_below (40);

  if (!model.in_frame && !random_percent (3))
    model.rtp_time += 1 + (int64_t) random_below (1600000) - (random_percent (10) ? 900000 : 0);
  packet->flags = WEIR_PACKET_RTP | (marker ? WEIR_PACKET_MARKER : 0);
  if (!model.in_frame || model.frame_time != model.rtp_time) {
    packet->flags |= WEIR_PACKET_START;
    model.frame_start = position;
    model.frame_time = model.rtp_time;
    model.key = model.join = false;
  }
  put_rtp (packet->head, model.seq, (uint32_t) model.rtp_time, marker);
  packet->seq = model.seq++;
  packet->rtp_time = model.rtp_time;
  packet->n_head = RTP_HEADER + H264_PAYLOAD;
  if (kind == 0) {
    put_h264 (packet->head + RTP_HEADER, 5, 3, true);
    join = true;
  } else if (kind == 1) {
    put_h264 (packet->head + RTP_HEADER, 7, 3, false);
    model.key = true;
  } else {
    put_h264 (packet->head + RTP_HEADER, 1, discardable ? 0 : 2, true);
    packet->flags |= discardable ? WEIR_PACKET_DISCARDABLE : 0;
  }
  model.seen_key = model.seen_key || join;
  if (model.key || !model.seen_key)
    packet->flags |= WEIR_PACKET_KEY;
  if (join)
    model_key (position);
  model.in_frame = !marker;
}

static void
stage_both (void)
{
  int64_t position = model.head + model.staged;
  ModelPacket *packet = model_at (position);
  size_t len = random_len ();
  WeirStageState state;
  uint8_t *data;

  now_ns += (int64_t) random_below (3 * MS);
  memset (packet, 0, sizeof *packet);
  packet->len = (uint32_t) len;
  packet->arrival_ns = now_ns;
  packet->pool_offset = random_below (sizeof pool - WEIR_PACKET_MAX);
  if (len >= sizeof packet->head && !random_percent (2)) {
    model_rtp (position, packet);
  } else if (len >= 2 && random_percent (50)) {
    packet->head[0] = 0x80;
    packet->head[1] = 200;
    packet->n_head = 2;
  } else {
    packet->head[0] = 0x47;
    packet->n_head = 1;
    model.n_opaque++;
  }

  data = weir_window_reserve (&window, len);
  CHECK (data);
  memcpy (data, pool + packet->pool_offset, len);
  memcpy (data, packet->head, packet->n_head);
  state = weir_window_stage (&window, len, NULL, now_ns);
  model.staged++;
  CHECK_INT (window.n_staged, model.staged);
  CHECK_INT (state == WEIR_STAGE_FRAME, !!(packet->flags & WEIR_PACKET_MARKER));
  CHECK_INT (
      state == WEIR_STAGE_URGENT, !(packet->flags & WEIR_PACKET_RTP) && state != WEIR_STAGE_FULL);
}

static int64_t
model_last_join (void)
{
  for (int64_t p = model.head - 1; p >= model.tail; p--) {
    if (model_at (p)->flags & WEIR_PACKET_JOIN)
      return p;
  }
  return WEIR_NO_POSITION;
}

static uint64_t
model_bytes (void)
{
  uint64_t sum = 0;

  for (int64_t p = model.tail; p < model.head; p++)
    sum += model_at (p)->len;
  return sum;
}

static void
model_publish (void)
{
  uint64_t bytes;
  int64_t last_join, newest_ns;

  for (int64_t p = model.late_join; p >= model.tail && p < model.head; p++) {
    ModelPacket *packet = model_at (p);

    if (packet->flags & WEIR_PACKET_RTP && packet->rtp_time == model_at (model.late_join)->rtp_time)
      packet->flags |= WEIR_PACKET_KEY | (p == model.late_join ? WEIR_PACKET_JOIN : 0);
  }
  model.late_join = -1;
  model.head += model.staged;
  model.staged = 0;
  bytes = model_bytes ();
  last_join = model_last_join ();
  newest_ns = model_at (model.head - 1)->arrival_ns;
  while (model.tail < model.head - 1) {
    bool old = newest_ns - model_at (model.tail)->arrival_ns > model.bounds.time_ns;

    if (model.bounds.keep_join && last_join != WEIR_NO_POSITION && model.tail >= last_join)
      old = false;
    if (bytes <= model.bounds.bytes && (uint64_t) (model.head - model.tail) <= model.bounds.packets
        && !old)
      break;
    bytes -= model_at (model.tail)->len;
    if (model.tail++ == last_join)
      last_join = WEIR_NO_POSITION;
  }
}

// Checks the highest RTP time since the newest join point by a full search. The model does not know
// times from before the window, so it checks nothing if the window has no join point.
static void
check_newest_time (int64_t last_join)
{
  int64_t newest = INT64_MIN;

  if (last_join == WEIR_NO_POSITION)
    return;
  for (int64_t p = last_join; p < model.head; p++) {
    if (model_at (p)->flags & WEIR_PACKET_RTP && model_at (p)->rtp_time > newest)
      newest = model_at (p)->rtp_time;
  }
  CHECK_INT (window.newest_time, newest);
}

static void
publish_both (void)
{
  int64_t predicted, last_join;
  bool any = model.staged > 0;

  window.bounds = model.bounds;
  predicted = weir_window_tail_after (&window);
  if (any)
    model_publish ();
  CHECK_INT (weir_window_publish (&window, &lost), any);
  CHECK_INT (predicted, model.tail);
  CHECK_INT (window.tail, model.tail);
  CHECK_INT (window.head, model.head);
  CHECK_INT (window.bytes, model_bytes ());
  last_join = model_last_join ();
  CHECK_INT (window.last_join, last_join);
  check_newest_time (last_join);
  CHECK_INT (window.n_opaque, model.n_opaque);
}

static bool
packet_agrees (int64_t position, const WeirPacket *packet, bool flags)
{
  const ModelPacket *m = model_at (position);
  const uint8_t *data = weir_packet_data (packet);
  bool rtp = m->flags & WEIR_PACKET_RTP;

  return packet->length == m->len && packet->arrival_ns == m->arrival_ns
         && (!flags || packet->flags == m->flags)
         && (!rtp || (packet->seq == m->seq && packet->rtp_time == m->rtp_time))
         && memcmp (data, m->head, m->n_head) == 0
         && memcmp (data + m->n_head, pool + m->pool_offset + m->n_head, m->len - m->n_head) == 0;
}

static void
check_random_span (WeirSpan *span)
{
  int64_t position = model.tail + (int64_t) random_below ((uint64_t) (model.head - model.tail));
  int64_t end = position + 1 + (int64_t) random_below (100);

  weir_window_span (&window, position, end, span);
  check_span (span);
  CHECK_INT (span->first, position);
  CHECK (span->first + (int64_t) span->n <= end && span->first + (int64_t) span->n <= model.head);
  for (size_t i = 0; i < span->n; i++)
    CHECK (packet_agrees (position + (int64_t) i, &span->packets[i], true));
}

static void
release_span (WeirSpan *span)
{
  for (size_t i = 0; i < span->n; i++)
    CHECK (packet_agrees (span->first + (int64_t) i, &span->packets[i], false));
  weir_span_clear (span);
}

static void
check_positions (void)
{
  int64_t from = model.head - (int64_t) random_below (300), live = model.head;

  if (from < 0)
    from = 0;
  if (live > model.tail
      && (model_at (live - 1)->flags & (WEIR_PACKET_RTP | WEIR_PACKET_MARKER)) == WEIR_PACKET_RTP) {
    do
      live--;
    while (live > model.tail && !(model_at (live)->flags & WEIR_PACKET_START));
  }
  CHECK_INT (weir_window_live (&window), live);
  for (int64_t p = from < model.tail ? model.tail : from; p <= model.head; p++) {
    if (p == model.head || model_at (p)->flags & WEIR_PACKET_JOIN) {
      CHECK_INT (weir_window_next_join (&window, from), p == model.head ? WEIR_NO_POSITION : p);
      break;
    }
  }
}

static void
change_bounds (void)
{
  static const int64_t times[] = { 0, 50 * MS, 500 * MS, 100000 * MS };

  model.bounds = (WeirWindowBounds) {
    .bytes = WEIR_WINDOW_BYTES_MIN << random_below (4),
    .packets = 1 + random_below (random_percent (20) ? 10 : 1500),
    .time_ns = times[random_below (4)],
    .keep_join = random_percent (50),
  };
}

static void
drop_both (void)
{
  CHECK_INT (weir_window_drop_stage (&window), model.staged);
  model.staged = 0;
  model.in_frame = false;
  model.late_join = -1;
}

static void
agree_over_a_million_steps (WeirBlockFile *file)
{
  static WeirSpan spans[SPANS];
  int64_t first_time;

  for (size_t i = 0; i < sizeof pool; i++)
    pool[i] = (uint8_t) random_next ();
  memset (&model, 0, sizeof model);
  memset (spans, 0, sizeof spans);
  model.late_join = -1;
  model.rtp_time = first_time = (int64_t) random_below (UINT32_MAX);
  model.seq = (uint16_t) random_next ();
  change_bounds ();
  begin (model.bounds, WEIR_CODEC_H264);
  weir_window_set_file (&window, file);
  // So that no sender report becomes a join point.
  stage_both ();
  while (!(model_at (model.staged - 1)->flags & WEIR_PACKET_RTP)) {
    drop_both ();
    stage_both ();
  }

  for (int step = 0; step < 1000000 && tap_ok; step++) {
    uint64_t what = random_below (1000);
    WeirSpan *span = &spans[random_below (SPANS)];

    if (model.staged == WEIR_STAGE_PACKETS || (what < 250 && model.staged > 0))
      publish_both ();
    else if (what < 900)
      stage_both ();
    else if (what < 930 && model.head > model.tail && span->n == 0)
      check_random_span (span);
    else if (what < 960 && span->n > 0)
      release_span (span);
    else if (what < 985)
      check_positions ();
    else if (what < 989)
      drop_both ();
    else if (what < 991)
      change_bounds ();
    if (step % 20000 == 0) {
      for (size_t i = 0; i < SPANS; i++)
        release_span (&spans[i]);
      drop_both ();
      weir_window_flush (&window);
      model.tail = model.head;
    }
  }
  CHECK (model.head > 10 * 65536);
  CHECK (model.rtp_time - first_time > INT64_C (10) << 32);
  for (size_t i = 0; i < SPANS; i++)
    release_span (&spans[i]);
  weir_window_free (&window);
}

static void
the_window_agrees_with_a_model_over_a_million_steps (void)
{
  agree_over_a_million_steps (NULL);
}

static void
a_window_in_a_file_agrees_with_the_model (void)
{
  WeirBlockFile *file = weir_block_file_new ("/tmp");

  CHECK (file);
  agree_over_a_million_steps (file);
  CHECK (!weir_block_file_was_full (file));
  weir_block_file_unref (file);
}

int
main (void)
{
  random_init ();
  RUN (an_empty_window_has_no_join_point);
  RUN (packets_of_invalid_length_are_refused);
  RUN (packets_set_their_flags);
  RUN (a_sender_report_among_pictures_is_not_a_join_point);
  RUN (every_audio_packet_is_a_frame);
  RUN (an_unknown_codec_has_only_key_packets);
  RUN (a_stream_without_key_frames_has_only_key_packets);
  RUN (frames_end_by_marker_or_timestamp);
  RUN (a_join_point_is_the_start_of_its_frame);
  RUN (a_join_point_whose_start_was_dropped_is_ignored);
  RUN (the_last_join_point_stays_the_last);
  RUN (the_newest_time_counts_from_the_join_point);
  RUN (the_bound_in_bytes_holds);
  RUN (the_bounds_in_packets_and_time_hold);
  RUN (the_newest_join_point_is_kept);
  RUN (the_live_edge_is_the_start_of_the_newest_frame);
  RUN (a_span_fits_into_one_send);
  RUN (a_span_ends_with_its_block);
  RUN (a_span_ends_where_packets_were_dropped);
  RUN (the_size_of_blocks_follows_the_rate);
  RUN (the_blocks_of_a_new_stream_grow_within_its_first_second);
  RUN (a_large_packet_gets_a_block_of_its_size);
  RUN (a_stage_larger_than_a_block_stays_in_place);
  RUN (blocks_of_a_file_have_one_size);
  RUN (the_stage_fits_into_the_window);
  RUN (positions_continue_after_a_flush);
  RUN (the_window_agrees_with_a_model_over_a_million_steps);
  RUN (a_window_in_a_file_agrees_with_the_model);
  return tap_done ();
}
