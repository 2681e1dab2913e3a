// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp_read.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

#define SSRC 0x11223344
#define OF 0x55667788

static const WeirRtcpBlock block = {
  .ssrc = OF,
  .fraction_lost = 64,
  .lost = 1234,
  .highest_seq = 0x00051234,
  .jitter = 77,
  .last_sr = 0xaabbccdd,
  .delay_sr = 0x00010000,
};

static void
put (uint8_t *at, uint64_t value, int size)
{
  while (size-- > 0) {
    at[size] = (uint8_t) value;
    value >>= 8;
  }
}

static size_t
put_header (uint8_t *at, int count, int type, size_t size)
{
  at[0] = (uint8_t) (0x80 | count);
  at[1] = (uint8_t) type;
  put (at + 2, size / 4 - 1, 2);
  return size;
}

static void
put_blocks (uint8_t *at, int n)
{
  for (int i = 0; i < n; i++, at += 24) {
    put (at, block.ssrc + (uint32_t) i, 4);
    at[4] = block.fraction_lost;
    put (at + 5, (uint32_t) block.lost, 3);
    put (at + 8, block.highest_seq, 4);
    put (at + 12, block.jitter, 4);
    put (at + 16, block.last_sr, 4);
    put (at + 20, block.delay_sr, 4);
  }
}

// The packets of a compound as letters:
//   r R   receiver report with one block, with 31     n  with none
//   s S   sender report with none, with two
//   d     SDES     b  BYE     B  BYE without SSRC    x  XR
//   f     feedback a  APP
//   p     BYE with four bytes of padding
static size_t
put_packet (uint8_t *at, char letter)
{
  memset (at, 0, 800);
  put (at + 4, SSRC, 4);
  switch (letter) {
    case 'n':
      return put_header (at, 0, 201, 8);
    case 'r':
      put_blocks (at + 8, 1);
      return put_header (at, 1, 201, 8 + 24);
    case 'R':
      put_blocks (at + 8, 31);
      return put_header (at, 31, 201, 8 + 31 * 24);
    case 's':
      return put_header (at, 0, 200, 28);
    case 'S':
      put_blocks (at + 28, 2);
      return put_header (at, 2, 200, 28 + 48);
    case 'd':
      memcpy (at + 8, "\1\5a@b.c\0\0\0\0\0", 12);
      return put_header (at, 1, 202, 20);
    case 'b':
      return put_header (at, 1, 203, 8);
    case 'B':
      return put_header (at, 0, 203, 4);
    case 'x':
      return put_header (at, 0, 207, 8);
    case 'f':
      put (at + 8, OF, 4);
      return put_header (at, 1, 206, 12);
    case 'a':
      memcpy (at + 8, "test", 4);
      return put_header (at, 0, 204, 12);
    default: // 'p'
      put (at + 8, 4, 4);
      put_header (at, 1, 203, 12);
      at[0] |= 0x20;
      return 12;
  }
}

static size_t
put_compound (uint8_t *at, const char *letters)
{
  size_t len = 0;

  for (; *letters; letters++)
    len += put_packet (at + len, *letters);
  return len;
}

// Reads from memory of exactly the packet's size, so that a sanitizer sees a read past its end.
static int
parse (const uint8_t *packet, size_t len, WeirRtcpReport *out)
{
  uint8_t *exact = malloc (len ? len : 1);
  WeirRtcpReport before;
  int ret;

  memset (&before, 0xa5, sizeof before);
  *out = before;
  memcpy (exact, packet, len);
  ret = weir_rtcp_read (exact, len, out);
  free (exact);
  if (ret < 0)
    CHECK (!memcmp (out, &before, sizeof before));
  return ret;
}

static void
check_block (const WeirRtcpBlock *got, uint32_t ssrc)
{
  CHECK_INT (got->ssrc, ssrc);
  CHECK_INT (got->fraction_lost, block.fraction_lost);
  CHECK_INT (got->lost, block.lost);
  CHECK_INT (got->highest_seq, block.highest_seq);
  CHECK_INT (got->jitter, block.jitter);
  CHECK_INT (got->last_sr, block.last_sr);
  CHECK_INT (got->delay_sr, block.delay_sr);
}

static void
compounds_are_read (void)
{
  static const struct {
    const char *letters;
    int ret;
    size_t n_blocks;
    bool bye, more;
  } cases[] = {
    { "r", 0, 1 },
    { "n", 0, 0 },
    { "s", 0, 0 },
    { "S", 0, 2 },
    { "R", 0, 31 },
    { "rd", 0, 1 },
    { "rdb", 0, 1, .bye = true },
    { "rdB", 0, 1, .bye = true },
    { "nd", 0, 0 },
    { "rdx", 0, 1 },
    { "rdf", 0, 1, .more = true },
    { "rda", 0, 1, .more = true },
    { "rdfb", 0, 1, .bye = true, .more = true },
    { "rSd", 0, 3 },
    { "Rrd", 0, 31 },
    { "rdp", 0, 1, .bye = true },
    // The first packet is not a report, which RFC 5506 allows.
    { "d", -ENOENT },
    { "f", -ENOENT },
    { "b", -ENOENT },
    { "dr", -ENOENT },
    { "fd", -ENOENT },
    // Only the last packet may be padded, and never the first.
    { "p", -EBADMSG },
    { "rpd", -EBADMSG },
    { "", -EBADMSG },
  };
  uint8_t packet[4000];

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    size_t len = put_compound (packet, cases[c].letters);
    WeirRtcpReport report;
    int ret = parse (packet, len, &report);

    if (ret != cases[c].ret)
      printf ("# \"%s\"\n", cases[c].letters);
    CHECK_INT (ret, cases[c].ret);
    if (ret < 0)
      continue;
    CHECK_INT (report.ssrc, SSRC);
    CHECK_INT (report.n_blocks, cases[c].n_blocks);
    CHECK (report.bye == cases[c].bye && report.more == cases[c].more);
    if (report.n_blocks > 0)
      check_block (&report.blocks[0], OF);
    if (report.n_blocks == 31 && cases[c].letters[1] == '\0')
      check_block (&report.blocks[30], OF + 30);
  }
}

static void
losses_are_signed (void)
{
  static const struct {
    uint32_t bits;
    int32_t lost;
  } cases[] = { { 0, 0 }, { 1, 1 }, { 0x7fffff, 8388607 }, { 0x800000, -8388608 }, { 0xffffff, -1 },
    { 0xfffffe, -2 } };
  uint8_t packet[1000];

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    size_t len = put_compound (packet, "r");
    WeirRtcpReport report;

    put (packet + 8 + 5, cases[c].bits, 3);
    CHECK_INT (parse (packet, len, &report), 0);
    CHECK_INT (report.blocks[0].lost, cases[c].lost);
    CHECK_INT (report.blocks[0].fraction_lost, block.fraction_lost);
  }
}

static void
a_written_report_is_read_back (void)
{
  uint8_t packet[300];
  WeirRtcpBlock written = block;
  WeirRtcpReport report;

  written.lost = -5;
  CHECK_INT (
      parse (packet, weir_rtcp_write_rr (packet, sizeof packet, SSRC, &written, 1, "a@b"), &report),
      0);
  CHECK_INT (report.n_blocks, 1);
  CHECK (!memcmp (&report.blocks[0], &written, sizeof written));
}

// Only a cut between two packets leaves a valid compound.
static void
truncated_compounds_are_refused (void)
{
  static const char *const compounds[] = { "rd", "Sdb", "Rr", "sdf", "rdp" };

  for (size_t c = 0; c < sizeof compounds / sizeof *compounds; c++) {
    uint8_t packet[4000];
    size_t full = put_compound (packet, compounds[c]), end = 0;
    WeirRtcpReport report;

    for (const char *letter = compounds[c]; *letter; letter++) {
      uint8_t one[1000];
      size_t next = end + put_packet (one, *letter);

      for (size_t len = end; len < next && len < full; len++)
        CHECK_INT (parse (packet, len, &report), len == end && len > 0 ? 0 : -EBADMSG);
      end = next;
    }
    CHECK_INT (parse (packet, full, &report), 0);
  }
}

// A report or a BYE must not have more blocks or SSRCs than its length allows.
static void
wrong_counts_are_refused (void)
{
  for (int count = 0; count < 32; count++) {
    uint8_t packet[1000];
    WeirRtcpReport report;
    size_t len = put_compound (packet, "rd");

    packet[0] = (uint8_t) (0x80 | count);
    CHECK_INT (parse (packet, len, &report), count <= 1 ? 0 : -EBADMSG);
    len = put_compound (packet, "Sd");
    packet[0] = (uint8_t) (0x80 | count);
    CHECK_INT (parse (packet, len, &report), count <= 2 ? 0 : -EBADMSG);
    len = put_compound (packet, "nb");
    packet[8] = (uint8_t) (0x80 | count);
    CHECK_INT (parse (packet, len, &report), count <= 1 ? 0 : -EBADMSG);
  }
}

static void
wrong_lengths_and_versions_are_refused (void)
{
  uint8_t packet[1000];
  WeirRtcpReport report;
  size_t len = put_compound (packet, "rd");

  for (unsigned words = 0; words <= 0xffff; words++) {
    put (packet + 2, words, 2);
    // 7 is correct; 12 includes the SDES in the report, which is valid too.
    CHECK_INT (parse (packet, len, &report), words == 7 || words == 12 ? 0 : -EBADMSG);
  }
  for (int version = 0; version < 4; version++) {
    len = put_compound (packet, "rd");
    packet[0] = (uint8_t) (version << 6 | 1);
    CHECK_INT (parse (packet, len, &report), version == 2 ? 0 : -EBADMSG);
    len = put_compound (packet, "nd");
    packet[8] = (uint8_t) (version << 6 | 1);
    CHECK_INT (parse (packet, len, &report), version == 2 ? 0 : -EBADMSG);
  }
}

static void
wrong_padding_is_refused (void)
{
  for (int padding = 0; padding < 256; padding++) {
    uint8_t packet[1000];
    size_t len = put_compound (packet, "np");
    WeirRtcpReport report;

    packet[len - 1] = (uint8_t) padding;
    // The packet has four bytes of padding; eight would include its SSRC.
    CHECK_INT (parse (packet, len, &report), padding == 4 ? 0 : -EBADMSG);
  }
}

// ---- round trips ----

static WeirNtpMap
sr (uint32_t ssrc, uint32_t middle)
{
  return (WeirNtpMap) { .known = true, .ntp = (uint64_t) middle << 16 | 7, .ssrc = ssrc };
}

static void
a_round_trip_is_the_elapsed_time_minus_the_delay (void)
{
  const int64_t s = 1000000000;
  static const struct {
    uint32_t ssrc, last_sr, delay_sr; // delay in 1/65536 s
    int64_t after_ms;                 // since the second report, which came 1 s after the first
    int64_t ms;                       // -1: none
  } cases[] = {
    { OF, 200, 0, 30, 30 }, { OF, 200, 65536, 1030, 30 }, { OF, 100, 65536, 250, 250 },
    { OF, 200, 32768, 500, 0 },
    { OF, 200, 65536, 500, -1 }, // longer than the time since the report
    { OF, 200, UINT32_MAX, 500, -1 }, { OF, 300, 0, 30, -1 }, // never sent
    { OF, 0, 0, 30, -1 },                                     // no report received
    { OF + 1, 200, 0, 30, -1 },                               // another stream
  };
  WeirSrLog log = { 0 };
  WeirNtpMap first = sr (OF, 100), second = sr (OF, 200);

  weir_sr_log_add (&log, &first, 5 * s);
  weir_sr_log_add (&log, &second, 6 * s);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirRtcpBlock of = {
      .ssrc = cases[c].ssrc, .last_sr = cases[c].last_sr, .delay_sr = cases[c].delay_sr
    };
    int64_t now = 6 * s + cases[c].after_ms * 1000000;
    int64_t expected = cases[c].ms < 0 ? -1 : cases[c].ms * 1000000;

    CHECK_INT (weir_sr_log_round_trip (&log, &of, now), expected);
  }
}

static void
old_sender_reports_are_forgotten (void)
{
  WeirSrLog log = { 0 };

  CHECK (!weir_sr_log_has (&log, 0));
  for (uint32_t n = 1; n <= 40; n++) {
    WeirNtpMap map = sr (n, n);

    weir_sr_log_add (&log, &map, n);
    for (uint32_t of = 0; of <= n + 1; of++) {
      WeirRtcpBlock about = { .ssrc = of, .last_sr = of };
      bool kept = of >= 1 && of <= n && of + WEIR_SR_LOG_SIZE > n;

      CHECK (weir_sr_log_has (&log, of) == kept);
      CHECK_INT (weir_sr_log_round_trip (&log, &about, n), kept ? (int64_t) n - of : -1);
    }
  }
}

static void
requests_for_a_keyframe_are_recognised (void)
{
  static const struct {
    int kind, type;
    uint8_t of[20];
    size_t len; // bytes of it, after the sender's SSRC
    bool asks;
  } cases[] = {
    { 1, 206, "\x55\x66\x77\x88", 4, true },
    { 1, 206, "\x55\x66\x77\x89", 4 },
    { 1, 206, "", 0 },
    { 1, 205, "\x55\x66\x77\x88", 4 }, // NACK
    { 2, 206, "\x55\x66\x77\x88", 4 }, // SLI
    { 15, 206, "\x55\x66\x77\x88", 4 },
    { 4, 206, "\0\0\0\0\x55\x66\x77\x88\1\0\0\0", 12, true },
    { 4, 206, "\0\0\0\0\1\2\3\4\1\0\0\0\x55\x66\x77\x88\1\0\0\0", 20, true },
    { 4, 206, "\0\0\0\0\1\2\3\4\x55\x66\x77\x88", 12 },
    { 4, 206, "\0\0\0\0\x55\x66\x77\x88", 8 }, // cut off
    { 4, 206, "\x55\x66\x77\x88", 4 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    // Alone, which RFC 5506 allows, and within a compound; the last two are invalid.
    static const char *const around[][2] = { { "", "" }, { "rd", "" }, { "r", "fb" }, { "p", "" },
      { "pr", "" } };

    for (size_t a = 0; a < sizeof around / sizeof *around; a++) {
      uint8_t packet[2000], *exact;
      size_t len = put_compound (packet, around[a][0]), size = 8 + cases[c].len;

      put_header (packet + len, cases[c].kind, cases[c].type, size);
      put (packet + len + 4, SSRC, 4);
      memcpy (packet + len + 8, cases[c].of, cases[c].len);
      len += size;
      len += put_compound (packet + len, around[a][1]);
      // The packet `f` is a PLI of the same stream.
      exact = malloc (len);
      memcpy (exact, packet, len);
      CHECK_INT (weir_rtcp_asks_key (exact, len, OF), a < 3 && (cases[c].asks || a == 2));
      CHECK (!weir_rtcp_asks_key (exact, len, SSRC));
      CHECK (!weir_rtcp_asks_key (exact, len - 1, OF));
      free (exact);
    }
  }
}

// Puts a generic NACK of the stream `of` with these entries, a number and a mask each.
static size_t
put_nack (uint8_t *at, uint32_t of, const uint16_t *entries, size_t n)
{
  put_header (at, 1, 205, 12 + 4 * n);
  put (at + 4, SSRC, 4);
  put (at + 8, of, 4);
  for (size_t i = 0; i < 2 * n; i++)
    put (at + 12 + 2 * i, entries[i], 2);
  return 12 + 4 * n;
}

static void
missing_packets_are_read (void)
{
  static const uint16_t entries[] = { 0xfffe, 0x8005, 7, 0 }, others[] = { 1, 1 };
  static const uint16_t wanted[] = { 0xfffe, 0xffff, 1, 14, 7 };
  uint8_t packet[2000], *exact;
  uint16_t seqs[8];
  size_t len = put_compound (packet, "rd");

  len += put_nack (packet + len, OF + 1, others, 1);
  len += put_nack (packet + len, OF, entries, 2);
  len += put_compound (packet + len, "f");
  exact = malloc (len);
  memcpy (exact, packet, len);
  CHECK_INT (weir_rtcp_read_nacks (exact, len, OF, seqs, 8), 5);
  CHECK (memcmp (seqs, wanted, sizeof wanted) == 0);
  CHECK_INT (weir_rtcp_read_nacks (exact, len, OF, seqs, 3), 3);
  CHECK_INT (weir_rtcp_read_nacks (exact, len, OF + 1, seqs, 8), 2);
  CHECK_INT (weir_rtcp_read_nacks (exact, len, SSRC, seqs, 8), 0);
  CHECK_INT (weir_rtcp_read_nacks (exact, len - 1, OF, seqs, 8), 0);
  free (exact);
  // Alone (RFC 5506), and without an entry.
  len = put_nack (packet, OF, entries, 2);
  CHECK_INT (weir_rtcp_read_nacks (packet, len, OF, seqs, 8), 5);
  len = put_nack (packet, OF, entries, 0);
  CHECK_INT (weir_rtcp_read_nacks (packet, len, OF, seqs, 8), 0);
}

// A packet of `size` bytes with this count, type and body.
static bool
is_sound (int count, int type, const char *body, size_t size)
{
  size_t len = 4 + size;
  uint8_t *packet = malloc (len);
  bool sound;

  put_header (packet, count, type, len);
  memcpy (packet + 4, body, size);
  sound = weir_rtcp_is_sound (packet, len);
  free (packet);
  return sound;
}

#define SOUND(count, type, body) is_sound (count, type, body, sizeof body - 1)

static void
contents_that_end_too_late_are_not_sound (void)
{
  uint8_t all[4000];
  size_t len;

  for (const char *letters = "nrRsSdbBxfap"; *letters; letters++) {
    len = put_packet (all, 'n');
    len += put_packet (all + len, *letters);
    CHECK (weir_rtcp_is_sound (all, len));
    CHECK (!weir_rtcp_is_sound (all, len - 1));
  }
  CHECK (!weir_rtcp_is_sound (all, 0));
  // SDES: an item beyond the end, no end, no SSRC, fewer chunks than counted, no padding.
  CHECK (SOUND (0, 202, ""));
  CHECK (SOUND (1, 202, "ssrc\0\0\0\0"));
  CHECK (SOUND (2, 202, "ssrc\1\1x\0ssrc\2\0\0\0"));
  CHECK (SOUND (1, 202, "ssrc\1\5abcde\0"));
  CHECK (!SOUND (1, 202, "ssrc\1\6abcde\0"));
  CHECK (!SOUND (1, 202,
      "ssrc\1\xff"
      "abcde\0"));
  CHECK (!SOUND (1, 202, "ssrc\1\6abcdef"));
  CHECK (!SOUND (1, 202, "ssrc\1\2abcde\1"));
  CHECK (!SOUND (1, 202, "ssrc"));
  CHECK (!SOUND (1, 202, ""));
  CHECK (!SOUND (2, 202, "ssrc\1\1x\0"));
  CHECK (!SOUND (31, 202, "ssrc\0\0\0\0ssrc"));
  // BYE: a reason beyond the end.
  CHECK (SOUND (1, 203, "ssrc\3end"));
  CHECK (SOUND (0, 203, "\0\0\0\0"));
  CHECK (!SOUND (1, 203, "ssrc\4end"));
  CHECK (!SOUND (1, 203,
      "ssrc\xff"
      "end"));
  CHECK (!SOUND (2, 203, "ssrc"));
  // Feedback: no entries, half of one, kinds that nobody negotiated.
  CHECK (SOUND (1, 205, "ssrcssrcpid0"));
  CHECK (!SOUND (1, 205, "ssrcssrc"));
  CHECK (!SOUND (15, 205, "ssrcssrc\0\0\0\1\0\0\0\0"));
  CHECK (SOUND (1, 206, "ssrcssrc"));
  CHECK (!SOUND (1, 206, "ssrcssrc\0\0\0\0"));
  CHECK (!SOUND (1, 206, "ssrc"));
  CHECK (SOUND (4, 206, "ssrc\0\0\0\0ssrc\1\0\0\0"));
  CHECK (!SOUND (4, 206, "ssrc\0\0\0\0ssrc"));
  CHECK (!SOUND (15, 206, "ssrcssrcREMB"));
  CHECK (SOUND (0, 204, "ssrcname"));
  CHECK (!SOUND (0, 204, "ssrc"));
}

int
main (void)
{
  RUN (requests_for_a_keyframe_are_recognised);
  RUN (compounds_are_read);
  RUN (losses_are_signed);
  RUN (a_written_report_is_read_back);
  RUN (truncated_compounds_are_refused);
  RUN (wrong_counts_are_refused);
  RUN (wrong_lengths_and_versions_are_refused);
  RUN (wrong_padding_is_refused);
  RUN (missing_packets_are_read);
  RUN (contents_that_end_too_late_are_not_sound);
  RUN (a_round_trip_is_the_elapsed_time_minus_the_delay);
  RUN (old_sender_reports_are_forgotten);
  return tap_done ();
}
