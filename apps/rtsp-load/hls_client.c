// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "hls_client.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REDIRECTS_MAX 5
#define ARRIVALS_MAX 64
#define BUFFER_PARTS 3 // that a player holds when it begins
#define READS_MAX 8    // of one connection in a row, so that the others have their turn

static void hls_client_fail (HlsClient *self, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

void
hls_client_init (HlsClient *self, guint index, const Target *target, HlsCounts *counts, int epoll)
{
  *self = (HlsClient) { .index = index, .target = target, .counts = counts, .epoll = epoll };
  self->arrivals = g_array_new (FALSE, FALSE, sizeof (HlsArrival));
  for (guint i = 0; i < HLS_CONNECTIONS; i++) {
    self->connections[i].fd = -1;
    self->connections[i].out = g_string_new (NULL);
    http_reply_init (&self->connections[i].reply);
  }
}

static void
hang_up (HlsConnection *connection)
{
  if (connection->fd >= 0)
    close (connection->fd);
  connection->fd = -1;
}

void
hls_client_clear (HlsClient *self)
{
  for (guint i = 0; i < HLS_CONNECTIONS; i++) {
    hang_up (&self->connections[i]);
    g_free (self->connections[i].uri);
    g_string_free (self->connections[i].out, TRUE);
    http_reply_clear (&self->connections[i].reply);
  }
  g_queue_clear_full (&self->wanted, g_free);
  g_array_unref (self->arrivals);
  g_free (self->why);
  g_free (self->cookie);
  g_free (self->playlist);
  g_free (self->last);
}

static void
hls_client_fail (HlsClient *self, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  if (!self->why)
    self->why = g_strdup_vprintf (format, args);
  va_end (args);
  for (guint i = 0; i < HLS_CONNECTIONS; i++)
    hang_up (&self->connections[i]);
}

// ---- requests ----

static void
watch (HlsClient *self, HlsConnectionKind kind, int operation)
{
  HlsConnection *connection = &self->connections[kind];
  struct epoll_event event = { .events = EPOLLIN,
    .data.u64 = (guint64) self->index << 1 | (guint64) kind };

  if (connection->connecting || connection->out->len > 0)
    event.events |= EPOLLOUT;
  epoll_ctl (self->epoll, operation, connection->fd, &event);
}

static void
flush (HlsClient *self, HlsConnectionKind kind)
{
  HlsConnection *connection = &self->connections[kind];
  gssize n = send (
      connection->fd, connection->out->str, connection->out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

  if (n > 0)
    g_string_erase (connection->out, 0, n);
  if (connection->out->len > 0)
    watch (self, kind, EPOLL_CTL_MOD);
}

static gboolean
open_connection (HlsClient *self, HlsConnectionKind kind)
{
  HlsConnection *connection = &self->connections[kind];

  connection->fd = target_connect (self->target);
  if (connection->fd < 0) {
    hls_client_fail (self, "cannot connect: %s", g_strerror (errno));
    return FALSE;
  }
  connection->connecting = TRUE;
  watch (self, kind, EPOLL_CTL_ADD);
  return TRUE;
}

static void
write_request (HlsClient *self, HlsConnection *connection)
{
  gchar *path = target_dup_path (connection->uri);

  g_string_printf (connection->out, "GET %s HTTP/1.1\r\n", path);
  target_add_fields (self->target, connection->out);
  if (self->cookie)
    g_string_append_printf (connection->out, "Cookie: %s\r\n", self->cookie);
  g_string_append (connection->out, "\r\n");
  g_free (path);
}

// Asks for a URI, whose ownership it takes.
static void
ask (HlsClient *self, HlsConnectionKind kind, gchar *uri, gint64 now)
{
  HlsConnection *connection = &self->connections[kind];

  g_free (connection->uri);
  connection->uri = uri;
  connection->asked_ns = now;
  http_reply_reset (&connection->reply, kind == HLS_PLAYLISTS);
  write_request (self, connection);
  if (connection->fd < 0)
    open_connection (self, kind);
  else
    flush (self, kind);
}

// Returns a URI that stands in the playlist or an answer, or NULL if it leads to another server.
static gchar *
resolve (HlsClient *self, const gchar *base, const gchar *relative)
{
  gchar *uri = g_uri_resolve_relative (base, relative, G_URI_FLAGS_ENCODED, NULL);
  GUri *parsed = uri ? g_uri_parse (uri, G_URI_FLAGS_ENCODED, NULL) : NULL;
  GUri *own = g_uri_parse (self->target->uri, G_URI_FLAGS_ENCODED, NULL);

  if (!parsed || g_strcmp0 (g_uri_get_scheme (parsed), "http") != 0
      || g_strcmp0 (g_uri_get_host (parsed), g_uri_get_host (own)) != 0
      || g_uri_get_port (parsed) != g_uri_get_port (own)) {
    hls_client_fail (self, "the URI \"%.200s\" cannot be followed", relative);
    g_clear_pointer (&uri, g_free);
  }
  g_clear_pointer (&parsed, g_uri_unref);
  g_uri_unref (own);
  return uri;
}

static void
ask_for_media (HlsClient *self, gint64 now)
{
  if (!self->connections[HLS_MEDIA].uri && !g_queue_is_empty (&self->wanted))
    ask (self, HLS_MEDIA, g_queue_pop_head (&self->wanted), now);
}

// ---- playback ----

// A player that has BUFFER_PARTS parts plays one after the other; it stops for one that is late.
static void
play (HlsClient *self, const HlsPart *part, gint64 at_ns, gint64 part_target_us)
{
  if (!self->plays) {
    self->plays = TRUE;
    self->due_ns = at_ns + BUFFER_PARTS * part_target_us * 1000;
    weir_histogram_add (&self->counts->start_up, at_ns - self->began_ns);
  } else if (at_ns > self->due_ns) {
    self->counts->stalls++;
    self->due_ns = at_ns;
  }
  self->due_ns += part->duration_us * 1000;
}

static void
note_arrival (HlsClient *self, const HlsPart *part, gint64 part_target_us)
{
  const gint64 end_us = part->begin_us + part->duration_us;
  guint hash = g_str_hash (part->uri);

  for (guint i = 0; i < self->arrivals->len; i++) {
    const HlsArrival arrival = g_array_index (self->arrivals, HlsArrival, i);

    if (arrival.uri_hash != hash)
      continue;
    if (part->begin_us)
      weir_histogram_add (&self->counts->latency, MAX (arrival.at_us - end_us, 0) * 1000);
    play (self, part, arrival.at_ns, part_target_us);
    g_array_remove_index (self->arrivals, i);
    return;
  }
}

// ---- playlists ----

static void
want (HlsClient *self, const gchar *uri)
{
  gchar *full = resolve (self, self->playlist, uri);

  if (full)
    g_queue_push_tail (&self->wanted, full);
}

static void
want_part (HlsClient *self, const gchar *uri)
{
  want (self, uri);
  g_free (self->last);
  self->last = g_strdup (uri);
}

// Returns the number of the first part to ask for.
static guint
find_first (HlsClient *self, const HlsPlaylist *list)
{
  guint first = list->parts->len;

  for (guint i = list->parts->len; i-- > 0;) {
    const HlsPart *part = &g_array_index (list->parts, HlsPart, i);

    if (self->last ? g_str_equal (part->uri, self->last) : part->independent)
      return self->last ? i + 1 : i;
  }
  if (self->last && g_strcmp0 (self->last, list->hint) != 0) {
    self->counts->skipped++;
    return first > 0 ? first - 1 : 0;
  }
  return first;
}

static void
want_news (HlsClient *self, const HlsPlaylist *list)
{
  if (!self->last && list->map)
    want (self, list->map);
  for (guint i = find_first (self, list); i < list->parts->len; i++)
    want_part (self, g_array_index (list->parts, HlsPart, i).uri);
  if (self->last && list->hint && !g_str_equal (self->last, list->hint))
    want_part (self, list->hint);
}

static void
reload (HlsClient *self, const HlsPlaylist *list, gint64 now)
{
  gchar *uri = g_strdup_printf ("%s%c_HLS_msn=%" G_GUINT64_FORMAT "&_HLS_part=%u", self->playlist,
      strchr (self->playlist, '?') ? '&' : '?', list->sequence, list->n_open);

  ask (self, HLS_PLAYLISTS, uri, now);
}

static void
take_playlist (HlsClient *self, const gchar *text, gint64 now)
{
  HlsPlaylist list;

  if (!hls_text_read (&list, text)) {
    hls_client_fail (self, "the answer is no playlist");
  } else if (!list.can_block || list.part_target_us == 0) {
    hls_client_fail (self, "the playlist is not of Low-Latency HLS");
  } else {
    self->counts->playlists++;
    for (guint i = 0; i < list.parts->len && self->arrivals->len > 0; i++)
      note_arrival (self, &g_array_index (list.parts, HlsPart, i), list.part_target_us);
    want_news (self, &list);
    if (!self->why) {
      ask_for_media (self, now);
      reload (self, &list, now);
    }
  }
  hls_text_clear (&list);
}

static void
take_first (HlsClient *self, const gchar *base, const gchar *text, gint64 now)
{
  gchar *rendition = hls_text_find_rendition (text);

  self->playlist = rendition ? resolve (self, base, rendition) : g_strdup (base);
  if (rendition && self->playlist)
    ask (self, HLS_PLAYLISTS, g_strdup (self->playlist), now);
  else if (self->playlist)
    take_playlist (self, text, now);
  g_free (rendition);
}

// ---- answers ----

static void
redirect (HlsClient *self, HlsConnectionKind kind, const gchar *from, gint64 now)
{
  const HttpReply *reply = &self->connections[kind].reply;
  gchar *to = reply->location ? resolve (self, from, reply->location) : NULL;

  if (to && ++self->redirects <= REDIRECTS_MAX)
    ask (self, kind, to, now);
  else {
    hls_client_fail (self, "too many redirects, or one without a place");
    g_free (to);
  }
}

static void
take_media (HlsClient *self, const gchar *uri, gint64 now)
{
  const gchar *base = self->playlist;
  HlsArrival arrival = { .at_ns = now, .at_us = g_get_real_time () };
  gchar *slash = strrchr (base, '/');
  gsize folder = slash ? (gsize) (slash - base) + 1 : 0;

  // The playlist names parts by a relative URI, as a rule.
  arrival.uri_hash = g_str_hash (strncmp (uri, base, folder) == 0 ? uri + folder : uri);
  self->counts->parts++;
  g_array_append_val (self->arrivals, arrival);
  if (self->arrivals->len > ARRIVALS_MAX)
    g_array_remove_index (self->arrivals, 0);
}

static void
on_answer (HlsClient *self, HlsConnectionKind kind, gint64 now)
{
  HlsConnection *connection = &self->connections[kind];
  const HttpReply *reply = &connection->reply;
  gchar *uri = g_steal_pointer (&connection->uri);

  self->counts->bytes += reply->n_body;
  if (reply->cookie) {
    g_free (self->cookie);
    self->cookie = g_strdup (reply->cookie);
  }
  if (reply->closes)
    hang_up (connection);
  if (reply->status >= 300 && reply->status < 400)
    redirect (self, kind, uri, now);
  else if (reply->status != 200)
    hls_client_fail (self, "the server answers %u to %s", reply->status, uri);
  else if (kind == HLS_MEDIA)
    take_media (self, uri, now);
  else if (self->playlist)
    take_playlist (self, reply->body->str, now);
  else
    take_first (self, uri, reply->body->str, now);
  if (!self->why)
    ask_for_media (self, now);
  g_free (uri);
}

// Returns the number of bytes that came, 0 at the end, or -1 with errno.
static gssize
receive (HlsConnection *connection, gboolean *done)
{
  static gchar room[65536];
  HttpReply *reply = &connection->reply;
  gsize skip = http_reply_skippable (reply);
  gssize n, used;

  if (skip > 0) {
    // With MSG_TRUNC the kernel drops the bytes (tcp(7)).
    n = recv (connection->fd, NULL, skip, MSG_DONTWAIT | MSG_TRUNC);
    *done = n > 0 && http_reply_skip (reply, (gsize) n);
    return n;
  }
  n = recv (connection->fd, room, sizeof room, MSG_DONTWAIT);
  if (n <= 0)
    return n;
  used = http_reply_read (reply, room, (gsize) n, done);
  if (used == n)
    return n;
  errno = EBADMSG;
  return -1;
}

static void
read_answer (HlsClient *self, HlsConnectionKind kind, gint64 now)
{
  HlsConnection *connection = &self->connections[kind];

  for (guint i = 0; i < READS_MAX && connection->fd >= 0; i++) {
    gboolean done = FALSE;
    gssize n = receive (connection, &done);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n == 0 && !connection->uri) {
      hang_up (connection);
    } else if (n <= 0) {
      hls_client_fail (self, "%s, asked for %s",
          n == 0             ? "the server closed the connection"
          : errno == EBADMSG ? "the answer is malformed"
                             : g_strerror (errno),
          connection->uri ? connection->uri : "nothing");
    } else if (done && connection->uri) {
      on_answer (self, kind, now);
      return;
    }
  }
}

static gboolean
end_connecting (HlsClient *self, HlsConnectionKind kind)
{
  HlsConnection *connection = &self->connections[kind];
  int error = 0;
  socklen_t len = sizeof error;

  getsockopt (connection->fd, SOL_SOCKET, SO_ERROR, &error, &len);
  connection->connecting = FALSE;
  if (error)
    hls_client_fail (self, "cannot connect: %s", g_strerror (error));
  return error == 0;
}

void
hls_client_on_event (HlsClient *self, HlsConnectionKind kind, guint32 events, gint64 now)
{
  HlsConnection *connection = &self->connections[kind];

  if (connection->fd < 0 || (connection->connecting && !end_connecting (self, kind)))
    return;
  if (events & EPOLLOUT) {
    flush (self, kind);
    if (connection->out->len == 0)
      watch (self, kind, EPOLL_CTL_MOD);
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
    read_answer (self, kind, now);
}

// ---- the run ----

void
hls_client_start (HlsClient *self, gint64 now, gint64 timeout_ns)
{
  self->began_ns = now;
  self->timeout_ns = timeout_ns;
  ask (self, HLS_PLAYLISTS, g_strdup (self->target->uri), now);
}

void
hls_client_check_time (HlsClient *self, gint64 now)
{
  for (guint i = 0; i < HLS_CONNECTIONS && !self->why; i++) {
    const HlsConnection *connection = &self->connections[i];

    if (connection->uri && now - connection->asked_ns > self->timeout_ns)
      hls_client_fail (
          self, "no answer within %.0f s to %s", (gdouble) self->timeout_ns / 1e9, connection->uri);
  }
}
