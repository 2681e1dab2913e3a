// SPDX-License-Identifier: LGPL-2.1-or-later

#include "model.h"

#include <errno.h>
#include <string.h>

#define US 1000
#define SECOND 1000000000

void
disk_init (struct disk *disk)
{
  memset (disk, 0, sizeof *disk);
  disk->factors.stutter_share = 100;
  TAILQ_INIT (&disk->queue);
}

// Spreads the chosen ones evenly: true for `percent` of the calls.
static bool
chosen (uint64_t *sum, uint64_t percent)
{
  *sum += percent;
  if (*sum < 100)
    return false;
  *sum -= 100;
  return true;
}

static int64_t
transfer_time (const struct disk *disk, uint64_t bytes)
{
  const uint64_t rate = disk->factors.rate;

  return (int64_t) (bytes / rate * SECOND + bytes % rate * SECOND / rate);
}

static int64_t
foreign_time (const struct disk *disk)
{
  return (int64_t) disk->factors.access_us * US + transfer_time (disk, DISK_FOREIGN_BYTES);
}

static int64_t
foreign_period (const struct disk *disk)
{
  return foreign_time (disk) * 100 / (int64_t) disk->factors.load;
}

static bool
has_load (const struct disk *disk)
{
  return disk->factors.load > 0 && disk->factors.rate > 0;
}

static int64_t
later (int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static bool
continues (const struct disk *disk, const struct disk_request *request)
{
  const struct disk_request *last = &disk->last;

  return last->bytes > 0 && request->kind == last->kind && request->file == last->file
         && request->offset == last->offset + last->bytes
         && request->arrival <= disk->free_at + DISK_GRACE;
}

static struct disk_request *
continuation (const struct disk *disk)
{
  struct disk_request *request;

  TAILQ_FOREACH (request, &disk->queue, link)
  if (continues (disk, request))
    return request;
  return NULL;
}

// Serves the foreign requests that came before `arrival`.
static void
serve_foreign (struct disk *disk, int64_t arrival)
{
  for (; has_load (disk) && disk->foreign_at <= arrival; disk->stats.foreign++) {
    disk->free_at = later (disk->free_at, disk->foreign_at) + foreign_time (disk);
    disk->foreign_at += foreign_period (disk);
  }
}

static int64_t
service_time (struct disk *disk, const struct disk_request *request, bool access)
{
  const struct disk_factors *factors = &disk->factors;
  uint64_t bytes = request->bytes;

  disk->stats.accesses += access;
  if (factors->rate == 0)
    return 0;
  if (factors->stutter > 0 && chosen (&disk->stutter_sum, factors->stutter_share)) {
    bytes += bytes * factors->stutter / 100;
    disk->stats.stutters++;
  }
  return (access ? (int64_t) factors->access_us * US : 0) + transfer_time (disk, bytes);
}

// Begins the request that is served next, if there is one.
static void
begin (struct disk *disk, int64_t now)
{
  struct disk_request *next;
  bool access;
  int64_t takes;

  if (disk->current || disk->factors.hang || TAILQ_EMPTY (&disk->queue))
    return;
  next = continuation (disk);
  access = next == NULL;
  if (access && disk->last.cut && now < disk->free_at + DISK_GRACE)
    return;
  if (access) {
    next = TAILQ_FIRST (&disk->queue);
    serve_foreign (disk, next->arrival);
    disk->free_at = later (disk->free_at, next->arrival);
  }
  TAILQ_REMOVE (&disk->queue, next, link);
  takes = service_time (disk, next, access);
  disk->free_at += takes;
  disk->stats.busy_us += (uint64_t) takes / US;
  disk->current = next;
  disk->last = *next;
}

void
disk_set (struct disk *disk, const struct disk_factors *factors, int64_t now)
{
  if (disk->factors.hang && !factors->hang)
    disk->free_at = later (disk->free_at, now);
  disk->factors = *factors;
  if (has_load (disk))
    disk->foreign_at = now + foreign_period (disk);
  begin (disk, now);
}

void
disk_add (struct disk *disk, struct disk_request *request, int64_t now)
{
  struct disk_stats *stats = &disk->stats;

  request->arrival = now;
  if (request->error == 0 && chosen (&disk->error_sum, disk->factors.error))
    request->error = EIO;
  stats->reads += request->kind == DISK_READ;
  stats->writes += request->kind == DISK_WRITE;
  stats->syncs += request->kind == DISK_SYNC;
  stats->errors += request->error == EIO;
  stats->queue++;
  if (stats->queue > stats->longest_queue)
    stats->longest_queue = stats->queue;
  TAILQ_INSERT_TAIL (&disk->queue, request, link);
  begin (disk, now);
}

struct disk_request *
disk_take (struct disk *disk, int64_t now)
{
  struct disk_request *finished;

  begin (disk, now);
  finished = disk->current;
  if (!finished || disk->factors.hang || disk->free_at > now)
    return NULL;
  disk->current = NULL;
  disk->stats.queue--;
  if (finished->error == 0)
    disk->stats.bytes += finished->bytes;
  begin (disk, now);
  return finished;
}

int64_t
disk_due (const struct disk *disk)
{
  if (disk->factors.hang || (!disk->current && TAILQ_EMPTY (&disk->queue)))
    return DISK_NEVER;
  return disk->current ? disk->free_at : disk->free_at + DISK_GRACE;
}

void
disk_drop (struct disk *disk, struct disk_request *request)
{
  if (request == disk->current)
    disk->current = NULL;
  else
    TAILQ_REMOVE (&disk->queue, request, link);
  disk->stats.queue--;
}
