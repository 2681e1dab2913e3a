// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model.h"

#include <errno.h>
#include <stdio.h>

#include "tap.h"

#define MS 1000000
#define KB 1000

// 10 ms and 1 MB/s: 1 kB takes 1 ms.
static const struct disk_factors slow = {
  .access_us = 10000, .rate = 1000000, .stutter_share = 100
};

static void
set_up (struct disk *disk, struct disk_factors factors)
{
  disk_init (disk);
  disk_set (disk, &factors, 0);
}

static void
add (struct disk *disk, struct disk_request *request, uint64_t file, uint64_t offset, int64_t now)
{
  *request =
      (struct disk_request) { .kind = DISK_READ, .file = file, .offset = offset, .bytes = 5 * KB };
  disk_add (disk, request, now);
}

// Checks that `request` is the next to finish, and that it does so at `ms`.
static void
finishes (struct disk *disk, struct disk_request *request, int64_t ms)
{
  CHECK_INT (disk_due (disk) / MS, ms);
  CHECK (disk_take (disk, disk_due (disk) - 1) == NULL);
  CHECK (disk_take (disk, ms * MS) == request);
}

static void
a_request_takes_the_access_time_and_the_time_of_its_bytes (void)
{
  struct disk disk;
  struct disk_request a;

  set_up (&disk, slow);
  CHECK (disk_due (&disk) == DISK_NEVER);
  add (&disk, &a, 1, 0, 100 * MS);
  finishes (&disk, &a, 115);
  CHECK (disk_due (&disk) == DISK_NEVER);
  CHECK_INT (disk.stats.bytes, 5 * KB);
  CHECK_INT (disk.stats.busy_us, 15000);
}

static void
requests_are_served_one_at_a_time_in_order (void)
{
  struct disk disk;
  struct disk_request a, b, c;

  set_up (&disk, slow);
  add (&disk, &a, 1, 0, 0);
  add (&disk, &b, 2, 0, 1 * MS);
  add (&disk, &c, 3, 0, 2 * MS);
  CHECK_INT (disk.stats.queue, 3);
  finishes (&disk, &a, 15);
  finishes (&disk, &b, 30);
  finishes (&disk, &c, 45);
  CHECK_INT (disk.stats.longest_queue, 3);
  CHECK_INT (disk.stats.accesses, 3);
}

static void
a_late_caller_does_not_slow_the_disk (void)
{
  struct disk disk;
  struct disk_request a, b;

  set_up (&disk, slow);
  add (&disk, &a, 1, 0, 0);
  add (&disk, &b, 2, 0, 0);
  CHECK (disk_take (&disk, 29 * MS) == &a);
  finishes (&disk, &b, 30);
}

static void
pieces_of_one_request_pay_one_access (void)
{
  struct disk disk;
  struct disk_request a, b, rest;

  set_up (&disk, slow);
  add (&disk, &a, 1, 0, 0);
  add (&disk, &b, 2, 0, 0);
  add (&disk, &rest, 1, 5 * KB, 0);
  finishes (&disk, &a, 15);
  finishes (&disk, &rest, 20);
  finishes (&disk, &b, 35);
  CHECK_INT (disk.stats.accesses, 2);
}

static void
the_disk_waits_for_the_rest_of_a_cut_request (void)
{
  struct disk disk;
  struct disk_request a = { .kind = DISK_READ, .file = 1, .bytes = 5 * KB, .cut = true };
  struct disk_request b, rest;

  set_up (&disk, slow);
  disk_add (&disk, &a, 0);
  add (&disk, &b, 2, 0, 0);
  finishes (&disk, &a, 15);
  CHECK (disk_take (&disk, 16 * MS) == NULL);
  add (&disk, &rest, 1, 5 * KB, 16 * MS);
  finishes (&disk, &rest, 20);
  finishes (&disk, &b, 35);
}

static void
the_wait_for_a_rest_that_does_not_come_ends (void)
{
  struct disk disk;
  struct disk_request a = { .kind = DISK_READ, .file = 1, .bytes = 5 * KB, .cut = true };
  struct disk_request b;

  set_up (&disk, slow);
  disk_add (&disk, &a, 0);
  add (&disk, &b, 2, 0, 0);
  finishes (&disk, &a, 15);
  CHECK_INT (disk_due (&disk), 15 * MS + DISK_GRACE);
  CHECK (disk_take (&disk, 15 * MS + DISK_GRACE) == NULL);
  finishes (&disk, &b, 30);
}

static void
stutter_transfers_useless_data (void)
{
  struct disk_factors factors = slow;
  struct disk disk;
  struct disk_request a, b, c;

  factors.stutter = 40;
  set_up (&disk, factors);
  add (&disk, &a, 1, 0, 0);
  finishes (&disk, &a, 17);
  factors.stutter_share = 50;
  disk_set (&disk, &factors, 17 * MS);
  add (&disk, &b, 2, 0, 100 * MS);
  finishes (&disk, &b, 115);
  add (&disk, &c, 3, 0, 200 * MS);
  finishes (&disk, &c, 217);
  CHECK_INT (disk.stats.bytes, 15 * KB);
  CHECK_INT (disk.stats.stutters, 2);
}

static void
errors_are_spread_evenly (void)
{
  struct disk_factors factors = slow;
  struct disk disk;
  int errors = 0;

  factors.error = 25;
  set_up (&disk, factors);
  for (int i = 0; i < 8; i++) {
    struct disk_request a;

    add (&disk, &a, (uint64_t) i, 0, i * 100 * MS);
    CHECK (disk_take (&disk, i * 100 * MS + 15 * MS) == &a);
    CHECK (a.error == 0 || a.error == EIO);
    errors += a.error == EIO;
  }
  CHECK_INT (errors, 2);
  CHECK_INT (disk.stats.errors, 2);
}

static void
a_hanging_disk_finishes_nothing_until_it_is_released (void)
{
  struct disk_factors factors = slow;
  struct disk disk;
  struct disk_request a, b;

  set_up (&disk, slow);
  add (&disk, &a, 1, 0, 0);
  factors.hang = 1;
  disk_set (&disk, &factors, 5 * MS);
  add (&disk, &b, 2, 0, 6 * MS);
  CHECK (disk_due (&disk) == DISK_NEVER);
  CHECK (disk_take (&disk, 1000 * MS) == NULL);
  disk_set (&disk, &slow, 1000 * MS);
  finishes (&disk, &a, 1000);
  finishes (&disk, &b, 1015);
}

static void
foreign_requests_take_their_share_of_the_time (void)
{
  struct disk_factors factors = slow;
  const int64_t foreign = (10 * KB + DISK_FOREIGN_BYTES) * (int64_t) (MS / KB); // 272 ms
  struct disk disk;
  struct disk_request a, b;

  factors.load = 50;
  set_up (&disk, factors);
  add (&disk, &a, 1, 0, foreign); // before the first one comes
  CHECK_INT (disk_due (&disk), foreign + 15 * MS);
  CHECK (disk_take (&disk, disk_due (&disk)) == &a);
  add (&disk, &b, 2, 0, 2 * foreign + 1);
  CHECK_INT (disk_due (&disk), 3 * foreign + 15 * MS);
  CHECK (disk_take (&disk, disk_due (&disk)) == &b);
  CHECK_INT (disk.stats.foreign, 1);
}

static void
a_dropped_request_does_not_finish (void)
{
  struct disk disk;
  struct disk_request a, b, c;

  set_up (&disk, slow);
  add (&disk, &a, 1, 0, 0);
  add (&disk, &b, 2, 0, 0);
  add (&disk, &c, 3, 0, 0);
  disk_drop (&disk, &b);
  disk_drop (&disk, &a);
  CHECK (disk_take (&disk, 0) == NULL);
  finishes (&disk, &c, 30);
  CHECK_INT (disk.stats.queue, 0);
}

static void
a_disk_without_a_rate_takes_no_time (void)
{
  struct disk disk;
  struct disk_request a;

  disk_init (&disk);
  add (&disk, &a, 1, 0, 7);
  CHECK (disk_take (&disk, 7) == &a);
}

int
main (void)
{
  RUN (a_request_takes_the_access_time_and_the_time_of_its_bytes);
  RUN (requests_are_served_one_at_a_time_in_order);
  RUN (a_late_caller_does_not_slow_the_disk);
  RUN (pieces_of_one_request_pay_one_access);
  RUN (the_disk_waits_for_the_rest_of_a_cut_request);
  RUN (the_wait_for_a_rest_that_does_not_come_ends);
  RUN (stutter_transfers_useless_data);
  RUN (errors_are_spread_evenly);
  RUN (a_hanging_disk_finishes_nothing_until_it_is_released);
  RUN (foreign_requests_take_their_share_of_the_time);
  RUN (a_dropped_request_does_not_finish);
  RUN (a_disk_without_a_rate_takes_no_time);
  return tap_done ();
}
