// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

#define SSRC 0x11223344
#define NTP UINT64_C (0xe0000000c0000000)
#define TIMESTAMP 0x89abcdef

static void
put (uint8_t *at, uint64_t value, int size)
{
  while (size-- > 0) {
    at[size] = (uint8_t) value;
    value >>= 8;
  }
}

// Each function writes one packet of a compound and returns its size.

static size_t
put_header (uint8_t *at, int count, int type, size_t size)
{
  at[0] = (uint8_t) (0x80 | count);
  at[1] = (uint8_t) type;
  put (at + 2, size / 4 - 1, 2);
  return size;
}

static void
put_blocks (uint8_t *at, int n_blocks)
{
  for (int i = 0; i < n_blocks * 24; i++)
    at[i] = (uint8_t) (i * 7 + 1);
}

static size_t
put_sr (uint8_t *at, int n_blocks)
{
  put (at + 4, SSRC, 4);
  put (at + 8, NTP, 8);
  put (at + 16, TIMESTAMP, 4);
  put (at + 20, 1000, 4);
  put (at + 24, 123456, 4);
  put_blocks (at + 28, n_blocks);
  return put_header (at, n_blocks, 200, 28 + 24 * (size_t) n_blocks);
}

static size_t
put_rr (uint8_t *at, int n_blocks)
{
  put (at + 4, 0x55667788, 4);
  put_blocks (at + 8, n_blocks);
  return put_header (at, n_blocks, 201, 8 + 24 * (size_t) n_blocks);
}

static size_t
put_sdes (uint8_t *at)
{
  put (at + 4, SSRC, 4);
  memcpy (at + 8, "\1\5a@b.c\0\0\0\0\0", 12);
  return put_header (at, 1, 202, 20);
}

static size_t
put_bye (uint8_t *at)
{
  put (at + 4, SSRC, 4);
  return put_header (at, 1, 203, 8);
}

// "s": a sender report, "S": one with 31 blocks, "2": one with two; "r", "d", "b": the others.
static size_t
put_compound (uint8_t *at, const char *parts)
{
  size_t len = 0;

  for (; *parts; parts++) {
    switch (*parts) {
      case 's':
        len += put_sr (at + len, 0);
        break;
      case '2':
        len += put_sr (at + len, 2);
        break;
      case 'S':
        len += put_sr (at + len, 31);
        break;
      case 'r':
        len += put_rr (at + len, 1);
        break;
      case 'd':
        len += put_sdes (at + len);
        break;
      case 'b':
        len += put_bye (at + len);
        break;
    }
  }
  return len;
}

static const WeirNtpMap untouched = { true, 1, 2, 3 };

// Reads from memory of exactly the packet's size, so that a sanitizer sees a read past its end.
static int
find (const uint8_t *packet, size_t len, WeirNtpMap *map)
{
  uint8_t *exact = malloc (len ? len : 1);
  int ret;

  memcpy (exact, packet, len);
  *map = untouched;
  ret = weir_rtcp_find_sr (exact, len, map);
  CHECK (!memcmp (exact, packet, len));
  free (exact);
  if (ret == 0) {
    CHECK (map->known);
    CHECK_INT (map->ssrc, SSRC);
    CHECK (map->ntp == NTP);
    CHECK_INT (map->timestamp, TIMESTAMP);
  } else {
    CHECK (map->known && map->ntp == untouched.ntp && map->timestamp == untouched.timestamp
           && map->ssrc == untouched.ssrc);
  }
  return ret;
}

static void
the_report_is_found_in_a_compound (void)
{
  static const struct {
    const char *parts;
    int ret;
  } cases[] = {
    { "s", 0 },
    { "sd", 0 },
    { "2d", 0 },
    { "S", 0 },
    { "rs", 0 },
    { "rsd", 0 },
    { "ds", 0 },
    { "drbS", 0 },
    { "r", -ENOENT },
    { "rd", -ENOENT },
    { "dbr", -ENOENT },
    { "", -EBADMSG },
  };
  uint8_t packet[1500];

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirNtpMap map;
    size_t len = put_compound (packet, cases[c].parts);

    CHECK_INT (find (packet, len, &map), cases[c].ret);
  }
}

static void
the_report_of_a_stream_is_found_in_a_compound (void)
{
  uint8_t packet[200];
  size_t len = put_compound (packet, "s2d");
  WeirNtpMap map = untouched;

  put (packet + 4, SSRC + 1, 4);
  put (packet + 16, TIMESTAMP + 1, 4);
  CHECK_INT (weir_rtcp_find_sr_of (packet, len, SSRC, &map), 0);
  CHECK_INT (map.ssrc, SSRC);
  CHECK_INT (map.timestamp, TIMESTAMP);
  CHECK_INT (weir_rtcp_find_sr_of (packet, len, SSRC + 1, &map), 0);
  CHECK_INT (map.ssrc, SSRC + 1);
  CHECK_INT (map.timestamp, TIMESTAMP + 1);
  CHECK_INT (weir_rtcp_find_sr_of (packet, len, SSRC + 2, &map), -ENOENT);
  CHECK_INT (weir_rtcp_find_sr_of (packet, 30, SSRC, &map), -EBADMSG);
  CHECK_INT (map.ssrc, SSRC + 1);
}

static void
truncated_compounds_are_refused (void)
{
  static const char *const compounds[] = { "s", "2", "Sd", "rs", "dsb", "rd" };
  uint8_t packet[1500];

  for (size_t c = 0; c < sizeof compounds / sizeof *compounds; c++) {
    size_t full = put_compound (packet, compounds[c]);

    for (size_t len = 0; len < full; len++) {
      WeirNtpMap map;
      int ret = find (packet, len, &map);

      CHECK (ret == 0 || ret == -EBADMSG || ret == -ENOENT);
      // A truncated report is not found.
      if (len < 28)
        CHECK (ret < 0);
    }
  }
}

// Tries every value of the length field and of the version.
static void
wrong_lengths_and_versions_are_refused (void)
{
  uint8_t packet[1500];
  WeirNtpMap map;
  size_t len = put_compound (packet, "2d");

  for (unsigned words = 0; words <= 0xffff; words++) {
    int ret;

    put (packet + 2, words, 2);
    ret = find (packet, len, &map);
    if (words < 4 || (words + 1) * 4 > len)
      CHECK_INT (ret, -EBADMSG);
    else if (words >= 6)
      CHECK_INT (ret, 0);
  }
  len = put_compound (packet, "rs");
  for (unsigned words = 0; words <= 0xffff; words++) {
    put (packet + 2, words, 2);
    if ((words + 1) * 4 > len)
      CHECK_INT (find (packet, len, &map), -EBADMSG);
    else
      find (packet, len, &map);
  }
  for (int version = 0; version < 4; version++) {
    len = put_compound (packet, "s");
    packet[0] = (uint8_t) (version << 6);
    CHECK_INT (find (packet, len, &map), version == 2 ? 0 : -EBADMSG);
  }
  // The count of blocks does not matter for the fields that are read.
  len = put_compound (packet, "s");
  packet[0] |= 31;
  CHECK_INT (find (packet, len, &map), 0);
}

static void
a_known_map_gives_the_time (void)
{
  static const struct {
    uint32_t rate;
    int32_t ticks; // from the map's timestamp to the other
    int64_t ntp;   // the same as 32.32 s
  } cases[] = {
    { 90000, 0, 0 },
    { 90000, 90000, INT64_C (1) << 32 },
    { 90000, -90000, -(INT64_C (1) << 32) },
    { 90000, 45000, INT64_C (1) << 31 },
    { 90000, -45000, -(INT64_C (1) << 31) },
    { 90000, 1, 47721 },
    { 90000, 2147400000, INT64_C (23860) << 32 },
    { 90000, -2147400000, -(INT64_C (23860) << 32) },
    { 48000, 48000 * 3600, INT64_C (3600) << 32 },
    { 48000, -12000, -(INT64_C (1) << 30) },
    { 48000, 1, 89478 },
    { 8000, 8000, INT64_C (1) << 32 },
    { 8000, 1000, INT64_C (1) << 29 },
    { 8000, -8000 * 7, -(INT64_C (7) << 32) },
    // -2^31 / 8000 s is -2^57 / 125 in 32.32.
    { 8000, INT32_MIN, -(INT64_C (1) << 57) / 125 },
    { 1, -3, -(INT64_C (3) << 32) },
    { 0, 90000, INT64_C (1) << 32 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirNtpMap map = { true, UINT64_C (0xd123456789abcdef), TIMESTAMP - (uint32_t) cases[c].ticks,
      9 };

    CHECK_INT (weir_ntp_at (&map, TIMESTAMP, cases[c].rate) - map.ntp, cases[c].ntp);
  }
}

// The map's timestamp is before the wrap and the other after it, and the other way round.
static void
a_known_map_works_across_a_timestamp_wrap (void)
{
  static const struct {
    uint32_t map, at;
    int64_t seconds;
  } cases[] = {
    { UINT32_MAX - 89999, 0, 1 },
    { UINT32_MAX - 44999, 45000, 1 },
    { 45000, UINT32_MAX - 44999, -1 },
    { UINT32_MAX - 180000 + 1, 90000, 3 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    WeirNtpMap map = { true, NTP, cases[c].map, 9 };

    CHECK (weir_ntp_at (&map, cases[c].at, 90000)
           == NTP + (uint64_t) (cases[c].seconds * (INT64_C (1) << 32)));
  }
}

static void
unix_time_converts_to_ntp (void)
{
  static const struct {
    int64_t unix_ns;
    uint64_t ntp;
  } cases[] = {
    { 0, UINT64_C (2208988800) << 32 },
    { 1000000000, UINT64_C (2208988801) << 32 },
    { 500000000, UINT64_C (2208988800) << 32 | 0x80000000 },
    { 250000000, UINT64_C (2208988800) << 32 | 0x40000000 },
    { 1, UINT64_C (2208988800) << 32 | 4 },
    { 999999999, UINT64_C (2208988800) << 32 | 4294967291 },
    // 2025-01-01, and the second in which era 0 ends: 2036-02-07 06:28:15 and a half.
    { INT64_C (1735689600) * 1000000000, UINT64_C (3944678400) << 32 },
    { INT64_C (2085978495) * 1000000000 + 500000000, UINT64_C (0xffffffff80000000) },
    { INT64_C (2085978496) * 1000000000, 0 },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    CHECK (weir_ntp_from_unix (cases[c].unix_ns) == cases[c].ntp);
    CHECK (cases[c].unix_ns - weir_ntp_to_unix (cases[c].ntp) <= 1);
    CHECK (weir_ntp_to_unix (cases[c].ntp) <= cases[c].unix_ns);
  }
}

static void
ntp_times_have_a_distance (void)
{
  const uint64_t second = UINT64_C (1) << 32;

  CHECK (weir_ntp_minus (5 * second, 3 * second) == INT64_C (2000000000));
  CHECK (weir_ntp_minus (3 * second, 5 * second + second / 2) == -INT64_C (2500000000));
  CHECK (weir_ntp_minus (second / 4, 0 - second / 4) == 500000000); // across an era
}

int
main (void)
{
  RUN (the_report_is_found_in_a_compound);
  RUN (the_report_of_a_stream_is_found_in_a_compound);
  RUN (truncated_compounds_are_refused);
  RUN (wrong_lengths_and_versions_are_refused);
  RUN (a_known_map_gives_the_time);
  RUN (a_known_map_works_across_a_timestamp_wrap);
  RUN (unix_time_converts_to_ntp);
  RUN (ntp_times_have_a_distance);
  return tap_done ();
}
