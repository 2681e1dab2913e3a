// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is known of a disk: how much it has to do, its access time and its rate, both measured. Of
// two copies of a block, a reader takes the one on the disk that is expected to be done first
// (Y. R. Choe, "Design and Implementation of a Resource-Efficient Storage Server for VoD", PhD
// dissertation, Purdue University, 2007, section 4.1).
//
// A read of n bytes is taken to need t_a + n / r_d. Both are fitted to the reads of the last second
// of the disk's work, at most to about sixteen. If these reads were of about one size, only their
// sum can be measured: then the usual access time is assumed, and the rate follows from it. So the
// time of a read of that size is right, and that of others is a guess.
//
// For one thread at a time.

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint64_t bytes;    // of the reads that wait or are at work
  uint32_t requests; // their number
  uint32_t at_work;  // the number of those that the disk was given
  double access_ns;  // moving average of the access time (t_a)
  double byte_ns;    // moving average of the time a byte takes (1 / r_d)
  bool apart;        // the reads differed enough in size to measure the two singly
  uint64_t n_done, n_errors;
  int64_t busy_since_ns;  // since when the disk has not finished a read; 0: idle
  uint32_t errors_in_row; // since the last read that succeeded
  bool failing;           // to be avoided: only errors, or it does not answer

  // Private: weighted sums over the past, n: 1, x: bytes, y: ns; and when it last began a read.
  double sum_n, sum_x, sum_y, sum_xx, sum_xy, sum_yy;
  int far_off; // reads in a row that were far slower (> 0) or faster (< 0) than expected
  int64_t tried_ns;
} WeirDiskLoad;

// Prepares a disk about which nothing is known: a common hard disk is assumed (17 ms, 60 MB/s).
void weir_disk_load_init (WeirDiskLoad *load);

// A read of `bytes` was put into the disk's queue.
void weir_disk_load_add (WeirDiskLoad *load, uint64_t bytes);

// A read has left the queue without having been given to the disk.
void weir_disk_load_remove (WeirDiskLoad *load, uint64_t bytes);

// The disk was given a read of its queue.
void weir_disk_load_start (WeirDiskLoad *load, int64_t now_ns);

// The disk has finished a read of `bytes`. With several at work, the time since the one before is
// what this one has taken. `ok` tells whether the disk could read; three errors in a row make the
// disk failing, one success ends that.
void weir_disk_load_done (WeirDiskLoad *load, uint64_t bytes, int64_t now_ns, bool ok);

// A read of `bytes` has ended without telling anything about the disk, such as that of a file that
// does not exist.
void weir_disk_load_cancel (WeirDiskLoad *load, uint64_t bytes, int64_t now_ns);

// Marks the disk as failing if it has not finished a read for `patience_ns` and for eight times as
// long as expected. Returns true if the disk was not failing before.
bool weir_disk_load_check (WeirDiskLoad *load, int64_t patience_ns, int64_t now_ns);

// Returns the moving average of the time in ns of a read; 0 before the first.
int64_t weir_disk_load_mean (const WeirDiskLoad *load);

// Returns the moving average of the bytes of a read; 0 before the first.
uint64_t weir_disk_load_mean_bytes (const WeirDiskLoad *load);

// Returns the time in ns that the disk is expected to need for a read of `bytes`.
int64_t weir_disk_load_service (const WeirDiskLoad *load, uint64_t bytes);

// Returns the expected time in ns until a further read of `bytes` is done. A disk that is late is
// expected to need as long again as it is late.
int64_t weir_disk_load_expect (const WeirDiskLoad *load, uint64_t bytes, int64_t now_ns);

// Returns the expected time in ns until a read of `bytes` is done that the disk is given now,
// before those that wait in its queue.
int64_t weir_disk_load_soonest (const WeirDiskLoad *load, uint64_t bytes, int64_t now_ns);

// Returns 0 or 1: which of two disks is to read a block of `bytes`; not a failing one if the other
// is not.
int weir_disk_load_choose (
    const WeirDiskLoad *first, const WeirDiskLoad *second, uint64_t bytes, int64_t now_ns);

// Reports whether the disk is idle and has been avoided in favour of `chosen` for a second and for
// twenty times its service time, so that it should get a read to be measured anew.
bool weir_disk_load_retry (
    const WeirDiskLoad *avoided, const WeirDiskLoad *chosen, uint64_t bytes, int64_t now_ns);
