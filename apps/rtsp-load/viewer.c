// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "viewer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bits/bytes.h"
#include "ingest/udp.h"
#include "rtsp_text.h"
#include "run/clock.h"

#define MS INT64_C (1000000)
#define STEP_NS (5 * MS)
#define SLACK_NS (40 * MS) // as schedulesrc has by default
#define GROUPS_MAX 256
#define RANGES_MAX 32
#define PACKETS_MAX 128 // an answer with them is less than RTSP_TEXT_MAX
#define UNANSWERED_MAX 3

static void viewer_fail (Viewer *self, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

void
viewer_init (Viewer *self, guint index, const Target *target, Receiver *receiver, int epoll)
{
  *self = (Viewer) { .index = index, .target = target, .receiver = receiver, .epoll = epoll };
  self->fd = -1;
  self->due_ns = WEIR_NEVER;
  self->out = g_string_new (NULL);
  self->in = g_byte_array_new ();
}

static gboolean
is_live (const Viewer *self)
{
  return self->description->n_frames == 0;
}

// A live mount has one group, for all tracks.
static guint
n_receives (const Viewer *self)
{
  return is_live (self) ? 1 : self->description->n_receives;
}

const WeirFollowStats *
viewer_get_counts (const Viewer *self)
{
  return is_live (self) ? &self->live.stats : &self->follow.stats;
}

static void
leave (Viewer *self, guint receive)
{
  for (guint i = 0; i < VIEWER_TRACKS; i++) {
    if (self->fds[receive][i] >= 0)
      close (self->fds[receive][i]);
    self->fds[receive][i] = -1;
  }
}

static void
viewer_close (Viewer *self)
{
  for (guint i = 0; self->description && i < n_receives (self); i++)
    leave (self, i);
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
  self->due_ns = WEIR_NEVER;
}

static void
viewer_fail (Viewer *self, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  self->why = g_strdup_vprintf (format, args);
  va_end (args);
  viewer_close (self);
  self->state = VIEWER_FAILED;
}

void
viewer_clear (Viewer *self)
{
  viewer_close (self);
  weir_follow_clear (&self->follow, NULL);
  weir_live_clear (&self->live, NULL);
  g_free (self->description);
  g_free (self->fds);
  g_free (self->why);
  g_string_free (self->out, TRUE);
  g_byte_array_unref (self->in);
  rtsp_auth_clear (&self->auth);
}

// ---- requests ----

static void
watch_control (Viewer *self, int operation)
{
  struct epoll_event event = { .events = EPOLLIN,
    .data.u64 = (guint64) self->index << 16 | VIEWER_CONTROL };

  if (self->out->len > 0 || self->state == VIEWER_CONNECTING)
    event.events |= EPOLLOUT;
  epoll_ctl (self->epoll, operation, self->fd, &event);
}

static void
flush (Viewer *self)
{
  gssize n = send (self->fd, self->out->str, self->out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

  if (n > 0)
    g_string_erase (self->out, 0, n);
  watch_control (self, EPOLL_CTL_MOD);
}

// `headers` are complete lines.
static void
request (Viewer *self, const gchar *method, const gchar *headers, const gchar *body)
{
  gchar *auth = auth_header (&self->auth, method, self->target->uri);
  gchar *all = g_strconcat (headers, auth, NULL);

  rtsp_text_request (self->out, method, self->target->uri, ++self->cseq, all);
  g_string_append (self->out, body);
  g_free (all);
  g_free (auth);
  flush (self);
}

static void
describe (Viewer *self)
{
  self->state = VIEWER_DESCRIBING;
  self->due_ns = WEIR_NEVER;
  request (self, "DESCRIBE", "Accept: application/sdp\r\nSupported: x-weir-schedule\r\n", "");
}

static void
connect_to_server (Viewer *self)
{
  const Target *target = self->target;

  self->challenged = FALSE;
  self->fd = socket (target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (self->fd < 0
      || (connect (self->fd, (const struct sockaddr *) &target->address, target->address_len) < 0
          && errno != EINPROGRESS)) {
    viewer_fail (self, "cannot connect: %s", g_strerror (errno));
    return;
  }
  watch_control (self, EPOLL_CTL_ADD);
}

void
viewer_start (Viewer *self, gint64 now)
{
  self->began_ns = now;
  self->state = VIEWER_CONNECTING;
  self->due_ns = WEIR_NEVER;
  connect_to_server (self);
}

static void
ask (Viewer *self, gint64 now)
{
  WeirFollowRange ranges[RANGES_MAX];
  const gboolean newest = is_live (self) && !self->live.answered;
  gchar headers[96];
  GString *body;
  size_t n = 0;

  if (!is_live (self))
    n = weir_follow_ask (&self->follow, now, ranges, RANGES_MAX, PACKETS_MAX);
  else if (!newest)
    n = weir_live_ask (&self->live, now, ranges, RANGES_MAX, PACKETS_MAX);
  if (n == 0 && !newest)
    return;
  body = g_string_new (newest ? "live" : NULL);
  for (size_t i = 0; i < n; i++)
    g_string_append_printf (
        body, "%u %u-%u\r\n", ranges[i].track, ranges[i].from, ranges[i].to - 1);
  g_snprintf (headers, sizeof headers,
      "Content-Type: application/x-weir-ranges\r\nContent-Length: %u\r\n", (guint) body->len);
  self->asking = TRUE;
  if (self->fd < 0)
    connect_to_server (self);
  if (self->fd >= 0)
    request (self, "GET_PARAMETER", headers, body->str);
  g_string_free (body, TRUE);
}

// ---- answers ----

static void
note_live (Viewer *self, guint track, const WeirRtp *rtp, gboolean by_group, gsize len, gint64 now)
{
  void *item;

  if (by_group ? !weir_live_heard (&self->live, track, rtp, len, now)
               : !weir_live_answered (&self->live, track, rtp, len, now))
    return;
  while (weir_live_drop (&self->live, &item))
    ;
  weir_live_put (&self->live, track, rtp, by_group, now, NULL);
}

static void
note_packet (Viewer *self, guint track, guint32 number, const guint8 *data, gsize len, gint64 now)
{
  WeirRtp rtp;

  if (track >= self->description->n_tracks || weir_rtp_parse (data, len, &rtp) < 0)
    return;
  if (is_live (self))
    note_live (self, track, &rtp, FALSE, len, now);
  else if (weir_follow_answered (&self->follow, track, number, &rtp, len))
    weir_follow_put (&self->follow, track, number, &rtp, false, now, NULL);
}

static void
take_packets (Viewer *self, const guint8 *body, gsize size, gint64 now)
{
  WeirBytes b = weir_bytes (body, size);
  const uint8_t *packet;
  uint32_t number;
  uint16_t track, len;

  while (weir_bytes_u32 (&b, &number) && weir_bytes_u16 (&b, &track) && weir_bytes_u16 (&b, &len)
         && weir_bytes_take (&b, len, &packet))
    note_packet (self, track, number, packet, len, now);
  if (is_live (self))
    weir_live_answer_ends (&self->live);
}

// Reads the clock rate of each media's first format.
static void
read_clock_rates (const gchar *sdp, guint32 *rates)
{
  gchar **lines = g_strsplit (sdp, "\n", 0);
  gint track = -1;

  for (gchar **line = lines; *line; line++) {
    guint rate;

    if (g_str_has_prefix (*line, "m="))
      track++;
    else if (track >= 0 && track < VIEWER_TRACKS && rates[track] == 0
             && sscanf (*line, "a=rtpmap:%*u %*[^/]/%u", &rate) == 1)
      rates[track] = rate;
  }
  g_strfreev (lines);
}

// Begins to follow a description. Returns FALSE if a format is not known.
static gboolean
begin_following (
    Viewer *self, const WeirDescription *d, const WeirFollowSettings *settings, gint64 now)
{
  if (d->n_frames > 0)
    return weir_follow_init (&self->follow, d, settings, now) == 0;
  if (weir_live_init (&self->live, d->n_tracks, settings) < 0)
    return FALSE;
  weir_live_begin (&self->live, d->times, now);
  return TRUE;
}

static void join (Viewer *self, guint receive);

static void
take_description (Viewer *self, const guint8 *body, gsize size, gint64 now)
{
  WeirFollowSettings settings = { .slack_ns = SLACK_NS, .max_groups = GROUPS_MAX };
  WeirDescription *description = g_new0 (WeirDescription, 1);
  gchar *sdp = g_strndup ((const gchar *) body, size);
  char why[WEIR_DESCRIPTION_WHY];

  read_clock_rates (sdp, settings.clock_rate);
  if (weir_description_read (description, sdp, strlen (sdp), why) < 0)
    viewer_fail (self, "no schedule: %s", why);
  else if (!begin_following (self, description, &settings, now))
    viewer_fail (self, "the description has a media whose format is not known");
  else {
    self->description = g_steal_pointer (&description);
    self->fds = g_malloc_n (self->description->n_receives + 1, sizeof *self->fds);
    memset (self->fds, 0xff, (self->description->n_receives + 1) * sizeof *self->fds);
    self->state = VIEWER_FOLLOWING;
    self->due_ns = now;
    if (is_live (self))
      join (self, 0);
    else
      self->wait_ns = self->follow.play_ns - self->began_ns;
  }
  g_free (description);
  g_free (sdp);
}

// The next request opens another connection. What was asked for is asked for again, as servers
// close connections without a session after some time.
static void
lose_connection (Viewer *self)
{
  if (self->asking && ++self->n_unanswered > UNANSWERED_MAX) {
    viewer_fail (self, "the server closes each connection without an answer");
    return;
  }
  close (self->fd);
  self->fd = -1;
  g_string_truncate (self->out, 0);
  g_byte_array_set_size (self->in, 0);
  if (self->asking && !is_live (self))
    weir_follow_ask_again (&self->follow);
  self->asking = FALSE;
}

static gint64
read_retry (const gchar *retry, gint64 now)
{
  return now + (gint64) CLAMP (g_ascii_strtoull (retry, NULL, 10), 1, 3600) * 1000 * MS;
}

static gboolean
challenge (Viewer *self, GstRTSPMessage *answer)
{
  if (self->challenged || !self->target->user
      || !auth_take_challenge (&self->auth, answer, self->target->user, self->target->password))
    return FALSE;
  self->challenged = TRUE;
  return TRUE;
}

static void
fail_by_answer (Viewer *self, GstRTSPMessage *answer)
{
  guint8 *body = NULL;
  guint size = 0;

  gst_rtsp_message_get_body (answer, &body, &size);
  viewer_fail (self, "the server answers %u: %.*s", answer->type_data.response.code,
      (int) MIN (size, 100), body ? (const gchar *) body : "");
}

// The answer to a request for packets.
static void
on_packets (Viewer *self, GstRTSPMessage *answer, gint64 now)
{
  GstRTSPStatusCode status = answer->type_data.response.code;
  const gchar *retry = rtsp_text_header (answer, GST_RTSP_HDR_RETRY_AFTER);
  guint8 *body = NULL;
  guint size = 0;

  self->asking = FALSE;
  self->n_unanswered = 0;
  if (status == GST_RTSP_STS_OK) {
    self->challenged = FALSE;
    gst_rtsp_message_get_body (answer, &body, &size);
    take_packets (self, body, size, now);
  } else if (status == GST_RTSP_STS_SERVICE_UNAVAILABLE && retry) {
    self->ask_ns = read_retry (retry, now);
  } else if (status != GST_RTSP_STS_UNAUTHORIZED || !challenge (self, answer)) {
    fail_by_answer (self, answer);
    return;
  }
  if (!is_live (self))
    weir_follow_ask_again (&self->follow);
}

static void
on_answer (Viewer *self, GstRTSPMessage *answer, gint64 now)
{
  GstRTSPStatusCode status = answer->type_data.response.code;
  const gchar *retry = rtsp_text_header (answer, GST_RTSP_HDR_RETRY_AFTER);
  guint8 *body = NULL;
  guint size = 0;

  gst_rtsp_message_get_body (answer, &body, &size);
  if (self->state == VIEWER_FOLLOWING) {
    on_packets (self, answer, now);
  } else if (status == GST_RTSP_STS_OK) {
    take_description (self, body, size, now);
  } else if (status == GST_RTSP_STS_SERVICE_UNAVAILABLE && retry) {
    self->state = VIEWER_RETRYING;
    self->due_ns = read_retry (retry, now);
  } else if (status == GST_RTSP_STS_UNAUTHORIZED && challenge (self, answer)) {
    describe (self);
  } else {
    fail_by_answer (self, answer);
  }
}

static void
read_answers (Viewer *self, gint64 now)
{
  GstRTSPMessage *answer = NULL;
  RtspText kind;
  gsize used;

  while (self->fd >= 0
         && (kind = rtsp_text_read (self->in->data, self->in->len, &answer, &used))
                != RTSP_TEXT_PARTIAL) {
    if (kind == RTSP_TEXT_BAD) {
      viewer_fail (self, "the server's answer is malformed");
      return;
    }
    if (kind == RTSP_TEXT_ANSWER) {
      on_answer (self, answer, now);
      gst_rtsp_message_free (g_steal_pointer (&answer));
    }
    g_byte_array_remove_range (self->in, 0, (guint) used);
  }
}

static void
on_control (Viewer *self, guint32 events, gint64 now)
{
  guint8 room[65536];
  gssize n;

  if (self->state == VIEWER_CONNECTING) {
    int error = 0;
    socklen_t len = sizeof error;

    getsockopt (self->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error)
      viewer_fail (self, "cannot connect: %s", g_strerror (error));
    else
      describe (self);
    return;
  }
  if (events & EPOLLOUT)
    flush (self);
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
    return;
  n = recv (self->fd, room, sizeof room, MSG_DONTWAIT);
  if (n > 0) {
    g_byte_array_append (self->in, room, (guint) n);
    read_answers (self, now);
  } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  } else if (self->state == VIEWER_FOLLOWING || self->state == VIEWER_RETRYING) {
    lose_connection (self);
  } else {
    viewer_fail (self, "the server closed the connection");
  }
}

// ---- groups ----

typedef struct {
  Viewer *viewer;
  guint receive, track;
} Heard;

static void
on_packet (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns)
{
  const Heard *heard = user;
  Viewer *self = heard->viewer;
  uint32_t number;
  WeirRtp rtp;

  if (weir_rtp_parse (data, len, &rtp) < 0)
    return;
  if (is_live (self))
    note_live (self, heard->track, &rtp, TRUE, len, arrival_ns);
  else if (weir_follow_heard (
               &self->follow, heard->receive, heard->track, &rtp, len, arrival_ns, &number))
    weir_follow_put (&self->follow, heard->track, number, &rtp, true, arrival_ns, NULL);
}

static void
join (Viewer *self, guint receive)
{
  const WeirDescription *d = self->description;
  const WeirDescribedChannel *channel =
      is_live (self) ? &d->channels[0]
                     : weir_description_find_channel (d, d->receives[receive].channel);

  for (guint track = 0; track < d->n_tracks; track++) {
    struct epoll_event event = { .events = EPOLLIN,
      .data.u64 = (guint64) self->index << 16 | (receive * VIEWER_TRACKS + track) };
    WeirAddress group = channel->group;
    const guint16 port = (guint16) (weir_address_port (&group) + 2 * track);

    if (group.any.sa_family == AF_INET6)
      group.v6.sin6_port = g_htons (port);
    else
      group.v4.sin_port = g_htons (port);
    self->fds[receive][track] = weir_udp_open (&group, 0, 0, FALSE);
    if (self->fds[receive][track] < 0) {
      leave (self, receive);
      if (!is_live (self))
        weir_follow_leave_now (&self->follow, receive);
      return;
    }
    epoll_ctl (self->epoll, EPOLL_CTL_ADD, self->fds[receive][track], &event);
  }
}

void
viewer_on_event (Viewer *self, guint source, guint32 events, gint64 now)
{
  Heard heard = { self, source / VIEWER_TRACKS, source % VIEWER_TRACKS };
  guint32 drops;

  if (self->state >= VIEWER_DONE)
    return;
  if (source == VIEWER_CONTROL) {
    if (self->fd >= 0)
      on_control (self, events, now);
    return;
  }
  if (self->fds[heard.receive][heard.track] >= 0)
    receiver_read (
        self->receiver, self->fds[heard.receive][heard.track], &drops, on_packet, &heard);
}

static void
follow_live (Viewer *self, gint64 now)
{
  WeirFollowOut out;
  int64_t due;

  for (guint track = 0; track < self->description->n_tracks; track++) {
    while (weir_live_take (&self->live, track, now, &out, &due))
      ;
  }
  if (!self->asking && now >= self->ask_ns)
    ask (self, now);
  self->due_ns = now + STEP_NS;
}

static void
follow (Viewer *self, gint64 now)
{
  WeirFollowOut out;
  uint32_t receive;
  int64_t due;
  gboolean ended = TRUE;

  while (weir_follow_leave (&self->follow, now, &receive))
    leave (self, receive);
  while (weir_follow_join (&self->follow, now, &receive))
    join (self, receive);
  for (guint track = 0; track < self->description->n_tracks; track++) {
    while (weir_follow_take (&self->follow, track, now, &out, &due))
      ;
    ended = ended && weir_follow_ended (&self->follow, track);
  }
  if (ended) {
    viewer_close (self);
    self->state = VIEWER_DONE;
    return;
  }
  if (!self->asking && now >= self->ask_ns)
    ask (self, now);
  self->due_ns = now + STEP_NS;
}

void
viewer_on_time (Viewer *self, gint64 now)
{
  if (self->state == VIEWER_RETRYING && self->fd < 0)
    viewer_start (self, self->began_ns);
  else if (self->state == VIEWER_RETRYING)
    describe (self);
  else if (self->state == VIEWER_FOLLOWING && is_live (self))
    follow_live (self, now);
  else if (self->state == VIEWER_FOLLOWING)
    follow (self, now);
}
