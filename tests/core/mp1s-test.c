// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mp1s.h"

#include "tap.h"

// A pack of 12 bytes whose SCR, less than 2^15 but for its highest bits, is `high` << 30 | `low`.
#define SCR(high, low)                                                                             \
  0, 0, 1, 0xba, 0x21 | (high) << 1, 0, 1, (low) >> 7 & 0xff, ((low) << 1 & 0xff) | 1, 0x80, 0, 1
// A packet of 16 bytes.
#define PACKET 0, 0, 1, 0xe0, 0, 10, 0, 0, 1, 0xba, 5, 6, 7, 8, 9, 10
#define PACK(low) SCR (0, low), PACKET
#define END 0, 0, 1, 0xb9

static void
check_cuts (WeirMp1sCut *cut, const uint8_t *data, size_t size, size_t room,
    const WeirMp1sPayload *expected, size_t n)
{
  WeirBytes b = weir_bytes (data, size);
  WeirMp1sPayload part;
  size_t i = 0;

  for (; weir_bytes_left (&b) > 0 && weir_mp1s_cut_next (cut, b, room, &part); i++) {
    if (i < n) {
      CHECK_INT (part.len, expected[i].len);
      CHECK_INT (part.time, expected[i].time);
      CHECK_INT (part.jump, expected[i].jump);
    }
    weir_bytes_skip (&b, part.len);
  }
  CHECK_INT (i, n);
}

#define CHECK_CUTS(data, room, ...)                                                                \
  do {                                                                                             \
    static const WeirMp1sPayload expected[] = { __VA_ARGS__ };                                     \
    WeirMp1sCut cut = { 0 };                                                                       \
    check_cuts (&cut, data, sizeof data, room, expected, sizeof expected / sizeof *expected);      \
  } while (0)

static void
packs_that_fit_are_not_cut (void)
{
  static const uint8_t data[] = { PACK (100), PACK (200), PACK (300), END };

  CHECK_CUTS (data, 60, { 56, 0, false }, { 32, 200, false });
  CHECK_CUTS (data, 56, { 56, 0, false }, { 32, 200, false });
  CHECK_CUTS (data, 55, { 28, 0, false }, { 28, 100, false }, { 32, 200, false });
  CHECK_CUTS (data, 88, { 88, 0, false });
}

static void
a_long_pack_is_cut_and_its_rest_stays_alone (void)
{
  static const uint8_t data[] = { SCR (0, 5), PACKET, PACKET, PACK (10), PACK (20) };

  CHECK_CUTS (data, 30, { 30, 0, false }, { 14, 0, false }, { 28, 5, false }, { 28, 15, false });
  CHECK_CUTS (data, 10, { 10, 0, false }, { 10, 0, false }, { 10, 0, false }, { 10, 0, false },
      { 4, 0, false }, { 10, 5, false }, { 10, 5, false }, { 8, 5, false }, { 10, 15, false },
      { 10, 15, false }, { 8, 15, false });
}

static void
time_goes_on_over_the_wrap_of_the_scr (void)
{
  static const uint8_t data[] = { 0, 0, 1, 0xba, 0x2f, 0xff, 0xff, 0xff, 0xff, 0x80, 0, 1, PACKET,
    PACK (99) };

  CHECK_CUTS (data, 30, { 28, 0, false }, { 28, 100, false });
}

static void
a_jump_of_the_scr_begins_a_payload (void)
{
  static const uint8_t back[] = { PACK (100), PACK (200), PACK (50), PACK (60) };
  static const uint8_t forth[] = { PACK (100), SCR (1, 0), PACKET, SCR (1, 9), PACKET };

  CHECK_CUTS (back, 200, { 56, 0, false }, { 56, 100, true });
  CHECK_CUTS (forth, 30, { 28, 0, false }, { 28, 0, true }, { 28, 9, false });
}

static void
many_small_packs_in_a_payload_are_no_jump (void)
{
  static const uint8_t data[] = { PACK (0), PACK (30000), SCR (0, 0x7fff), PACKET };
  static const uint8_t slow[] = { PACK (0), 0, 0, 1, 0xba, 0x21, 0, 0x21, 0, 1, 0x80, 0, 1, PACKET,
    0, 0, 1, 0xba, 0x21, 0, 0x41, 0, 1, 0x80, 0, 1, PACKET };

  CHECK_CUTS (data, 56, { 56, 0, false }, { 28, 0x7fff, false });
  CHECK_CUTS (slow, 56, { 56, 0, false }, { 28, 0x100000, false });
}

static void
a_stream_may_end_anywhere (void)
{
  static const uint8_t data[] = { PACK (1), PACK (2) };

  for (size_t size = 12; size <= sizeof data; size++)
    for (size_t room = 1; room < 60; room++) {
      WeirBytes b = weir_bytes (data, size);
      WeirMp1sCut cut = { 0 };
      WeirMp1sPayload part;

      while (weir_bytes_left (&b) > 0 && weir_mp1s_cut_next (&cut, b, room, &part)) {
        CHECK (part.len > 0 && part.len <= room);
        CHECK (weir_bytes_skip (&b, part.len));
      }
      CHECK (weir_bytes_left (&b) < WEIR_MP1S_PACK_HEADER);
    }
}

static void
what_is_no_unit_is_refused (void)
{
  static const uint8_t data[] = { PACK (1), 0, 0, 0, 0, 0, 1, 0xba, 0x44, 0, 4, 0, 4, 1, 0, 0,
    PACK (2) };
  WeirMp1sCut cut = { 0 };
  WeirMp1sPayload part;
  WeirBytes b = weir_bytes (data, sizeof data);

  CHECK (weir_mp1s_cut_next (&cut, b, 100, &part));
  CHECK_INT (part.len, 31); // zero bytes before a start code are stuffing
  weir_bytes_skip (&b, part.len);
  CHECK (!weir_mp1s_cut_next (&cut, b, 100, &part));
  CHECK_INT (weir_mp1s_find_pack (b), 12);
  CHECK_INT (weir_mp1s_find_pack (weir_bytes (data, 11)), 11);
  CHECK_INT (weir_mp1s_find_pack (weir_bytes (NULL, 0)), 0);
}

int
main (void)
{
  RUN (packs_that_fit_are_not_cut);
  RUN (a_long_pack_is_cut_and_its_rest_stays_alone);
  RUN (time_goes_on_over_the_wrap_of_the_scr);
  RUN (a_jump_of_the_scr_begins_a_payload);
  RUN (many_small_packs_in_a_payload_are_no_jump);
  RUN (a_stream_may_end_anywhere);
  RUN (what_is_no_unit_is_refused);
  return tap_done ();
}
