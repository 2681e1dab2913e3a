// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_outlet.h"

#include <libsoup/soup.h>

#include "base/log.h"
#include "outlets/hls/hls_sessions.h"
#include "outlets/http/http_answer.h"
#include "run/clock.h"

#define NS_PER_MS G_GINT64_CONSTANT (1000000)
#define START_SLACK_NS G_GINT64_CONSTANT (15000000000) // for the first segment

static const gchar playlist_type[] = "application/vnd.apple.mpegurl";

struct _HlsOutlet {
  HlsSessions *sessions;
};

typedef struct {
  HttpReply reply;
  const HttpAsked *asked;
  HlsTarget target;
  HlsSession *session;             // NULL: there is none
  HlsSessions *begun;              // to which this request has added the session, or NULL
  HlsWindow *window;               // whose waiter this is, or NULL
  gint64 patience_ns, deadline_ns; // 0: not set yet
  guint status;
  gchar *reason;
  GPtrArray *blocks; // of GBytes
  guint next;
} Reply;

// ---- what is asked for ----

static void
set_block (Reply *self, GBytes *block)
{
  self->blocks = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  g_ptr_array_add (self->blocks, block);
}

static HlsStream *
get_stream (Reply *self)
{
  return hls_group_get_stream (hls_session_get_group (self->session), self->target.rendition);
}

// Only players with low latency use the reports, and these change with each part.
static void
add_reports (Reply *self)
{
  GBytes *reports =
      self->target.ask.kind == HLS_LIVE
          ? hls_group_write_reports (hls_session_get_group (self->session), self->window)
          : NULL;

  if (reports)
    g_ptr_array_add (self->blocks, reports);
}

static HlsState
take_file (Reply *self)
{
  GBytes *block = NULL;
  HlsState state;

  switch (self->target.thing) {
    case HLS_PLAYLIST:
      state = self->target.wrong
                  ? HLS_WRONG
                  : hls_window_get_playlist (self->window, &self->target.ask, &block);
      break;
    case HLS_INIT:
      state = hls_window_get_init (self->window, self->target.number, &block);
      break;
    case HLS_PART:
      state = hls_window_get_part (self->window, self->target.number, &block);
      break;
    case HLS_SEGMENT:
      return hls_window_get_segment (self->window, self->target.number, &self->blocks);
    default:
      return HLS_GONE;
  }
  if (block)
    set_block (self, block);
  if (block && self->target.thing == HLS_PLAYLIST)
    add_reports (self);
  return state;
}

static gboolean
fail (Reply *self, guint status, const gchar *reason)
{
  self->status = status;
  g_free (self->reason);
  self->reason = g_strdup (reason);
  return TRUE;
}

// Returns whether the answer is known.
static gboolean
ask_master (Reply *self)
{
  gchar *reason = NULL;
  GBytes *text;

  switch (hls_stream_ask (get_stream (self), &reason)) {
    case HLS_STREAM_STARTING:
      break;
    case HLS_STREAM_READY:
      text = hls_session_write_master (self->session, self->target.ask.kind);
      if (text)
        set_block (self, text);
      self->status = SOUP_STATUS_OK;
      return text != NULL;
    case HLS_STREAM_FAILED:
      fail (self, SOUP_STATUS_SERVICE_UNAVAILABLE, reason);
      break;
    case HLS_STREAM_UNSUPPORTED:
    case HLS_STREAM_UNFIT:
      fail (self, SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE, reason);
      break;
  }
  g_free (reason);
  return self->status != 0;
}

static gboolean
ask_file (Reply *self)
{
  gchar *reason = NULL;

  switch (take_file (self)) {
    case HLS_READY:
      self->status = SOUP_STATUS_OK;
      return TRUE;
    case HLS_GONE:
      return fail (self, SOUP_STATUS_NOT_FOUND, NULL);
    case HLS_WRONG:
      return fail (self, SOUP_STATUS_BAD_REQUEST,
          "_HLS_msn and _HLS_part must name what comes next (RFC 8216bis, 6.2.5.2)");
    case HLS_LATER:
      break;
  }
  if (!hls_stream_has_failed (get_stream (self)))
    return FALSE;
  hls_stream_ask (get_stream (self), &reason);
  fail (self, SOUP_STATUS_SERVICE_UNAVAILABLE, reason);
  g_free (reason);
  return TRUE;
}

// ---- the reply ----

static void
add_headers (Reply *self, HttpHead *head)
{
  gboolean is_text = self->target.thing <= HLS_PLAYLIST || self->status != SOUP_STATUS_OK;

  http_answer_add (head->headers, "Cache-Control", is_text ? "no-store" : "max-age=60");
  if (self->status == SOUP_STATUS_SERVICE_UNAVAILABLE)
    http_answer_add (head->headers, "Retry-After", "5");
}

// Ends the session that this request has begun, unless its client gets a playlist.
static void
drop_useless (Reply *self)
{
  if (self->begun && (self->status != SOUP_STATUS_OK || self->asked->request->head))
    hls_sessions_drop (self->begun, self->session);
  self->begun = NULL;
}

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  Reply *self = (Reply *) reply;
  gboolean is_master = self->target.thing == HLS_MASTER;

  if (self->deadline_ns == 0)
    self->deadline_ns = now_ns + self->patience_ns;
  if (self->status == 0 && !(is_master ? ask_master (self) : ask_file (self))) {
    if (now_ns < self->deadline_ns) {
      *wake_ns = self->deadline_ns;
      return FALSE;
    }
    fail (self, SOUP_STATUS_SERVICE_UNAVAILABLE,
        is_master ? "the stream takes too long to start (start-timeout)"
                  : "the stream has stopped");
  }
  drop_useless (self);
  *head = (HttpHead) { self->status, NULL, self->reason, head->headers, 0 };
  add_headers (self, head);
  if (self->status != SOUP_STATUS_OK)
    return TRUE;
  head->type = self->target.thing <= HLS_PLAYLIST ? playlist_type : "video/mp4";
  for (guint i = 0; i < self->blocks->len; i++)
    head->length += (gint64) g_bytes_get_size (g_ptr_array_index (self->blocks, i));
  return TRUE;
}

static GBytes *
next (HttpReply *reply, gboolean *ended)
{
  Reply *self = (Reply *) reply;

  *ended = self->next == self->blocks->len;
  return *ended ? NULL : g_bytes_ref (g_ptr_array_index (self->blocks, self->next++));
}

static void
sent (HttpReply *reply, gsize n)
{
  hls_session_add_bytes (((Reply *) reply)->session, n);
}

static void
free_reply (HttpReply *reply)
{
  Reply *self = (Reply *) reply;

  if (self->window)
    hls_window_leave (self->window, self->asked->wake_data);
  g_clear_pointer (&self->blocks, g_ptr_array_unref);
  drop_useless (self);
  if (self->session)
    hls_session_leave (self->session);
  g_clear_pointer (&self->session, hls_session_unref);
  g_free (self->reason);
  g_free (self);
}

static const HttpReplyOps reply_ops = {
  .begin = begin, .next = next, .sent = sent, .free = free_reply
};

// ---- requests ----

static void
begin_session (HlsOutlet *outlet, Reply *self)
{
  const HttpAsked *asked = self->asked;
  g_autoptr (MountConfig) config = NULL;
  gboolean is_new;

  self->session = hls_sessions_begin (
      outlet->sessions, asked, &self->target, &is_new, &self->status, &self->reason);
  if (!self->session)
    return;
  self->begun = is_new ? outlet->sessions : NULL;
  self->status = 0;
  config = mount_dup_config (asked->resolved->mount);
  self->patience_ns = config->start_timeout_ms * NS_PER_MS + START_SLACK_NS;
}

// Finds the session, or begins it again if dup_target() has said that its player may resume it.
static void
find_session (HlsOutlet *outlet, Reply *self)
{
  self->session = self->target.thing != HLS_NOTHING
                      ? hls_sessions_find (outlet->sessions, self->target.session)
                      : NULL;
  if (!self->session && self->asked->demand) {
    begin_session (outlet, self);
    if (!self->session)
      return;
  }
  if (self->session
      && (self->target.rendition >= hls_group_n_streams (hls_session_get_group (self->session))
          || self->target.window >= SEGMENT_TRACKS_MAX)) {
    fail (self, SOUP_STATUS_NOT_FOUND, NULL);
    drop_useless (self);
    g_clear_pointer (&self->session, hls_session_unref);
  } else if (!self->session) {
    fail (self, SOUP_STATUS_NOT_FOUND,
        self->target.thing != HLS_NOTHING ? "the session is over" : NULL);
  }
}

static HttpReply *
answer (gpointer outlet, const HttpAsked *asked)
{
  Reply *self = g_new0 (Reply, 1);

  self->reply.ops = &reply_ops;
  self->asked = asked;
  hls_target_parse (&self->target, asked->request->target);
  if (self->target.thing == HLS_MASTER)
    begin_session (outlet, self);
  else
    find_session (outlet, self);
  if (!self->session)
    return &self->reply;
  hls_session_enter (self->session);
  self->window = hls_stream_get_window (get_stream (self), self->target.window);
  if (self->patience_ns == 0)
    self->patience_ns = hls_window_get_patience (self->window);
  hls_window_wait (self->window, asked->wake, asked->wake_data);
  return &self->reply;
}

// A player that was silent, such as on a locked telephone, requests its own playlists again. It has
// no other way to its session than these, so its credentials are checked then.
static gchar *
dup_target (gpointer data, const gchar *target)
{
  HlsOutlet *outlet = data;
  HlsTarget parsed;

  hls_target_parse (&parsed, target);
  return parsed.thing == HLS_MASTER     ? hls_target_dup_mount (target)
         : parsed.thing == HLS_PLAYLIST ? hls_sessions_dup_target (outlet->sessions, parsed.session)
                                        : NULL;
}

static gboolean
begins (const HttpRequest *request)
{
  HlsTarget parsed;

  hls_target_parse (&parsed, request->target);
  return parsed.thing == HLS_MASTER;
}

HttpRoute
hls_outlet_get_route (HlsOutlet *self)
{
  return (HttpRoute) { HLS_PREFIX, ACCESS_READ, dup_target, answer, self, TRUE, .begins = begins };
}

HlsOutlet *
hls_outlet_new (const HlsSettings *settings, Mounts *mounts)
{
  HlsOutlet *self = g_new0 (HlsOutlet, 1);

  self->sessions = hls_sessions_new (settings, mounts);
  return self;
}

void
hls_outlet_free (HlsOutlet *self)
{
  hls_sessions_free (self->sessions);
  g_free (self);
}
