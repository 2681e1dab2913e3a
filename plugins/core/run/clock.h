// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The clock of the threads: CLOCK_MONOTONIC in ns, and waiting until a time of that clock. Call all
// functions from any thread.

#include <pthread.h>
#include <stdint.h>

#define WEIR_NEVER INT64_MAX // a time that never comes

// Returns the time now in ns.
int64_t weir_now_ns (void);

// Initialises a condition for weir_cond_wait_until().
void weir_cond_init (pthread_cond_t *cond);

// Waits for the condition, at most until `due_ns`. The caller holds `lock`. Returns 0 or ETIMEDOUT.
int weir_cond_wait_until (pthread_cond_t *cond, pthread_mutex_t *lock, int64_t due_ns);
