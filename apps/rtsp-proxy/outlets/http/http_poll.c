// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_poll.h"

#include <errno.h>
#include <gio/gio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/threads.h"

#define EVENTS 256 // at once
#define GONE (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

// After events, the thread sleeps, so that it takes those of many sockets at once: any number of
// them wakes it at most 2000 times a second. An event after a pause is taken at once.
#define GATHER_US 500

struct _HttpPoll {
  int epoll, event;
  HttpPollFunc ready;
  GDestroyNotify drop;
  GThread *thread;

  GMutex lock; // protects the fields below
  GPtrArray *left;
  gboolean stopping;
};

static void
wake (HttpPoll *self)
{
  eventfd_write (self->event, 1); // if it fails, the counter is full, so the thread is awake
}

// Returns FALSE when the thread is to stop.
static gboolean
drop_left (HttpPoll *self)
{
  GPtrArray *left;
  gboolean stopping;
  eventfd_t n;

  eventfd_read (self->event, &n);
  g_mutex_lock (&self->lock);
  left = self->left;
  self->left = g_ptr_array_new ();
  stopping = self->stopping;
  g_mutex_unlock (&self->lock);
  g_ptr_array_set_free_func (left, self->drop);
  g_ptr_array_unref (left);
  return !stopping;
}

// Events of one wait may be of objects that leave meanwhile, so objects are dropped after them.
static gpointer
run (gpointer data)
{
  HttpPoll *self = data;
  struct epoll_event events[EVENTS];
  gboolean goes_on = TRUE;

  thread_set_name ("http-poll");
  while (goes_on) {
    int n = epoll_wait (self->epoll, events, EVENTS, -1);
    gboolean woken = FALSE;

    for (int i = 0; i < n; i++) {
      woken |= events[i].data.ptr == NULL;
      if (events[i].data.ptr)
        self->ready (
            events[i].data.ptr, events[i].events & (EPOLLIN | GONE), events[i].events & GONE);
    }
    if (woken)
      goes_on = drop_left (self);
    g_usleep (GATHER_US);
  }
  return NULL;
}

static gboolean
watch (HttpPoll *self, int fd, guint32 what, gpointer object)
{
  struct epoll_event event = { .events = what, .data.ptr = object };

  return epoll_ctl (self->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

HttpPoll *
http_poll_new (HttpPollFunc ready, GDestroyNotify drop, GError **error)
{
  HttpPoll *self = g_new0 (HttpPoll, 1);

  g_mutex_init (&self->lock);
  self->left = g_ptr_array_new ();
  self->ready = ready;
  self->drop = drop;
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->epoll < 0 || self->event < 0 || !watch (self, self->event, EPOLLIN, NULL))
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot serve HTTP: %s",
        g_strerror (errno));
  else
    self->thread = g_thread_try_new ("http-poll", run, self, error);
  if (!self->thread)
    g_clear_pointer (&self, http_poll_free);
  return self;
}

void
http_poll_free (HttpPoll *self)
{
  if (self->thread) {
    g_mutex_lock (&self->lock);
    self->stopping = TRUE;
    g_mutex_unlock (&self->lock);
    wake (self);
    g_thread_join (self->thread);
  }
  if (self->epoll >= 0)
    close (self->epoll);
  if (self->event >= 0)
    close (self->event);
  g_ptr_array_unref (self->left);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gboolean
http_poll_add (HttpPoll *self, int fd, gpointer object)
{
  return watch (self, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, object);
}

void
http_poll_remove (HttpPoll *self, int fd)
{
  epoll_ctl (self->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void
http_poll_leave (HttpPoll *self, gpointer object)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->left, object);
  g_mutex_unlock (&self->lock);
  wake (self);
}
