// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_link.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/timer.h"
#include "isolate/pool.h"
#include "stores/swarm_wire.h"

// A process that ends is started again after the first of these times, and after twice the last one
// if it ends within LIVES_MS.
#define BACK_OFF_MS 100
#define BACK_OFF_MOST_MS 10000
#define LIVES_MS 60000
// A worker that dies closes its sockets a moment before the system knows that it is dead.
#define DEATH_MS 500
// The worker beats 5 times a second. One that starts may have to read GStreamer's plugins first.
#define TICK_MS 1000
#define SILENT_TICKS 5
#define START_TICKS 30

// What a worker gets with a job.
typedef struct {
  SwarmLink *link;
  gint fds[SWARM_FDS_MAX];
  guint n;
} Offer;

struct _SwarmLink {
  gatomicrefcount refs; // of the owner, and of the main thread
  const SwarmReaderTitle *title;
  guint8 *job; // NULL: it is too long for a message
  gsize job_length;
  gchar *folder; // for the pieces, or NULL

  GMutex lock;     // protects the fields below
  gboolean closed; // the owner, and the title, may be gone
  gboolean rests;
  gint socket;
  SwarmPage *page;        // of the present worker, or NULL
  StoreSwarmTitle before; // what former workers did
  gchar *reason;

  // Of the main thread:
  Worker *worker;
  Offer *offer; // that no worker has got yet
  Timer *retry, *deadline;
  const gchar *fault; // atomic
  guint64 beats;
  guint silent; // ticks without a beat
};

// Of the main thread:
static GPtrArray *linked; // of SwarmLink, with a worker
static Timer *ticking;
static gint last_pid;
static gint64 begun_us, again_us; // when the last process began, and the next one may begin
static guint back_off_ms;

static void begin_soon (SwarmLink *self);

// ---- references ----

static SwarmLink *
link_ref (SwarmLink *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
link_unref (SwarmLink *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  swarm_page_free (self->page);
  g_mutex_clear (&self->lock);
  g_free (self->reason);
  g_free (self->folder);
  g_free (self->job);
  g_free (self);
}

static void
offer_free (Offer *self)
{
  for (guint i = 0; i < self->n; i++)
    close (self->fds[i]);
  link_unref (self->link);
  g_free (self);
}

static gboolean
is_closed (SwarmLink *self)
{
  gboolean closed;

  g_mutex_lock (&self->lock);
  closed = self->closed;
  g_mutex_unlock (&self->lock);
  return closed;
}

static void
set_reason (SwarmLink *self, const gchar *reason)
{
  g_mutex_lock (&self->lock);
  g_free (self->reason);
  self->reason = g_strdup (reason);
  g_mutex_unlock (&self->lock);
}

// ---- connecting ----

// Opens an unnamed file in the folder.
static gint
open_storage (const gchar *folder)
{
  gint fd = open (folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  g_autofree gchar *name = NULL;

  if (fd >= 0)
    return fd;
  // Some file systems have no such files.
  name = g_build_filename (folder, "swarm-XXXXXX", NULL);
  fd = mkostemp (name, O_CLOEXEC);
  if (fd >= 0)
    unlink (name);
  return fd;
}

// Makes what a worker gets, the socket `*ours` and the page. Returns NULL with errno on failure.
static Offer *
make_offer (SwarmLink *self, gint *ours, SwarmPage **page)
{
  Offer *offer = g_new0 (Offer, 1);
  gint pair[2] = { -1, -1 };
  gint wrong = 0;

  offer->link = link_ref (self);
  offer->n = self->folder ? SWARM_FDS_MAX : SWARM_FD_STORAGE;
  for (guint i = 0; i < SWARM_FDS_MAX; i++)
    offer->fds[i] = -1;
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    wrong = errno;
  *ours = pair[0];
  offer->fds[SWARM_FD_SOCKET] = pair[1];
  *page = wrong ? NULL : swarm_page_new (&offer->fds[SWARM_FD_PAGE]);
  if (!wrong && !*page)
    wrong = errno;
  // The title closes its file once the link is closed.
  g_mutex_lock (&self->lock);
  if (!wrong && !self->closed)
    offer->fds[SWARM_FD_TORRENT] = fcntl (self->title->torrent, F_DUPFD_CLOEXEC, 0);
  g_mutex_unlock (&self->lock);
  if (!wrong && offer->fds[SWARM_FD_TORRENT] < 0)
    wrong = errno;
  if (!wrong && self->folder) {
    offer->fds[SWARM_FD_STORAGE] = open_storage (self->folder);
    if (offer->fds[SWARM_FD_STORAGE] < 0)
      wrong = errno;
  }
  if (!wrong)
    return offer;
  if (*ours >= 0)
    close (*ours);
  g_clear_pointer (page, swarm_page_free);
  offer_free (offer);
  errno = wrong;
  return NULL;
}

// Adds what the worker did that is gone. With the lock.
static void
keep_figures (SwarmLink *self)
{
  StoreSwarmTitle figures;

  if (!self->page)
    return;
  swarm_page_get (self->page, &figures);
  store_swarm_add (&self->before, &figures);
  if (figures.start_up_us > 0)
    self->before.start_up_us = figures.start_up_us;
}

static gboolean
take_offer (gpointer data)
{
  Offer *offer = data;
  SwarmLink *self = offer->link;

  if (self->offer)
    offer_free (self->offer);
  self->offer = offer;
  begin_soon (self);
  return G_SOURCE_REMOVE;
}

int
swarm_link_connect (SwarmLink *self)
{
  SwarmPage *page;
  Offer *offer;
  gint ours;

  if (!self->job) {
    errno = EMSGSIZE;
    return -1;
  }
  offer = make_offer (self, &ours, &page);
  if (!offer)
    return -1;
  g_mutex_lock (&self->lock);
  if (self->socket >= 0)
    close (self->socket);
  self->socket = ours;
  keep_figures (self);
  swarm_page_free (self->page);
  self->page = page;
  g_mutex_unlock (&self->lock);
  g_main_context_invoke (NULL, take_offer, offer);
  return ours;
}

// ---- the main thread ----

static void
drop_offer (SwarmLink *self)
{
  g_clear_pointer (&self->offer, offer_free);
}

static void
leave (SwarmLink *self)
{
  if (!self->worker)
    return;
  g_ptr_array_remove_fast (linked, self);
  if (linked->len == 0)
    g_clear_pointer (&ticking, timer_remove);
  g_clear_pointer (&self->deadline, timer_remove);
  worker_leave (g_steal_pointer (&self->worker), self);
  link_unref (self);
}

// Notes that a process has ended, or cannot be started. All its links tell of the same one.
static void
note_end (void)
{
  const gint64 now_us = g_get_monotonic_time ();

  if (now_us < again_us)
    return;
  back_off_ms = back_off_ms == 0 || now_us - begun_us > LIVES_MS * 1000
                    ? BACK_OFF_MS
                    : MIN (2 * back_off_ms, BACK_OFF_MOST_MS);
  again_us = now_us + back_off_ms * 1000;
}

// Returns FALSE if the worker has gone.
static gboolean
send_rest (SwarmLink *self)
{
  const guint8 rest = SWARM_WIRE_REST;
  gboolean sent;

  g_mutex_lock (&self->lock);
  sent = self->closed
         || send (self->socket, &rest, sizeof rest, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof rest;
  g_mutex_unlock (&self->lock);
  return sent;
}

// Connects a reader that rests to the next process. It stays in the swarm there.
static gboolean
connect_again (gpointer link)
{
  SwarmLink *self = link;

  if (!is_closed (self) && swarm_link_connect (self) >= 0)
    send_rest (self);
  link_unref (self);
  return G_SOURCE_REMOVE;
}

static void
on_died (gpointer data, const gchar *reason)
{
  SwarmLink *self = link_ref (data);
  gboolean rests;

  note_end ();
  set_reason (self, reason);
  leave (self);
  g_mutex_lock (&self->lock);
  rests = self->rests && !self->closed;
  g_mutex_unlock (&self->lock);
  if (self->offer)
    begin_soon (self);
  else if (rests)
    connect_again (link_ref (self));
  link_unref (self);
}

static gboolean
on_tick (gpointer unused)
{
  for (guint i = 0; i < linked->len; i++) {
    SwarmLink *self = g_ptr_array_index (linked, i);
    guint64 beats;

    g_mutex_lock (&self->lock);
    beats = self->page ? swarm_page_get_beats (self->page) : 0;
    g_mutex_unlock (&self->lock);
    self->silent = beats == self->beats ? self->silent + 1 : 0;
    self->beats = beats;
    if (self->silent > (beats == 0 ? START_TICKS : SILENT_TICKS))
      worker_kill (self->worker, "was killed: it did not answer for 5 s");
  }
  return G_SOURCE_CONTINUE;
}

// Gives a worker what is offered.
static gboolean
begin_link (SwarmLink *self, GError **error)
{
  self->worker = workers_join (SANDBOX_SWARM, on_died, self, error);
  if (!self->worker)
    return FALSE;
  link_ref (self);
  if (worker_get_pid (self->worker) != last_pid) {
    last_pid = worker_get_pid (self->worker);
    begun_us = g_get_monotonic_time ();
  }
  if (!linked)
    linked = g_ptr_array_new ();
  g_ptr_array_add (linked, self);
  if (!ticking)
    ticking = timer_add_tick (TICK_MS, on_tick, NULL);
  self->beats = 0;
  self->silent = 0;
  g_atomic_pointer_set (&self->fault, NULL);
  return worker_send (
      self->worker, self->job, self->job_length, self->offer->fds, self->offer->n, error);
}

static gboolean
on_retry (gpointer data)
{
  SwarmLink *self = data;

  self->retry = NULL;
  begin_soon (self);
  link_unref (self);
  return G_SOURCE_REMOVE;
}

static gboolean
kill_worker (gpointer data)
{
  SwarmLink *self = data;

  self->deadline = NULL;
  worker_kill (self->worker, "was killed: it closed the socket of a title's reader");
  return G_SOURCE_REMOVE;
}

// Begins as soon as the worker before is known to have ended, and the next one may be started.
static void
begin_soon (SwarmLink *self)
{
  const gint64 now_us = g_get_monotonic_time ();
  GError *error = NULL;

  if (is_closed (self)) {
    drop_offer (self);
  } else if (self->worker) {
    if (!self->deadline)
      self->deadline = timer_add (DEATH_MS, kill_worker, self);
  } else if (now_us < again_us) {
    if (!self->retry)
      self->retry = timer_add ((guint) ((again_us - now_us) / 1000 + 1), on_retry, link_ref (self));
  } else {
    if (!begin_link (self, &error)) {
      note_end ();
      set_reason (self, error->message);
      leave (self);
      g_error_free (error);
    }
    drop_offer (self);
  }
}

static gboolean
end (gpointer data)
{
  SwarmLink *self = data;

  drop_offer (self);
  if (self->retry) {
    g_clear_pointer (&self->retry, timer_remove);
    link_unref (self);
  }
  leave (self);
  link_unref (self);
  return G_SOURCE_REMOVE;
}

static gboolean
handle_fault (gpointer data)
{
  SwarmLink *self = data;

  if (self->worker)
    worker_kill (self->worker, g_atomic_pointer_get (&self->fault));
  link_unref (self);
  return G_SOURCE_REMOVE;
}

// ---- the owner ----

void
swarm_link_blame (SwarmLink *self, const gchar *why)
{
  g_atomic_pointer_set (&self->fault, why);
  g_main_context_invoke (NULL, handle_fault, link_ref (self));
}

gchar *
swarm_link_dup_reason (SwarmLink *self)
{
  gchar *reason;

  g_mutex_lock (&self->lock);
  reason = g_strdup (self->reason);
  g_mutex_unlock (&self->lock);
  return reason;
}

void
swarm_link_rest (SwarmLink *self)
{
  g_mutex_lock (&self->lock);
  self->rests = TRUE;
  g_mutex_unlock (&self->lock);
  if (!send_rest (self))
    g_main_context_invoke (NULL, connect_again, link_ref (self));
}

void
swarm_link_get_figures (SwarmLink *self, StoreSwarmTitle *figures)
{
  g_mutex_lock (&self->lock);
  *figures = (StoreSwarmTitle) { 0 };
  if (self->page)
    swarm_page_get (self->page, figures);
  store_swarm_add (figures, &self->before);
  if (figures->start_up_us == 0)
    figures->start_up_us = self->before.start_up_us;
  g_mutex_unlock (&self->lock);
  figures->readers = 0;
}

// Makes the message for workers. A folder for pieces is opened here, not there.
static void
make_job (SwarmLink *self, guint64 rate, guint timeout_s)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  g_autoptr (GPtrArray) others = g_ptr_array_new ();
  SwarmReaderTitle title = *self->title;

  for (const gchar *const *p = title.properties; *p; p += 2) {
    if (g_str_equal (p[0], "folder")) {
      self->folder = g_strdup (p[1]);
      continue;
    }
    g_ptr_array_add (others, (gpointer) p[0]);
    g_ptr_array_add (others, (gpointer) p[1]);
  }
  g_ptr_array_add (others, NULL);
  title.properties = (const gchar *const *) others->pdata;
  swarm_wire_put_job (message, &title, rate, timeout_s);
  if (!message->failed) {
    self->job_length = message->len;
    self->job = g_memdup2 (message->data, message->len);
  }
}

SwarmLink *
swarm_link_new (const SwarmReaderTitle *title, guint64 rate, guint timeout_s)
{
  SwarmLink *self = g_new0 (SwarmLink, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->title = title;
  self->socket = -1;
  make_job (self, rate, timeout_s);
  return self;
}

void
swarm_link_free (SwarmLink *self)
{
  g_mutex_lock (&self->lock);
  self->closed = TRUE;
  if (self->socket >= 0)
    close (self->socket);
  self->socket = -1;
  g_mutex_unlock (&self->lock);
  g_main_context_invoke (NULL, end, self);
}
