// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/swarm_job.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/threads.h"
#include "base/timer.h"
#include "isolate/title_loop.h"
#include "stores/swarm_local.h"
#include "stores/swarm_wire.h"

#define BEAT_MS 200
#define FINISH_US G_USEC_PER_SEC
#define NEXT_MS 20 // a reader asks for the next bytes as soon as it has the last

typedef struct {
  LoopWatch watch; // first
  SwarmReaderTitle *title;
  guint64 rate;
  guint timeout_s;
  gint socket;
  SwarmPage *page;
  SwarmLocal *reader; // set and cleared with `jobs_lock`
  gboolean rests;     // with `jobs_lock`
} Job;

static GMutex jobs_lock; // protects the fields below
static GPtrArray *jobs;  // of Job
static GCond jobs_ended; // one is gone
static guint n_ending;   // that are not in `jobs` any more
static Timer *beating;   // main thread only

// ---- figures ----

// With the lock.
static void
put_figures (Job *self)
{
  StoreSwarmTitle figures;

  if (!self->reader)
    return;
  swarm_local_get_figures (self->reader, &figures);
  swarm_page_put (self->page, &figures);
}

// Puts the figures of a reader that has read, and of who keeps its title in the swarm.
static void
note_read (Job *self)
{
  g_mutex_lock (&jobs_lock);
  put_figures (self);
  for (guint i = 0; i < jobs->len; i++) {
    Job *other = g_ptr_array_index (jobs, i);

    if (other->rests && g_str_equal (other->title->label, self->title->label))
      put_figures (other);
  }
  g_mutex_unlock (&jobs_lock);
}

static gboolean
on_beat (gpointer unused)
{
  g_mutex_lock (&jobs_lock);
  for (guint i = 0; i < jobs->len; i++) {
    Job *self = g_ptr_array_index (jobs, i);

    if (self->rests)
      put_figures (self);
    swarm_page_beat (self->page);
  }
  g_mutex_unlock (&jobs_lock);
  return G_SOURCE_CONTINUE;
}

// ---- to the proxy ----

static gboolean
send_message (Job *self, const WireMessage *message)
{
  gssize sent;

  do
    sent = send (self->socket, message->data, message->len, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

static gboolean
send_failure (Job *self, const GError *error)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  swarm_wire_put_failure (message, error);
  return send_message (self, message);
}

static gboolean
send_size (Job *self)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, (WireType) SWARM_WIRE_OPENED);
  wire_put (message, swarm_local_get_size (self->reader), 8);
  return send_message (self, message);
}

// ---- in a thread of a pool ----

static void
close_files (Job *self)
{
  if (self->title->torrent >= 0)
    close (self->title->torrent);
  if (self->title->storage >= 0)
    close (self->title->storage);
  self->title->torrent = self->title->storage = -1;
}

static gboolean
open_title (Job *self)
{
  GError *error = NULL;
  SwarmLocal *reader = swarm_local_new (self->title, self->rate, self->timeout_s, &error);

  close_files (self);
  if (!reader) {
    send_failure (self, error);
    g_error_free (error);
    return FALSE;
  }
  g_mutex_lock (&jobs_lock);
  self->reader = reader;
  put_figures (self);
  g_mutex_unlock (&jobs_lock);
  return send_size (self);
}

// Reads the next bytes into a message. Returns their number, or 0 with an error.
static gsize
read_chunk (Job *self, WireMessage *message, guint64 at, gsize length, GError **error)
{
  gsize got;

  wire_begin (message, (WireType) SWARM_WIRE_BYTES);
  got = swarm_local_read (
      self->reader, at, message->data + message->len, MIN (length, SWARM_WIRE_CHUNK), error);
  message->len += got;
  return got;
}

// Sends the bytes as they come. Returns FALSE if the proxy is gone.
static gboolean
send_bytes (Job *self, guint64 at, gsize length)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  gboolean sent = TRUE;
  g_autoptr (GError) error = NULL;

  while (length > 0 && sent && !error) {
    const gsize got = read_chunk (self, message, at, length, &error);

    note_read (self);
    sent = error ? send_failure (self, error) : send_message (self, message);
    at += got;
    length -= got;
  }
  return sent;
}

static void
rest (Job *self)
{
  swarm_local_rest (self->reader);
  g_mutex_lock (&jobs_lock);
  self->rests = TRUE;
  g_mutex_unlock (&jobs_lock);
}

static gboolean
obey (Job *self, const SwarmWireMessage *message)
{
  const guint64 size = swarm_local_get_size (self->reader);

  if (message->type == SWARM_WIRE_REST)
    rest (self);
  return message->type == SWARM_WIRE_REST
         || (message->type == SWARM_WIRE_READ && message->length <= size
             && message->number <= size - message->length
             && send_bytes (self, message->number, message->length));
}

// Serves until the proxy asks for nothing for a moment. Returns FALSE if it never will.
static gboolean
serve (Job *self)
{
  struct pollfd next = { self->socket, POLLIN, 0 };
  guint8 data[64];

  while (poll (&next, 1, NEXT_MS) != 0) {
    const gssize n = recv (self->socket, data, sizeof data, 0);
    SwarmWireMessage message;

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0 || !swarm_wire_read (data, (gsize) n, &message) || !obey (self, &message))
      return FALSE;
  }
  return TRUE;
}

static void
job_free (Job *self)
{
  SwarmLocal *reader;

  g_mutex_lock (&jobs_lock);
  g_ptr_array_remove_fast (jobs, self);
  n_ending++;
  reader = g_steal_pointer (&self->reader);
  g_mutex_unlock (&jobs_lock);
  if (reader)
    swarm_local_free (reader);
  close (self->socket);
  close_files (self);
  swarm_page_free (self->page);
  swarm_wire_free_title (self->title);
  loop_leave (&self->watch);
}

static void
on_left (LoopWatch *watch)
{
  g_free (watch);
  g_mutex_lock (&jobs_lock);
  n_ending--;
  g_cond_broadcast (&jobs_ended);
  g_mutex_unlock (&jobs_lock);
}

// Reading waits for pieces, so each reader that reads has a thread; the others have none.
static void
work (gpointer job)
{
  Job *self = job;

  // Once it waits for the next request, another thread may have the job.
  if ((!self->reader && !open_title (self)) || !serve (self)
      || !loop_watch (&self->watch, 0, self->socket, EPOLLIN | EPOLLONESHOT))
    job_free (self);
}

static void
on_request (LoopWatch *watch, guint number, guint32 events)
{
  thread_run ("swarm-read", work, watch);
}

// ---- the main thread ----

static void
add_job (Job *self)
{
  g_mutex_lock (&jobs_lock);
  if (!jobs)
    jobs = g_ptr_array_new ();
  g_ptr_array_add (jobs, self);
  g_mutex_unlock (&jobs_lock);
  if (!beating)
    beating = timer_add_tick (BEAT_MS, on_beat, NULL);
}

void
swarm_job_start (const guint8 *message, gsize length, const gint *fds, guint n)
{
  static const LoopOps ops = { .ready = on_request, .left = on_left };
  guint64 rate;
  guint timeout_s;
  SwarmReaderTitle *title =
      n > SWARM_FD_TORRENT ? swarm_wire_read_job (message, length, &rate, &timeout_s) : NULL;
  SwarmPage *page = title ? swarm_page_map (fds[SWARM_FD_PAGE]) : NULL;
  Job *self;

  if (!page) {
    g_clear_pointer (&title, swarm_wire_free_title);
    for (guint i = 0; i < n; i++)
      close (fds[i]);
    return;
  }
  close (fds[SWARM_FD_PAGE]);
  title->torrent = fds[SWARM_FD_TORRENT];
  title->storage = n > SWARM_FD_STORAGE ? fds[SWARM_FD_STORAGE] : -1;
  self = g_new0 (Job, 1);
  self->title = title;
  self->rate = rate;
  self->timeout_s = timeout_s;
  self->socket = fds[SWARM_FD_SOCKET];
  self->page = page;
  loop_join (title_loop_get (), &self->watch, &ops);
  add_job (self);
  thread_run ("swarm-read", work, self);
}

gboolean
swarm_jobs_finish (void)
{
  const gint64 until_us = g_get_monotonic_time () + FINISH_US;
  gboolean finished;

  g_mutex_lock (&jobs_lock);
  while (jobs && jobs->len + n_ending > 0 && g_cond_wait_until (&jobs_ended, &jobs_lock, until_us))
    ;
  finished = jobs && jobs->len + n_ending == 0;
  g_mutex_unlock (&jobs_lock);
  return finished;
}
