// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtp_stats.h"

#include "tap.h"

#define MS INT64_C (1000000)

static WeirRtpArrival
add_at (WeirRtpStats *stats, int64_t seq, uint32_t ssrc, uint32_t timestamp, int64_t at)
{
  WeirRtp rtp = { .seq = (uint16_t) seq, .ssrc = ssrc, .timestamp = timestamp };

  return weir_rtp_stats_add (stats, &rtp, at);
}

static WeirRtpArrival
add (WeirRtpStats *stats, int64_t seq)
{
  return add_at (stats, seq, 1, 0, 0);
}

static void
lost_reordered_and_repeated_packets_are_counted (void)
{
  static const struct {
    int64_t seqs[12]; // ends with -1
    int lost, reordered, duplicates;
  } cases[] = {
    { { 5, 6, 7, 8, -1 }, 0, 0, 0 },
    { { 5, 7, 8, -1 }, 1, 0, 0 },
    { { 5, 7, 6, 8, -1 }, 0, 1, 0 },
    { { 5, 6, 6, 7, -1 }, 0, 0, 1 },
    { { 5, 7, 6, 6, 9, -1 }, 1, 1, 1 },
    { { 5, 5, 5, -1 }, 0, 0, 2 },
    // Packets from before the first one arrive late.
    { { 5, 4, 3, -1 }, 0, 2, 0 },
    { { 5, 3, -1 }, 1, 1, 0 },
    // Across the wrap.
    { { 65534, 65535, 65536, 65537, -1 }, 0, 0, 0 },
    { { 65534, 65536, 65535, 65538, -1 }, 1, 1, 0 },
    { { 65536, 65535, 65535, -1 }, 0, 1, 1 },
    // A long gap is loss, not a new stream.
    { { 5, 20005, -1 }, 19999, 0, 0 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirRtpStats stats;
    int n = 0;

    weir_rtp_stats_init (&stats, 90000);
    for (; cases[c].seqs[n] >= 0; n++)
      add (&stats, cases[c].seqs[n]);
    CHECK_INT (stats.packets, n);
    CHECK_INT (weir_rtp_stats_lost (&stats), cases[c].lost);
    CHECK_INT (stats.reordered, cases[c].reordered);
    CHECK_INT (stats.duplicates, cases[c].duplicates);
    CHECK_INT (stats.restarts, 0);
  }
}

// Every 10th packet is lost, every 7th comes twice, for a million packets: 15 wraps.
static void
counts_are_exact_over_many_wraps (void)
{
  WeirRtpStats stats;
  int lost = 0, twice = 0;

  weir_rtp_stats_init (&stats, 90000);
  for (int i = 0; i <= 1000000; i++) {
    if (i % 10 == 3) {
      lost++;
      continue;
    }
    add (&stats, 40000 + i);
    if (i % 7 == 0) {
      add (&stats, 40000 + i);
      twice++;
    }
  }
  CHECK_INT (weir_rtp_stats_lost (&stats), lost);
  CHECK_INT (stats.duplicates, twice);
  CHECK_INT (stats.reordered, 0);
  CHECK_INT (stats.max_seq, 1040000);
}

static void
each_arrival_is_classified (void)
{
  WeirRtpStats stats;

  weir_rtp_stats_init (&stats, 90000);
  CHECK_INT (add (&stats, 10), WEIR_RTP_NEWEST);
  CHECK_INT (add (&stats, 12), WEIR_RTP_NEWEST);
  CHECK_INT (add (&stats, 11), WEIR_RTP_REORDERED);
  CHECK_INT (add (&stats, 11), WEIR_RTP_DUPLICATE);
  CHECK_INT (add (&stats, 12), WEIR_RTP_DUPLICATE);
}

static void
a_restarted_stream_continues_the_counts (void)
{
  WeirRtpStats stats;

  weir_rtp_stats_init (&stats, 90000);
  add (&stats, 10);
  add (&stats, 12);
  CHECK_INT (add_at (&stats, 500, 2, 0, 0), WEIR_RTP_NEWEST); // another SSRC
  add_at (&stats, 503, 2, 0, 0);
  CHECK_INT (weir_rtp_stats_lost (&stats), 1 + 2);
  CHECK_INT (stats.restarts, 1);
}

static void
a_packet_far_behind_starts_a_new_stream (void)
{
  WeirRtpStats stats;

  weir_rtp_stats_init (&stats, 90000);
  add (&stats, 20000);
  add (&stats, 20002);
  CHECK_INT (add (&stats, 100), WEIR_RTP_NEWEST);
  add (&stats, 101);
  CHECK_INT (weir_rtp_stats_lost (&stats), 1);
  CHECK_INT (stats.restarts, 1);
  CHECK_INT (stats.reordered, 0);
}

static void
reports_cover_the_time_since_the_last (void)
{
  WeirRtpStats stats;
  WeirRtcpBlock block;

  weir_rtp_stats_init (&stats, 90000);
  for (int i = 0; i < 100; i++) {
    if (i % 4 != 1)
      add_at (&stats, 65530 + i, 77, 0, 0);
  }
  weir_rtp_stats_report (&stats, &block);
  CHECK_INT (block.ssrc, 77);
  CHECK_INT (block.lost, 25);
  CHECK_INT (block.fraction_lost, 25 * 255 / 100);
  CHECK_INT (block.highest_seq, 65530 + 99);

  for (int i = 100; i < 200; i++)
    add_at (&stats, 65530 + i, 77, 0, 0);
  weir_rtp_stats_report (&stats, &block);
  CHECK_INT (block.lost, 25);
  CHECK_INT (block.fraction_lost, 0);
  weir_rtp_stats_report (&stats, &block); // no packet came
  CHECK_INT (block.fraction_lost, 0);
}

static void
a_report_without_packets_is_empty (void)
{
  WeirRtpStats stats;
  WeirRtcpBlock block;

  weir_rtp_stats_init (&stats, 0);
  weir_rtp_stats_report (&stats, &block);
  CHECK_INT (block.lost, 0);
  CHECK_INT (block.highest_seq, 0);
  CHECK_INT (weir_rtp_stats_lost (&stats), 0);
}

static void
an_even_stream_has_no_jitter (void)
{
  WeirRtpStats stats;

  weir_rtp_stats_init (&stats, 90000);
  for (uint32_t i = 0; i < 1000; i++) // across the wrap of timestamps
    add_at (&stats, i, 1, UINT32_MAX - 1000000 + i * 3600, 40 * MS * i);
  CHECK_INT (weir_rtp_stats_jitter_ns (&stats), 0);
}

// Packets that come early and late in turn, 10 ms apart: the mean deviation converges to 10 ms.
static void
jitter_converges_to_the_mean_deviation (void)
{
  WeirRtpStats stats;

  weir_rtp_stats_init (&stats, 90000);
  for (uint32_t i = 0; i < 1000; i++)
    add_at (&stats, i, 1, i * 3600, 40 * MS * i + (i % 2 ? 10 * MS : 0));
  CHECK (weir_rtp_stats_jitter_ns (&stats) > 99 * MS / 10);
  CHECK (weir_rtp_stats_jitter_ns (&stats) <= 10 * MS);
}

static void
a_stream_can_be_told_to_restart (void)
{
  WeirRtpStats stats;

  weir_rtp_stats_init (&stats, 90000);
  add (&stats, 1000);
  add (&stats, 1003);
  weir_rtp_stats_restart (&stats);
  CHECK_INT (add (&stats, 900), WEIR_RTP_NEWEST);
  CHECK_INT (add (&stats, 902), WEIR_RTP_NEWEST);
  CHECK_INT (stats.restarts, 1);
  CHECK_INT (weir_rtp_stats_lost (&stats), 3);
}

int
main (void)
{
  RUN (lost_reordered_and_repeated_packets_are_counted);
  RUN (counts_are_exact_over_many_wraps);
  RUN (each_arrival_is_classified);
  RUN (a_restarted_stream_continues_the_counts);
  RUN (a_packet_far_behind_starts_a_new_stream);
  RUN (reports_cover_the_time_since_the_last);
  RUN (a_report_without_packets_is_empty);
  RUN (an_even_stream_has_no_jitter);
  RUN (jitter_converges_to_the_mean_deviation);
  RUN (a_stream_can_be_told_to_restart);
  return tap_done ();
}
