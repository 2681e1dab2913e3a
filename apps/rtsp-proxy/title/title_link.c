// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_link.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"
#include "base/timer.h"
#include "isolate/pool.h"
#include "isolate/title_loop.h"

// A worker sends something every second. One that starts may have to read GStreamer's plugins
// first.
#define TICK_MS 1000
#define SILENT_TICKS 5
#define START_TICKS 30
#define CLOSE_MS 5000
#define DEATH_MS 500
#define UNREAD_MAX 64 // messages, before the main thread does something else

enum { CONTROL, FILE_READ, TRACKS, N_FDS = TRACKS + RELAY_MAX_TRACKS };
enum { WATCHED_CONTROL, WATCHED_WAKE };

struct _TitleLink {
  LoopWatch watch;      // first; joins when all tracks are known
  gatomicrefcount refs; // of the owner, the loop, and what the main thread still has to do
  const TitleLinkHandler *handler;
  gint control, wake;
  gint theirs[N_FDS]; // for the worker; closed once it has them
  gint closing;       // atomic
  const gchar *fault; // atomic: what the worker did wrong
  GThread *thread;
  // Of the thread that reads:
  guint silent; // ticks
  gboolean said_all;

  gpointer owner;
  GMutex lock;     // protects the fields below
  GCond left;      // `watches` has become FALSE
  gboolean closed; // the owner may be gone
  gboolean watches;

  // Of the main thread:
  Worker *worker;
  gboolean over; // the owner has closed the link
  guint at_end;
  Timer *deadline;
};

static void
close_theirs (TitleLink *self)
{
  for (guint i = 0; i < N_FDS; i++) {
    if (self->theirs[i] >= 0)
      close (self->theirs[i]);
    self->theirs[i] = -1;
  }
}

static void
link_unref (gpointer data)
{
  TitleLink *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  close_theirs (self);
  close (self->control);
  close (self->wake);
  g_cond_clear (&self->left);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static TitleLink *
link_ref (TitleLink *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
tell_failure (TitleLink *self, const GError *error, const gchar *debug)
{
  gpointer owner;

  g_mutex_lock (&self->lock);
  owner = self->closed ? NULL : g_object_ref (self->owner);
  g_mutex_unlock (&self->lock);
  if (owner)
    self->handler->said.failed (owner, error, debug);
  g_clear_object (&owner);
}

static void
tell_reason (TitleLink *self, const gchar *reason)
{
  g_autoptr (GError) error =
      g_error_new_literal (GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, reason);

  tell_failure (self, error, NULL);
}

// ---- the main thread ----

static void
leave (TitleLink *self)
{
  if (!self->worker)
    return;
  g_clear_handle_id (&self->at_end, g_source_remove);
  g_clear_pointer (&self->deadline, timer_remove);
  worker_leave (g_steal_pointer (&self->worker), self);
  link_unref (self);
}

// The worker has ended; its other titles end with it.
static void
on_died (gpointer data, const gchar *reason)
{
  TitleLink *self = link_ref (data);

  if (!g_atomic_int_get (&self->closing))
    tell_reason (self, reason);
  leave (self);
  link_unref (self);
}

// Gives the worker the file and the sockets.
static gboolean
begin_link (gpointer data)
{
  const guint8 message = WIRE_TITLE;
  TitleLink *self = data;
  GError *error = NULL;

  if (!self->over)
    self->worker = workers_join (SANDBOX_TITLE, on_died, self, &error);
  if (self->worker) {
    link_ref (self);
    if (!worker_send (self->worker, &message, sizeof message, self->theirs, N_FDS, &error))
      leave (self);
  }
  close_theirs (self);
  if (error) {
    tell_reason (self, error->message);
    g_error_free (error);
  }
  link_unref (self);
  return G_SOURCE_REMOVE;
}

// A worker that dies closes its sockets a moment before the system knows that it is dead, and why.
static gboolean
kill_worker (gpointer data)
{
  TitleLink *self = data;

  self->deadline = NULL;
  if (self->worker)
    worker_kill (self->worker, g_atomic_pointer_get (&self->fault));
  return G_SOURCE_REMOVE;
}

static gboolean
handle_fault (gpointer data)
{
  TitleLink *self = data;

  if (self->worker && !self->deadline)
    self->deadline = timer_add (DEATH_MS, kill_worker, self);
  link_unref (self);
  return G_SOURCE_REMOVE;
}

static gboolean
on_closed (gint socket, GIOCondition condition, gpointer data)
{
  TitleLink *self = data;
  guint8 unread[256];

  for (guint i = 0; i < UNREAD_MAX && recv (socket, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
    ;
  if (!(condition & (G_IO_HUP | G_IO_ERR)))
    return G_SOURCE_CONTINUE;
  self->at_end = 0;
  leave (self);
  return G_SOURCE_REMOVE;
}

// Waits until the worker has closed the title.
static gboolean
end (gpointer data)
{
  TitleLink *self = data;

  self->over = TRUE;
  if (self->worker) {
    g_clear_pointer (&self->deadline, timer_remove);
    g_atomic_pointer_set (&self->fault, "was killed: it did not close a title within 5 s");
    self->deadline = timer_add (CLOSE_MS, kill_worker, self);
    self->at_end = g_unix_fd_add (self->control, G_IO_IN | G_IO_HUP, on_closed, self);
  }
  link_unref (self);
  return G_SOURCE_REMOVE;
}

void
title_link_prepare (void)
{
  workers_keep_ready (SANDBOX_TITLE);
}

// ---- the threads that read ----

// A title has a thread of its own until its tracks are known, because adding them may wait for
// others. From then on nothing does, and one thread reads what all workers say.

static void
set_fault (TitleLink *self, const gchar *fault)
{
  g_atomic_pointer_compare_and_exchange (&self->fault, NULL, fault);
}

// Returns TRUE if the message says that no more tracks follow.
static gboolean
read_message (TitleLink *self, guint8 *scratch)
{
  gssize n = recv (self->control, scratch, WIRE_MAX, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return FALSE;
  if (n <= 0)
    set_fault (self, "was killed: it closed the socket of a title");
  else if (!title_wire_read_control (scratch, (gsize) n, &self->handler->said, self->owner))
    set_fault (self, "was killed: it sent a malformed message");
  else
    return scratch[0] == TITLE_WIRE_COMPLETE;
  return FALSE;
}

static void
tell_gone (TitleLink *self)
{
  self->handler->gone (self->owner);
  g_main_context_invoke (NULL, handle_fault, link_ref (self));
}

// Counts a tick without a message. A proxy that was suspended counts one only.
static void
count_silence (TitleLink *self, guint limit)
{
  if (++self->silent < limit)
    return;
  set_fault (self, limit == START_TICKS ? "was killed: it did not start within 30 s"
                                        : "was killed: it did not answer for 5 s");
}

static void
ignore (TitleLink *self)
{
  loop_watch (&self->watch, WATCHED_CONTROL, self->control, 0);
  loop_watch (&self->watch, WATCHED_WAKE, self->wake, 0);
}

static void
check_fault (TitleLink *self)
{
  self->said_all = g_atomic_pointer_get (&self->fault) != NULL;
  if (!self->said_all)
    return;
  ignore (self);
  tell_gone (self);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  static guint8 scratch[WIRE_MAX];
  TitleLink *self = (TitleLink *) watch;

  if (self->said_all)
    return;
  if (number == WATCHED_CONTROL) {
    self->silent = 0;
    read_message (self, scratch);
  }
  check_fault (self);
}

static void
on_tick (LoopWatch *watch, gint64 now)
{
  TitleLink *self = (TitleLink *) watch;

  if (self->said_all)
    return;
  loop_set_due (watch, loop_next_tick (now, TICK_MS));
  count_silence (self, SILENT_TICKS + 1); // the first one may follow the last message at once
  check_fault (self);
}

static void
on_left (LoopWatch *watch)
{
  TitleLink *self = (TitleLink *) watch;

  g_mutex_lock (&self->lock);
  self->watches = FALSE;
  g_cond_broadcast (&self->left);
  g_mutex_unlock (&self->lock);
  link_unref (self);
}

// When this returns, the loop calls the owner no more.
static void
end_watch (TitleLink *self)
{
  g_mutex_lock (&self->lock);
  if (self->watches) {
    ignore (self);
    loop_leave (&self->watch);
  }
  while (self->watches)
    g_cond_wait (&self->left, &self->lock);
  g_mutex_unlock (&self->lock);
}

// Lets the thread of all titles read from now on. Returns FALSE if it cannot.
static gboolean
hand_over (TitleLink *self)
{
  static const LoopOps ops = { on_ready, on_tick, on_left };
  Loop *loop = title_loop_get ();
  gboolean ok = TRUE;

  if (!loop)
    return FALSE;
  g_mutex_lock (&self->lock);
  if (!self->closed) {
    self->silent = 0;
    self->watches = TRUE;
    link_ref (self);
    loop_join (loop, &self->watch, &ops);
    loop_set_due (&self->watch, loop_next_tick (clock_now (), TICK_MS));
    ok = loop_watch (&self->watch, WATCHED_CONTROL, self->control, EPOLLIN)
         && loop_watch (&self->watch, WATCHED_WAKE, self->wake, EPOLLIN);
  }
  g_mutex_unlock (&self->lock);
  if (!ok)
    end_watch (self);
  return ok;
}

// Reads what the worker says until it says no more. Returns TRUE if all tracks are known, and
// another thread reads on.
static gboolean
read_tracks (TitleLink *self, guint8 *scratch)
{
  struct pollfd fds[] = { { self->control, POLLIN, 0 }, { self->wake, POLLIN, 0 } };
  guint limit = START_TICKS;

  while (!g_atomic_pointer_get (&self->fault) && !g_atomic_int_get (&self->closing)) {
    gint n = poll (fds, G_N_ELEMENTS (fds), TICK_MS);

    if (n == 0)
      count_silence (self, limit);
    if (n <= 0 || !fds[0].revents)
      continue;
    self->silent = 0;
    limit = SILENT_TICKS;
    if (read_message (self, scratch) && hand_over (self))
      return TRUE;
  }
  return FALSE;
}

static gpointer
run_link (gpointer data)
{
  TitleLink *self = data;
  g_autofree guint8 *scratch = g_malloc (WIRE_MAX);
  gboolean read_on;

  thread_set_name ("title-control");
  read_on = read_tracks (self, scratch);
  if (!read_on && !g_atomic_int_get (&self->closing))
    tell_gone (self);
  return NULL;
}

void
title_link_start (TitleLink *self)
{
  self->thread = g_thread_new ("title-control", run_link, self);
}

// ---- the owner ----

static gboolean
open_pair (gint *ours, gint *theirs)
{
  gint pair[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    return FALSE;
  *ours = pair[0];
  *theirs = pair[1];
  return TRUE;
}

static gboolean
open_sockets (TitleLink *self, int fd, gint *tracks)
{
  gboolean ok = open_pair (&self->control, &self->theirs[CONTROL]);

  for (guint i = 0; i < RELAY_MAX_TRACKS && ok; i++)
    ok = open_pair (&tracks[i], &self->theirs[TRACKS + i]);
  if (ok)
    self->theirs[FILE_READ] = fcntl (fd, F_DUPFD_CLOEXEC, 0);
  if (ok)
    self->wake = eventfd (0, EFD_CLOEXEC);
  return ok && self->theirs[FILE_READ] >= 0 && self->wake >= 0;
}

TitleLink *
title_link_open (int fd, const TitleLinkHandler *handler, gpointer owner,
    gint tracks[RELAY_MAX_TRACKS], GError **error)
{
  TitleLink *self = g_new0 (TitleLink, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  g_cond_init (&self->left);
  self->handler = handler;
  self->owner = owner;
  self->control = self->wake = -1;
  for (guint i = 0; i < N_FDS; i++)
    self->theirs[i] = -1;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    tracks[i] = -1;
  if (!open_sockets (self, fd, tracks)) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s", g_strerror (errno));
    for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
      if (tracks[i] >= 0)
        close (tracks[i]);
      tracks[i] = -1;
    }
    link_unref (self);
    return NULL;
  }
  g_main_context_invoke (NULL, begin_link, link_ref (self));
  return self;
}

void
title_link_send (TitleLink *self, const TitleCommand *command)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  title_wire_put_command (message, command);
  // A worker that does not read is killed when the title is closed.
  if (send (self->control, message->data, message->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    GST_WARNING ("the worker takes no command: %s", g_strerror (errno));
}

static void
wake (TitleLink *self)
{
  const guint64 one = 1;

  while (write (self->wake, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

void
title_link_blame (TitleLink *self, const gchar *why)
{
  set_fault (self, why);
  wake (self);
}

void
title_link_close (TitleLink *self)
{
  gboolean was_closed;

  g_mutex_lock (&self->lock);
  was_closed = self->closed;
  self->closed = TRUE;
  g_mutex_unlock (&self->lock);
  if (was_closed)
    return;
  g_atomic_int_set (&self->closing, TRUE);
  wake (self);
  if (self->thread)
    g_thread_join (self->thread);
  end_watch (self);
  shutdown (self->control, SHUT_WR);
  g_main_context_invoke (NULL, end, link_ref (self));
}

void
title_link_free (TitleLink *self)
{
  title_link_close (self);
  link_unref (self);
}
