// SPDX-License-Identifier: LGPL-2.1-or-later
#include "run/workers.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tap.h"

#define MS INT64_C (1000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards everything below
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

// A test task that records its runs, waits while it is held, and returns `again`.
typedef struct {
  WeirTask task;
  unsigned n_runs, n_running, most_at_once;
  bool held;
  int64_t again;  // returned once
  int64_t ran_ns; // when it ran last
  int id;
  pthread_t thread;
  size_t scratch; // bytes of the scratch memory to check
} Job;

static int order[64];
static size_t n_order;

static int64_t
run_job (WeirTask *task, void *scratch, int64_t now_ns)
{
  Job *job = (Job *) task;
  int64_t again;

  memset (scratch, job->id, job->scratch);
  pthread_mutex_lock (&lock);
  job->n_runs++;
  job->ran_ns = now_ns;
  job->thread = pthread_self ();
  if (++job->n_running > job->most_at_once)
    job->most_at_once = job->n_running;
  if (n_order < 64)
    order[n_order++] = job->id;
  pthread_cond_broadcast (&changed);
  while (job->held)
    pthread_cond_wait (&changed, &lock);
  again = job->again;
  job->again = WEIR_NEVER;
  job->n_running--;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
  return again;
}

static void
job_init (Job *job, WeirWorkers *workers, unsigned priority, int id)
{
  memset (job, 0, sizeof *job);
  job->id = id;
  job->again = WEIR_NEVER;
  CHECK_INT (weir_task_init (&job->task, workers, priority, run_job), 0);
}

static void
wait_for_runs (Job *job, unsigned n)
{
  pthread_mutex_lock (&lock);
  while (job->n_runs < n)
    pthread_cond_wait (&changed, &lock);
  pthread_mutex_unlock (&lock);
}

static unsigned
runs (Job *job)
{
  unsigned n;

  pthread_mutex_lock (&lock);
  n = job->n_runs;
  pthread_mutex_unlock (&lock);
  return n;
}

// Holds a task, or releases it and waits until its run has ended: a task that is held again too
// soon would not notice its release.
static void
hold (Job *job, bool held)
{
  pthread_mutex_lock (&lock);
  job->held = held;
  pthread_cond_broadcast (&changed);
  while (!held && job->n_running > 0)
    pthread_cond_wait (&changed, &lock);
  pthread_mutex_unlock (&lock);
}

static void
reset_order (void)
{
  pthread_mutex_lock (&lock);
  n_order = 0;
  pthread_mutex_unlock (&lock);
}

static void
check_order (const int *expected, size_t n)
{
  pthread_mutex_lock (&lock);
  CHECK_INT (n_order, n);
  for (size_t i = 0; i < n && i < n_order; i++)
    CHECK_INT (order[i], expected[i]);
  pthread_mutex_unlock (&lock);
}

static void
the_pool_has_as_many_threads_as_requested (void)
{
  WeirWorkers *workers = weir_workers_new (3, 1);

  CHECK_INT (weir_workers_count (workers), 3);
  weir_workers_free (workers);
  workers = weir_workers_new (0, 1);
  CHECK (weir_workers_count (workers) >= 1);
  weir_workers_free (workers);
}

// The names of the process's threads, from /proc.
static unsigned
threads_named (const char *wanted)
{
  DIR *dir = opendir ("/proc/self/task");
  struct dirent *entry;
  unsigned n = 0;

  while ((entry = readdir (dir))) {
    char path[300], name[32] = "";
    FILE *file;

    snprintf (path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    if ((file = fopen (path, "r"))) {
      n += fscanf (file, "%31s", name) == 1 && strcmp (name, wanted) == 0;
      fclose (file);
    }
  }
  closedir (dir);
  return n;
}

static void
threads_have_names (void)
{
  WeirWorkers *workers = weir_workers_new (3, 1);
  Job waits;

  CHECK_INT (threads_named ("weir-worker"), 3);
  job_init (&waits, workers, 0, 0);
  hold (&waits, true);
  weir_task_wake (&waits.task);
  wait_for_runs (&waits, 1);
  weir_task_stand_in (&waits.task);
  CHECK_INT (threads_named ("weir-stand-in"), 1);
  hold (&waits, false);
  weir_task_clear (&waits.task);
  weir_workers_free (workers);
}

static void
a_wake_runs_a_task_once (void)
{
  WeirWorkers *workers = weir_workers_new (2, 4096);
  Job job;

  job_init (&job, workers, 0, 7);
  job.scratch = 4096;
  for (unsigned i = 1; i <= 100; i++) {
    weir_task_wake (&job.task);
    wait_for_runs (&job, i);
  }
  weir_task_clear (&job.task);
  CHECK (job.n_runs <= 100); // fewer if a wake came during a run
  CHECK_INT (job.most_at_once, 1);
  weir_workers_free (workers);
}

// Any number of wakes during a run cause exactly one more run, after the first.
static void
a_wake_during_a_run_runs_the_task_again (void)
{
  WeirWorkers *workers = weir_workers_new (4, 1);
  Job job;

  job_init (&job, workers, 3, 0);
  hold (&job, true);
  weir_task_wake (&job.task);
  wait_for_runs (&job, 1);
  for (int i = 0; i < 10; i++)
    weir_task_wake (&job.task);
  CHECK_INT (runs (&job), 1);
  hold (&job, false);
  wait_for_runs (&job, 2);
  weir_task_clear (&job.task);
  CHECK_INT (job.n_runs, 2);
  CHECK_INT (job.most_at_once, 1);
  weir_workers_free (workers);
}

static void
urgent_priorities_run_first (void)
{
  static const int expected[] = { 99, 5, 6, 0, 3, 1, 4, 2 };
  static const unsigned priorities[] = { 3, 5, 7, 3, 5, 0, 0 };
  WeirWorkers *workers = weir_workers_new (1, 1);
  Job busy, jobs[7];

  reset_order ();
  job_init (&busy, workers, 7, 99);
  hold (&busy, true);
  weir_task_wake (&busy.task);
  wait_for_runs (&busy, 1);
  for (int i = 0; i < 7; i++) {
    job_init (&jobs[i], workers, priorities[i], i);
    weir_task_wake (&jobs[i].task);
  }
  hold (&busy, false);
  for (int i = 0; i < 7; i++)
    wait_for_runs (&jobs[i], 1);
  check_order (expected, 8);
  for (int i = 0; i < 7; i++)
    weir_task_clear (&jobs[i].task);
  weir_task_clear (&busy.task);
  weir_workers_free (workers);
}

// Times are kept in a heap: set in any order, they run in the right order, and none too early.
static void
timers_run_in_order (void)
{
  enum { N = 40 };
  WeirWorkers *workers = weir_workers_new (1, 1);
  int64_t due[N], base = weir_now_ns () + 5 * MS;
  Job jobs[N], busy;

  // The thread is busy until all are set.
  job_init (&busy, workers, 0, 0);
  hold (&busy, true);
  weir_task_wake (&busy.task);
  wait_for_runs (&busy, 1);
  reset_order ();
  for (int i = 0; i < N; i++) {
    job_init (&jobs[i], workers, 0, i * 17 % N);
    due[i] = base + i * 17 % N * (MS / 2);
    weir_task_wake_at (&jobs[i].task, due[i] + 500 * MS);
    weir_task_wake_at (&jobs[i].task, due[i]); // the earlier time counts
    weir_task_wake_at (&jobs[i].task, due[i] + 1000 * MS);
  }
  hold (&busy, false);
  for (int i = 0; i < N; i++) {
    wait_for_runs (&jobs[i], 1);
    CHECK (jobs[i].ran_ns >= due[i]);
  }
  pthread_mutex_lock (&lock);
  for (int i = 0; i < N; i++)
    CHECK_INT (order[i], i);
  pthread_mutex_unlock (&lock);
  for (int i = 0; i < N; i++)
    weir_task_clear (&jobs[i].task);
  weir_task_clear (&busy.task);
  weir_workers_free (workers);
}

// Returns how often the threads of the pool have gone to sleep.
static long
n_sleeps (void)
{
  DIR *dir = opendir ("/proc/self/task");
  struct dirent *entry;
  long n = 0;

  while ((entry = readdir (dir))) {
    char path[300], line[100], name[32] = "";
    long sleeps;
    FILE *file;

    snprintf (path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    if (!(file = fopen (path, "r")))
      continue;
    while (fgets (line, sizeof line, file)) {
      sscanf (line, "Name: %31s", name);
      if (sscanf (line, "voluntary_ctxt_switches: %ld", &sleeps) == 1
          && strcmp (name, "weir-worker") == 0)
        n += sleeps;
    }
    fclose (file);
  }
  closedir (dir);
  return n;
}

// This holds for the earliest time too. A stream sets a time for most of its frames, and the rest
// of the frame usually arrives earlier.
static void
a_cancelled_time_wakes_no_thread (void)
{
  WeirWorkers *workers = weir_workers_new (1, 1);
  Job job, later;
  long before;

  job_init (&job, workers, 0, 1);
  job_init (&later, workers, 0, 2);
  weir_task_wake (&later.task);
  wait_for_runs (&later, 1);
  before = n_sleeps ();
  for (unsigned i = 0; i < 5; i++) {
    int64_t now = weir_now_ns ();

    weir_task_wake_at (&later.task, now + 100 * MS);
    weir_task_wake_at (&job.task, now + 90 * MS);
    weir_task_cancel (&job.task);
    wait_for_runs (&later, i + 2);
    CHECK (later.ran_ns >= now + 100 * MS);
  }
  CHECK (n_sleeps () - before < 8);
  CHECK_INT (runs (&job), 0);
  weir_task_wake_at (&job.task, weir_now_ns ());
  wait_for_runs (&job, 1);
  weir_task_clear (&job.task);
  weir_task_clear (&later.task);
  weir_workers_free (workers);
}

static void
a_task_returns_the_time_of_its_next_run (void)
{
  WeirWorkers *workers = weir_workers_new (2, 1);
  int64_t again = weir_now_ns () + 10 * MS;
  Job job;

  job_init (&job, workers, 0, 0);
  job.again = again;
  weir_task_wake (&job.task);
  wait_for_runs (&job, 2);
  CHECK (job.ran_ns >= again);
  weir_task_clear (&job.task);
  CHECK_INT (job.n_runs, 2);
  weir_workers_free (workers);
}

// The thread that watched the timer runs the task that was due: another thread takes over the
// timer.
static void
a_busy_thread_does_not_stop_the_clock (void)
{
  WeirWorkers *workers = weir_workers_new (2, 1);
  int64_t now = weir_now_ns ();
  Job first, second, third;

  job_init (&first, workers, 0, 1);
  job_init (&second, workers, 0, 2);
  job_init (&third, workers, 0, 3);
  hold (&first, true);
  weir_task_wake_at (&first.task, now + 5 * MS);
  weir_task_wake_at (&second.task, now + 10 * MS);
  wait_for_runs (&first, 1);
  wait_for_runs (&second, 1); // never, if no thread watches
  weir_task_wake_at (&third.task, weir_now_ns () + 5 * MS);
  wait_for_runs (&third, 1);
  hold (&first, false);
  weir_task_clear (&first.task);
  weir_task_clear (&second.task);
  weir_task_clear (&third.task);
  weir_workers_free (workers);
}

// One thread watches the timer, one is idle, and two tasks come at once: both threads take one.
static void
no_thread_sleeps_while_there_is_work (void)
{
  WeirWorkers *workers = weir_workers_new (2, 1);
  Job later, a, b;

  job_init (&later, workers, 0, 1);
  job_init (&a, workers, 0, 2);
  job_init (&b, workers, 0, 3);
  weir_task_wake_at (&later.task, weir_now_ns () + 3600 * 1000 * MS);
  for (unsigned i = 1; i <= 200; i++) {
    hold (&a, true);
    hold (&b, true);
    weir_task_wake (&a.task);
    weir_task_wake (&b.task);
    wait_for_runs (&a, i);
    wait_for_runs (&b, i); // while a is held
    hold (&a, false);
    hold (&b, false);
    weir_task_clear (&a.task);
    weir_task_clear (&b.task);
    CHECK_INT (a.n_runs, i);
    weir_task_init (&a.task, workers, 0, run_job);
    weir_task_init (&b.task, workers, 0, run_job);
  }
  weir_task_clear (&later.task);
  CHECK_INT (later.n_runs, 0);
  weir_task_clear (&a.task);
  weir_task_clear (&b.task);
  weir_workers_free (workers);
}

static void *
clear_job (void *data)
{
  Job *job = data;

  weir_task_clear (&job->task);
  pthread_mutex_lock (&lock);
  job->id = job->n_running == 0 ? -1 : -2;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
  return NULL;
}

static void
clearing_waits_for_the_run (void)
{
  WeirWorkers *workers = weir_workers_new (2, 1);
  pthread_t thread;
  Job job;

  job_init (&job, workers, 0, 0);
  job.again = weir_now_ns ();
  hold (&job, true);
  weir_task_wake (&job.task);
  wait_for_runs (&job, 1);
  weir_task_wake (&job.task);
  CHECK_INT (pthread_create (&thread, NULL, clear_job, &job), 0);
  hold (&job, false);
  CHECK_INT (pthread_join (thread, NULL), 0);
  CHECK_INT (job.id, -1);

  // Later wakes have no effect.
  unsigned n = job.n_runs;
  weir_task_wake (&job.task);
  weir_task_wake_at (&job.task, 0);
  weir_workers_free (workers);
  CHECK_INT (job.n_runs, n);
}

// The other task runs while the first one is blocked, and after it has continued.
static void
a_thread_stands_in_for_a_blocked_one (void)
{
  WeirWorkers *workers = weir_workers_new (1, 16);
  Job waits, other;

  job_init (&waits, workers, 0, 0);
  job_init (&other, workers, 0, 1);
  weir_task_stand_in (&other.task); // it does not run
  for (unsigned i = 1; i <= 50; i++) {
    hold (&waits, true);
    weir_task_wake (&waits.task);
    wait_for_runs (&waits, i);
    weir_task_stand_in (&waits.task);
    weir_task_stand_in (&waits.task);
    weir_task_wake (&other.task);
    wait_for_runs (&other, 2 * i - 1);
    hold (&waits, false);
    weir_task_wake_at (&other.task, weir_now_ns () + MS);
    wait_for_runs (&other, 2 * i);
  }
  weir_task_clear (&waits.task);
  weir_task_clear (&other.task);
  CHECK_INT (other.most_at_once, 1);
  weir_workers_free (workers);
}

static void
queued_and_timed_tasks_are_cleared (void)
{
  WeirWorkers *workers = weir_workers_new (1, 1);
  Job busy, queued[3], timed;

  job_init (&busy, workers, 0, 0);
  job_init (&timed, workers, 0, 4);
  hold (&busy, true);
  weir_task_wake (&busy.task);
  wait_for_runs (&busy, 1);
  for (int i = 0; i < 3; i++) {
    job_init (&queued[i], workers, 0, i);
    weir_task_wake (&queued[i].task);
  }
  weir_task_wake_at (&timed.task, weir_now_ns ());
  weir_task_clear (&timed.task);
  weir_task_clear (&queued[1].task); // from the middle and from the end
  weir_task_clear (&queued[2].task);
  hold (&busy, false);
  wait_for_runs (&queued[0], 1);
  weir_task_clear (&queued[0].task);
  weir_task_clear (&busy.task);
  weir_workers_free (workers);
  CHECK_INT (queued[1].n_runs + queued[2].n_runs + timed.n_runs, 0);
}

static void
a_task_runs_in_the_caller_unless_it_runs_already (void)
{
  WeirWorkers *workers = weir_workers_new (1, 16);
  uint8_t scratch[16] = { 0 };
  Job job;

  job_init (&job, workers, 0, 9);
  job.scratch = sizeof scratch;
  weir_task_run_here (&job.task, scratch);
  CHECK_INT (job.n_runs, 1);
  CHECK (pthread_equal (job.thread, pthread_self ()));
  CHECK_INT (scratch[15], 9);

  hold (&job, true);
  weir_task_wake (&job.task);
  wait_for_runs (&job, 2);
  weir_task_run_here (&job.task, scratch);
  CHECK_INT (runs (&job), 2);
  hold (&job, false);
  wait_for_runs (&job, 3);
  weir_task_clear (&job.task);
  CHECK_INT (job.n_runs, 3);
  CHECK_INT (job.most_at_once, 1);
  weir_task_run_here (&job.task, scratch);
  CHECK_INT (job.n_runs, 3);
  weir_workers_free (workers);
}

static void
scratch_memory_is_used_again (void)
{
  WeirWorkers *workers = weir_workers_new (1, 100);
  uint8_t *first = weir_workers_take_scratch (workers), *second;

  CHECK (first && first[0] == 0 && first[99] == 0);
  second = weir_workers_take_scratch (workers);
  CHECK (second && second != first && second[99] == 0);
  first[99] = 1;
  weir_workers_give_scratch (workers, first);
  CHECK (weir_workers_take_scratch (workers) == first);
  CHECK_INT (first[99], 1);
  weir_workers_give_scratch (workers, second);
  weir_workers_give_scratch (workers, first);
  weir_workers_free (workers);
}

// ---- from many threads ----

#define THREADS 6
#define TASKS 8
#define WAKES 3000

typedef struct {
  WeirTask task;
  atomic_int running;
  atomic_uint wanted, done; // `done` is the highest `wanted` that a run began after
  atomic_bool overlapped;
} Busy;

static Busy busy_tasks[TASKS];
static atomic_uint n_alarms;

static int64_t
run_busy (WeirTask *task, void *scratch, int64_t now_ns)
{
  Busy *busy = (Busy *) task;
  unsigned wanted;

  if (atomic_fetch_add (&busy->running, 1) != 0)
    atomic_store (&busy->overlapped, true);
  wanted = atomic_load (&busy->wanted);
  if (wanted % 7 == 0)
    weir_task_wake (&busy_tasks[wanted % TASKS].task);
  atomic_store (&busy->done, wanted);
  atomic_fetch_sub (&busy->running, 1);
  if (wanted % 5 == 0 && atomic_fetch_add (&n_alarms, 1) < 1000)
    return now_ns + MS / 10;
  return WEIR_NEVER;
}

static void *
wake_many (void *data)
{
  uint8_t scratch[8];

  for (unsigned i = 0; i < WAKES; i++) {
    Busy *busy = &busy_tasks[(i + (uintptr_t) data) % TASKS];

    atomic_fetch_add (&busy->wanted, 1);
    if (i % 16 == 3)
      weir_task_run_here (&busy->task, scratch);
    else if (i % 16 == 5)
      weir_task_wake_at (&busy->task, weir_now_ns () + MS / 20);
    else
      weir_task_wake (&busy->task);
  }
  return NULL;
}

static bool
all_done (void)
{
  for (size_t i = 0; i < TASKS; i++) {
    if (atomic_load (&busy_tasks[i].done) != atomic_load (&busy_tasks[i].wanted))
      return false;
  }
  return true;
}

static void
no_wake_from_many_threads_is_lost (void)
{
  WeirWorkers *workers = weir_workers_new (4, 8);
  pthread_t threads[THREADS];

  for (size_t i = 0; i < TASKS; i++)
    CHECK_INT (weir_task_init (&busy_tasks[i].task, workers, (unsigned) i, run_busy), 0);
  for (size_t i = 0; i < THREADS; i++)
    CHECK_INT (pthread_create (&threads[i], NULL, wake_many, (void *) i), 0);
  for (size_t i = 0; i < THREADS; i++)
    pthread_join (threads[i], NULL);
  // No wake is lost: every task runs after the last wake.
  while (!all_done ())
    sched_yield ();
  for (size_t i = 0; i < TASKS; i++) {
    weir_task_clear (&busy_tasks[i].task);
    CHECK (!atomic_load (&busy_tasks[i].overlapped));
  }
  weir_workers_free (workers);
}

int
main (void)
{
  RUN (the_pool_has_as_many_threads_as_requested);
  RUN (threads_have_names);
  RUN (a_wake_runs_a_task_once);
  RUN (a_wake_during_a_run_runs_the_task_again);
  RUN (urgent_priorities_run_first);
  RUN (timers_run_in_order);
  RUN (a_cancelled_time_wakes_no_thread);
  RUN (a_task_returns_the_time_of_its_next_run);
  RUN (a_busy_thread_does_not_stop_the_clock);
  RUN (no_thread_sleeps_while_there_is_work);
  RUN (clearing_waits_for_the_run);
  RUN (a_thread_stands_in_for_a_blocked_one);
  RUN (queued_and_timed_tasks_are_cleared);
  RUN (a_task_runs_in_the_caller_unless_it_runs_already);
  RUN (scratch_memory_is_used_again);
  RUN (no_wake_from_many_threads_is_lost);
  return tap_done ();
}
