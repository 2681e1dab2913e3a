// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/plain.h"
#include "tap.h"

static const uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 };

static void
numbers_are_read_big_endian (void)
{
  WeirBytes b = weir_bytes (data, sizeof data);
  uint8_t u8;
  uint16_t u16;
  uint32_t u24, u32;
  uint64_t u64;

  CHECK (weir_bytes_u8 (&b, &u8) && u8 == 1);
  CHECK (weir_bytes_u16 (&b, &u16) && u16 == 0x0203);
  CHECK (weir_bytes_u24 (&b, &u24) && u24 == 0x040506);
  CHECK (weir_bytes_u32 (&b, &u32) && u32 == 0x0708090a);
  CHECK (weir_bytes_u64 (&b, &u64) && u64 == UINT64_C (0x0b0c0d0e0f101112));
  CHECK_INT (weir_bytes_left (&b), 0);
  CHECK (!b.failed);
}

// At every length: a read that fits succeeds; a read that does not fails, and every read after it.
static void
every_read_after_a_failed_one_fails (void)
{
  for (size_t len = 0; len < 8; len++) {
    WeirBytes b = weir_bytes (data, len);
    uint64_t value = 1;
    uint8_t u8 = 1;

    CHECK (!weir_bytes_u64 (&b, &value) && value == 0);
    CHECK (!weir_bytes_u8 (&b, &u8) && u8 == 0);
    CHECK (!weir_bytes_skip (&b, 0));
    CHECK_INT (weir_bytes_left (&b), 0);
  }
}

static void
bytes_are_taken_and_skipped (void)
{
  WeirBytes b = weir_bytes (data, sizeof data);
  const uint8_t *p;

  CHECK (weir_bytes_skip (&b, 4) && weir_bytes_take (&b, 4, &p) && p == data + 4);
  CHECK (weir_bytes_take (&b, sizeof data - 8, &p) && weir_bytes_take (&b, 0, &p));
  CHECK (!weir_bytes_skip (&b, SIZE_MAX) && b.failed);
  b = weir_bytes (NULL, 0);
  CHECK (weir_bytes_skip (&b, 0) && !weir_bytes_skip (&b, 1));
}

// 0 0 3 is no emulation prevention here.
static void
plain_bits_are_read_as_they_are (void)
{
  static const uint8_t plain[] = { 0, 0, 3, 0xa5, 0x12, 0x34, 0x56, 0x78 };
  WeirPlainBits b = weir_plain_bits (weir_bytes (plain, sizeof plain)), other;

  CHECK_INT (weir_plain_bits_u (&b, 24), 3);
  CHECK_INT (weir_plain_bit (&b), 1);
  CHECK_INT (weir_plain_bits_u (&b, 0), 0);
  CHECK_INT (weir_plain_bits_u (&b, 3), 2);
  CHECK_INT (b.n, 28);
  other = b;
  CHECK_INT (weir_plain_bits_u (&other, 36), 0x12345678); // the last 32 of them
  CHECK (!other.from.failed && weir_bytes_left (&other.from) == 0);
  CHECK_INT (weir_plain_bits_u (&b, 4), 5);
  weir_plain_bits_u (&b, UINT32_MAX); // a number from outside: stops at the end
  CHECK (b.from.failed && b.n <= 8 * sizeof plain + 1);
}

int
main (void)
{
  RUN (numbers_are_read_big_endian);
  RUN (every_read_after_a_failed_one_fails);
  RUN (bytes_are_taken_and_skipped);
  RUN (plain_bits_are_read_as_they_are);
  return tap_done ();
}
