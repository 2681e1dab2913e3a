// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_outlet.h"

#include <poll.h>
#include <srt/access_control.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "outlets/srt/srt_connection.h"
#include "outlets/srt/srt_counts.h"
#include "outlets/srt/srt_port.h"
#include "outlets/srt/srt_worker.h"

#define TICK GST_SECOND
#define WAIT_MS 1000
#define STOP_MS 1000 // for the worker to tell the callers

typedef struct {
  SrtContext *context;
  SrtConfig config;
  gint port; // the UDP socket; -1: none
  SrtWorker *worker;
  GThread *thread;
  gint stopping; // atomic

  GMutex lock;
  gchar *ended;                     // why the last worker has; protected by `lock`
  gboolean has_started;             // another one has; protected by `lock`
  gint new_commands, new_questions; // its sockets; protected by `lock`

  // The thread's.
  GHashTable *connections; // id: SrtConnection
  gint64 ticked;
} SrtOutlet;

// ---- connections; the thread ----

static SrtConnection *
find (SrtOutlet *self, guint32 id)
{
  return g_hash_table_lookup (self->connections, GUINT_TO_POINTER (id));
}

static void
drop (SrtOutlet *self, SrtConnection *connection, const gchar *reason)
{
  g_hash_table_remove (self->connections, GUINT_TO_POINTER (srt_connection_get_id (connection)));
  srt_connection_free (connection, reason);
}

static void
drop_all (SrtOutlet *self, const gchar *reason)
{
  GList *all = g_hash_table_get_values (self->connections);

  for (GList *l = all; l; l = l->next)
    drop (self, l->data, reason);
  g_list_free (all);
}

static void
run (SrtOutlet *self, SrtConnection *connection)
{
  if (!srt_connection_run (connection))
    drop (self, connection, "the connection has ended");
}

static void
run_all (SrtOutlet *self, gboolean tick)
{
  GList *all = g_hash_table_get_values (self->connections);

  for (GList *l = all; l; l = l->next) {
    if (tick)
      srt_connection_tick (l->data);
    run (self, l->data);
  }
  g_list_free (all);
}

// ---- what the worker says; the thread ----

static void
on_handshake (gpointer owner, guint32 id, GInetSocketAddress *from, const gchar *stream_id)
{
  SrtOutlet *self = owner;
  int code = SRT_REJX_OVERLOAD;
  SrtConnection *connection =
      find (self, id) ? NULL : srt_connection_new (self->context, from, stream_id, id, &code);

  if (connection)
    g_hash_table_insert (self->connections, GUINT_TO_POINTER (id), connection);
  srt_link_answer (self->context->link, id, connection ? 0 : (guint16) code);
}

static void
on_opened (gpointer owner, guint32 id)
{
  SrtOutlet *self = owner;
  SrtConnection *connection = find (self, id);

  if (!connection) {
    srt_link_send (self->context->link, SRT_COMMAND_CLOSE, id, -1);
    return;
  }
  srt_connection_begin (connection);
  run (self, connection);
}

static void
on_refused (gpointer owner, guint32 id, SrtProblem problem)
{
  SrtConnection *connection = find (owner, id);

  if (!connection)
    return;
  srt_connection_refuse (connection, problem);
  drop (owner, connection, NULL);
}

static void
on_ended (gpointer owner, guint32 id, SrtEnd end)
{
  static const gchar *const reasons[SRT_ENDS] = { [SRT_END_GONE] = "the connection has ended",
    [SRT_END_SENDS] = "a reader must not send",
    [SRT_END_OVER] = "the stream has ended, or the reader has taken nothing for 10 s" };
  SrtConnection *connection = find (owner, id);

  if (connection)
    drop (owner, connection, reasons[end]);
}

static void
on_sampled (gpointer owner, const SrtSample *sample)
{
  SrtConnection *connection = find (owner, sample->id);

  if (connection)
    srt_connection_sample (connection, sample);
}

static const SrtWireHandler handler = { on_handshake, on_opened, on_refused, on_ended, on_sampled };

// ---- workers that start and end ----

static void
wake (SrtOutlet *self)
{
  const guint64 one = 1;

  // A full counter has woken the thread, too.
  if (write (self->context->wake, &one, sizeof one) < 0)
    return;
}

// The main thread.
static void
on_worker_started (gpointer owner, gint commands, gint questions)
{
  SrtOutlet *self = owner;

  g_mutex_lock (&self->lock);
  self->has_started = TRUE;
  self->new_commands = commands;
  self->new_questions = questions;
  g_mutex_unlock (&self->lock);
  wake (self);
}

// The main thread.
static void
on_worker_ended (gpointer owner, const gchar *reason)
{
  SrtOutlet *self = owner;

  g_mutex_lock (&self->lock);
  g_free (self->ended);
  self->ended = g_strdup (reason);
  // The thread may not have taken these.
  if (self->has_started) {
    close (self->new_commands);
    close (self->new_questions);
    self->has_started = FALSE;
  }
  g_mutex_unlock (&self->lock);
  wake (self);
}

static void
leave_link (SrtOutlet *self, const gchar *reason)
{
  drop_all (self, reason);
  g_clear_pointer (&self->context->link, srt_link_free);
}

// Follows the main thread.
static void
change_link (SrtOutlet *self)
{
  gchar *ended;

  g_mutex_lock (&self->lock);
  ended = g_steal_pointer (&self->ended);
  g_mutex_unlock (&self->lock);
  if (ended)
    leave_link (self, ended);
  g_free (ended);
  g_mutex_lock (&self->lock);
  if (self->has_started && !self->ended) {
    self->context->link = srt_link_new (self->new_commands, self->new_questions);
    self->has_started = FALSE;
  }
  g_mutex_unlock (&self->lock);
}

// ---- the thread ----

static void
run_link (SrtOutlet *self)
{
  gboolean heard, ok = srt_link_run (self->context->link, &handler, self, &heard);

  if (heard)
    srt_worker_note_message (self->worker);
  if (ok)
    return;
  srt_worker_accuse (self->worker);
  leave_link (self, "its worker has sent a malformed message");
}

static void
wait (SrtOutlet *self)
{
  struct pollfd fds[3] = { { self->context->wake, POLLIN, 0 } };
  gboolean has_link = self->context->link != NULL;
  guint64 count;

  if (has_link)
    srt_link_watch (self->context->link, fds + 1);
  if (poll (fds, has_link ? 3 : 1, WAIT_MS) <= 0)
    return;
  if (fds[0].revents && read (self->context->wake, &count, sizeof count) > 0) {
    change_link (self);
    run_all (self, FALSE);
  } else if (has_link && (fds[1].revents || fds[2].revents)) {
    run_link (self);
  }
}

static gpointer
serve (gpointer data)
{
  SrtOutlet *self = data;

  while (!g_atomic_int_get (&self->stopping)) {
    wait (self);
    if (clock_now () - self->ticked > (gint64) TICK) {
      self->ticked = clock_now ();
      srt_counts_set_dropped (srt_port_count_dropped (self->port));
      run_all (self, TRUE);
    }
  }
  return NULL;
}

// ---- the end ----

static gboolean
stop (gpointer data, guint timeout_ms)
{
  SrtOutlet *self = data;

  g_atomic_int_set (&self->stopping, 1);
  if (self->thread) {
    wake (self);
    g_thread_join (self->thread);
  }
  change_link (self);
  drop_all (self, "the proxy stops");
  if (self->context->link)
    srt_link_finish (self->context->link, STOP_MS);
  g_clear_pointer (&self->context->link, srt_link_free);
  g_clear_pointer (&self->worker, srt_worker_free);
  if (self->port >= 0)
    close (self->port);
  g_hash_table_unref (self->connections);
  g_mutex_clear (&self->lock);
  g_free (self->ended);
  srt_config_clear (&self->config);
  srt_context_unref (self->context);
  g_free (self);
  return TRUE;
}

// ---- construction ----

static gboolean
begin (SrtOutlet *self, const SrtConfig *config, GError **error)
{
  static const SrtWorkerCallbacks callbacks = { on_worker_started, on_worker_ended };

  srt_config_copy (&self->config, config);
  self->port = srt_port_open (&self->config.listen, error);
  if (self->port < 0)
    return FALSE;
  self->context->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  self->worker = srt_worker_new (&self->config, self->port, &callbacks, self, error);
  if (!self->worker)
    return FALSE;
  self->thread = g_thread_new ("srt", serve, self);
  return TRUE;
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  SrtOutlet *self;
  gchar *url;

  if (!config->srt.listen.address)
    return NULL;
  self = g_new0 (SrtOutlet, 1);
  g_mutex_init (&self->lock);
  self->context = g_atomic_rc_box_new0 (SrtContext);
  *self->context = (SrtContext) { proxy_get_mounts (proxy), proxy_get_access (proxy),
    connections_new (), -1, NULL };
  self->port = -1;
  self->connections = g_hash_table_new (NULL, NULL);
  if (!begin (self, &config->srt, error)) {
    stop (self, 0);
    return NULL;
  }
  url = listen_address_dup_url (&self->config.listen, "srt");
  log_event ("takes publishers at %s", url);
  g_free (url);
  return self;
}

const Outlet srt_outlet = { start, stop, NULL };
