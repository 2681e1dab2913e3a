// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timer.h"
#include "isolate/connect_broker.h"
#include "isolate/output.h"
#include "isolate/spawn.h"

// A worker without jobs ends after this time. Until then, an upstream that reconnects gets it.
#define IDLE_MS 30000
#define STOP_MS 3000 // for the worker of swarms, at the end
// More connections of a worker in a second are no work for a job.
#define CONNECTIONS_A_SECOND 200

typedef struct {
  WorkerDiedFunc died;
  gpointer job;
} Place;

struct _Worker {
  guint refs; // of the pool while the process runs, and of each job
  WorkerKind kind;
  guint n_allowed; // of the paths that the kind is allowed
  guint64 version; // of the files of the system
  gint pid;
  gboolean ended;
  gint socket;
  Output *output;        // or NULL
  ConnectBroker *broker; // of a kind that opens sockets; or NULL
  guint asking;          // the watch for its connections
  gint64 asked_since_us; // when the second began in which it asked for `n_asked` of them
  guint n_asked;
  GArray *places; // of Place
  Timer *idle;
  gchar *killed;    // why the proxy killed it, or NULL
  gboolean retired; // killed as it had no job
  gboolean started; // it has told so; of kinds that are kept ready
  guint starting;   // the watch for that
};

static GPtrArray *all;                  // of Worker; the running ones
static guint limit = 1;                 // get_limit()
static gboolean kept[SANDBOX_PROFILES]; // workers_keep_ready()
static WorkerCounts counts;

void
workers_set_limit (guint n)
{
  limit = n;
}

static guint
get_limit (WorkerKind kind)
{
  return kind == SANDBOX_SWARM ? 1 : limit;
}

void
workers_get_counts (WorkerCounts *out)
{
  *out = counts;
  out->running = all ? all->len : 0;
}

gint
worker_get_pid (Worker *self)
{
  return self->pid;
}

static void
worker_unref (Worker *self)
{
  if (--self->refs > 0)
    return;
  g_array_unref (self->places);
  g_free (self->killed);
  g_free (self);
}

// ---- the end ----

static gchar *
dup_end (const Worker *self, gint status)
{
  const gchar *name = WIFSIGNALED (status) ? sigabbrev_np (WTERMSIG (status)) : NULL;

  if (self->killed)
    return g_strdup_printf ("worker %d %s", self->pid, self->killed);
  if (name)
    return g_strdup_printf ("worker %d ended by SIG%s", self->pid, name);
  if (WIFSIGNALED (status))
    return g_strdup_printf ("worker %d ended by signal %d", self->pid, WTERMSIG (status));
  return g_strdup_printf ("worker %d ended with status %d", self->pid, WEXITSTATUS (status));
}

static void
tell_jobs (Worker *self, const gchar *reason)
{
  while (self->places->len > 0) {
    Place place = g_array_index (self->places, Place, 0);

    g_array_remove_index (self->places, 0);
    place.died (place.job, reason);
  }
}

static void
on_ended (GPid pid, gint status, gpointer data)
{
  Worker *self = data;
  guint n_jobs = self->places->len;
  g_autofree gchar *reason = dup_end (self, status);

  self->ended = TRUE;
  g_clear_pointer (&self->idle, timer_remove);
  g_clear_handle_id (&self->starting, g_source_remove);
  g_clear_handle_id (&self->asking, g_source_remove);
  g_clear_pointer (&self->broker, connect_broker_unref);
  close (self->socket);
  g_clear_pointer (&self->output, output_free);
  g_ptr_array_remove_fast (all, self);
  if (n_jobs > 0 || !self->retired) {
    counts.failed++;
    log_event ("%s; it ran %u %s%s", reason, n_jobs, self->kind == SANDBOX_TITLE ? "title" : "job",
        n_jobs == 1 ? "" : "s");
  }
  tell_jobs (self, reason);
  worker_unref (self);
}

void
worker_kill (Worker *self, const gchar *why)
{
  if (self->ended || self->killed || self->retired)
    return;
  self->killed = g_strdup (why);
  kill (self->pid, SIGKILL);
}

// ---- the start ----

// Opens the worker's standard error and starts it. Returns 0 or an errno.
static gint
launch (Worker *self, gint socket)
{
  gint output = -1, wrong;

  if (!spawn_is_debugged ()) {
    self->output = output_new ("worker", &output);
    if (!self->output)
      return errno;
  }
  wrong = spawn_worker (self->kind, socket, output, &self->pid);
  if (output >= 0)
    close (output);
  if (wrong)
    g_clear_pointer (&self->output, output_free);
  else if (self->output)
    output_start (self->output, self->pid);
  return wrong;
}

static gint
open_and_launch (Worker *self)
{
  gint pair[2], wrong;

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    return errno;
  wrong = launch (self, pair[1]);
  close (pair[1]);
  self->socket = pair[0];
  if (wrong)
    close (pair[0]);
  return wrong;
}

static gboolean
on_started (gint socket, GIOCondition condition, gpointer data)
{
  Worker *self = data;
  guint8 byte;

  self->starting = 0;
  self->started = recv (socket, &byte, sizeof byte, MSG_DONTWAIT) > 0;
  return G_SOURCE_REMOVE;
}

// ---- its connections ----

static gboolean
asks_too_often (Worker *self)
{
  gint64 now_us = g_get_monotonic_time ();

  if (now_us - self->asked_since_us > G_USEC_PER_SEC) {
    self->asked_since_us = now_us;
    self->n_asked = 0;
  }
  return ++self->n_asked > CONNECTIONS_A_SECOND;
}

// Takes a request that has come. Returns FALSE if no other may.
static gboolean
answer_request (Worker *self)
{
  guint8 address[sizeof (struct sockaddr_storage)];
  gint fds[FDS_MAX];
  guint n_fds;
  gssize n = fds_receive (self->socket, address, sizeof address, fds, &n_fds);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return TRUE;
  if (n == 1 && n_fds == 0) {
    self->started = TRUE; // as in on_started()
    return TRUE;
  }
  if (n > 0)
    connect_broker_take (self->broker, self->pid, address, (gsize) n, fds, n_fds);
  if (n > 0 && !asks_too_often (self))
    return TRUE;
  if (n > 0)
    worker_kill (self, "was killed: it made more connections than a job needs");
  return FALSE;
}

static gboolean
on_asked (gint socket, GIOCondition condition, gpointer data)
{
  Worker *self = data;

  if (answer_request (self))
    return G_SOURCE_CONTINUE;
  self->asking = 0;
  return G_SOURCE_REMOVE;
}

static void
watch_connections (Worker *self)
{
  if (!sandbox_asks_for_connections (self->kind))
    return;
  self->broker = connect_broker_new (self->kind == SANDBOX_SWARM);
  self->asking = g_unix_fd_add (self->socket, G_IO_IN | G_IO_HUP, on_asked, self);
}

static Worker *
worker_new (WorkerKind kind, GError **error)
{
  Worker *self = g_new0 (Worker, 1);
  gint wrong;

  self->kind = kind;
  self->n_allowed = spawn_count_allowed (kind);
  self->version = sandbox_get_version (kind);
  wrong = open_and_launch (self);
  if (wrong) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (wrong),
        "cannot start a worker process: %s", g_strerror (wrong));
    g_free (self);
    return NULL;
  }
  self->refs = 1;
  self->places = g_array_new (FALSE, FALSE, sizeof (Place));
  if (!all)
    all = g_ptr_array_new ();
  g_ptr_array_add (all, self);
  counts.started++;
  if (kept[kind] && !sandbox_asks_for_connections (kind))
    self->starting = g_unix_fd_add (self->socket, G_IO_IN | G_IO_HUP, on_started, self);
  watch_connections (self);
  g_child_watch_add (self->pid, on_ended, self);
  return self;
}

// ---- jobs ----

// Returns the worker of the kind with the fewest jobs, or NULL, and the number of workers of the
// kind; of those that may open what a new one may.
static Worker *
find_least (WorkerKind kind, gboolean started, guint *n)
{
  const guint64 version = sandbox_get_version (kind);
  Worker *least = NULL;

  *n = 0;
  for (guint i = 0; all && i < all->len; i++) {
    Worker *each = g_ptr_array_index (all, i);

    if (each->kind != kind || each->killed || each->retired
        || each->n_allowed != spawn_count_allowed (kind) || each->version != version)
      continue;
    ++*n;
    if (started && !each->started)
      continue;
    if (!least || each->places->len < least->places->len)
      least = each;
  }
  return least;
}

gboolean
worker_join (Worker *self, WorkerDiedFunc died, gpointer job)
{
  Place place = { died, job };

  if (self->ended || self->killed || self->retired)
    return FALSE;
  self->refs++;
  g_clear_pointer (&self->idle, timer_remove);
  g_array_append_val (self->places, place);
  return TRUE;
}

// Starts a worker if all workers of the kind have jobs. If it cannot be started, the next job tries
// again, and tells why.
static void
keep_ready (WorkerKind kind)
{
  guint n;
  Worker *least = find_least (kind, FALSE, &n);

  if (kept[kind] && n < get_limit (kind) && (!least || least->places->len > 0))
    worker_new (kind, NULL);
}

void
workers_keep_ready (WorkerKind kind)
{
  kept[kind] = TRUE;
  keep_ready (kind);
}

// Ends the worker of swarms, of which there is one, if it may not open what the system has written
// anew. Its readers go on in the next one.
static void
end_old_swarm (void)
{
  for (guint i = 0; all && i < all->len; i++) {
    Worker *each = g_ptr_array_index (all, i);

    if (each->kind == SANDBOX_SWARM && each->version != sandbox_get_version (SANDBOX_SWARM))
      worker_kill (each, "was killed: the system has other name servers");
  }
}

// A job of a kind that is kept ready does not wait for a process to start: it shares one until
// then.
static Worker *
choose (WorkerKind kind, GError **error)
{
  guint n;
  Worker *self;

  if (kind == SANDBOX_SWARM)
    end_old_swarm ();
  self = kept[kind] ? find_least (kind, TRUE, &n) : NULL;
  if (!self)
    self = find_least (kind, FALSE, &n);
  if (!self || (!kept[kind] && self->places->len > 0 && n < get_limit (kind)))
    self = worker_new (kind, error);
  return self;
}

Worker *
workers_join (WorkerKind kind, WorkerDiedFunc died, gpointer job, GError **error)
{
  Worker *self = choose (kind, error);

  if (!self)
    return NULL;
  worker_join (self, died, job);
  keep_ready (kind);
  return self;
}

static gboolean
on_idle (gpointer data)
{
  Worker *self = data;

  self->idle = NULL;
  self->retired = TRUE;
  kill (self->pid, SIGKILL);
  keep_ready (self->kind);
  return G_SOURCE_REMOVE;
}

void
worker_leave (Worker *self, gpointer job)
{
  for (guint i = 0; i < self->places->len; i++) {
    if (g_array_index (self->places, Place, i).job == job) {
      g_array_remove_index (self->places, i);
      break;
    }
  }
  if (self->places->len == 0 && !self->ended && !self->idle)
    self->idle = timer_add (IDLE_MS, on_idle, self);
  worker_unref (self);
}

gboolean
worker_send (
    Worker *self, gconstpointer message, gsize len, const gint *fds, guint n_fds, GError **error)
{
  union {
    struct cmsghdr head;
    guint8 space[CMSG_SPACE (WORKER_FDS_MAX * sizeof (gint))];
  } control = { 0 };
  struct iovec bytes = { (gpointer) message, len };
  struct msghdr all_of_it = { .msg_iov = &bytes,
    .msg_iovlen = 1,
    .msg_control = &control,
    .msg_controllen = CMSG_SPACE (n_fds * sizeof (gint)) };

  g_assert (n_fds > 0 && n_fds <= WORKER_FDS_MAX);
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN (n_fds * sizeof (gint));
  memcpy (CMSG_DATA (&control.head), fds, n_fds * sizeof (gint));
  if (sendmsg (self->socket, &all_of_it, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
    return TRUE;
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "worker %d takes no job: %s",
      self->pid, g_strerror (errno));
  return FALSE;
}

// ---- the end of the process ----

// Lets the worker of swarms tell trackers that it leaves, for which it may need connections.
static gboolean
stops_by_itself (Worker *self)
{
  struct pollfd asking = { self->socket, POLLIN, 0 };

  if (self->kind != SANDBOX_SWARM)
    return FALSE;
  shutdown (self->socket, SHUT_WR);
  for (guint ms = 0; ms < STOP_MS; ms += 10) {
    if (waitpid (self->pid, NULL, WNOHANG) != 0)
      return TRUE;
    if (poll (&asking, 1, 10) > 0 && !answer_request (self))
      asking.fd = -1;
  }
  return FALSE;
}

void
workers_stop (void)
{
  for (guint i = 0; all && i < all->len; i++) {
    Worker *self = g_ptr_array_index (all, i);

    if (self->ended || stops_by_itself (self))
      continue;
    kill (self->pid, SIGKILL);
    waitpid (self->pid, NULL, 0);
  }
}
