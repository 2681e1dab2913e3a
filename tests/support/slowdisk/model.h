// SPDX-License-Identifier: LGPL-2.1-or-later
// An imitated disk with one arm, without files: when each request is finished.
//
// The disk serves one request at a time, in order of arrival. A request takes
//
//     access time + bytes / rate
//
// A request that continues the one before it (same file and direction, next byte) takes no access
// time and goes before the others, because the kernel cuts large reads into requests of 1 MiB.
//
// Times are in ns of one clock, which callers read: the model sleeps nowhere. One thread uses a
// disk.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define DISK_NEVER INT64_MAX

// How long the disk waits for the rest of a request that the kernel has cut, and for how long after
// a request the next bytes take no access time.
#define DISK_GRACE 5000000

// Foreign requests, which are a disk's background load, are this large.
#define DISK_FOREIGN_BYTES (256 * 1024)

enum disk_kind { DISK_READ, DISK_WRITE, DISK_SYNC };

struct disk_request {
  TAILQ_ENTRY (disk_request) link;
  enum disk_kind kind;
  uint64_t file;
  uint64_t offset, bytes;
  bool cut; // the kernel may send the rest of it after the answer
  int64_t arrival;
  int error; // 0, or an errno
};

// What can be changed while the disk runs. Percentages are 0 to 100 unless they say otherwise.
struct disk_factors {
  uint64_t access_us;
  uint64_t rate;          // bytes per second; 0: requests take no time at all
  uint64_t stutter;       // % of useless data that is transferred with each request, 0 to 10000
  uint64_t stutter_share; // % of requests to which `stutter` applies, evenly spread
  uint64_t error;         // % of requests that fail with EIO, evenly spread
  uint64_t load;          // % of the time that foreign requests occupy the disk, 0 to 95
  uint64_t hang;          // 1: nothing finishes until it is 0 again
  uint64_t full;          // 1: everything that takes space fails with ENOSPC
  uint64_t refuse_direct; // 1: files cannot be opened with O_DIRECT (EINVAL)
};

struct disk_stats {
  uint64_t reads, writes, syncs; // requests that came
  uint64_t accesses;             // access times paid, without those of foreign requests
  uint64_t bytes;                // read and written, without useless and foreign ones
  uint64_t stutters, errors;     // requests
  uint64_t foreign;              // requests
  uint64_t busy_us;              // time spent on requests, without foreign ones
  uint64_t queue, longest_queue; // requests that are not finished
};

struct disk {
  struct disk_factors factors;
  struct disk_stats stats;
  TAILQ_HEAD (disk_queue, disk_request) queue;
  struct disk_request *current;
  struct disk_request last; // the one that the disk served last
  int64_t free_at;          // when `current` or, without it, `last` is finished
  int64_t foreign_at;       // the next foreign request
  uint64_t stutter_sum, error_sum;
};

// Makes an idle disk that has no access time and no rate.
void disk_init (struct disk *disk);

// Sets the factors from now on. The request that the disk serves keeps its time.
void disk_set (struct disk *disk, const struct disk_factors *factors, int64_t now);

// Adds a request, which the caller keeps in memory until disk_take() returns it or disk_drop()
// removes it. Sets its arrival, and its error if the disk is to fail it.
void disk_add (struct disk *disk, struct disk_request *request, int64_t now);

// Returns a request that is finished by `now`, or NULL.
struct disk_request *disk_take (struct disk *disk, int64_t now);

// Returns when to call disk_take() next, or DISK_NEVER.
int64_t disk_due (const struct disk *disk);

// Removes a request that disk_take() has not returned. The disk is busy with it nevertheless if it
// has begun.
void disk_drop (struct disk *disk, struct disk_request *request);
