// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures what the estimate of a reader's line costs. Each of 1000 readers gets 300 packets a
// second, and tells of them each 64 ms, so that their state is in no near cache. Prints one line
// "what ns" each.

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "net/estimate.h"

#define MS INT64_C (1000000)
#define READERS 1000
#define ROUNDS 200
#define PACKETS 19 // in 64 ms
#define SIZE 1200
#define HEADER 20

static WeirEstimate *estimates[READERS];
static uint8_t packet[HEADER + 2 + PACKETS + 3];
static double sent_ns, read_ns, taken_ns, seen_ns;

static double
cpu_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

// TWCC of packets that have all arrived, 3 ms apart, from `first` on.
static void
make_feedback (uint16_t first, int64_t now)
{
  uint32_t reference = (uint32_t) (now / (64 * MS));

  packet[0] = 0x8f;
  packet[1] = 205;
  packet[3] = sizeof packet / 4 - 1;
  packet[12] = (uint8_t) (first >> 8);
  packet[13] = (uint8_t) first;
  packet[15] = PACKETS;
  packet[16] = (uint8_t) (reference >> 16);
  packet[17] = (uint8_t) (reference >> 8);
  packet[18] = (uint8_t) reference;
  packet[HEADER] = 0x20;
  packet[HEADER + 1] = PACKETS;
  for (int i = 0; i < PACKETS; i++)
    packet[HEADER + 2 + i] = 12;
}

static void
send_all (uint16_t first, int64_t now)
{
  double before = cpu_ns ();

  for (int i = 0; i < READERS; i++) {
    for (uint16_t n = 0; n < PACKETS; n++)
      weir_estimate_sent (estimates[i], (uint16_t) (first + n), SIZE, now + n * 3 * MS);
  }
  sent_ns += cpu_ns () - before;
}

static void
read_all (void)
{
  static WeirFeedback feedback;
  double before = cpu_ns ();

  for (int i = 0; i < READERS; i++) {
    WeirBytes bytes = weir_bytes (packet, sizeof packet);

    if (weir_feedback_next (&bytes, &feedback) != 1 || feedback.n != PACKETS)
      errx (1, "the feedback is not read");
  }
  read_ns += cpu_ns () - before;
}

static void
take_all (int64_t now)
{
  static WeirFeedback feedback;
  WeirBytes bytes = weir_bytes (packet, sizeof packet);
  double before = cpu_ns ();

  weir_feedback_next (&bytes, &feedback);
  for (int i = 0; i < READERS; i++)
    weir_estimate_feedback (estimates[i], &feedback, now);
  taken_ns += cpu_ns () - before;
}

static void
see_all (int64_t now)
{
  double before = cpu_ns ();

  for (int i = 0; i < READERS; i++) {
    if (weir_estimate_view (estimates[i], now).state != WEIR_ESTIMATE_CLEAR)
      errx (1, "a line that carries all is not clear");
  }
  seen_ns += cpu_ns () - before;
}

int
main (void)
{
  int64_t now = 100000 * 64 * MS;

  for (int i = 0; i < READERS; i++) {
    estimates[i] = weir_estimate_new (WEIR_ESTIMATE_RING);
    if (!estimates[i])
      err (1, "memory");
  }
  for (int round = 0; round < ROUNDS; round++, now += 64 * MS) {
    uint16_t first = (uint16_t) (round * PACKETS);

    make_feedback (first, now);
    send_all (first, now);
    read_all ();
    take_all (now + 64 * MS);
    see_all (now + 64 * MS);
  }
  if (weir_estimate_counts (estimates[0]).arrived != ROUNDS * PACKETS)
    errx (1, "feedback is not taken");
  printf ("sent %.1f\n", sent_ns / ROUNDS / READERS / PACKETS);
  printf ("read %.1f\n", read_ns / ROUNDS / READERS);
  printf ("taken %.1f\n", taken_ns / ROUNDS / READERS / PACKETS);
  printf ("seen %.1f\n", seen_ns / ROUNDS / READERS);
  return 0;
}
