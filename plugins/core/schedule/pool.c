// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/pool.h"

#include <errno.h>
#include <stdlib.h>

#define GROUPS_MAX 65536

int
weir_group_pool_init (WeirGroupPool *self, uint32_t n_groups)
{
  if (n_groups == 0 || n_groups > GROUPS_MAX)
    return -EINVAL;
  *self = (WeirGroupPool) { .n_groups = n_groups };
  self->horizon_ns = malloc (n_groups * sizeof *self->horizon_ns);
  self->rate = calloc (n_groups, sizeof *self->rate);
  if (!self->horizon_ns || !self->rate) {
    weir_group_pool_free (self);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < n_groups; i++)
    self->horizon_ns[i] = INT64_MIN;
  return 0;
}

void
weir_group_pool_free (WeirGroupPool *self)
{
  free (self->horizon_ns);
  free (self->rate);
  *self = (WeirGroupPool) { 0 };
}

uint64_t
weir_group_pool_rate (const WeirGroupPool *self, int64_t start_ns)
{
  uint64_t used = 0;

  for (uint32_t i = 0; i < self->n_groups; i++)
    used += self->horizon_ns[i] > start_ns ? self->rate[i] : 0;
  return used;
}

uint64_t
weir_group_pool_rate_left (const WeirGroupPool *self, int64_t start_ns)
{
  const uint64_t used = weir_group_pool_rate (self, start_ns);

  if (self->rate_limit == 0)
    return UINT64_MAX;
  return used < self->rate_limit ? self->rate_limit - used : 0;
}

int
weir_group_pool_take (
    WeirGroupPool *self, int64_t start_ns, int64_t end_ns, uint64_t rate, uint32_t *number)
{
  uint32_t best = self->n_groups;

  for (uint32_t i = 0; i < self->n_groups; i++) {
    if (self->horizon_ns[i] <= start_ns
        && (best == self->n_groups || self->horizon_ns[i] > self->horizon_ns[best]))
      best = i;
  }
  if (best == self->n_groups)
    return -EBUSY;
  if (rate > weir_group_pool_rate_left (self, start_ns))
    return -EDQUOT;
  self->horizon_ns[best] = end_ns;
  self->rate[best] = rate;
  *number = best;
  return 0;
}

void
weir_group_pool_end (WeirGroupPool *self, uint32_t number, int64_t end_ns)
{
  if (number < self->n_groups)
    self->horizon_ns[number] = end_ns;
}

uint32_t
weir_group_pool_count_free (const WeirGroupPool *self, int64_t start_ns)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < self->n_groups; i++)
    n += self->horizon_ns[i] <= start_ns;
  return n;
}

int64_t
weir_group_pool_next_free (const WeirGroupPool *self)
{
  int64_t next = INT64_MAX;

  for (uint32_t i = 0; i < self->n_groups; i++) {
    if (self->horizon_ns[i] < next)
      next = self->horizon_ns[i];
  }
  return next;
}
