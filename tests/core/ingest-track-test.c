// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/track.h"

#include <arpa/inet.h>

#include "rtp/rtcp_read.h"
#include "rtp/rtcp_write.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define S (1000 * MS)
#define SSRC 0x11223344
#define PT 96
#define N_OUT 4096

static WeirTrack track;
static WeirTrackSettings settings;
static WeirAddress camera, camera_again, other_host;
static int64_t seqs[N_OUT];
static uint64_t runs[N_OUT], missing;
static size_t n_out, n_reports, n_byes;
static size_t n_out_at_report; // packets delivered before the last report
static WeirNtpMap reported;
static int64_t steady_seq; // that left last
static size_t n_repairs;
static size_t stop_after; // stop the track within the callback of this packet

static void
on_packet (void *data, const WeirIngestPacket *packet)
{
  CHECK (data == &n_out);
  CHECK_INT (packet->len, 20);
  CHECK_INT (packet->rtp.payload_length, 8);
  if (settings.steady) {
    steady_seq = packet->data[2] << 8 | packet->data[3];
  } else {
    CHECK_INT (packet->data[19], (uint8_t) packet->rtp.seq);
    CHECK_INT ((uint16_t) packet->seq, packet->rtp.seq);
  }
  seqs[n_out % N_OUT] = packet->seq;
  runs[n_out % N_OUT] = packet->run;
  missing += packet->missing;
  if (++n_out == stop_after)
    weir_track_stop (&track);
}

static void
on_report (void *data, const WeirNtpMap *map)
{
  n_reports++;
  n_out_at_report = n_out;
  reported = *map;
}

static void
on_bye (void *data)
{
  n_byes++;
}

static void
on_repaired (void *data, WeirIngestRepair what)
{
  n_repairs++;
}

static const WeirTrackOps ops = { on_packet, on_report, on_bye, .repaired = on_repaired };

static WeirAddress
address (const char *host, uint16_t port)
{
  WeirAddress result = { .v4.sin_family = AF_INET, .v4.sin_port = htons (port) };

  inet_pton (AF_INET, host, &result.v4.sin_addr);
  return result;
}

static void
reset (void)
{
  settings = (WeirTrackSettings) {
    .clock_rate = 90000,
    .payload_types = { 0, UINT64_C (1) << (PT - 64) },
    .ssrc = 0xabcd,
    .cname = "weir",
  };
  camera = address ("192.0.2.1", 5000);
  camera_again = address ("192.0.2.1", 5002);
  other_host = address ("192.0.2.2", 5000);
  n_out = n_reports = n_byes = n_repairs = missing = stop_after = 0;
}

static void
begin (void)
{
  weir_track_init (&track, &settings, &ops, &n_out);
}

static void
take_full (const WeirAddress *from, uint32_t ssrc, uint8_t pt, int64_t seq, uint32_t timestamp,
    int64_t now)
{
  uint8_t data[20] = { 0x80, pt, (uint8_t) (seq >> 8), (uint8_t) seq, (uint8_t) (timestamp >> 24),
    (uint8_t) (timestamp >> 16), (uint8_t) (timestamp >> 8), (uint8_t) timestamp,
    (uint8_t) (ssrc >> 24), (uint8_t) (ssrc >> 16), (uint8_t) (ssrc >> 8), (uint8_t) ssrc };

  data[19] = (uint8_t) seq;
  weir_track_take (&track, from, data, sizeof data, now, now);
}

static void
take (int64_t seq, int64_t now)
{
  take_full (&camera, SSRC, PT, seq, 0, now);
}

// Checks that each datagram is in one count, and returns the counts.
static WeirIngestStats
check_sums (void)
{
  WeirIngestStats stats;
  uint64_t sum;

  weir_track_stats (&track, &stats);
  CHECK_INT (stats.delivered, n_out);
  sum = stats.delivered + stats.rtcp + stats.held;
  for (int i = 0; i < WEIR_INGEST_N_DROPS; i++)
    sum += stats.dropped[i];
  CHECK_INT (sum, stats.datagrams);
  return stats;
}

static uint64_t
dropped (WeirIngestDrop reason)
{
  return check_sums ().dropped[reason];
}

// ---- order ----

static void
without_a_window_packets_leave_as_they_come (void)
{
  static const int64_t in[] = { 65533, 65535, 65534, 65537, 65536, 65536, 65538 };
  static const int64_t out[] = { 65533, 65535, 65534, 65537, 65536, 65538 };

  reset ();
  begin ();
  for (size_t i = 0; i < 7; i++)
    take (in[i], 0);
  CHECK_INT (n_out, 6);
  for (size_t i = 0; i < 6; i++)
    CHECK_INT (seqs[i], out[i]);
  CHECK_INT (dropped (WEIR_INGEST_DUPLICATE), 1);
  CHECK_INT (check_sums ().reordered, 2);
  weir_track_clear (&track);
}

static void
with_a_window_packets_leave_in_order (void)
{
  reset ();
  settings.reorder = (WeirReorderLimits) { 64, 1 << 16, 20 * MS };
  begin ();
  for (int64_t base = 65000; base < 67000; base += 4) { // 2 1 0 - for each four
    for (int k = 2; k >= 0; k--)
      take (base + k, base * MS);
  }
  CHECK_INT (check_sums ().held, 15); // of the last 20 ms
  weir_track_expire (&track, 67016 * MS);
  CHECK_INT (check_sums ().held, 0);
  CHECK_INT (n_out, 1500 - 2); // the first four begin with their last
  CHECK_INT (dropped (WEIR_INGEST_LATE), 2);
  CHECK_INT (missing, 499);
  CHECK_INT (check_sums ().lost, 499);
  for (size_t i = 1; i < n_out; i++)
    CHECK (seqs[i] > seqs[i - 1]);
  weir_track_clear (&track);
}

static void
held_packets_leave_in_time_or_are_flushed (void)
{
  reset ();
  settings.reorder = (WeirReorderLimits) { 64, 1 << 16, 20 * MS };
  begin ();
  take (1, 0);
  take (3, 5 * MS);
  take (3, 6 * MS);
  take (5, 8 * MS);
  CHECK_INT (check_sums ().held, 2);
  CHECK_INT (dropped (WEIR_INGEST_DUPLICATE), 1);
  CHECK_INT (weir_track_due (&track), 25 * MS);
  weir_track_expire (&track, 25 * MS);
  CHECK_INT (n_out, 2);
  CHECK_INT (weir_track_due (&track), 28 * MS);
  take (2, 26 * MS);
  CHECK_INT (dropped (WEIR_INGEST_LATE), 1);
  weir_track_clear (&track);
  CHECK_INT (dropped (WEIR_INGEST_FLUSHED), 1);
}

static void
a_stopped_track_calls_nothing_more (void)
{
  reset ();
  settings.reorder = (WeirReorderLimits) { 64, 1 << 16, 20 * MS };
  stop_after = 3;
  begin ();
  take (1, 0);
  for (int64_t seq = 9; seq > 1; seq--)
    take (seq, 0);
  CHECK_INT (n_out, 3);
  CHECK_INT (dropped (WEIR_INGEST_FLUSHED), 6);
  weir_track_clear (&track);
}

// A million packets in a pattern of loss, reordering and duplicates, over 15 wraps.
static void
sums_are_exact_over_many_wraps (void)
{
  uint64_t lost = 0, twice = 0, in = 0;

  reset ();
  settings.reorder = (WeirReorderLimits) { 128, 1 << 20, 20 * MS };
  begin ();
  for (int64_t i = 0; i < 1000000; i += 10) {
    for (int64_t k = 0; k < 10; k++) {
      int64_t seq = i + (k == 4 ? 6 : k == 6 ? 4 : k);

      if (seq % 10 == 5 && i % 70 == 0) {
        lost++;
        continue;
      }
      take (seq, seq * MS);
      in++;
      if (seq % 10 == 8) {
        take (seq, seq * MS);
        in++;
        twice++;
      }
    }
  }
  CHECK_INT (check_sums ().datagrams, in);
  CHECK_INT (dropped (WEIR_INGEST_DUPLICATE), twice);
  CHECK_INT (n_out, 1000000 - lost);
  CHECK_INT (missing, lost);
  CHECK_INT (check_sums ().lost, lost);
  CHECK_INT (check_sums ().reordered, 200000 - lost);
  CHECK_INT (check_sums ().runs, 1);
  weir_track_clear (&track);
}

static size_t
write_sr (uint8_t *out, uint32_t ssrc, uint64_t ntp, uint32_t timestamp)
{
  static const size_t len = 28;

  memset (out, 0, len);
  out[0] = 0x80;
  out[1] = 200;
  out[3] = 6;
  for (int i = 0; i < 4; i++) {
    out[4 + i] = (uint8_t) (ssrc >> (24 - 8 * i));
    out[16 + i] = (uint8_t) (timestamp >> (24 - 8 * i));
  }
  for (int i = 0; i < 8; i++)
    out[8 + i] = (uint8_t) (ntp >> (56 - 8 * i));
  return len;
}

// ---- strays ----

static void
the_first_sender_is_locked_in (void)
{
  reset ();
  begin ();
  take_full (&camera, SSRC, 33, 1, 0, 0); // of no track: locks nothing in
  take_full (&other_host, SSRC, PT, 1, 0, 0);
  take_full (&camera, SSRC, PT, 2, 0, 500 * MS);
  CHECK_INT (dropped (WEIR_INGEST_PAYLOAD_TYPE), 1);
  CHECK_INT (dropped (WEIR_INGEST_FOREIGN), 1);
  take_full (&other_host, SSRC, PT, 2, 0, S);
  take_full (&camera, SSRC, PT, 3, 0, 2 * S);
  CHECK_INT (dropped (WEIR_INGEST_FOREIGN), 2);
  take_full (&camera, SSRC, PT, 3, 0, 2 * S + 1);
  CHECK_INT (n_out, 3); // after a second of silence another host may take over
  CHECK_INT (check_sums ().runs, 1);
  weir_track_clear (&track);
}

static void
another_port_of_the_host_takes_over_sooner (void)
{
  reset ();
  begin ();
  take_full (&camera, SSRC, PT, 1, 0, 0);
  take_full (&camera_again, SSRC, PT, 2, 0, 50 * MS);
  CHECK_INT (dropped (WEIR_INGEST_FOREIGN), 1);
  take_full (&camera_again, SSRC, PT, 2, 0, 50 * MS + 1);
  CHECK_INT (n_out, 2);
  take_full (&camera, SSRC, PT, 3, 0, 51 * MS);
  CHECK_INT (dropped (WEIR_INGEST_FOREIGN), 2);
  weir_track_clear (&track);
}

static void
only_the_host_of_the_settings_may_send (void)
{
  reset ();
  settings.host_known = true;
  settings.host = address ("192.0.2.1", 1);
  begin ();
  take_full (&other_host, SSRC, PT, 1, 0, 0);
  take_full (&camera, SSRC, PT, 1, 0, 0);
  take_full (&other_host, SSRC, PT, 2, 0, 10 * S);
  CHECK_INT (dropped (WEIR_INGEST_FOREIGN), 2);
  CHECK_INT (n_out, 1);
  weir_track_clear (&track);
}

static void
another_ssrc_needs_silence_or_bye (void)
{
  static const uint8_t bye[] = { 0x80, 201, 0, 1, 0x11, 0x22, 0x33, 0x44, 0x81, 203, 0, 1, 0x11,
    0x22, 0x33, 0x44 };

  reset ();
  begin ();
  take_full (&camera, SSRC, PT, 1, 0, 0);
  take_full (&camera, 7, PT, 900, 0, 99 * MS);
  CHECK_INT (dropped (WEIR_INGEST_OTHER_SSRC), 1);
  take_full (&camera, 7, PT, 901, 0, 100 * MS);
  CHECK_INT (n_out, 2);
  CHECK_INT (runs[0], 1);
  CHECK_INT (runs[1], 2);
  CHECK_INT (seqs[1], 901);
  take_full (&camera, SSRC, PT, 2, 0, 101 * MS);
  CHECK_INT (dropped (WEIR_INGEST_OTHER_SSRC), 2);
  weir_track_take_rtcp (&track, &camera_again, bye, sizeof bye, 101 * MS);
  CHECK_INT (n_byes, 0); // of an SSRC that does not send
  take_full (&camera, SSRC, PT, 2, 0, 201 * MS);
  weir_track_take_rtcp (&track, &camera_again, bye, sizeof bye, 202 * MS);
  CHECK_INT (n_byes, 1);
  CHECK (check_sums ().bye);
  take_full (&camera, 9, PT, 5, 0, 203 * MS);
  CHECK_INT (n_out, 4);
  CHECK_INT (check_sums ().runs, 4);
  CHECK (!check_sums ().bye);
  weir_track_clear (&track);
}

static void
another_ssrc_whose_numbers_go_on_is_taken_at_once (void)
{
  uint64_t in = 0;

  reset ();
  begin ();
  for (int64_t seq = 65000; seq < 66000; seq++, in++) // each picture of 10 packets has its SSRC
    take_full (&camera, (uint32_t) (SSRC + seq / 10), PT, seq, 0, seq * MS);
  CHECK_INT (n_out, in);
  CHECK_INT (check_sums ().runs, 100);
  CHECK_INT (check_sums ().lost, 0);
  weir_track_clear (&track);
}

// Two at once: over UDP, the first one stays. Over a connection, the other one takes over, and
// stays.
static void
two_ssrcs_at_once_do_not_alternate (void)
{
  for (int connected = 0; connected < 2; connected++) {
    reset ();
    settings.interleaved = connected;
    begin ();
    for (int64_t i = 0; i < 1000; i++) {
      take_full (connected ? NULL : &camera, SSRC, PT, i, 0, i * 10 * MS);
      take_full (connected ? NULL : &camera, 7, PT, 30000 + i, 0, i * 10 * MS + MS);
    }
    CHECK_INT (check_sums ().runs, connected ? 2 : 1);
    CHECK_INT (dropped (WEIR_INGEST_OTHER_SSRC), connected ? 999 : 1000);
    weir_track_clear (&track);
  }
}

// Forward error correction and retransmission come from the same address.
static void
another_ssrc_of_another_type_takes_nothing_over (void)
{
  for (int connected = 0; connected < 2; connected++) {
    reset ();
    settings.interleaved = connected;
    memset (settings.payload_types, 0, sizeof settings.payload_types);
    begin ();
    for (int64_t i = 0; i < 100; i++) {
      take_full (connected ? NULL : &camera, SSRC, PT, i, 0, i * 10 * MS);
      take_full (connected ? NULL : &camera, 7, PT + 1, i + 1, 0, i * 10 * MS + MS);
    }
    CHECK_INT (n_out, 100);
    CHECK_INT (check_sums ().runs, 1);
    weir_track_clear (&track);
  }
}

// ---- connections and steady numbers ----

// Delivers packets with these numbers over a connection, and checks those that leave.
static void
renumbered (const int64_t *in, const int64_t *out, size_t n, uint64_t times)
{
  reset ();
  settings.interleaved = settings.steady = true;
  begin ();
  for (size_t i = 0; i < n; i++) {
    uint8_t data[20] = { 0x80, PT, (uint8_t) (in[i] >> 8), (uint8_t) in[i] };

    steady_seq = -1;
    weir_track_take (&track, NULL, data, sizeof data, 0, 0);
    CHECK_INT (steady_seq, (uint16_t) out[i]);
  }
  CHECK_INT (check_sums ().repairs[WEIR_INGEST_RENUMBERED], times);
  CHECK_INT (n_repairs, times);
  CHECK_INT (dropped (WEIR_INGEST_LATE) + dropped (WEIR_INGEST_DUPLICATE), 0);
  weir_track_clear (&track);
}

static void
a_connection_keeps_the_order_whatever_the_numbers (void)
{
  static const int64_t back[] = { 1000, 1001, 801, 802, 803 };
  static const int64_t back_out[] = { 1000, 1001, 1002, 1003, 1004 };
  static const int64_t by_one[] = { 1000, 999, 998, 997, 996 };
  static const int64_t by_one_out[] = { 1000, 1001, 1002, 1003, 1004 };
  static const int64_t same[] = { 7, 7, 7, 7, 7 };
  static const int64_t same_out[] = { 7, 8, 9, 10, 11 };
  static const int64_t wrap[] = { 65534, 65535, 65536, 65537, 65540 };
  int64_t restarts[500], out[500];

  renumbered (back, back_out, 5, 1);
  renumbered (by_one, by_one_out, 5, 4);
  renumbered (same, same_out, 5, 4);
  renumbered (wrap, wrap, 5, 0); // one loss, which readers see
  CHECK_INT (check_sums ().lost, 2);
  for (int64_t i = 0; i < 500; i++) {
    restarts[i] = i < 50 ? 1000 + i : 1 + i % 50;
    out[i] = 1000 + i;
  }
  renumbered (restarts, out, 500, 9);
}

// What was lost on a way that keeps no order comes again, behind others.
static void
a_track_without_order_waits_for_what_was_lost (void)
{
  static const int64_t in[] = { 1000, 1002, 1003, 1001, 1003, 1004 };
  static const int64_t out[] = { 1000, -1, -1, 1003, -1, 1004 };

  reset ();
  settings.interleaved = settings.steady = settings.unordered = true;
  settings.reorder = (WeirReorderLimits) { 16, 65536, 100 * MS };
  begin ();
  for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
    uint8_t data[20] = { 0x80, PT, (uint8_t) (in[i] >> 8), (uint8_t) in[i] };

    steady_seq = -1;
    weir_track_take (&track, NULL, data, sizeof data, (int64_t) i * MS, (int64_t) i * MS);
    CHECK_INT (steady_seq, out[i]);
  }
  CHECK_INT (n_repairs, 0);
  CHECK_INT (dropped (WEIR_INGEST_DUPLICATE), 1);
  weir_track_clear (&track);
}

static void
a_steady_track_s_reports_follow_its_packets (void)
{
  uint8_t sr[28];
  size_t len;

  reset ();
  settings.interleaved = settings.steady = true;
  begin ();
  take_full (NULL, SSRC, PT, 1, 1000, 0);
  take_full (NULL, 9, PT, 70, 5000000, 40 * MS);
  len = write_sr (sr, 9, 1, 5000000);
  weir_track_take_rtcp (&track, NULL, sr, len, 50 * MS);
  CHECK_INT (n_reports, 1);
  CHECK_INT (reported.ssrc, SSRC);
  CHECK_INT (reported.timestamp, 1000 + 1800);
  weir_track_clear (&track);
}

static void
a_far_jump_back_is_a_restart (void)
{
  static const struct {
    int64_t seqs[6]; // all within 10 ms; ends with -1
    int delivered, late, runs;
  } cases[] = {
    { { 10000, 9488, 9489, 10001, -1 }, 3, 1, 2 },
    { { 10000, 9489, 9490, 10001, -1 }, 4, 0, 1 }, // not far: out of order
    { { 10000, 9488, 10001, -1 }, 2, 1, 1 },       // a stray
    { { 10000, 6999, 5, 6, 7, -1 }, 3, 2, 2 },
    { { 10000, 30000, 30001, -1 }, 3, 0, 1 },               // ahead: loss
    { { 10000, 40000, 10001, 10002, 10003, -1 }, 4, 1, 2 }, // a stray ahead
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    reset ();
    begin ();
    for (int i = 0; cases[c].seqs[i] >= 0; i++)
      take (cases[c].seqs[i], i);
    CHECK_INT (n_out, cases[c].delivered);
    CHECK_INT (dropped (WEIR_INGEST_LATE), cases[c].late);
    CHECK_INT (check_sums ().runs, cases[c].runs);
    weir_track_clear (&track);
  }
  reset ();
  begin ();
  take (10000, 0);
  take (5, 100 * MS); // after silence, at once
  CHECK_INT (n_out, 2);
  CHECK_INT (check_sums ().runs, 2);
  weir_track_clear (&track);
}

static void
a_new_run_lets_the_last_one_s_packets_leave_first (void)
{
  reset ();
  settings.reorder = (WeirReorderLimits) { 64, 1 << 16, 500 * MS };
  begin ();
  take (1, 0);
  take (3, 0);
  take_full (&camera, 7, PT, 50, 0, 200 * MS);
  CHECK_INT (n_out, 3);
  CHECK_INT (seqs[1], 3);
  CHECK_INT (runs[1], 1);
  CHECK_INT (seqs[2], 50);
  CHECK_INT (runs[2], 2);
  check_sums ();
  weir_track_clear (&track);
}

// Cut, padded and random bytes: all are counted, none is delivered.
static void
malformed_datagrams_are_counted (void)
{
  static const uint8_t wrong[][16] = {
    { 0 }, { 0x40, PT }, { 0x8f, PT }, // 15 CSRCs
    { 0x90, PT, [14] = 0xff, 0xff },   // an extension beyond the end
    { 0xa0, PT },                      // padding beyond the end
    { 0x80, 200, 0, 100 },             // RTCP longer than its packet
    { 0x80, 200, 0, 3 },               // a sender report without sender info
  };

  reset ();
  begin ();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    for (size_t len = 0; len <= sizeof wrong[i]; len++) {
      uint8_t data[16];

      memcpy (data, wrong[i], sizeof data);
      if (len > 0 && data[0] == 0xa0)
        data[len - 1] = len > 1 ? 200 : 0xa0; // the padding's length
      weir_track_take (&track, &camera, data, len, 0, 0);
      weir_track_take_rtcp (&track, &camera, data, len, 0);
    }
  }
  CHECK_INT (n_out, 0);
  CHECK_INT (dropped (WEIR_INGEST_MALFORMED), check_sums ().datagrams);
  weir_track_clear (&track);
}

// ---- RTCP ----

static void
a_sender_report_waits_for_its_ssrc (void)
{
  uint8_t sr[28];
  size_t len;

  reset ();
  begin ();
  len = write_sr (sr, SSRC, UINT64_C (0x1122334455667788), 1234);
  weir_track_take_rtcp (&track, &other_host, sr, len, 0); // nobody is locked in yet
  CHECK_INT (n_reports, 0);
  take_full (&camera, 7, PT, 1, 0, 0);
  CHECK_INT (n_reports, 0);
  take_full (&camera, SSRC, PT, 1, 0, 200 * MS);
  CHECK_INT (n_reports, 1);
  CHECK_INT (n_out_at_report, n_out); // after the packet that it waited for
  CHECK_INT (reported.timestamp, 1234);
  CHECK (reported.known && reported.ntp == UINT64_C (0x1122334455667788));
  weir_track_take_rtcp (&track, &other_host, sr, len, 201 * MS);
  CHECK_INT (n_reports, 1);
  CHECK_INT (dropped (WEIR_INGEST_FOREIGN), 1);
  weir_track_take (&track, &camera, sr, len, 202 * MS, 202 * MS); // on the media's port
  CHECK_INT (n_reports, 2);
  weir_track_clear (&track);
}

// One packet may report on all streams of a sender.
static void
a_sender_report_is_found_behind_those_of_others (void)
{
  uint8_t both[56];
  size_t len = write_sr (both, 7, 1, 5000000);

  reset ();
  begin ();
  take_full (&camera, SSRC, PT, 1, 0, 0);
  len += write_sr (both + len, SSRC, 2, 1234);
  weir_track_take_rtcp (&track, &camera, both, len, 1 * MS);
  CHECK_INT (n_reports, 1);
  CHECK_INT (reported.timestamp, 1234);
  CHECK_INT (reported.ssrc, SSRC);
  weir_track_clear (&track);
}

static void
reports_match_the_rfc (void)
{
  uint8_t sr[28], out[WEIR_TRACK_RTCP_MAX];
  WeirRtcpReport report;
  int64_t due;
  size_t len;

  reset ();
  settings.report_interval_ns = 5 * S;
  begin ();
  CHECK_INT (weir_track_due (&track), WEIR_NEVER);
  take_full (&camera, SSRC, PT, 65530, 0, 0);
  due = weir_track_due (&track);
  CHECK (due >= 5 * S / 4 && due < 5 * S * 3 / 4);
  // Ten numbers on, of which two are missing; the last packet is 10 ms late.
  for (int64_t seq = 65531; seq < 65540; seq++) {
    if (seq != 65533 && seq != 65536)
      take_full (&camera, SSRC, PT, seq, (uint32_t) (seq - 65530) * 1800,
          (seq - 65530) * 20 * MS + (seq == 65539 ? 10 * MS : 0));
  }
  len = write_sr (sr, SSRC, UINT64_C (0x1122334455667788), 0);
  weir_track_take_rtcp (&track, &camera_again, sr, len, due - 3 * S / 2);
  CHECK_INT (weir_track_write_rtcp (&track, due - 1, out), 0);
  len = weir_track_write_rtcp (&track, due, out);
  CHECK_INT (weir_rtcp_read (out, len, &report), 0);
  CHECK_INT (report.ssrc, 0xabcd);
  CHECK_INT (report.n_blocks, 1);
  CHECK_INT (report.blocks[0].ssrc, SSRC);
  CHECK_INT (report.blocks[0].fraction_lost, 2 * 255 / 10);
  CHECK_INT (report.blocks[0].lost, 2);
  CHECK_INT (report.blocks[0].highest_seq, 65539);
  CHECK_INT (report.blocks[0].jitter, 900 / 16);
  CHECK_INT (report.blocks[0].last_sr, 0x33445566);
  CHECK_INT (report.blocks[0].delay_sr, 3 * 65536 / 2);
  CHECK (weir_track_due (&track) >= due + 5 * S / 2 && weir_track_due (&track) < due + 15 * S / 2);
  // Nothing came since: no block, and no report at all once the sender has left.
  for (int i = 0; i < 20 && weir_track_due (&track) != WEIR_NEVER; i++) {
    due = weir_track_due (&track);
    len = weir_track_write_rtcp (&track, due, out);
    CHECK_INT (weir_rtcp_read (out, len, &report), 0);
    CHECK_INT (report.n_blocks, 0);
  }
  CHECK_INT (weir_track_due (&track), WEIR_NEVER);
  CHECK (due > 25 * S && due < 40 * S);
  take_full (&camera, SSRC, PT, 65540, 0, 60 * S);
  CHECK (weir_track_due (&track) < 65 * S);
  weir_track_clear (&track);
}

static void
reports_go_to_the_address_that_is_known (void)
{
  uint8_t sr[28];
  size_t len = write_sr (sr, SSRC, 1, 1);

  reset ();
  begin ();
  take (1, 0);
  CHECK (!weir_track_rtcp_to (&track));
  weir_track_take_rtcp (&track, &camera_again, sr, len, 0);
  CHECK_INT (weir_track_rtcp_to (&track)->v4.sin_port, camera_again.v4.sin_port);
  weir_track_clear (&track);

  settings.rtcp_mux = true;
  begin ();
  CHECK (!weir_track_rtcp_to (&track));
  take (1, 0);
  CHECK_INT (weir_track_rtcp_to (&track)->v4.sin_port, camera.v4.sin_port);
  weir_track_clear (&track);

  settings.rtcp_to_known = true;
  settings.rtcp_to = other_host;
  begin ();
  weir_track_take_rtcp (&track, &camera_again, sr, len, 0);
  CHECK_INT (weir_track_rtcp_to (&track)->v4.sin_addr.s_addr, other_host.v4.sin_addr.s_addr);
  weir_track_clear (&track);
}

// Nobody is locked in when RTCP comes from another host, and later the host changes.
static void
reports_go_to_the_sender_s_host_only (void)
{
  uint8_t sr[28];
  size_t len = write_sr (sr, SSRC, 1, 1);

  reset ();
  begin ();
  weir_track_take_rtcp (&track, &other_host, sr, len, 0);
  CHECK (weir_track_rtcp_to (&track));
  take (1, 0);
  CHECK (!weir_track_rtcp_to (&track));
  weir_track_take_rtcp (&track, &camera_again, sr, len, 0);
  take_full (&camera_again, SSRC, PT, 2, 0, 60 * MS); // another port: its RTCP is believed
  CHECK (weir_track_rtcp_to (&track));
  take_full (&other_host, SSRC, PT, 3, 0, 3 * S);
  CHECK (!weir_track_rtcp_to (&track));
  CHECK_INT (n_out, 3);
  weir_track_clear (&track);
}

static void
keyframes_are_asked_for_as_the_settings_say (void)
{
  static const WeirKeyRequest ways[] = { WEIR_KEY_NONE, WEIR_KEY_PLI, WEIR_KEY_FIR };

  for (size_t i = 0; i < 3; i++) {
    uint8_t out[WEIR_TRACK_RTCP_MAX];
    size_t len;

    reset ();
    settings.key = ways[i];
    settings.interleaved = true;
    begin ();
    weir_track_ask_key (&track);
    CHECK_INT (weir_track_due (&track), INT64_MIN);
    CHECK_INT (weir_track_write_rtcp (&track, 0, out), 0); // of no sender yet
    CHECK_INT (weir_track_due (&track), WEIR_NEVER);
    take (1, 0);
    for (int n = 0; n < 2; n++) {
      weir_track_ask_key (&track);
      len = weir_track_write_rtcp (&track, 0, out);
      CHECK_INT (weir_rtcp_asks_key (out, len, SSRC), ways[i] != WEIR_KEY_NONE);
      if (ways[i] == WEIR_KEY_FIR)
        CHECK_INT (out[len - 4], n);
    }
    CHECK_INT (weir_track_write_rtcp (&track, 0, out), 0);
    CHECK_INT (check_sums ().keys_asked, ways[i] == WEIR_KEY_NONE ? 0 : 2);
    weir_track_clear (&track);
  }
}

static void
reasons_have_names (void)
{
  for (int i = 0; i < WEIR_INGEST_N_DROPS; i++)
    CHECK (weir_ingest_drop_name (i) && strcmp (weir_ingest_drop_name (i), "unknown") != 0);
  CHECK (!strcmp (weir_ingest_drop_name (WEIR_INGEST_N_DROPS), "unknown"));
}

int
main (void)
{
  RUN (without_a_window_packets_leave_as_they_come);
  RUN (with_a_window_packets_leave_in_order);
  RUN (held_packets_leave_in_time_or_are_flushed);
  RUN (a_stopped_track_calls_nothing_more);
  RUN (sums_are_exact_over_many_wraps);
  RUN (the_first_sender_is_locked_in);
  RUN (another_port_of_the_host_takes_over_sooner);
  RUN (only_the_host_of_the_settings_may_send);
  RUN (another_ssrc_needs_silence_or_bye);
  RUN (another_ssrc_whose_numbers_go_on_is_taken_at_once);
  RUN (two_ssrcs_at_once_do_not_alternate);
  RUN (another_ssrc_of_another_type_takes_nothing_over);
  RUN (a_connection_keeps_the_order_whatever_the_numbers);
  RUN (a_track_without_order_waits_for_what_was_lost);
  RUN (a_steady_track_s_reports_follow_its_packets);
  RUN (a_far_jump_back_is_a_restart);
  RUN (a_new_run_lets_the_last_one_s_packets_leave_first);
  RUN (malformed_datagrams_are_counted);
  RUN (a_sender_report_waits_for_its_ssrc);
  RUN (a_sender_report_is_found_behind_those_of_others);
  RUN (reports_match_the_rfc);
  RUN (reports_go_to_the_address_that_is_known);
  RUN (reports_go_to_the_sender_s_host_only);
  RUN (keyframes_are_asked_for_as_the_settings_say);
  RUN (reasons_have_names);
  return tap_done ();
}
