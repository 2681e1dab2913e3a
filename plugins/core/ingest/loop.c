// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/engine_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define RETRY_NS INT64_C (1000000)    // for a track that was due while another thread held it
#define OFFSET_NS INT64_C (100000000) // how long a measured offset of the clocks is used
#define TIMER UINT64_MAX              // epoll's data of the timer

static _Thread_local IngestLoop *running; // by this thread

// ---- tracks by time; the lock is held ----

static WeirIngestTrack *
track_of (const WeirHeapNode *node)
{
  return (WeirIngestTrack *) ((char *) node - offsetof (WeirIngestTrack, due));
}

static bool
is_before (const WeirHeapNode *a, const WeirHeapNode *b, const void *unused)
{
  return track_of (a)->due_ns < track_of (b)->due_ns;
}

// Returns the track with the earliest time. There must be one.
static WeirIngestTrack *
get_first (const IngestLoop *loop)
{
  return track_of (loop->due.nodes[0]);
}

// Has the timer wake the thread at `due_ns`, or earlier if it is set to an earlier time. A timeout
// of epoll_wait() would set the hardware's timer at each wait.
static void
wake_at (IngestLoop *loop, int64_t due_ns)
{
  struct itimerspec t = { 0 };

  if (due_ns >= loop->timer_ns)
    return;
  loop->timer_ns = due_ns;
  due_ns = due_ns < 1 ? 1 : due_ns; // 0 would stop the timer
  t.it_value.tv_sec = due_ns / 1000000000;
  t.it_value.tv_nsec = due_ns % 1000000000;
  timerfd_settime (loop->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

void
weir_loop_set_due (WeirIngestTrack *track, int64_t due_ns)
{
  IngestLoop *loop = track->loop;

  if (due_ns == track->due_ns)
    return;
  track->due_ns = due_ns;
  if (due_ns == WEIR_NEVER)
    weir_heap_remove (&loop->due, &track->due, is_before, NULL);
  else if (track->due.at == 0)
    weir_heap_push (&loop->due, &track->due, is_before, NULL);
  else
    weir_heap_move (&loop->due, &track->due, is_before, NULL);
  // The loop's thread sets the timer once, before it waits.
  if (running != loop)
    wake_at (loop, due_ns);
}

// ---- ownership ----

void
weir_loop_hold (WeirIngestTrack *track)
{
  track->busy = true;
  track->owner = pthread_self ();
  if (track->key_asked)
    weir_track_ask_key (&track->track);
  track->key_asked = false;
}

void
weir_loop_release (WeirIngestTrack *track)
{
  IngestLoop *loop = track->loop;
  bool frees;

  pthread_mutex_lock (&loop->lock);
  frees = track->removed_by_owner;
  track->busy = false;
  if (!track->removed) {
    weir_track_stats (&track->track, &track->shown);
    track->shown.kernel_drops = track->drops;
    track->shown.buffer = track->buffer;
    memcpy (track->shown_drops, track->last_drops, sizeof track->shown_drops);
    weir_loop_set_due (track, track->key_asked ? INT64_MIN : weir_track_due (&track->track));
  }
  pthread_cond_broadcast (&loop->released);
  // A thread that waits for the track frees it as soon as it has the lock.
  pthread_mutex_unlock (&loop->lock);
  if (frees)
    weir_ingest_track_free (track);
}

// ---- slots ----

// With the lock held.
static bool
make_slots (IngestLoop *loop)
{
  size_t n = loop->n_slots ? 2 * loop->n_slots : 16;
  IngestSlot *slots;

  if (loop->n_tracks < loop->n_slots)
    return true;
  slots = realloc (loop->slots, n * sizeof *slots);
  if (!slots)
    return false;
  loop->slots = slots;
  if (weir_heap_reserve (&loop->due, n) != 0)
    return false;
  memset (slots + loop->n_slots, 0, (n - loop->n_slots) * sizeof *slots);
  loop->n_slots = n;
  return true;
}

static uint64_t
name_of (const IngestLoop *loop, uint32_t slot, unsigned which)
{
  return (uint64_t) slot << 32 | (uint64_t) (loop->slots[slot].generation & 0x7fffffff) << 1
         | which;
}

static int
watch (IngestLoop *loop, int operation, int fd, uint64_t name)
{
  struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = name };

  return epoll_ctl (loop->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

int
weir_loop_add (IngestLoop *loop, WeirIngestTrack *track)
{
  int error = 0;
  uint32_t slot = 0;

  track->loop = loop;
  pthread_mutex_lock (&loop->lock);
  if (!make_slots (loop)) {
    pthread_mutex_unlock (&loop->lock);
    return -ENOMEM;
  }
  while (loop->slots[slot].track)
    slot++;
  loop->slots[slot].track = track;
  track->slot = slot;
  loop->n_tracks++;
  for (unsigned i = 0; i < 2 && error == 0; i++) {
    if (track->fds[i] >= 0)
      error = watch (loop, EPOLL_CTL_ADD, track->fds[i], name_of (loop, slot, i));
  }
  if (error != 0)
    weir_loop_take_out (track);
  pthread_mutex_unlock (&loop->lock);
  return error;
}

void
weir_loop_take_out (WeirIngestTrack *track)
{
  IngestLoop *loop = track->loop;

  for (unsigned i = 0; i < 2; i++) {
    if (track->fds[i] >= 0)
      epoll_ctl (loop->epoll_fd, EPOLL_CTL_DEL, track->fds[i], NULL);
  }
  if (track->due.at > 0)
    weir_heap_remove (&loop->due, &track->due, is_before, NULL);
  loop->slots[track->slot].track = NULL;
  loop->slots[track->slot].generation++;
  loop->n_tracks--;
}

// ---- the thread ----

// Returns the track that epoll's name means, held; NULL if it was removed.
static WeirIngestTrack *
hold_named (IngestLoop *loop, uint64_t name)
{
  uint32_t slot = (uint32_t) (name >> 32);
  WeirIngestTrack *track;

  pthread_mutex_lock (&loop->lock);
  track = slot < loop->n_slots ? loop->slots[slot].track : NULL;
  if (track && name_of (loop, slot, name & 1) == name)
    weir_loop_hold (track);
  else
    track = NULL;
  pthread_mutex_unlock (&loop->lock);
  return track;
}

static void
serve (IngestLoop *loop, uint64_t name)
{
  WeirIngestTrack *track = hold_named (loop, name);
  unsigned which = name & 1;

  if (!track)
    return;
  if (weir_drain (track, which, weir_now_ns ()))
    watch (loop, EPOLL_CTL_MOD, track->fds[which], name); // the edge comes again
  weir_loop_release (track);
}

// Returns a track that is due, held. Returns NULL if none is; the timer is set to the next then.
static WeirIngestTrack *
hold_due (IngestLoop *loop, int64_t now_ns)
{
  WeirIngestTrack *track = NULL;

  pthread_mutex_lock (&loop->lock);
  while (!track && loop->due.n > 0 && get_first (loop)->due_ns <= now_ns) {
    track = get_first (loop);
    if (track->busy) {
      weir_loop_set_due (track, now_ns + RETRY_NS);
      track = NULL;
    }
  }
  if (track)
    weir_loop_hold (track);
  else if (loop->due.n > 0)
    wake_at (loop, get_first (loop)->due_ns);
  pthread_mutex_unlock (&loop->lock);
  return track;
}

static void
note_timer (IngestLoop *loop)
{
  uint64_t unused;

  pthread_mutex_lock (&loop->lock);
  if (read (loop->timer_fd, &unused, sizeof unused) == sizeof unused)
    loop->timer_ns = WEIR_NEVER;
  pthread_mutex_unlock (&loop->lock);
}

static void
measure_unix_offset (IngestLoop *loop)
{
  int64_t now_ns = weir_now_ns ();
  struct timespec t;

  if (now_ns - loop->offset_measured_ns < OFFSET_NS)
    return;
  clock_gettime (CLOCK_REALTIME, &t);
  loop->unix_offset_ns = (int64_t) t.tv_sec * 1000000000 + t.tv_nsec - now_ns;
  loop->offset_measured_ns = now_ns;
}

// Waits, and serves all sockets that have packets, each once. Returns false if the thread must
// stop.
static bool
serve_events (IngestLoop *loop)
{
  struct epoll_event events[EVENTS];
  size_t most, seen = 0;
  bool stopping;
  int n;

  n = epoll_wait (loop->epoll_fd, events, EVENTS, -1);
  pthread_mutex_lock (&loop->lock);
  stopping = loop->stopping;
  most = 2 * loop->n_slots; // more would be the second turn of a socket
  pthread_mutex_unlock (&loop->lock);
  measure_unix_offset (loop);
  while (n > 0 && !stopping) {
    for (int i = 0; i < n; i++) {
      if (events[i].data.u64 == TIMER)
        note_timer (loop);
      else
        serve (loop, events[i].data.u64);
    }
    seen += (size_t) n;
    n = n == EVENTS && seen < most ? epoll_wait (loop->epoll_fd, events, EVENTS, 0) : 0;
  }
  return !stopping;
}

static void
serve_due (IngestLoop *loop)
{
  int64_t now_ns = weir_now_ns ();
  WeirIngestTrack *track;

  while ((track = hold_due (loop, now_ns))) {
    weir_run_due (track, now_ns);
    weir_loop_release (track);
  }
}

static void
sleep_until (int64_t due_ns)
{
  struct timespec t = { .tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000 };

  while (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
    ;
}

static void *
run_loop (void *data)
{
  IngestLoop *loop = data;
  int64_t tick_ns = loop->tick_ns;

  running = loop;
  while (serve_events (loop)) {
    serve_due (loop);
    // The grid of ticks stays the same, so that a thread with much to do does not fall behind.
    if (tick_ns > 0)
      sleep_until ((weir_now_ns () / tick_ns + 1) * tick_ns);
  }
  return NULL;
}

// ---- start and stop ----

void
weir_loop_init (IngestLoop *loop, int64_t tick_ns, unsigned budget)
{
  *loop = (IngestLoop) {
    .tick_ns = tick_ns, .budget = budget, .epoll_fd = -1, .timer_fd = -1, .timer_ns = WEIR_NEVER
  };
  pthread_mutex_init (&loop->lock, NULL);
  pthread_cond_init (&loop->released, NULL);
}

// Starts the thread with all signals blocked: the program's signals are not for it.
static int
start_thread (IngestLoop *loop)
{
  sigset_t all, before;
  int error;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  error = pthread_create (&loop->thread, NULL, run_loop, loop);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (error == 0)
    pthread_setname_np (loop->thread, "weir-ingest");
  return -error;
}

static int
open_loop (IngestLoop *loop)
{
  struct epoll_event event = { .events = EPOLLIN, .data.u64 = TIMER };
  int error = weir_receiver_init (&loop->receiver, NULL);

  if (error < 0)
    return error;
  loop->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  loop->timer_fd = timerfd_create (CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (loop->epoll_fd < 0 || loop->timer_fd < 0
      || epoll_ctl (loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, &event) < 0)
    return -errno;
  return start_thread (loop);
}

static void
close_loop (IngestLoop *loop)
{
  if (loop->epoll_fd >= 0)
    close (loop->epoll_fd);
  if (loop->timer_fd >= 0)
    close (loop->timer_fd);
  loop->epoll_fd = loop->timer_fd = -1;
  weir_receiver_clear (&loop->receiver);
}

int
weir_loop_start (IngestLoop *loop)
{
  int error;

  if (loop->started)
    return 0;
  error = open_loop (loop);
  loop->started = error == 0;
  if (error < 0)
    close_loop (loop);
  return error;
}

void
weir_loop_clear (IngestLoop *loop)
{
  if (loop->started) {
    pthread_mutex_lock (&loop->lock);
    loop->stopping = true;
    wake_at (loop, INT64_MIN);
    pthread_mutex_unlock (&loop->lock);
    pthread_join (loop->thread, NULL);
  }
  close_loop (loop);
  free (loop->slots);
  weir_heap_free (&loop->due);
  pthread_cond_destroy (&loop->released);
  pthread_mutex_destroy (&loop->lock);
}
