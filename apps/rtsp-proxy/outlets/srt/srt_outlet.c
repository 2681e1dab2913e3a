// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_outlet.h"

#include <srt/access_control.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "outlets/srt/srt_connection.h"
#include "outlets/srt/srt_counts.h"
#include "outlets/srt/srt_port.h"
#include "outlets/srt/srt_worker.h"

#define TICK_MS 1000
#define STOP_MS 1000 // for the worker to tell the callers

typedef struct {
  LoopWatch watch; // first; of the link's sockets
  SrtContext context;
  SrtConfig config;
  gint port; // the UDP socket; -1: none
  SrtWorker *worker;

  // The thread's.
  SrtWorker *linked;       // the worker of the link
  GHashTable *connections; // id: SrtConnection
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
run_connection (SrtOutlet *self, SrtConnection *connection)
{
  if (!srt_connection_run (connection))
    drop (self, connection, "the connection has ended");
}

static void
tick_all (SrtOutlet *self)
{
  GList *all = g_hash_table_get_values (self->connections);

  for (GList *l = all; l; l = l->next) {
    srt_connection_tick (l->data);
    run_connection (self, l->data);
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
      find (self, id) ? NULL : srt_connection_new (&self->context, from, stream_id, id, &code);

  if (connection)
    g_hash_table_insert (self->connections, GUINT_TO_POINTER (id), connection);
  srt_link_answer (self->context.link, id, connection ? 0 : (guint16) code);
}

static void
on_opened (gpointer owner, guint32 id)
{
  SrtOutlet *self = owner;
  SrtConnection *connection = find (self, id);

  if (!connection) {
    srt_link_send (self->context.link, SRT_COMMAND_CLOSE, id, -1);
    return;
  }
  srt_connection_begin (connection);
  run_connection (self, connection);
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

// ---- the link; the thread ----

static void
leave_link (SrtOutlet *self, const gchar *reason)
{
  drop_all (self, reason);
  g_clear_pointer (&self->context.link, srt_link_free);
}

static void
watch_link (SrtOutlet *self)
{
  if (self->context.link)
    srt_link_watch (self->context.link, &self->watch);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  SrtOutlet *self = (SrtOutlet *) watch;
  gboolean heard, ok;

  if (!self->context.link)
    return;
  ok = srt_link_run (self->context.link, &handler, self, &heard);
  if (heard)
    srt_worker_note_message (self->linked);
  if (!ok) {
    srt_worker_accuse (self->linked);
    leave_link (self, "its worker has sent a malformed message");
  }
  watch_link (self);
}

static void
on_woken (SrtConnection *connection, gpointer outlet)
{
  run_connection (outlet, connection);
  watch_link (outlet);
}

static void
on_tick (LoopWatch *watch, gint64 now)
{
  SrtOutlet *self = (SrtOutlet *) watch;

  loop_set_due (watch, loop_next_tick (now, TICK_MS));
  srt_counts_set_dropped (srt_port_count_dropped (self->port));
  tick_all (self);
  watch_link (self);
}

// ---- workers that start and end ----

typedef struct {
  SrtOutlet *outlet;
  SrtWorker *worker;
  gint commands, questions;
} Start;

static void
take_start (gpointer data)
{
  Start *start = data;
  SrtOutlet *self = start->outlet;

  self->linked = start->worker;
  self->context.link = srt_link_new (start->commands, start->questions);
  watch_link (self);
  g_free (start);
}

// The main thread.
static void
on_worker_started (gpointer owner, SrtWorker *worker, gint commands, gint questions)
{
  SrtOutlet *self = owner;
  Start *start = g_new (Start, 1);

  *start = (Start) { self, worker, commands, questions };
  if (caller_context_post (self->context.callers, take_start, start))
    return;
  close (commands);
  close (questions);
  g_free (start);
}

typedef struct {
  SrtOutlet *outlet;
  gchar *reason;
} End;

static void
end_free (End *end)
{
  g_free (end->reason);
  g_free (end);
}

static void
take_end (gpointer data)
{
  End *end = data;

  leave_link (end->outlet, end->reason);
  end_free (end);
}

// The main thread.
static void
on_worker_ended (gpointer owner, const gchar *reason)
{
  SrtOutlet *self = owner;
  End *end = g_new (End, 1);

  *end = (End) { self, g_strdup (reason) };
  if (!caller_context_post (self->context.callers, take_end, end))
    end_free (end);
}

// ---- the end ----

static gboolean
stop (gpointer data, guint timeout_ms)
{
  SrtOutlet *self = data;

  caller_context_stop (self->context.callers);
  drop_all (self, "the proxy stops");
  if (self->context.link)
    srt_link_finish (self->context.link, STOP_MS);
  g_clear_pointer (&self->context.link, srt_link_free);
  g_clear_pointer (&self->worker, srt_worker_free);
  if (self->port >= 0)
    close (self->port);
  g_hash_table_unref (self->connections);
  srt_config_clear (&self->config);
  caller_context_unref (self->context.callers);
  g_free (self);
  return TRUE;
}

// ---- construction ----

static gboolean
begin_outlet (SrtOutlet *self, const SrtConfig *config, GError **error)
{
  static const LoopOps ops = { on_ready, on_tick, NULL };
  static const SrtWorkerCallbacks callbacks = { on_worker_started, on_worker_ended };

  srt_config_copy (&self->config, config);
  self->port = srt_port_open (&self->config.listen, error);
  if (self->port < 0)
    return FALSE;
  loop_join (self->context.callers->loop, &self->watch, &ops);
  loop_set_due (&self->watch, loop_next_tick (clock_now (), TICK_MS));
  self->worker = srt_worker_new (&self->config, self->port, &callbacks, self, error);
  return self->worker != NULL;
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  CallerContext *callers;
  SrtOutlet *self;
  g_autofree gchar *url = NULL;

  if (!config->srt.listen.address)
    return NULL;
  callers = caller_context_new (proxy_get_mounts (proxy), proxy_get_access (proxy), "srt", error);
  if (!callers)
    return NULL;
  self = g_new0 (SrtOutlet, 1);
  self->context = (SrtContext) { .callers = callers, .woken = on_woken, .outlet = self };
  self->port = -1;
  self->connections = g_hash_table_new (NULL, NULL);
  if (!begin_outlet (self, &config->srt, error)) {
    stop (self, 0);
    return NULL;
  }
  url = listen_address_dup_url (&self->config.listen, "srt");
  log_event ("takes publishers at %s", url);
  return self;
}

const Outlet srt_outlet = { start, stop, NULL };
