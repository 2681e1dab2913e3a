// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtmp/rtmp_connection.h"

#include <glib-unix.h>
#include <string.h>

#include "access/plain.h"
#include "base/clock.h"
#include "base/log.h"
#include "mounts/publish_check.h"
#include "outlets/rtmp/rtmp_counts.h"
#include "outlets/rtmp/rtmp_media.h"
#include "sources/published_stream.h"
#include "text/rtmp_name.h"

#define INPUT (64 * 1024) // bytes; a client's first step has 3 KiB
#define READS_MAX 16      // of one connection, before others get their turn
#define LEAVE_NS (2 * G_GINT64_CONSTANT (1000000000))

// Shared by all clients, because any peer can cause refusals as fast as it connects.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

typedef enum {
  STATE_OPENING, // until the client asks to publish
  STATE_ASKING,  // for the door's decision
  STATE_PUBLISHING,
  STATE_LEAVING, // the last answer is on its way
} State;

struct _RtmpConnection {
  gatomicrefcount refs; // of the outlet, and of who may call from other threads
  RtmpContext *context;
  GSocket *socket;
  GInetAddress *address;
  gchar *peer;
  AccessPeer *visitor;
  gint64 since; // when it came; then when it began to leave
  State state;
  WeirRtmpSession *session;
  guint8 *input;
  gsize n_input;
  Demand *demand;
  AccessCase *asked;
  gboolean named; // it has sent credentials
  PublishedStream *published;
  RtmpMedia *media;
  GQueue parts; // of GBytes, which the published stream does not take yet
  GSource *source, *pipe;
  GIOCondition watched;

  GMutex lock;
  gchar *closing; // why it is to end; protected by `lock`
};

// ---- references ----

static void
unref (gpointer data)
{
  RtmpConnection *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->demand)
    demand_free (self->demand);
  g_clear_pointer (&self->asked, access_case_unref);
  access_peer_unref (self->visitor);
  connections_leave (self->context->connections, self->address);
  g_object_unref (self->address);
  g_mutex_clear (&self->lock);
  g_atomic_rc_box_release_full (self->context, self->context->clear);
  g_free (self->closing);
  g_free (self->peer);
  g_free (self);
}

static gpointer
ref (RtmpConnection *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

// ---- other threads ----

static gboolean
on_woken (gpointer data)
{
  RtmpConnection *self = data;

  if (self->session) // it is not freed
    rtmp_connection_run (self);
  return G_SOURCE_REMOVE;
}

static void
wake (RtmpConnection *self)
{
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, on_woken, ref (self), unref);
  g_source_attach (source, self->context->loop);
  g_source_unref (source);
}

static void
close_later (gpointer data, const gchar *reason)
{
  RtmpConnection *self = data;

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

// ---- the door ----

// Tells the client, and closes the connection when it has read that.
static void
refuse (RtmpConnection *self, const gchar *code, const gchar *why)
{
  log_event_limited (&refusals, "publisher %s refused: %s", self->peer, why);
  weir_rtmp_session_refuse (self->session, code, why);
  self->state = STATE_LEAVING;
  self->since = clock_now ();
}

static void
begin_publishing (RtmpConnection *self)
{
  gboolean exists;
  MountConfig *config =
      mounts_dup_publish_config (self->context->mounts, self->demand->path, &exists);
  GError *error = NULL;
  gchar *identity;

  if (!config) {
    refuse (self, "NetStream.Publish.BadName", "the mount takes no publishers any more");
    return;
  }
  identity = access_case_dup_identity (self->asked);
  self->published = published_stream_new (
      &(PublishedStreamSettings) {
          { self->demand->path, self->peer, identity, config->takeover, clock_now () }, "RTMP",
          config->pull.connect_timeout_ms, config->pull.read_timeout_ms },
      close_later, ref (self), unref, &error);
  g_free (identity);
  mount_config_unref (config);
  if (!self->published) {
    unref (self);
    // The message has the address of the other one.
    refuse (self, "NetStream.Publish.BadName",
        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY)
            ? "another client publishes to the mount"
            : error->message);
    g_error_free (error);
    return;
  }
  self->media = rtmp_media_new (self->peer);
  self->state = STATE_PUBLISHING;
  weir_rtmp_session_accept (self->session);
  log_event ("publisher %s in: %s over RTMP", self->peer, self->demand->path);
}

static void
check_target (RtmpConnection *self)
{
  gchar *identity = access_case_dup_identity (self->asked);
  const gchar *why;

  if (publish_check (self->context->mounts, self->demand->path, identity, &why) == PUBLISH_POSSIBLE)
    begin_publishing (self);
  else
    refuse (self, "NetStream.Publish.BadName", why);
  g_free (identity);
}

static void
check_verdict (RtmpConnection *self)
{
  switch (access_case_get_verdict (self->asked)) {
    case ACCESS_PENDING:
      break;
    case ACCESS_ASKED:
      refuse (self, "NetStream.Publish.Denied",
          self->named ? "its credentials are not accepted"
                      : "its URL needs credentials: rtmp://HOST/MOUNT?user=USER&pass=PASSWORD");
      break;
    case ACCESS_REFUSED:
      refuse (self, "NetStream.Publish.Denied", "it has no permission");
      break;
    case ACCESS_BUSY:
      refuse (self, "NetStream.Failed", "no decision is possible now");
      break;
    case ACCESS_ADMITTED:
      // Only those who may do it find out which mounts exist.
      check_target (self);
  }
}

static void
ask (RtmpConnection *self, const RtmpName *name)
{
  Mount *mount = mounts_get (self->context->mounts, self->demand->path);
  const AccessRequest request = {
    .action = ACCESS_PUBLISH,
    .path = self->demand->path,
    .mount = mount ? mount_get_path (mount) : NULL,
    .query = self->demand->query,
    .token = self->demand->token,
  };

  self->named = name->user || self->demand->token;
  self->asked = access_ask_plain (self->context->access, self->visitor, &request, name->user,
      name->secret, on_decided, ref (self));
  if (!access_case_is_later (self->asked))
    unref (self);
  g_clear_pointer (&mount, mount_unref);
}

static void
take_publish (RtmpConnection *self, const WeirRtmpEvent *event)
{
  const gchar *wrong;
  RtmpName name;

  if (!rtmp_name_read (&name, event->app, event->name, &wrong)) {
    gchar *why = g_strdup_printf ("the name of its stream cannot be used: %s", wrong);

    refusals_count (REFUSED_MALFORMED);
    refuse (self, "NetStream.Publish.BadName", why);
    g_free (why);
    return;
  }
  self->demand = demand_new (name.url);
  self->state = STATE_ASKING;
  ask (self, &name);
  rtmp_name_clear (&name);
  check_verdict (self);
}

// ---- sending ----

// Returns FALSE if the connection has failed.
static gboolean
send_output (RtmpConnection *self)
{
  GError *error = NULL;
  const uint8_t *output;
  gboolean waits;
  size_t len;
  gssize n;

  for (;;) {
    output = weir_rtmp_session_get_output (self->session, &len);
    if (len == 0)
      return TRUE;
    n = g_socket_send (self->socket, (const gchar *) output, len, NULL, &error);
    if (n < 0)
      break;
    weir_rtmp_session_drop_output (self->session, (size_t) n);
  }
  waits = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
  g_error_free (error);
  return waits;
}

static gboolean
has_output (RtmpConnection *self)
{
  size_t len;

  weir_rtmp_session_get_output (self->session, &len);
  return len > 0;
}

// Gives the published stream what it takes.
static void
write_parts (RtmpConnection *self)
{
  GBytes *part;

  while ((part = g_queue_peek_head (&self->parts))) {
    gsize len;
    const guint8 *bytes = g_bytes_get_data (part, &len);
    gboolean is_taken = len > 0 ? published_stream_write (self->published, bytes, len)
                                : published_stream_begin_anew (self->published);

    if (!is_taken)
      return;
    g_bytes_unref (g_queue_pop_head (&self->parts));
  }
}

// ---- reading ----

static gboolean
may_read (RtmpConnection *self)
{
  return self->state != STATE_ASKING && !has_output (self) && g_queue_is_empty (&self->parts);
}

// Returns NULL, or why the connection has ended.
static const gchar *
take_event (RtmpConnection *self, const WeirRtmpEvent *event)
{
  const gchar *problem = NULL;

  if (event->type == WEIR_RTMP_END)
    return "it has ended the stream";
  if (event->type == WEIR_RTMP_PUBLISH)
    take_publish (self, event);
  else
    problem = rtmp_media_take (self->media, event, &self->parts);
  if (self->published)
    write_parts (self);
  return problem;
}

// Notes what the client has done wrong. What was still to be sent tells it.
static const gchar *
note_problem (RtmpConnection *self)
{
  const gchar *problem = weir_rtmp_session_get_problem (self->session);

  if (!self->published)
    refusals_note (REFUSED_MALFORMED, self->peer, "%s", problem);
  send_output (self);
  return problem;
}

// Reads the messages that are there. Returns NULL, or why the connection has ended.
static const gchar *
take_input (RtmpConnection *self)
{
  const gchar *problem = NULL;
  WeirRtmpEvent event;
  gsize at = 0, used;
  gint result = 1;

  while (!problem && may_read (self) && self->state != STATE_LEAVING && result != 0) {
    result =
        weir_rtmp_session_read (self->session, self->input + at, self->n_input - at, &used, &event);
    at += used;
    if (result > 0)
      problem = take_event (self, &event);
    else if (result < 0)
      problem = note_problem (self);
    else if (has_output (self) && send_output (self) && !has_output (self))
      result = 1; // it stopped at what was to be sent
  }
  self->n_input -= at;
  memmove (self->input, self->input + at, self->n_input);
  return problem;
}

// Reads once. Returns NULL, or why the connection has ended; sets `*more` if there may be more.
static const gchar *
receive (RtmpConnection *self, gboolean *more)
{
  GError *error = NULL;
  gssize n;

  if (self->state == STATE_LEAVING)
    self->n_input = 0;
  n = g_socket_receive (
      self->socket, (gchar *) self->input + self->n_input, INPUT - self->n_input, NULL, &error);
  *more = n > 0;
  self->n_input += (gsize) MAX (n, 0);
  if (n >= 0)
    return n > 0 ? NULL : "the connection has ended";
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
    g_error_free (error);
    return NULL;
  }
  g_error_free (error);
  return "the connection has failed";
}

static const gchar *
read_all (RtmpConnection *self)
{
  const gchar *problem = take_input (self);
  gboolean more = TRUE;

  for (guint i = 0; !problem && more && i < READS_MAX && may_read (self); i++) {
    problem = receive (self, &more);
    if (!problem)
      problem = take_input (self);
  }
  return problem;
}

// ---- events ----

static gboolean
on_socket (GSocket *socket, GIOCondition condition, gpointer data)
{
  RtmpConnection *self = data;

  // A read would say so.
  if ((condition & (G_IO_HUP | G_IO_ERR)) && !may_read (self))
    self->context->ended (self, "the connection has failed", self->context->outlet);
  else
    rtmp_connection_run (self);
  return G_SOURCE_CONTINUE;
}

static gboolean
on_pipe (gint fd, GIOCondition condition, gpointer data)
{
  rtmp_connection_run (data);
  return G_SOURCE_CONTINUE;
}

static void
unwatch (GSource **source)
{
  if (*source)
    g_source_destroy (*source);
  g_clear_pointer (source, g_source_unref);
}

static void
watch_socket (RtmpConnection *self)
{
  GIOCondition condition =
      G_IO_HUP | G_IO_ERR | (may_read (self) ? G_IO_IN : 0) | (has_output (self) ? G_IO_OUT : 0);

  if (self->source && condition == self->watched)
    return;
  unwatch (&self->source);
  self->watched = condition;
  self->source = g_socket_create_source (self->socket, condition, NULL);
  g_source_set_callback (self->source, G_SOURCE_FUNC (on_socket), self, NULL);
  g_source_attach (self->source, self->context->loop);
}

static void
watch_pipe (RtmpConnection *self)
{
  gboolean waits = !g_queue_is_empty (&self->parts);

  if (waits == (self->pipe != NULL))
    return;
  unwatch (&self->pipe);
  if (!waits)
    return;
  self->pipe = g_unix_fd_source_new (published_stream_get_fd (self->published), G_IO_OUT);
  g_source_set_callback (self->pipe, G_SOURCE_FUNC (on_pipe), self, NULL);
  g_source_attach (self->pipe, self->context->loop);
}

// Returns NULL, or why the connection has ended.
static const gchar *
step (RtmpConnection *self)
{
  gboolean closing;

  g_mutex_lock (&self->lock);
  closing = self->closing != NULL;
  g_mutex_unlock (&self->lock);
  if (closing)
    return self->closing;
  if (self->state == STATE_ASKING)
    check_verdict (self);
  if (!send_output (self))
    return "the connection has failed";
  if (self->published)
    write_parts (self);
  return read_all (self);
}

void
rtmp_connection_run (RtmpConnection *self)
{
  const gchar *problem = step (self);

  if (problem) {
    self->context->ended (self, problem, self->context->outlet);
    return;
  }
  // Whoever is refused closes the connection; until then it must get the answer.
  if (self->state == STATE_LEAVING && !has_output (self))
    g_socket_shutdown (self->socket, FALSE, TRUE, NULL);
  watch_socket (self);
  watch_pipe (self);
}

void
rtmp_connection_tick (RtmpConnection *self)
{
  const gchar *problem = NULL;
  MountConfig *config = NULL;
  gboolean exists;
  Limits limits;

  limits_get (&limits);
  if (self->state == STATE_OPENING
      && clock_now () - self->since > (gint64) limits.request_ms * 1000000) {
    problem = "it did not ask to publish in time (limits.request-timeout)";
    refusals_note (REFUSED_TIMEOUT, self->peer, "%s", problem);
  } else if (self->state == STATE_LEAVING && clock_now () - self->since > LEAVE_NS) {
    problem = "it was refused";
  } else if (self->state == STATE_PUBLISHING) {
    config = mounts_dup_publish_config (self->context->mounts, self->demand->path, &exists);
    problem = config ? NULL : "the mount takes no publishers any more";
  }
  g_clear_pointer (&config, mount_config_unref);
  if (problem)
    self->context->ended (self, problem, self->context->outlet);
}

// ---- the beginning and the end ----

static WeirRtmpSession *
make_session (void)
{
  uint8_t random[WEIR_RTMP_RANDOM];

  for (gsize i = 0; i < sizeof random; i++)
    random[i] = (uint8_t) g_random_int ();
  return weir_rtmp_session_new (random);
}

RtmpConnection *
rtmp_connection_new (
    RtmpContext *context, GSocket *socket, GInetSocketAddress *from, gboolean has_tls)
{
  GInetAddress *address = g_inet_socket_address_get_address (from);
  WeirRtmpSession *session = make_session ();
  RtmpConnection *self;
  gchar *ip;

  if (!session) {
    connections_leave (context->connections, address);
    g_object_unref (socket);
    return NULL;
  }
  self = g_new0 (RtmpConnection, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->context = g_atomic_rc_box_acquire (context);
  self->socket = socket;
  self->session = session;
  self->address = g_object_ref (address);
  ip = g_inet_address_to_string (address);
  self->peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));
  self->visitor = access_peer_new (ip, has_tls ? "rtmps" : "rtmp");
  g_free (ip);
  self->since = clock_now ();
  self->input = g_malloc (INPUT);
  g_queue_init (&self->parts);
  rtmp_counts_add_connections (1);
  return self;
}

static void
end_publishing (RtmpConnection *self, const gchar *reason)
{
  gchar *whole = g_strdup_printf ("the publisher has left (%s)", reason);

  log_event ("publisher %s out: %s: %s", self->peer, self->demand->path, reason);
  published_stream_end (self->published, whole);
  g_free (whole);
}

void
rtmp_connection_free (RtmpConnection *self, const gchar *reason)
{
  rtmp_counts_add_connections (-1);
  unwatch (&self->source);
  unwatch (&self->pipe);
  if (self->published)
    end_publishing (self, reason);
  g_queue_clear_full (&self->parts, (GDestroyNotify) g_bytes_unref);
  g_clear_pointer (&self->media, rtmp_media_free);
  g_clear_pointer (&self->session, weir_rtmp_session_free);
  g_clear_pointer (&self->input, g_free);
  g_clear_object (&self->socket);
  unref (self);
}
