// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A pool of threads that runs tasks: the most urgent priority first, and tasks of one priority in
// the order in which they were woken. A task never runs in two threads at once; a task that is
// woken while it runs runs once more.
//
// Call all functions from any thread, and from within a task, unless said otherwise. Times are in
// ns of weir_now_ns().

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/clock.h"
#include "run/heap.h"

#define WEIR_PRIORITIES 8 // from 0, the most urgent, to 7

typedef struct weir_workers WeirWorkers;
typedef struct weir_task WeirTask;

struct weir_task {
  // Runs the task. `scratch` is memory that belongs to the running thread, zeroed once, as large as
  // weir_workers_new() was told. Returns the time of the next run, or WEIR_NEVER.
  int64_t (*run) (WeirTask *task, void *scratch, int64_t now_ns);
  unsigned priority; // 0 to WEIR_PRIORITIES - 1

  // Private.
  WeirWorkers *workers;
  int state;
  WeirTask *next;
  int64_t due_ns;
  WeirHeapNode due;
  bool dead, stood_in;
};

// Starts `n` threads, at most 64; 0: one for each processor that the process may use. Each thread
// gets `scratch_size` bytes. Returns NULL with errno on error. Free with weir_workers_free().
WeirWorkers *weir_workers_new (unsigned n, size_t scratch_size);

// Stops and joins the threads. All tasks must have been cleared. Not from within a task.
void weir_workers_free (WeirWorkers *workers);

// Returns the number of threads.
unsigned weir_workers_count (const WeirWorkers *workers);

// Initialises a task, which stays the caller's. Call weir_task_clear() before its memory is freed.
// Returns 0 or -ENOMEM.
int weir_task_init (WeirTask *task, WeirWorkers *workers, unsigned priority,
    int64_t (*run) (WeirTask *task, void *scratch, int64_t now_ns));

// Runs the task as soon as a thread is free.
void weir_task_wake (WeirTask *task);

// Runs the task at `due_ns`, or earlier if an earlier time is already set.
void weir_task_wake_at (WeirTask *task, int64_t due_ns);

// Cancels the task's next time. Does not stop a task that is queued or running, which may return a
// new time.
void weir_task_cancel (WeirTask *task);

// weir_workers_take_scratch() returns scratch memory like that of a thread of the pool, for
// weir_task_run_here(); NULL if there is no memory. Give it back with weir_workers_give_scratch().
void *weir_workers_take_scratch (WeirWorkers *workers);
void weir_workers_give_scratch (WeirWorkers *workers, void *scratch);

// Runs the task now in this thread. If it is queued or running, it runs once (more) in a worker
// instead.
void weir_task_run_here (WeirTask *task, void *scratch);

// Tells the pool that a running task may block: until the task returns, one more thread runs the
// other tasks. Does nothing if the task is not running.
void weir_task_stand_in (WeirTask *task);

// Stops the task for good: it does not run when this returns, and never again. Do not call it from
// within the task, nor while holding a lock that the task takes.
void weir_task_clear (WeirTask *task);
