// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/diskload.h"

#include "tap.h"

#include <stdlib.h>

#define MS INT64_C (1000000)
#define SECOND (1000 * MS)
#define BLOCK UINT64_C (3750000) // 5 s of 6 Mb/s

static int64_t now;

// A read of `bytes` alone at a disk that takes t_a and r_d bytes a second for it.
static void
read_one (WeirDiskLoad *load, uint64_t bytes, int64_t access_ns, double rate)
{
  weir_disk_load_add (load, bytes);
  weir_disk_load_start (load, now);
  now += access_ns + (int64_t) ((double) bytes / rate * 1e9);
  weir_disk_load_done (load, bytes, now, true);
}

static void
read_many (WeirDiskLoad *load, int n, uint64_t bytes, int64_t access_ns, double rate)
{
  for (int i = 0; i < n; i++)
    read_one (load, bytes, access_ns, rate);
}

static bool
within (double got, double expected, double part)
{
  return got >= expected * (1 - part) && got <= expected * (1 + part);
}

static bool
near (double got, double expected, double part)
{
  if (within (got, expected, part))
    return true;
  printf ("# %g, expected %g within %g\n", got, expected, part);
  return false;
}

static void
with_blocks_of_one_size_their_time_is_learnt (void)
{
  const struct {
    int64_t access_ns;
    double rate;
    uint64_t bytes;
  } disks[] = {
    { 17 * MS, 65.6e6, BLOCK },
    { 17 * MS, 65.6e6, BLOCK / 6 },
    { 17 * MS, 65.6e6, 4 * BLOCK },
    { MS / 10, 2e9, BLOCK },
    { 0, 500e6, 4096 },
    { 100 * MS, 5e6, BLOCK },
  };

  for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
    WeirDiskLoad load;
    weir_disk_load_init (&load);
    read_many (&load, 20, disks[i].bytes, disks[i].access_ns, disks[i].rate);
    CHECK (near ((double) weir_disk_load_service (&load, disks[i].bytes),
        (double) disks[i].access_ns + (double) disks[i].bytes / disks[i].rate * 1e9, 0.02));
    CHECK (load.access_ns > 0 && load.byte_ns > 0);
    CHECK (!load.apart);
    CHECK_INT (weir_disk_load_mean_bytes (&load), disks[i].bytes);
    // The common case: a hard disk, of which one parameter is known beforehand.
    if (i < 3)
      CHECK (near (load.access_ns, 17e6, 0.02));
  }
}

static void
with_blocks_of_several_sizes_both_parameters_are_learnt (void)
{
  const struct {
    int64_t access_ns;
    double rate;
  } disks[] = { { 17 * MS, 65.6e6 }, { 5 * MS, 200e6 }, { MS / 10, 2e9 }, { 60 * MS, 30e6 } };

  srandom (1);
  for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
    WeirDiskLoad load;
    weir_disk_load_init (&load);
    for (int j = 0; j < 100; j++)
      read_one (
          &load, BLOCK / 6 * (uint64_t) (1 + random () % 12), disks[i].access_ns, disks[i].rate);
    CHECK (load.apart);
    CHECK (near (load.byte_ns, 1e9 / disks[i].rate, 0.01));
    CHECK (near (load.access_ns, (double) disks[i].access_ns, 0.01));
    // Of one size from now on: the past is forgotten.
    read_many (&load, 200, BLOCK, disks[i].access_ns, disks[i].rate);
    CHECK (!load.apart);
  }
}

// A read of `bytes` at a hard disk: the arm moves for 3 to 20 ms, the disk turns for up to 8 ms.
static void
read_with_noise (WeirDiskLoad *load, uint64_t bytes)
{
  read_one (load, bytes, 3 * MS + random () % (17 * MS) + random () % (8 * MS), 65.6e6);
}

static void
parameters_are_told_apart_only_if_that_is_certain (void)
{
  WeirDiskLoad load;
  int wrong = 0;

  srandom (3);
  weir_disk_load_init (&load);
  for (int i = 0; i < 1000; i++) {
    read_with_noise (&load, BLOCK + (uint64_t) random () % (BLOCK / 5));
    CHECK (!load.apart);
  }
  // Blocks of 1 and 6 Mb/s: the mean access time is 15.5 ms, that of some reads varies.
  for (int i = 0; i < 1000; i++) {
    read_with_noise (&load, random () % 2 ? BLOCK : BLOCK / 6);
    wrong += i > 50 && (!load.apart || !near (load.byte_ns, 1e9 / 65.6e6, 0.2));
  }
  printf ("# wrong after %d of 950 reads\n", wrong);
  CHECK (wrong < 20);
  // Blocks of one size now and then take long: the size says little.
  weir_disk_load_init (&load);
  for (int i = 0; i < 1000; i++) {
    read_one (&load, BLOCK + (uint64_t) random () % BLOCK, random () % (300 * MS), 65.6e6);
    if (load.apart)
      CHECK (near (load.byte_ns, 1e9 / 65.6e6, 1));
  }
}

static void
noise_gives_no_absurd_parameters (void)
{
  WeirDiskLoad load;

  srandom (2);
  weir_disk_load_init (&load);
  for (int i = 0; i < 2000; i++) {
    read_one (&load, BLOCK + (uint64_t) (random () % 100000), random () % (100 * MS), 65.6e6);
    if (i > 20) {
      CHECK (load.access_ns >= 0 && load.byte_ns >= 0);
      CHECK (near ((double) weir_disk_load_service (&load, BLOCK), 107e6, 0.5));
    }
  }
}

static void
a_change_is_learnt_within_seconds (void)
{
  const double factors[] = { 1.2, 2, 10, 100, 0.1, 0.5 };

  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    WeirDiskLoad load;
    const double before = 74.2e6, after = before * factors[i];
    int reads = 0;

    weir_disk_load_init (&load);
    read_many (&load, 100, BLOCK, 17 * MS, 65.6e6);
    while (!within ((double) weir_disk_load_service (&load, BLOCK), after, 0.15) && reads < 100) {
      read_one (&load, BLOCK, (int64_t) (17e6 * factors[i]), 65.6e6 / factors[i]);
      reads++;
    }
    printf ("# %g times the time: learnt after %d reads\n", factors[i], reads);
    CHECK (reads <= (factors[i] > 4 ? 8 : 30));
  }
}

static void
one_slow_read_does_not_condemn_a_disk (void)
{
  WeirDiskLoad load;

  weir_disk_load_init (&load);
  read_many (&load, 100, BLOCK, 17 * MS, 65.6e6);
  read_one (&load, BLOCK, 6 * SECOND, 65.6e6);
  CHECK (weir_disk_load_service (&load, BLOCK) > 200 * MS);
  read_many (&load, 8, BLOCK, 17 * MS, 65.6e6);
  CHECK (weir_disk_load_service (&load, BLOCK) < 150 * MS);
}

static void
several_reads_at_work_are_measured_from_one_end_to_the_next (void)
{
  WeirDiskLoad load;

  weir_disk_load_init (&load);
  for (int i = 0; i < 4; i++)
    weir_disk_load_add (&load, BLOCK);
  weir_disk_load_start (&load, now);
  weir_disk_load_start (&load, now);
  for (int i = 0; i < 4; i++) {
    now += 80 * MS;
    weir_disk_load_done (&load, BLOCK, now, true);
    if (i < 2)
      weir_disk_load_start (&load, now);
  }
  CHECK (near ((double) weir_disk_load_service (&load, BLOCK), 80e6, 0.01));
  CHECK_INT (load.requests, 0);
  CHECK_INT (load.bytes, 0);
  CHECK_INT (load.at_work, 0);
  CHECK_INT (load.n_done, 4);

  // An idle hour is not part of a read.
  now += 3600 * SECOND;
  read_one (&load, BLOCK, 17 * MS, 65.6e6);
  CHECK (near ((double) weir_disk_load_service (&load, BLOCK), 78e6, 0.05));
}

static void
the_queue_counts (void)
{
  WeirDiskLoad load;
  int64_t one;

  weir_disk_load_init (&load);
  read_many (&load, 50, BLOCK, 17 * MS, 65.6e6);
  one = weir_disk_load_expect (&load, BLOCK, now);
  CHECK (near ((double) one, 74.2e6, 0.01));
  for (int i = 0; i < 9; i++)
    weir_disk_load_add (&load, BLOCK);
  CHECK (near ((double) weir_disk_load_expect (&load, BLOCK, now), 10.0 * (double) one, 0.01));
  weir_disk_load_start (&load, now);
  CHECK (near (
      (double) weir_disk_load_expect (&load, BLOCK, now + one / 2), 9.5 * (double) one, 0.01));
  // A read that should have been done is expected to need as long again as it is late.
  CHECK (near (
      (double) weir_disk_load_expect (&load, BLOCK, now + 3 * one), 11.0 * (double) one, 0.01));
}

static void
a_read_that_is_given_now_waits_for_those_at_work (void)
{
  const double one = 74.2e6;
  WeirDiskLoad load;

  weir_disk_load_init (&load);
  read_many (&load, 50, BLOCK, 17 * MS, 65.6e6);
  for (int i = 0; i < 9; i++)
    weir_disk_load_add (&load, BLOCK);
  CHECK (near ((double) weir_disk_load_soonest (&load, BLOCK, now), one, 0.01));
  weir_disk_load_start (&load, now);
  CHECK (near (
      (double) weir_disk_load_soonest (&load, BLOCK, now + (int64_t) one / 2), 1.5 * one, 0.01));
  weir_disk_load_start (&load, now);
  CHECK (near ((double) weir_disk_load_soonest (&load, BLOCK, now), 3 * one, 0.01));
  CHECK (near (
      (double) weir_disk_load_soonest (&load, BLOCK, now + 3 * (int64_t) one), 4 * one, 0.01));
}

static void
the_disk_that_is_done_first_is_chosen (void)
{
  const struct {
    uint64_t first_queue, second_queue; // bytes
    double first_rate, second_rate;
    uint64_t bytes;
    int chosen;
  } cases[] = {
    { 0, 0, 65e6, 65e6, BLOCK, 0 },
    { 2 * BLOCK, BLOCK, 65e6, 65e6, BLOCK, 1 },
    { BLOCK, 2 * BLOCK, 65e6, 65e6, BLOCK, 0 },
    { 2 * BLOCK, BLOCK, 200e6, 50e6, BLOCK, 0 }, // the faster one, despite its longer queue
    { 8 * BLOCK, BLOCK, 200e6, 50e6, BLOCK, 1 },
    { 0, 0, 50e6, 65e6, BLOCK, 1 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    WeirDiskLoad first, second;
    weir_disk_load_init (&first);
    weir_disk_load_init (&second);
    read_many (&first, 50, BLOCK, 17 * MS, cases[i].first_rate);
    read_many (&second, 50, BLOCK, 17 * MS, cases[i].second_rate);
    for (uint64_t queued = 0; queued < cases[i].first_queue; queued += BLOCK)
      weir_disk_load_add (&first, BLOCK);
    for (uint64_t queued = 0; queued < cases[i].second_queue; queued += BLOCK)
      weir_disk_load_add (&second, BLOCK);
    CHECK_INT (weir_disk_load_choose (&first, &second, cases[i].bytes, now), cases[i].chosen);
  }
}

static void
a_disk_with_errors_is_avoided_until_it_reads (void)
{
  WeirDiskLoad bad, good;

  weir_disk_load_init (&bad);
  weir_disk_load_init (&good);
  read_many (&bad, 10, BLOCK, 17 * MS, 65.6e6);
  read_many (&good, 10, BLOCK, 34 * MS, 32e6);
  for (int i = 0; i < 3; i++) {
    CHECK_INT (weir_disk_load_choose (&bad, &good, BLOCK, now), 0);
    weir_disk_load_add (&bad, BLOCK);
    weir_disk_load_start (&bad, now);
    weir_disk_load_done (&bad, BLOCK, now, false);
  }
  CHECK (bad.failing);
  CHECK_INT (bad.n_errors, 3);
  CHECK_INT (weir_disk_load_choose (&bad, &good, BLOCK, now), 1);
  CHECK_INT (weir_disk_load_choose (&good, &bad, BLOCK, now), 0);
  CHECK (!weir_disk_load_retry (&bad, &good, BLOCK, now + SECOND / 2));
  now += 2 * SECOND;
  CHECK (weir_disk_load_retry (&bad, &good, BLOCK, now));
  read_one (&bad, BLOCK, 17 * MS, 65.6e6);
  CHECK (!bad.failing);
  CHECK_INT (weir_disk_load_choose (&bad, &good, BLOCK, now), 0);
}

static void
a_disk_that_does_not_answer_is_failing (void)
{
  WeirDiskLoad load;

  weir_disk_load_init (&load);
  read_many (&load, 10, BLOCK, 17 * MS, 65.6e6);
  CHECK (!weir_disk_load_check (&load, 0, now + 3600 * SECOND)); // idle
  weir_disk_load_add (&load, BLOCK);
  weir_disk_load_start (&load, now);
  CHECK (!weir_disk_load_check (&load, SECOND / 4, now + SECOND / 2)); // eight times is 0.6 s
  CHECK (!weir_disk_load_check (&load, SECOND, now + 3 * SECOND / 4));
  CHECK (weir_disk_load_check (&load, SECOND, now + SECOND));
  CHECK (!weir_disk_load_check (&load, SECOND, now + 2 * SECOND)); // told once
  CHECK (load.failing);
  weir_disk_load_done (&load, BLOCK, now + 3 * SECOND, true);
  CHECK (!load.failing);
}

static void
a_slow_disk_is_tried_again_now_and_then (void)
{
  WeirDiskLoad slow, fast;
  int tried = 0;
  int64_t end;

  weir_disk_load_init (&slow);
  weir_disk_load_init (&fast);
  read_many (&slow, 50, BLOCK, 170 * MS, 6.56e6);
  read_many (&fast, 50, BLOCK, 17 * MS, 65.6e6);
  CHECK (!weir_disk_load_retry (&fast, &slow, BLOCK, now + 3600 * SECOND)); // never avoided
  end = now + 600 * SECOND;
  while (now < end) {
    CHECK_INT (weir_disk_load_choose (&slow, &fast, BLOCK, now), 1);
    if (weir_disk_load_retry (&slow, &fast, BLOCK, now)) {
      read_one (&slow, BLOCK, 170 * MS, 6.56e6);
      tried++;
    }
    now += 100 * MS;
  }
  CHECK (tried >= 30 && tried <= 42); // every 15 s, as a read takes 0.75 s

  // It recovers: the reads that try it tell.
  end = now + 120 * SECOND;
  while (weir_disk_load_choose (&slow, &fast, BLOCK, now) == 1 && now < end) {
    if (weir_disk_load_retry (&slow, &fast, BLOCK, now))
      read_one (&slow, BLOCK, 16 * MS, 70e6);
    now += 100 * MS;
    if (weir_disk_load_service (&slow, BLOCK) < 82 * MS)
      break;
  }
  CHECK (now < end);
}

int
main (void)
{
  now = SECOND;
  RUN (with_blocks_of_one_size_their_time_is_learnt);
  RUN (with_blocks_of_several_sizes_both_parameters_are_learnt);
  RUN (parameters_are_told_apart_only_if_that_is_certain);
  RUN (noise_gives_no_absurd_parameters);
  RUN (a_change_is_learnt_within_seconds);
  RUN (one_slow_read_does_not_condemn_a_disk);
  RUN (several_reads_at_work_are_measured_from_one_end_to_the_next);
  RUN (the_queue_counts);
  RUN (a_read_that_is_given_now_waits_for_those_at_work);
  RUN (the_disk_that_is_done_first_is_chosen);
  RUN (a_disk_with_errors_is_avoided_until_it_reads);
  RUN (a_disk_that_does_not_answer_is_failing);
  RUN (a_slow_disk_is_tried_again_now_and_then);
  return tap_done ();
}
