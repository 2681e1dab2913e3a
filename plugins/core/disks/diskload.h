// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is known of a disk: how much it has to do, its access time and its rate, both measured. Of
// two copies of a block, a reader takes the one on the disk that is expected to be done first.

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint64_t bytes;    // of the reads that wait or are in progress
  uint32_t requests; // their number
  double access_ns;  // moving average of the access time (t_a)
  double byte_ns;    // moving average of the time a byte takes (1 / r_d)
  uint64_t n_done, n_errors;
  int64_t busy_since_ns; // since when the disk has not finished the read at work; 0: idle
  // Private: the state of the estimate.
  double sum_w, sum_x, sum_y, sum_xx, sum_xy;
  int64_t tried_ns;
} WeirDiskLoad;

// Prepares a disk about which nothing is known: a common hard disk is assumed (17 ms, 60 MB/s).
void weir_disk_load_init (WeirDiskLoad *load);

// A read of `bytes` was put into the disk's queue.
void weir_disk_load_add (WeirDiskLoad *load, uint64_t bytes);

// A read has left the queue without being done.
void weir_disk_load_remove (WeirDiskLoad *load, uint64_t bytes);

// A read of `bytes`, which was the only one at work or one of several, has taken the disk from
// `start_ns` to `now_ns`; `ok` tells whether it succeeded.
void weir_disk_load_done (
    WeirDiskLoad *load, uint64_t bytes, int64_t start_ns, int64_t now_ns, bool ok);

// Returns the expected time in ns until a further read of `bytes` is done.
int64_t weir_disk_load_expect (const WeirDiskLoad *load, uint64_t bytes, int64_t now_ns);

// Returns 0 or 1: which of two disks is to read a block of `bytes`. A disk that was avoided for a
// second is tried again now and then, so that it is measured anew.
int weir_disk_load_choose (
    WeirDiskLoad *first, WeirDiskLoad *second, uint64_t bytes, int64_t now_ns);
