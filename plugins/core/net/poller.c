// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/poller.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64

static struct {
  pthread_mutex_t lock; // guards all fields below
  bool started;
  pthread_t thread;
  int epoll_fd;
  int wake_fd;
  WeirPolled *retired;
} poller = { .lock = PTHREAD_MUTEX_INITIALIZER };

// A retired entry may still be among the current events, so it is freed between two rounds. Its
// descriptor was removed from epoll earlier, so no later event names it.
static void
free_retired (void)
{
  uint64_t unused;
  WeirPolled *polled;

  // The event is read before the list is taken, so that an entry added in between wakes the thread
  // again.
  while (read (poller.wake_fd, &unused, sizeof unused) < 0 && errno == EINTR)
    ;
  pthread_mutex_lock (&poller.lock);
  polled = poller.retired;
  poller.retired = NULL;
  pthread_mutex_unlock (&poller.lock);
  while (polled) {
    WeirPolled *next = polled->next_retired;

    polled->free (polled);
    polled = next;
  }
}

static void *
run_poller (void *unused)
{
  struct epoll_event events[EVENTS_AT_ONCE];

  for (;;) {
    int n = epoll_wait (poller.epoll_fd, events, EVENTS_AT_ONCE, -1);
    bool woken = false;

    for (int i = 0; i < n; i++) {
      WeirPolled *polled = events[i].data.ptr;

      if (polled)
        polled->writable (polled);
      else
        woken = true;
    }
    if (woken)
      free_retired ();
  }
  return NULL;
}

// Starts the thread with all signals blocked: the program's signals are not for it.
static int
start_thread (void)
{
  sigset_t all, before;
  int error;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  error = pthread_create (&poller.thread, NULL, run_poller, NULL);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (error == 0) {
    pthread_setname_np (poller.thread, "weir-conn");
    pthread_detach (poller.thread);
  }
  return -error;
}

static int
start (void)
{
  struct epoll_event wake = { .events = EPOLLIN };
  int error;

  poller.epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  if (poller.epoll_fd < 0)
    return -errno;
  poller.wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (poller.wake_fd < 0) {
    error = -errno;
    close (poller.epoll_fd);
    return error;
  }
  if (epoll_ctl (poller.epoll_fd, EPOLL_CTL_ADD, poller.wake_fd, &wake) < 0)
    error = -errno;
  else
    error = start_thread ();
  if (error != 0) {
    close (poller.wake_fd);
    close (poller.epoll_fd);
    return error;
  }
  poller.started = true;
  return 0;
}

int
weir_poller_add (WeirPolled *polled)
{
  struct epoll_event nothing_yet = { .events = EPOLLONESHOT, .data.ptr = polled };
  int error = 0;

  pthread_mutex_lock (&poller.lock);
  if (!poller.started)
    error = start ();
  pthread_mutex_unlock (&poller.lock);
  if (error == 0 && epoll_ctl (poller.epoll_fd, EPOLL_CTL_ADD, polled->fd, &nothing_yet) < 0)
    error = -errno;
  return error;
}

int
weir_poller_arm (WeirPolled *polled)
{
  struct epoll_event once = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = polled };

  return epoll_ctl (poller.epoll_fd, EPOLL_CTL_MOD, polled->fd, &once) < 0 ? -errno : 0;
}

void
weir_poller_retire (WeirPolled *polled)
{
  uint64_t one = 1;

  epoll_ctl (poller.epoll_fd, EPOLL_CTL_DEL, polled->fd, NULL);
  close (polled->fd);
  pthread_mutex_lock (&poller.lock);
  polled->next_retired = poller.retired;
  poller.retired = polled;
  pthread_mutex_unlock (&poller.lock);
  while (write (poller.wake_fd, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

bool
weir_poller_is_here (void)
{
  bool here;

  pthread_mutex_lock (&poller.lock);
  here = poller.started && pthread_equal (poller.thread, pthread_self ());
  pthread_mutex_unlock (&poller.lock);
  return here;
}
