// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_connection.h"

#include <srt/access_control.h>
#include <unistd.h>

#include "access/plain.h"
#include "base/clock.h"
#include "base/log.h"
#include "mounts/publish_check.h"
#include "outlets/srt/srt_counts.h"
#include "outlets/srt/srt_reader.h"
#include "sources/published_stream.h"
#include "text/stream_id.h"

// Shared by all callers, because any peer can cause refusals as fast as it calls.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

typedef enum {
  STATE_ASKING, // for the door's decision
  STATE_PUBLISHING,
  STATE_READING,
} State;

struct _SrtConnection {
  gatomicrefcount refs; // of the outlet, and of who may call from other threads
  SrtContext *context;
  guint32 id; // the worker's
  GInetAddress *address;
  gchar *peer;
  AccessPeer *visitor;
  gboolean publishes, has_begun;
  Demand *demand;
  AccessCase *asked;
  State state;
  PublishedStream *published;
  SrtReader *reader;
  SrtSample sample; // the last

  GMutex lock;
  gchar *closing; // why it is to end; protected by `lock`
};

// ---- references ----

static void
clear_context (gpointer data)
{
  SrtContext *context = data;

  connections_unref (context->connections);
  if (context->wake >= 0)
    close (context->wake);
}

void
srt_context_unref (SrtContext *self)
{
  g_atomic_rc_box_release_full (self, clear_context);
}

static void
unref (gpointer data)
{
  SrtConnection *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->demand)
    demand_free (self->demand);
  g_clear_pointer (&self->asked, access_case_unref);
  access_peer_unref (self->visitor);
  connections_leave (self->context->connections, self->address);
  g_object_unref (self->address);
  g_mutex_clear (&self->lock);
  srt_context_unref (self->context);
  g_free (self->closing);
  g_free (self->peer);
  g_free (self);
}

static gpointer
ref (SrtConnection *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

// ---- other threads ----

static void
wake (SrtConnection *self)
{
  const guint64 one = 1;

  // A full counter has woken the thread, too.
  if (write (self->context->wake, &one, sizeof one) < 0)
    return;
}

static void
close_later (gpointer data, const gchar *reason)
{
  SrtConnection *self = data;

  g_mutex_lock (&self->lock);
  if (!self->closing)
    self->closing = g_strdup (reason);
  g_mutex_unlock (&self->lock);
  wake (self);
}

static void
on_decided (AccessCase *decided, gpointer data)
{
  wake (data);
  unref (data);
}

static void
on_reader_ready (gpointer data)
{
  wake (data);
}

// ---- the handshake ----

static const gchar *
kind_of (const SrtConnection *self)
{
  return self->publishes ? "publisher" : "reader";
}

static int
refuse (SrtConnection *self, int code, const gchar *why)
{
  log_event_limited (&refusals, "%s %s refused: %s", kind_of (self), self->peer, why);
  return code;
}

// Returns 0, or a code of SRT.
static int
check_verdict (SrtConnection *self)
{
  switch (access_case_get_verdict (self->asked)) {
    case ACCESS_PENDING:
    case ACCESS_ADMITTED:
      return 0;
    case ACCESS_ASKED:
      return refuse (self, SRT_REJX_UNAUTHORIZED,
          "its stream id must bring credentials: publish:PATH:USER:SECRET, or u=USER,s=SECRET");
    case ACCESS_REFUSED:
      return refuse (self, SRT_REJX_FORBIDDEN, "it has no permission");
    case ACCESS_BUSY:
      break;
  }
  return refuse (self, SRT_REJX_OVERLOAD, "no decision is possible now");
}

static int
check_publisher (SrtConnection *self)
{
  static const int codes[] = { [PUBLISH_NO_MOUNT] = SRT_REJX_NOTFOUND,
    [PUBLISH_NOT_TAKEN] = SRT_REJX_BAD_MODE,
    [PUBLISH_CONFLICT] = SRT_REJX_CONFLICT };
  gchar *identity = access_case_dup_identity (self->asked);
  const gchar *why;
  PublishCheck check = publish_check (self->context->mounts, self->demand->path, identity, &why);

  g_free (identity);
  return check == PUBLISH_POSSIBLE ? 0 : refuse (self, codes[check], why);
}

static int
check_reader (SrtConnection *self)
{
  gboolean found;
  Resolved resolved;
  GError *error = NULL;
  int code = 0;

  if (!mounts_resolve (self->context->mounts, self->demand, &resolved, &error)) {
    code = refuse (self, SRT_REJX_NOTFOUND, error->message);
    g_error_free (error);
    return code;
  }
  found = resolved.mount && !resolved.title;
  resolved_clear (&resolved);
  return found ? 0 : refuse (self, SRT_REJX_NOTFOUND, "a title cannot be read over SRT");
}

static int
check_target (SrtConnection *self)
{
  return self->publishes ? check_publisher (self) : check_reader (self);
}

static void
ask (SrtConnection *self, const StreamId *id)
{
  Mount *mount = mounts_get (self->context->mounts, self->demand->path);
  const AccessRequest request = {
    .action = self->publishes ? ACCESS_PUBLISH : ACCESS_READ,
    .path = self->demand->path,
    .mount = mount ? mount_get_path (mount) : NULL,
    .query = self->demand->query,
    .token = !id->user && id->secret ? id->secret : self->demand->token,
  };

  self->asked = access_ask_plain (
      self->context->access, self->visitor, &request, id->user, id->secret, on_decided, ref (self));
  if (!access_case_is_later (self->asked))
    unref (self);
  g_clear_pointer (&mount, mount_unref);
}

// Returns 0, or a code of SRT.
static int
read_stream_id (SrtConnection *self, const gchar *text)
{
  const gchar *wrong;
  StreamId id;
  StreamIdVerdict verdict = stream_id_read (&id, text, &wrong);

  if (verdict != STREAM_ID_GOOD) {
    refusals_note (REFUSED_MALFORMED, self->peer, "its stream id cannot be used: %s", wrong);
    return verdict == STREAM_ID_BAD_MODE ? SRT_REJX_BAD_MODE : SRT_REJX_BAD_REQUEST;
  }
  self->publishes = id.publishes;
  self->demand = demand_new (id.url);
  ask (self, &id);
  stream_id_clear (&id);
  return check_verdict (self);
}

SrtConnection *
srt_connection_new (
    SrtContext *context, GInetSocketAddress *from, const gchar *stream_id, guint32 id, int *reject)
{
  GInetAddress *address = g_inet_socket_address_get_address (from);
  gchar *ip = g_inet_address_to_string (address);
  gchar *peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));
  SrtConnection *self = NULL;

  *reject = SRT_REJX_OVERLOAD;
  if (connections_admit (context->connections, address, "SRT connections", peer, NULL)) {
    self = g_new0 (SrtConnection, 1);
    g_atomic_ref_count_init (&self->refs);
    g_mutex_init (&self->lock);
    self->context = g_atomic_rc_box_acquire (context);
    self->id = id;
    self->address = g_object_ref (address);
    self->peer = g_steal_pointer (&peer);
    self->visitor = access_peer_new (ip, "srt");
    *reject = read_stream_id (self, stream_id);
    // Only those who may do it find out which mounts exist.
    if (!*reject && access_case_get_verdict (self->asked) == ACCESS_ADMITTED)
      *reject = check_target (self);
    if (*reject)
      g_clear_pointer (&self, unref);
  }
  g_free (peer);
  g_free (ip);
  return self;
}

// ---- the connection ----

void
srt_connection_begin (SrtConnection *self)
{
  if (self->has_begun)
    return;
  self->has_begun = TRUE;
  srt_counts_add_connections (1);
}

static gboolean
begin_publishing (SrtConnection *self)
{
  gboolean exists;
  MountConfig *config =
      mounts_dup_publish_config (self->context->mounts, self->demand->path, &exists);
  GError *error = NULL;
  gchar *identity;

  if (!config)
    return FALSE;
  identity = access_case_dup_identity (self->asked);
  self->published = published_stream_new (
      &(PublishedStreamSettings) {
          { self->demand->path, self->peer, identity, config->takeover, clock_now () }, "SRT",
          config->pull.connect_timeout_ms, config->pull.read_timeout_ms },
      close_later, ref (self), unref, &error);
  g_free (identity);
  mount_config_unref (config);
  if (!self->published) {
    unref (self);
    refuse (self, SRT_REJX_CONFLICT, error->message);
    g_error_free (error);
    return FALSE;
  }
  self->state = STATE_PUBLISHING;
  srt_link_send (self->context->link, SRT_COMMAND_PUBLISH, self->id,
      published_stream_get_fd (self->published));
  log_event ("publisher %s in: %s over SRT", self->peer, self->demand->path);
  return TRUE;
}

static gboolean
begin_reading (SrtConnection *self)
{
  GError *error = NULL;

  self->reader = srt_reader_new (
      self->context->mounts, self->demand, self->peer, on_reader_ready, close_later, self, &error);
  if (!self->reader) {
    refuse (self, SRT_REJX_OVERLOAD, error->message);
    g_error_free (error);
    return FALSE;
  }
  self->state = STATE_READING;
  return TRUE;
}

static gboolean
run_asking (SrtConnection *self)
{
  AccessVerdict verdict = access_case_get_verdict (self->asked);

  if (verdict == ACCESS_PENDING)
    return TRUE;
  if (check_verdict (self) || check_target (self))
    return FALSE;
  return self->publishes ? begin_publishing (self) : begin_reading (self);
}

static gboolean
run_reading (SrtConnection *self)
{
  const gchar *reason;
  gint fd = -1;

  if (!srt_reader_run (self->reader, &fd, &reason)) {
    close_later (self, reason);
    return FALSE;
  }
  if (fd >= 0) {
    srt_link_send (self->context->link, SRT_COMMAND_READ, self->id, fd);
    close (fd);
  }
  return TRUE;
}

gboolean
srt_connection_run (SrtConnection *self)
{
  gboolean closing;

  g_mutex_lock (&self->lock);
  closing = self->closing != NULL;
  g_mutex_unlock (&self->lock);
  if (closing)
    return FALSE;
  if (!self->has_begun)
    return TRUE;
  if (self->state == STATE_ASKING && !run_asking (self))
    return FALSE;
  return self->state == STATE_READING ? run_reading (self) : TRUE;
}

// A worker in the hands of a caller may say anything, so sums that shrink are kept as they were.
void
srt_connection_sample (SrtConnection *self, const SrtSample *sample)
{
  const SrtSample last = self->sample;

  if (sample->late < last.late || sample->sent < last.sent || sample->overflow < last.overflow)
    return;
  self->sample = *sample;
  srt_counts_add_late (self->publishes, sample->late - last.late);
  if (self->published && sample->overflow > last.overflow)
    published_stream_count_overflow (self->published, sample->overflow - last.overflow);
  if (self->reader && srt_reader_is_slow (self->reader, sample->late, sample->sent))
    close_later (self, "it is too slow: for 10 s, more packets came too late than in time");
}

void
srt_connection_tick (SrtConnection *self)
{
  MountConfig *config;
  gboolean exists;

  if (self->state != STATE_PUBLISHING)
    return;
  config = mounts_dup_publish_config (self->context->mounts, self->demand->path, &exists);
  if (!config)
    close_later (self, "the mount takes no publishers any more");
  g_clear_pointer (&config, mount_config_unref);
}

// ---- the end ----

static void
end_publishing (SrtConnection *self, const gchar *reason)
{
  gchar *whole = g_strdup_printf ("the publisher has left (%s)", reason);

  log_event ("publisher %s out: %s: %s", self->peer, self->demand->path, reason);
  published_stream_end (self->published, whole);
  g_free (whole);
}

void
srt_connection_refuse (SrtConnection *self, SrtProblem problem)
{
  static const gchar *const texts[SRT_PROBLEMS] = {
    [SRT_PROBLEM_UNKNOWN] = "its handshake was not completed",
    [SRT_PROBLEM_SECRET_WRONG] = "its passphrase is wrong",
    [SRT_PROBLEM_SECRET_MISSING] =
        "it has no passphrase, and the listener has one (srt.passphrase)",
    [SRT_PROBLEM_SECRET_UNEXPECTED] =
        "it has a passphrase, and the listener has none (srt.passphrase)",
  };

  if (problem == SRT_PROBLEM_UNKNOWN)
    refuse (self, 0, texts[problem]);
  else
    refusals_note (REFUSED_PASSPHRASE, self->peer, "%s", texts[problem]);
}

void
srt_connection_free (SrtConnection *self, const gchar *reason)
{
  if (self->has_begun)
    srt_counts_add_connections (-1);
  if (self->context->link)
    srt_link_send (self->context->link, SRT_COMMAND_CLOSE, self->id, -1);
  g_mutex_lock (&self->lock);
  if (self->closing)
    reason = self->closing;
  g_mutex_unlock (&self->lock);
  if (self->published)
    end_publishing (self, reason);
  if (self->reader)
    srt_reader_free (self->reader, reason);
  unref (self);
}

guint32
srt_connection_get_id (const SrtConnection *self)
{
  return self->id;
}
