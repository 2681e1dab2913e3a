// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"
#include "sources/rtsp_client.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sources/rtsp_client_private.h"

// A connection that ends is replaced at once, unless it is younger than this, in ns.
#define REPLACE_INTERVAL (10 * GST_SECOND)
#define REPLACE_DELAY (50 * GST_MSECOND)
// Longest wait for the answer to TEARDOWN, in ns.
#define LEAVE_TIME GST_SECOND
// A server that sends nothing over UDP is asked for TCP after half of the read time-out, but at
// most after this time, in ms.
#define UDP_PATIENCE_MS 3000

// ---- construction; from any thread ----

RtspClient *
rtsp_client_ref (RtspClient *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
rtsp_client_unref (gpointer data)
{
  RtspClient *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  gst_rtsp_url_free (self->url);
  pull_config_clear (&self->config);
  g_mutex_clear (&self->describing);
  g_free (self);
}

static void
clear_request (RtspRequest *request)
{
  g_free (request->uri);
  g_free (request->lines);
  *request = (RtspRequest) { NULL };
}

// Forgets the session, but not the settings.
static void
clear_session (RtspClient *self)
{
  // From now on no other thread reads the tracks.
  g_mutex_lock (&self->describing);
  g_atomic_int_set (&self->begun, 0);
  g_mutex_unlock (&self->describing);
  g_clear_pointer (&self->link, rtsp_link_free);
  g_ptr_array_set_size (self->tracks, 0);
  clear_request (&self->request);
  g_clear_pointer (&self->session, g_free);
  g_clear_pointer (&self->session_uri, g_free);
  self->cseq = self->n_superseded = self->at = self->refused = 0;
  self->session_timeout_s = 0;
  self->plays_each = FALSE;
  self->keep_alive_due = 0;
}

// Ends the client: nothing uses the context any more.
static void
finish (RtspClient *self)
{
  gchar *shown;

  clear_session (self);
  shown = log_redact (self->config.uri);
  udp_stats_log (&self->drops, shown);
  g_free (shown);
  rtsp_auth_clear (&self->auth);
  g_clear_pointer (&self->uri, g_free);
  g_clear_pointer (&self->tracks, g_ptr_array_unref);
  self->context = NULL; // no track's callback runs any more
  self->closed (self->closed_data);
  loop_leave (&self->watch);
}

// ---- requests ----

static void
write_request (RtspClient *self)
{
  RtspRequest *request = &self->request;
  gchar *authorization = rtsp_auth_dup_header (&self->auth, request->method, request->uri);
  GString *text = g_string_new (NULL);

  request->cseq = ++self->cseq;
  g_string_append_printf (text,
      "%s %s RTSP/1.0\r\nCSeq: %u\r\nUser-Agent: Weir/" PACKAGE_VERSION "\r\n", request->method,
      request->uri, request->cseq);
  if (self->session)
    g_string_append_printf (text, "Session: %s\r\n", self->session);
  if (authorization)
    g_string_append_printf (text, "Authorization: %s\r\n", authorization);
  g_string_append_printf (text, "%s\r\n", request->lines ? request->lines : "");
  rtsp_link_send (self->link, text->str, text->len);
  g_string_free (text, TRUE);
  g_free (authorization);
}

void
rtsp_client_send (RtspClient *self, const gchar *method, const gchar *uri, const gchar *lines)
{
  RtspRequest request = { .method = method, .uri = g_strdup (uri), .lines = g_strdup (lines) };

  if (!self->link) {
    clear_request (&request);
    return;
  }
  self->n_superseded += self->request.method != NULL;
  clear_request (&self->request); // which may hold `uri`
  self->request = request;
  write_request (self);
}

// Repeats the request with an answer to the server's challenge. Returns FALSE if
// the challenge cannot be answered.
static gboolean
answer_challenge (RtspClient *self, const RtspMessage *answer)
{
  // A server may give each request a new challenge.
  if (++self->request.n_challenges > 3
      || !rtsp_auth_take (&self->auth, answer, self->request.n_challenges))
    return FALSE;
  write_request (self);
  return TRUE;
}

// Reports whether an answer belongs to a request that a later one replaced.
static gboolean
is_superseded (RtspClient *self, const RtspMessage *answer)
{
  const gchar *cseq = rtsp_message_get (answer, "CSeq", 0);

  if (self->n_superseded == 0 || !cseq || g_ascii_strtoull (cseq, NULL, 10) >= self->request.cseq)
    return FALSE;
  self->n_superseded--;
  return TRUE;
}

static void
on_message (gpointer data, const RtspMessage *message)
{
  RtspClient *self = data;

  if (message->method) {
    rtsp_client_take_request (self, message);
    return;
  }
  if (!self->request.method || message->status < 200 || is_superseded (self, message)
      || (message->status == 401 && answer_challenge (self, message)))
    return;
  rtsp_client_take_answer (self, message);
}

static void
on_packet (gpointer data, guint8 channel, guint8 *bytes, gsize len)
{
  rtsp_client_take_packet (data, channel, bytes, len);
}

// ---- the connection ----

static void
on_connected (gpointer data)
{
  RtspClient *self = data;

  self->is_connected = TRUE;
  switch (self->step) {
    case RTSP_CONNECTING:
      rtsp_client_begin (self);
      break;
    case RTSP_PLAYING:
      rtsp_client_keep_alive (self, clock_now ());
      break;
    case RTSP_LEAVING:
    case RTSP_RESTARTING:
      write_request (self); // TEARDOWN, which waited for this connection
      break;
    default:
      break;
  }
}

static gboolean
is_interleaved (const RtspClient *self)
{
  for (guint i = 0; i < self->tracks->len; i++) {
    const RtspTrack *track = g_ptr_array_index (self->tracks, i);

    if (track->media.in && track->interleaved)
      return TRUE;
  }
  return FALSE;
}

// Some servers close the connection and continue to send over UDP. If a new connection succeeds,
// the session continues. If the server closes that one too, it may be going down: another one is
// tried after REPLACE_DELAY, then one with each keep-alive.
static void
replace_link (RtspClient *self, const gchar *reason)
{
  gint64 now = clock_now ();

  if (is_interleaved (self) || !self->is_connected)
    rtsp_client_end (self, reason);
  else if (now >= self->replace_from)
    rtsp_client_keep_alive (self, now);
  else if (!self->is_replaced_twice)
    self->keep_alive_due = MIN (self->keep_alive_due, now + (gint64) REPLACE_DELAY);
  self->is_replaced_twice = now < self->replace_from;
  self->replace_from = now + (gint64) REPLACE_INTERVAL;
}

static void
on_closed (gpointer data, const gchar *reason)
{
  RtspClient *self = data;

  g_clear_pointer (&self->link, rtsp_link_free);
  switch (self->step) {
    case RTSP_LEAVING:
    case RTSP_RESTARTING:
      self->leave_by = 0; // the next tick goes on
      break;
    case RTSP_ENDED:
      break;
    case RTSP_PLAYING:
      replace_link (self, reason);
      break;
    default:
      if (self->is_connected && rtsp_client_begin_again (self))
        break;
      if (self->refusal)
        rtsp_client_end_by_status (self, "DESCRIBE", self->refusal);
      else
        rtsp_client_end (self, reason);
      break;
  }
}

static void
on_skipped (gpointer data)
{
  const PullContext *context = ((RtspClient *) data)->context;

  if (!g_atomic_int_get (&context->cancelled))
    relay_count (context->source, RELAY_SKIPPED, 1);
}

static const RtspLinkOps link_ops = { on_connected, on_closed,
  { on_message, on_packet, on_skipped } };

void
rtsp_client_connect (RtspClient *self)
{
  guint16 port;

  gst_rtsp_url_get_port (self->url, &port);
  self->is_connected = FALSE;
  self->link = rtsp_link_new (self->url->host, port, self->tls ? &self->config.trust : NULL,
      self->config.connect_timeout_ms, &link_ops, self);
}

// ---- ends ----

void
rtsp_client_end (RtspClient *self, const gchar *reason)
{
  const PullContext *context = self->context;

  if (self->step >= RTSP_ENDED)
    return;
  self->step = RTSP_ENDED;
  if (!g_atomic_int_get (&context->cancelled))
    context->callbacks->ended (context->owner, reason);
}

static void
send_teardown (RtspClient *self)
{
  for (guint i = 0; self->plays_each && i < self->tracks->len; i++) {
    const RtspTrack *track = g_ptr_array_index (self->tracks, i);

    if (track->media.in)
      rtsp_client_send (self, "TEARDOWN", track->url, NULL);
  }
  if (!self->plays_each)
    rtsp_client_send (self, "TEARDOWN", self->session_uri, NULL);
}

// Sends TEARDOWN. Returns FALSE if there is no session or no connection.
static gboolean
tear_down (RtspClient *self, RtspStep step)
{
  self->step = step;
  self->leave_by = clock_now () + (gint64) LEAVE_TIME;
  if (!self->link || !self->session)
    return FALSE;
  send_teardown (self);
  return self->link != NULL;
}

void
rtsp_client_restart_over_tcp (RtspClient *self)
{
  self->over_tcp = TRUE;
  if (!tear_down (self, RTSP_RESTARTING))
    self->leave_by = 0;
}

static void
on_tick (LoopWatch *watch, gint64 now)
{
  RtspClient *self = (RtspClient *) watch;
  const PullConfig *config = &self->config;

  loop_set_due (watch, loop_next_tick (now, RTSP_LOOP_TICK_MS));
  if (rtsp_client_plays (self) && rtsp_client_has_left (self, now)) {
    rtsp_client_end (self, "the upstream ended");
  } else if (self->step == RTSP_PLAYING) {
    if (now >= self->keep_alive_due)
      rtsp_client_keep_alive (self, now);
    if (!self->over_tcp && config->transport == PULL_AUTO && !g_atomic_int_get (&self->heard)
        && now - self->played
               > MIN (config->read_timeout_ms / 2, UDP_PATIENCE_MS) * (gint64) GST_MSECOND)
      rtsp_client_restart_over_tcp (self);
  } else if (self->step == RTSP_LEAVING && now >= self->leave_by) {
    finish (self);
  } else if (self->step == RTSP_RESTARTING && now >= self->leave_by) {
    clear_session (self);
    self->step = RTSP_CONNECTING;
    rtsp_client_connect (self);
  }
}

// ---- control ----

static void
on_left (LoopWatch *watch)
{
  rtsp_client_unref (watch);
}

static void
start_here (gpointer data)
{
  RtspClient *self = data;

  self->tracks = g_ptr_array_new_with_free_func (rtsp_track_free);
  self->uri = g_strdup (self->config.uri);
  loop_set_due (&self->watch, loop_next_tick (clock_now (), RTSP_LOOP_TICK_MS));
  rtsp_client_connect (self);
}

static void
close_here (gpointer data)
{
  RtspClient *self = data;

  if (!tear_down (self, RTSP_LEAVING))
    finish (self);
}

typedef struct {
  RtspClient *client;
  guint track;
} KeyRequest;

static void
ask_here (gpointer data)
{
  KeyRequest *request = data;
  RtspClient *self = request->client;

  if (rtsp_client_plays (self))
    engine_tracks_ask_key (self->tracks, request->track);
  rtsp_client_unref (self);
  g_free (request);
}

static void
ask_for_key (gpointer data, guint track, gint64 now)
{
  KeyRequest *request = g_new (KeyRequest, 1);

  *request = (KeyRequest) { rtsp_client_ref (data), track };
  loop_post (request->client->loop, ask_here, request);
}

static gpointer
client_start (const PullContext *context, GError **error)
{
  static const LoopOps ops = { .due = on_tick, .left = on_left };
  const PullConfig *config = context->config;
  Loop *loop = rtsp_loop_get (error);
  GstRTSPUrl *url = NULL;
  RtspClient *self;

  if (!loop)
    return NULL;
  if (gst_rtsp_url_parse (config->uri, &url) != GST_RTSP_OK) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "not a valid RTSP URI");
    return NULL;
  }
  self = g_new0 (RtspClient, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->describing);
  self->context = context;
  self->loop = loop;
  self->url = url;
  self->config = (PullConfig) { .uri = g_strdup (config->uri),
    .user = g_strdup (config->user),
    .password = g_strdup (config->password),
    .transport = config->transport,
    .connect_timeout_ms = config->connect_timeout_ms,
    .read_timeout_ms = config->read_timeout_ms };
  tls_trust_copy (&self->config.trust, &config->trust);
  self->tls = g_str_has_prefix (config->uri, "rtsps:");
  self->over_tcp = config->transport == PULL_TCP;
  self->from = context->from;
  self->auth = (RtspAuth) { .user = self->config.user, .password = self->config.password };
  relay_source_set_key_handler (
      context->source, ask_for_key, rtsp_client_ref (self), rtsp_client_unref);
  loop_join (loop, &self->watch, &ops);
  loop_post (loop, start_here, self);
  return self;
}

static void
client_close (gpointer run, GDestroyNotify closed, gpointer data)
{
  RtspClient *self = run;

  self->closed = closed;
  self->closed_data = data;
  loop_post (self->loop, close_here, self);
}

const PullLight rtsp_client_light = { client_start, client_close };
