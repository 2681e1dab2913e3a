// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A pool of threads that runs tasks: the most urgent class first, within a class in the order in
// which they were woken. A task that is woken while it runs runs once more. One never runs in two
// threads at once.
//
// All functions may be called from any thread, and from within a task.

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_CLASSES 8 // 0 is the most urgent
#define WEIR_NEVER INT64_MAX

typedef struct weir_workers WeirWorkers;
typedef struct weir_task WeirTask;

struct weir_task {
  // `scratch` is memory of the running thread's own, as large as weir_workers_new() was told.
  // Returns when it wants to run again: a time, or WEIR_NEVER.
  int64_t (*run) (WeirTask *task, void *scratch, int64_t now_ns);
  unsigned class; // below WEIR_CLASSES

  // Private.
  WeirWorkers *workers;
  int state;
  WeirTask *next;
  int64_t due_ns;
  size_t heap_at;
  bool dead, stood_in;
};

// CLOCK_MONOTONIC.
int64_t weir_now_ns (void);

// A condition that is waited for until a time by that clock: 0, or ETIMEDOUT.
void weir_cond_init (pthread_cond_t *cond);
int weir_cond_wait_until (pthread_cond_t *cond, pthread_mutex_t *lock, int64_t due_ns);

// `n` threads (0: as many as the process may use processors). NULL with errno.
WeirWorkers *weir_workers_new (unsigned n, size_t scratch_size);

// No task may be left.
void weir_workers_free (WeirWorkers *workers);

unsigned weir_workers_count (const WeirWorkers *workers);

// 0, or -ENOMEM. weir_task_clear() comes before its memory goes.
int weir_task_init (WeirTask *task, WeirWorkers *workers, unsigned class,
    int64_t (*run) (WeirTask *task, void *scratch, int64_t now_ns));

// Runs it as soon as a thread is free.
void weir_task_wake (WeirTask *task);

// Runs it at that time, or at the one that it has already if that is earlier.
void weir_task_wake_at (WeirTask *task, int64_t due_ns);

// It has no time any more. Where it was woken, or runs, it still runs, and may say a time then.
void weir_task_cancel (WeirTask *task);

// Runs it now, in this thread, if it is not running; otherwise it runs once more.
void weir_task_run_here (WeirTask *task, void *scratch);

// If it runs, it may be waiting for something: until it returns, one more thread runs the others.
void weir_task_stand_in (WeirTask *task);

// It does not run any more when this returns, and never will. Not from within the task itself, and
// not under a lock that it takes.
void weir_task_clear (WeirTask *task);
