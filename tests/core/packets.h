// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Packets for tests, and random numbers that WEIR_SEED=N repeats.

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t random_state;

static inline void
random_init (void)
{
  const char *text = getenv ("WEIR_SEED");
  struct timespec now;
  uint64_t seed;

  clock_gettime (CLOCK_REALTIME, &now);
  seed = text ? strtoull (text, NULL, 10) : (uint64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
  printf ("# WEIR_SEED=%" PRIu64 "\n", seed);
  random_state = seed * 2 + 1;
}

static inline uint64_t
random_next (void)
{
  uint64_t x;

  random_state += UINT64_C (0x9e3779b97f4a7c15);
  x = random_state;
  x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
  return x ^ x >> 31;
}

// Returns a number from 0 to n - 1.
static inline uint64_t
random_below (uint64_t n)
{
  return random_next () % n;
}

static inline bool
random_percent (unsigned percent)
{
  return random_below (100) < percent;
}

#define RTP_HEADER 12

static inline void
put_rtp (uint8_t *packet, uint16_t seq, uint32_t timestamp, bool marker)
{
  const uint8_t header[RTP_HEADER] = { 0x80, (uint8_t) (96 | (marker ? 0x80 : 0)),
    (uint8_t) (seq >> 8), (uint8_t) seq, (uint8_t) (timestamp >> 24), (uint8_t) (timestamp >> 16),
    (uint8_t) (timestamp >> 8), (uint8_t) timestamp, 1, 2, 3, 4 };

  memcpy (packet, header, sizeof header);
}

// The first bytes of a payload: VP8 with its temporal layer, or an H.264 NAL unit.
#define VP8_PAYLOAD 4

static inline void
put_vp8 (uint8_t *payload, bool first, bool key, bool discardable, unsigned temporal)
{
  payload[0] = (uint8_t) (0x80 | (discardable ? 0x20 : 0) | (first ? 0x10 : 0));
  payload[1] = 0x20; // a temporal layer follows
  payload[2] = (uint8_t) (temporal << 6);
  payload[3] = key ? 0 : 1;
}

#define H264_PAYLOAD 2

static inline void
put_h264 (uint8_t *payload, unsigned type, unsigned nri, bool first_slice)
{
  payload[0] = (uint8_t) (nri << 5 | type);
  payload[1] = first_slice ? 0x88 : 0x44;
}
