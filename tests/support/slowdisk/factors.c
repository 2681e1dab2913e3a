// SPDX-License-Identifier: LGPL-2.1-or-later
// The disk's factors and counters by name, as extended attributes of the root folder.

#include "slowdisk.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "user.slowdisk."

static const struct {
  const char *name;
  size_t offset;
  uint64_t most;
} factors[] = {
  { "access-us", offsetof (struct disk_factors, access_us), 10000000 },
  { "rate", offsetof (struct disk_factors, rate), 100000000000 },
  { "stutter", offsetof (struct disk_factors, stutter), 10000 },
  { "stutter-share", offsetof (struct disk_factors, stutter_share), 100 },
  { "error", offsetof (struct disk_factors, error), 100 },
  { "load", offsetof (struct disk_factors, load), 95 },
  { "hang", offsetof (struct disk_factors, hang), 1 },
  { "full", offsetof (struct disk_factors, full), 1 },
  { "refuse-direct", offsetof (struct disk_factors, refuse_direct), 1 },
};

static const struct {
  const char *name;
  size_t offset;
} counters[] = {
  { "reads", offsetof (struct disk_stats, reads) },
  { "writes", offsetof (struct disk_stats, writes) },
  { "syncs", offsetof (struct disk_stats, syncs) },
  { "accesses", offsetof (struct disk_stats, accesses) },
  { "bytes", offsetof (struct disk_stats, bytes) },
  { "stutters", offsetof (struct disk_stats, stutters) },
  { "errors", offsetof (struct disk_stats, errors) },
  { "foreign", offsetof (struct disk_stats, foreign) },
  { "busy-us", offsetof (struct disk_stats, busy_us) },
  { "queue", offsetof (struct disk_stats, queue) },
  { "longest-queue", offsetof (struct disk_stats, longest_queue) },
};

#define N(array) (sizeof (array) / sizeof *(array))

const char *
factors_name (const char *attribute)
{
  return strncmp (attribute, PREFIX, strlen (PREFIX)) == 0 ? attribute + strlen (PREFIX) : NULL;
}

int
factors_set (struct slowdisk *self, const char *name, const char *value, size_t size)
{
  struct disk_factors changed = self->disk.factors;
  char digits[24], *end;

  for (size_t i = 0; i < N (factors); i++) {
    uint64_t number;

    if (strcmp (name, factors[i].name) != 0)
      continue;
    if (size == 0 || size >= sizeof digits || memchr (value, '-', size))
      return EINVAL;
    memcpy (digits, value, size);
    digits[size] = 0;
    number = strtoull (digits, &end, 10);
    if (*end != 0 || end == digits || number > factors[i].most)
      return EINVAL;
    memcpy ((char *) &changed + factors[i].offset, &number, sizeof number);
    disk_set (&self->disk, &changed, slowdisk_now ());
    return 0;
  }
  return ENODATA;
}

static uint64_t
number_at (const void *of, size_t offset)
{
  uint64_t number;

  memcpy (&number, (const char *) of + offset, sizeof number);
  return number;
}

static int
print_counters (const struct disk_stats *stats, char *to, size_t size)
{
  size_t at = 0;

  for (size_t i = 0; i < N (counters); i++)
    at += (size_t) snprintf (at < size ? to + at : NULL, at < size ? size - at : 0,
        "%s %" PRIu64 "\n", counters[i].name, number_at (stats, counters[i].offset));
  return (int) at;
}

int
factors_get (const struct slowdisk *self, const char *name, char *to, size_t size)
{
  if (strcmp (name, "stats") == 0)
    return print_counters (&self->disk.stats, to, size);
  for (size_t i = 0; i < N (factors); i++)
    if (strcmp (name, factors[i].name) == 0)
      return snprintf (to, size, "%" PRIu64, number_at (&self->disk.factors, factors[i].offset));
  return -ENODATA;
}

static size_t
add_name (const char *name, char *to, size_t size, size_t at)
{
  const size_t length = strlen (PREFIX) + strlen (name) + 1;

  if (at + length <= size)
    snprintf (to + at, length, PREFIX "%s", name);
  return at + length;
}

size_t
factors_list (char *to, size_t size)
{
  size_t at = add_name ("stats", to, size, 0);

  for (size_t i = 0; i < N (factors); i++)
    at = add_name (factors[i].name, to, size, at);
  return at;
}
