// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gives out a finite number of multicast groups by horizon scheduling (J. Turner, "Terabit burst
// switching", 2000): of each group it is known only when its last use ends, its horizon. Among the
// groups that are free at the start of a new use, the one with the latest horizon is taken, so that
// the least time is lost. The sum of the rates of the groups in use can be limited. For one thread
// at a time.

#include <stdint.h>

typedef struct {
  int64_t *horizon_ns; // INT64_MIN: never used; INT64_MAX: in use without end
  uint64_t *rate;      // of the last use, bits a second
  uint32_t n_groups;
  uint64_t rate_limit; // bits a second; 0: no limit
} WeirGroupPool;

// Initialises a pool of `n_groups` groups (1 to 65536), without a limit to their rates, which the
// caller may set. Returns 0, -EINVAL or -ENOMEM.
int weir_group_pool_init (WeirGroupPool *self, uint32_t n_groups);
void weir_group_pool_free (WeirGroupPool *self);

// Takes a group from `start_ns` to `end_ns` (INT64_MAX: without end), to send `rate` bits a second
// on it, and stores its number, from 0. Returns 0, -EBUSY if no group is free at `start_ns`, or
// -EDQUOT if the rates would exceed the limit then.
int weir_group_pool_take (
    WeirGroupPool *self, int64_t start_ns, int64_t end_ns, uint64_t rate, uint32_t *number);

// Ends the use of a group at `end_ns`, which may be later than now.
void weir_group_pool_end (WeirGroupPool *self, uint32_t number, int64_t end_ns);

// Returns how many groups are free at `start_ns`.
uint32_t weir_group_pool_count_free (const WeirGroupPool *self, int64_t start_ns);

// Returns the sum of the rates of all groups in use at `start_ns`, in bits a second.
uint64_t weir_group_pool_rate (const WeirGroupPool *self, int64_t start_ns);

// Returns how many bits a second are left of the limit at `start_ns`; UINT64_MAX without a limit.
uint64_t weir_group_pool_rate_left (const WeirGroupPool *self, int64_t start_ns);

// Returns the time at which the first group becomes free; INT64_MAX if none does.
int64_t weir_group_pool_next_free (const WeirGroupPool *self);
