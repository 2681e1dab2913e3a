// SPDX-License-Identifier: LGPL-2.1-or-later
#include "run/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define WORKERS_MAX 64

// A task is idle, in a queue, running, or running and to be run again. A task may be in the heap of
// timed tasks as well.
enum { IDLE, QUEUED, RUNNING, RUNNING_AGAIN };

typedef struct {
  WeirTask *first, *last;
} Queue;

typedef struct scratch Scratch;
struct scratch {
  Scratch *next;
  max_align_t memory[];
};

struct weir_workers {
  pthread_mutex_t lock;
  pthread_cond_t work; // signalled when a thread has work
  pthread_cond_t idle; // signalled when a task or a stand-in has stopped
  int timer;           // one idle thread reads it; moving it wakes no thread
  int64_t timer_ns;    // time it is set to; WEIR_NEVER: not set
  Queue queues[WEIR_PRIORITIES];
  size_t n_queued;
  WeirHeap due; // tasks by due_ns, with room for all
  size_t n_tasks;
  size_t scratch_size;
  Scratch *spare;                // given back
  bool stopping, timing, called; // timing: a thread reads `timer`; called: that thread must return
  unsigned n_threads, n_waiting; // n_waiting: threads waiting for `work`
  unsigned n_stand_ins, n_surplus; // n_surplus: stand-ins that must end
  pthread_t threads[WORKERS_MAX];
};

// ---- tasks by time; the lock is held ----

static WeirTask *
task_of (const WeirHeapNode *node)
{
  return (WeirTask *) ((char *) node - offsetof (WeirTask, due));
}

static bool
is_before (const WeirHeapNode *a, const WeirHeapNode *b, const void *unused)
{
  return task_of (a)->due_ns < task_of (b)->due_ns;
}

// Returns the task with the earliest time, or NULL.
static WeirTask *
get_first (const WeirWorkers *w)
{
  return w->due.n > 0 ? task_of (w->due.nodes[0]) : NULL;
}

static void
forget_time (WeirWorkers *w, WeirTask *task)
{
  if (task->due.at > 0)
    weir_heap_remove (&w->due, &task->due, is_before, NULL);
}

// ---- the timer; the lock is held ----

// A timer value of 0 would disarm it. A time in the past expires at once.
static void
set_timer (WeirWorkers *w, int64_t due_ns)
{
  struct itimerspec t = { 0 };

  w->timer_ns = due_ns;
  due_ns = due_ns < 1 ? 1 : due_ns;
  if (due_ns != WEIR_NEVER) {
    t.it_value.tv_sec = due_ns / 1000000000;
    t.it_value.tv_nsec = due_ns % 1000000000;
  }
  timerfd_settime (w->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

// Sets the timer to the earliest task. A thread that was called has not returned yet: moving the
// timer would cancel the call.
static void
follow_first (WeirWorkers *w)
{
  int64_t due_ns = w->due.n > 0 ? get_first (w)->due_ns : WEIR_NEVER;

  if (!w->called && due_ns != w->timer_ns)
    set_timer (w, due_ns);
}

static void
call_timing (WeirWorkers *w)
{
  if (w->called)
    return;
  w->called = true;
  set_timer (w, 0);
}

// Waits for the timer. Releases the lock meanwhile.
static void
wait_for_time (WeirWorkers *w)
{
  uint64_t n;

  w->timing = true;
  follow_first (w);
  pthread_mutex_unlock (&w->lock);
  (void) !read (w->timer, &n, sizeof n);
  pthread_mutex_lock (&w->lock);
  w->timing = w->called = false;
  w->timer_ns = WEIR_NEVER; // it has expired; follow_first() sets it again
}

// ---- tasks; the lock is held ----

// Wakes one idle thread.
static void
call_one (WeirWorkers *w)
{
  if (w->n_waiting > 0)
    pthread_cond_signal (&w->work);
  else if (w->timing)
    call_timing (w);
}

static void
enqueue (WeirWorkers *w, WeirTask *task)
{
  Queue *queue = &w->queues[task->priority];

  forget_time (w, task);
  task->state = QUEUED;
  task->next = NULL;
  if (queue->last)
    queue->last->next = task;
  else
    queue->first = task;
  queue->last = task;
  w->n_queued++;
  call_one (w);
}

static void
dequeue (WeirWorkers *w, WeirTask *task)
{
  Queue *queue = &w->queues[task->priority];
  WeirTask *before = NULL;

  for (WeirTask *t = queue->first; t != task; t = t->next)
    before = t;
  if (before)
    before->next = task->next;
  else
    queue->first = task->next;
  if (queue->last == task)
    queue->last = before;
  w->n_queued--;
}

static void
wake (WeirWorkers *w, WeirTask *task)
{
  if (task->dead)
    return;
  if (task->state == IDLE)
    enqueue (w, task);
  else if (task->state == RUNNING)
    task->state = RUNNING_AGAIN;
}

static void
wake_at (WeirWorkers *w, WeirTask *task, int64_t due_ns)
{
  // A queued task runs anyway, and then returns its next time.
  if (task->dead || due_ns == WEIR_NEVER || task->state == QUEUED)
    return;
  if (task->due.at > 0 && task->due_ns <= due_ns)
    return;
  task->due_ns = due_ns;
  if (task->due.at > 0)
    weir_heap_move_up (&w->due, &task->due, is_before, NULL);
  else
    weir_heap_push (&w->due, &task->due, is_before, NULL);
  if (task != get_first (w))
    return;
  if (w->timing)
    follow_first (w);
  else
    call_one (w);
}

// Runs a task. Releases the lock meanwhile.
static void
run_task (WeirWorkers *w, WeirTask *task, void *scratch)
{
  int64_t again;

  task->state = RUNNING;
  pthread_mutex_unlock (&w->lock);
  again = task->run (task, scratch, weir_now_ns ());
  pthread_mutex_lock (&w->lock);

  if (task->stood_in) {
    task->stood_in = false;
    w->n_surplus++;
    pthread_cond_broadcast (&w->work);
    if (w->timing)
      call_timing (w);
  }
  if (task->dead) {
    task->state = IDLE;
    pthread_cond_broadcast (&w->idle);
  } else if (task->state == RUNNING_AGAIN) {
    enqueue (w, task);
  } else {
    task->state = IDLE;
    wake_at (w, task, again);
  }
}

static WeirTask *
next_task (WeirWorkers *w)
{
  int64_t now_ns = w->due.n > 0 ? weir_now_ns () : 0;

  while (w->due.n > 0 && get_first (w)->due_ns <= now_ns) {
    WeirTask *task = get_first (w);

    forget_time (w, task);
    wake (w, task);
  }
  for (size_t i = 0; i < WEIR_PRIORITIES; i++) {
    WeirTask *task = w->queues[i].first;

    if (task) {
      dequeue (w, task);
      // This thread is busy from now on: another thread must take the next task and watch the
      // timer.
      if (w->n_queued > 0 || (w->due.n > 0 && !w->timing))
        call_one (w);
      return task;
    }
  }
  return NULL;
}

static void
wait_for_work (WeirWorkers *w)
{
  if (!w->timing) {
    wait_for_time (w);
  } else {
    w->n_waiting++;
    pthread_cond_wait (&w->work, &w->lock);
    w->n_waiting--;
  }
}

// ---- scratch memory ----

void *
weir_workers_take_scratch (WeirWorkers *w)
{
  Scratch *scratch;

  pthread_mutex_lock (&w->lock);
  scratch = w->spare;
  if (scratch)
    w->spare = scratch->next;
  pthread_mutex_unlock (&w->lock);
  if (!scratch)
    scratch = calloc (1, sizeof *scratch + w->scratch_size);
  return scratch ? scratch->memory : NULL;
}

void
weir_workers_give_scratch (WeirWorkers *w, void *memory)
{
  Scratch *scratch = (Scratch *) ((char *) memory - offsetof (Scratch, memory));

  pthread_mutex_lock (&w->lock);
  scratch->next = w->spare;
  w->spare = scratch;
  pthread_mutex_unlock (&w->lock);
}

// ---- threads ----

static void *
worker (void *data)
{
  WeirWorkers *w = data;
  void *scratch = calloc (1, w->scratch_size);
  WeirTask *task;

  pthread_mutex_lock (&w->lock);
  while (scratch && !w->stopping) {
    if ((task = next_task (w)))
      run_task (w, task, scratch);
    else
      wait_for_work (w);
  }
  pthread_mutex_unlock (&w->lock);
  free (scratch);
  return NULL;
}

static void *
stand_in (void *data)
{
  WeirWorkers *w = data;
  void *scratch = calloc (1, w->scratch_size);
  WeirTask *task;

  pthread_mutex_lock (&w->lock);
  while (scratch && !w->stopping && w->n_surplus == 0) {
    if ((task = next_task (w)))
      run_task (w, task, scratch);
    else
      wait_for_work (w);
  }
  w->n_surplus -= w->n_surplus > 0;
  w->n_stand_ins--;
  if (w->n_queued > 0 || w->due.n > 0)
    call_one (w); // the wake-up may have been meant for another thread
  pthread_cond_broadcast (&w->idle);
  pthread_mutex_unlock (&w->lock);
  free (scratch);
  return NULL;
}

void
weir_task_stand_in (WeirTask *task)
{
  WeirWorkers *w = task->workers;
  pthread_t thread;

  pthread_mutex_lock (&w->lock);
  if ((task->state == RUNNING || task->state == RUNNING_AGAIN) && !task->stood_in
      && pthread_create (&thread, NULL, stand_in, w) == 0) {
    pthread_setname_np (thread, "weir-stand-in");
    pthread_detach (thread);
    task->stood_in = true;
    w->n_stand_ins++;
  }
  pthread_mutex_unlock (&w->lock);
}

static unsigned
n_processors (void)
{
  cpu_set_t set;
  int n = sched_getaffinity (0, sizeof set, &set) == 0 ? CPU_COUNT (&set) : 1;

  return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (unsigned) n;
}

WeirWorkers *
weir_workers_new (unsigned n, size_t scratch_size)
{
  WeirWorkers *w = calloc (1, sizeof *w);

  if (!w)
    return NULL;
  w->timer = timerfd_create (CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (w->timer < 0) {
    free (w);
    return NULL;
  }
  w->timer_ns = WEIR_NEVER;
  pthread_mutex_init (&w->lock, NULL);
  pthread_cond_init (&w->work, NULL);
  pthread_cond_init (&w->idle, NULL);
  w->scratch_size = scratch_size;
  n = n == 0 ? n_processors () : n > WORKERS_MAX ? WORKERS_MAX : n;
  while (w->n_threads < n) {
    int error = pthread_create (&w->threads[w->n_threads], NULL, worker, w);

    if (error && w->n_threads == 0) {
      weir_workers_free (w);
      errno = error;
      return NULL;
    }
    if (error)
      break;
    pthread_setname_np (w->threads[w->n_threads], "weir-worker");
    w->n_threads++;
  }
  return w;
}

void
weir_workers_free (WeirWorkers *w)
{
  Scratch *scratch;

  pthread_mutex_lock (&w->lock);
  w->stopping = true;
  pthread_cond_broadcast (&w->work);
  if (w->timing)
    call_timing (w);
  while (w->n_stand_ins > 0)
    pthread_cond_wait (&w->idle, &w->lock);
  pthread_mutex_unlock (&w->lock);
  for (unsigned i = 0; i < w->n_threads; i++)
    pthread_join (w->threads[i], NULL);
  pthread_mutex_destroy (&w->lock);
  pthread_cond_destroy (&w->work);
  pthread_cond_destroy (&w->idle);
  close (w->timer);
  while ((scratch = w->spare)) {
    w->spare = scratch->next;
    free (scratch);
  }
  weir_heap_free (&w->due);
  free (w);
}

unsigned
weir_workers_count (const WeirWorkers *w)
{
  return w->n_threads;
}

int
weir_task_init (WeirTask *task, WeirWorkers *w, unsigned priority,
    int64_t (*run) (WeirTask *task, void *scratch, int64_t now_ns))
{
  int r;

  *task = (WeirTask) { .run = run, .priority = priority, .workers = w };
  pthread_mutex_lock (&w->lock);
  // Room for every task, so that setting a time never fails.
  r = weir_heap_reserve (&w->due, w->n_tasks + 1);
  if (r == 0)
    w->n_tasks++;
  pthread_mutex_unlock (&w->lock);
  return r;
}

void
weir_task_wake (WeirTask *task)
{
  pthread_mutex_lock (&task->workers->lock);
  wake (task->workers, task);
  pthread_mutex_unlock (&task->workers->lock);
}

void
weir_task_wake_at (WeirTask *task, int64_t due_ns)
{
  pthread_mutex_lock (&task->workers->lock);
  wake_at (task->workers, task, due_ns);
  pthread_mutex_unlock (&task->workers->lock);
}

void
weir_task_cancel (WeirTask *task)
{
  WeirWorkers *w = task->workers;

  pthread_mutex_lock (&w->lock);
  forget_time (w, task);
  if (w->timing)
    follow_first (w);
  pthread_mutex_unlock (&w->lock);
}

void
weir_task_run_here (WeirTask *task, void *scratch)
{
  WeirWorkers *w = task->workers;

  pthread_mutex_lock (&w->lock);
  if (task->state == IDLE && !task->dead) {
    forget_time (w, task);
    run_task (w, task, scratch);
  } else {
    wake (w, task);
  }
  pthread_mutex_unlock (&w->lock);
}

void
weir_task_clear (WeirTask *task)
{
  WeirWorkers *w = task->workers;

  pthread_mutex_lock (&w->lock);
  task->dead = true;
  forget_time (w, task);
  if (task->state == QUEUED) {
    dequeue (w, task);
    task->state = IDLE;
  }
  while (task->state != IDLE)
    pthread_cond_wait (&w->idle, &w->lock);
  w->n_tasks--;
  pthread_mutex_unlock (&w->lock);
}
