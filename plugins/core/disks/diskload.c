// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/diskload.h"

#include <string.h>

#define SECOND 1e9
#define USUAL_ACCESS_NS 17e6
#define USUAL_BYTE_NS (SECOND / 60e6)
#define USUAL_SHARE 0.75  // of a read's time, at most, that the usual access time may be
#define USUAL_WEIGHT 0.01 // of the usual access time beside that of all reads
#define APART_READS 4     // at least, so that access time and rate are told apart
#define APART_SIZES 0.2   // standard deviation of their sizes, part of the mean
#define APART_ERROR 0.1   // standard error of the bytes' time, at most, part of a read's
#define MEMORY_NS SECOND  // of the disk's work
#define MEMORY_READS 16
#define FAR_OFF 4          // times slower or faster than expected
#define SLOWEST 8          // times slower than expected; a slower read counts as this
#define ERRORS_TO_FAIL 3   // in a row
#define LATE_TO_FAIL 8     // times the expected time
#define RETRY_NS SECOND    // how long a disk is avoided before it gets a read
#define RETRY_SERVICES 20  // the same in its service times: the reads cost it 5 % of its time
#define AVOIDED_FACTOR 1.1 // a disk that is slower than another by this is not chosen when idle

void
weir_disk_load_init (WeirDiskLoad *load)
{
  memset (load, 0, sizeof *load);
  load->access_ns = USUAL_ACCESS_NS;
  load->byte_ns = USUAL_BYTE_NS;
}

void
weir_disk_load_add (WeirDiskLoad *load, uint64_t bytes)
{
  load->bytes += bytes;
  load->requests++;
}

void
weir_disk_load_remove (WeirDiskLoad *load, uint64_t bytes)
{
  load->bytes -= bytes;
  load->requests--;
}

void
weir_disk_load_start (WeirDiskLoad *load, int64_t now_ns)
{
  if (load->at_work++ == 0)
    load->busy_since_ns = now_ns;
  load->tried_ns = now_ns;
}

static double
service (const WeirDiskLoad *load, uint64_t bytes)
{
  return load->access_ns + (double) bytes * load->byte_ns;
}

// Returns the share of the past that is kept after a read that has taken `taken` ns.
static double
keep (WeirDiskLoad *load, double taken, double expected)
{
  const double by_time = MEMORY_NS / (MEMORY_NS + taken);
  const double by_reads = 1 - 1.0 / MEMORY_READS;
  double kept = by_time < by_reads ? by_time : by_reads;

  if (taken > FAR_OFF * expected)
    load->far_off = load->far_off > 0 ? load->far_off + 1 : 1;
  else if (taken * FAR_OFF < expected)
    load->far_off = load->far_off < 0 ? load->far_off - 1 : -1;
  else
    load->far_off = 0;
  // Two in a row are no coincidence: the disk has changed.
  if (load->far_off > 1 || load->far_off < -1)
    kept = kept < 0.5 ? kept : 0.5;
  return kept;
}

// Fits the time of a byte by least squares. Returns false if the reads do not tell it: their sizes
// differ too little, or their times do not follow them.
static bool
tell_apart (const WeirDiskLoad *load, double *slope)
{
  const double n = load->sum_n, mean_x = load->sum_x / n, mean_y = load->sum_y / n;
  const double var_x = load->sum_xx / n - mean_x * mean_x;
  const double var_y = load->sum_yy / n - mean_y * mean_y;
  const double cov = load->sum_xy / n - mean_x * mean_y;
  const double most = APART_ERROR * mean_y / mean_x;

  if (n < APART_READS || var_x < APART_SIZES * APART_SIZES * mean_x * mean_x)
    return false;
  *slope = cov / var_x;
  return *slope >= 0 && *slope <= mean_y / mean_x + most
         && (var_y - *slope * cov) / var_x <= n * most * most;
}

// Returns the slope of least squares where the usual access time counts as a read of no bytes. It
// has so little weight that it only matters if the reads have about one size.
static double
assume (const WeirDiskLoad *load)
{
  const double mean_y = load->sum_y / load->sum_n;
  const double most = USUAL_SHARE * mean_y;
  const double usual = USUAL_ACCESS_NS < most ? USUAL_ACCESS_NS : most;
  const double n = load->sum_n * (1 + USUAL_WEIGHT);
  const double y = load->sum_y + load->sum_n * USUAL_WEIGHT * usual;
  const double spread = n * load->sum_xx - load->sum_x * load->sum_x;

  return spread > 0 ? (n * load->sum_xy - load->sum_x * y) / spread : 0;
}

static void
fit (WeirDiskLoad *load)
{
  const double mean_x = load->sum_x / load->sum_n, mean_y = load->sum_y / load->sum_n;
  double slope;

  load->apart = tell_apart (load, &slope);
  if (!load->apart)
    slope = assume (load);
  if (slope < 0)
    slope = 0;
  if (slope * mean_x > mean_y)
    slope = mean_y / mean_x;
  load->byte_ns = slope;
  load->access_ns = mean_y - slope * mean_x;
}

static void
learn (WeirDiskLoad *load, double bytes, double taken)
{
  const double expected = service (load, (uint64_t) bytes);
  const double kept = keep (load, taken, expected);

  if (load->sum_n > 0 && taken > SLOWEST * expected)
    taken = SLOWEST * expected;
  load->sum_n = load->sum_n * kept + 1;
  load->sum_x = load->sum_x * kept + bytes;
  load->sum_y = load->sum_y * kept + taken;
  load->sum_xx = load->sum_xx * kept + bytes * bytes;
  load->sum_xy = load->sum_xy * kept + bytes * taken;
  load->sum_yy = load->sum_yy * kept + taken * taken;
  fit (load);
}

void
weir_disk_load_cancel (WeirDiskLoad *load, uint64_t bytes, int64_t now_ns)
{
  weir_disk_load_remove (load, bytes);
  load->busy_since_ns = --load->at_work > 0 ? now_ns : 0;
}

void
weir_disk_load_done (WeirDiskLoad *load, uint64_t bytes, int64_t now_ns, bool ok)
{
  const int64_t taken = now_ns - load->busy_since_ns;

  weir_disk_load_cancel (load, bytes, now_ns);
  if (!ok) {
    load->n_errors++;
    if (++load->errors_in_row >= ERRORS_TO_FAIL)
      load->failing = true;
    return;
  }
  load->n_done++;
  load->errors_in_row = 0;
  load->failing = false;
  // Below a microsecond, nothing is known but that it was fast.
  learn (load, (double) bytes, taken > 1000 ? (double) taken : 1000);
}

// The mean expected time of the reads in the queue.
static double
mean_service (const WeirDiskLoad *load)
{
  return load->requests > 0 ? service (load, load->bytes / load->requests) : load->access_ns;
}

bool
weir_disk_load_check (WeirDiskLoad *load, int64_t patience_ns, int64_t now_ns)
{
  const int64_t taken = now_ns - load->busy_since_ns;

  if (load->failing || load->at_work == 0 || taken < patience_ns
      || (double) taken < LATE_TO_FAIL * mean_service (load))
    return false;
  load->failing = true;
  return true;
}

int64_t
weir_disk_load_mean (const WeirDiskLoad *load)
{
  return load->sum_n > 0 ? (int64_t) (load->sum_y / load->sum_n) : 0;
}

uint64_t
weir_disk_load_mean_bytes (const WeirDiskLoad *load)
{
  return load->sum_n > 0 ? (uint64_t) (load->sum_x / load->sum_n + 0.5) : 0;
}

int64_t
weir_disk_load_service (const WeirDiskLoad *load, uint64_t bytes)
{
  return (int64_t) service (load, bytes);
}

int64_t
weir_disk_load_expect (const WeirDiskLoad *load, uint64_t bytes, int64_t now_ns)
{
  double wait = load->requests * load->access_ns + (double) (load->bytes + bytes) * load->byte_ns;

  if (load->at_work > 0) {
    const double taken = (double) (now_ns - load->busy_since_ns), one = mean_service (load);
    wait += taken < one ? -taken : taken - 2 * one;
  }
  return (int64_t) (load->access_ns + (wait > 0 ? wait : 0));
}

int64_t
weir_disk_load_soonest (const WeirDiskLoad *load, uint64_t bytes, int64_t now_ns)
{
  const double one = service (load, bytes);
  double wait = load->at_work * one;

  if (load->at_work > 0) {
    const double taken = (double) (now_ns - load->busy_since_ns);
    wait += taken < one ? -taken : taken - 2 * one;
  }
  return (int64_t) (one + (wait > 0 ? wait : 0));
}

int
weir_disk_load_choose (
    const WeirDiskLoad *first, const WeirDiskLoad *second, uint64_t bytes, int64_t now_ns)
{
  if (first->failing != second->failing)
    return first->failing;
  return weir_disk_load_expect (second, bytes, now_ns)
         < weir_disk_load_expect (first, bytes, now_ns);
}

bool
weir_disk_load_retry (
    const WeirDiskLoad *avoided, const WeirDiskLoad *chosen, uint64_t bytes, int64_t now_ns)
{
  const double taken = service (avoided, bytes);
  const double pause = taken * RETRY_SERVICES;

  if (avoided->requests > 0 || (double) (now_ns - avoided->tried_ns) < RETRY_NS)
    return false;
  if (avoided->failing)
    return true;
  return taken > AVOIDED_FACTOR * service (chosen, bytes)
         && (double) (now_ns - avoided->tried_ns) >= pause;
}
