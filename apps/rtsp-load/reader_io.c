// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "reader_io.h"

#include "bits/bytes.h"
#include "load.h"
#include "rtsp_text.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MAX_UNSENT 65536 // bytes of unsent output; above, RTCP over TCP is dropped

static void
control_epoll (Reader *self, int what, guint32 events)
{
  struct epoll_event event = { .events = events, .data.ptr = &self->control };

  epoll_ctl (self->load->epoll, what, self->control.fd, &event);
}

int
reader_io_connect (Reader *self)
{
  const Target *target = self->target;
  int on = 1, fd;

  fd = socket (target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  self->control.fd = fd;
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt (fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  if (connect (fd, (const struct sockaddr *) &target->address, target->address_len) < 0
      && errno != EINPROGRESS)
    return -errno;
  self->wants_write = TRUE;
  control_epoll (self, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
  return 0;
}

static void
want_write (Reader *self, gboolean wanted)
{
  if (self->wants_write == wanted)
    return;
  self->wants_write = wanted;
  control_epoll (self, EPOLL_CTL_MOD, EPOLLIN | (wanted ? EPOLLOUT : 0));
}

void
reader_io_flush (Reader *self)
{
  while (self->out->len > 0) {
    gssize n = send (self->control.fd, self->out->str, self->out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0)
      break; // a broken connection shows when it is read
    g_string_erase (self->out, 0, n);
  }
  want_write (self, self->out->len > 0);
}

void
reader_io_watch (Reader *self, Source *source, guint32 events)
{
  struct epoll_event event = { .events = events, .data.ptr = source };

  epoll_ctl (self->load->epoll, EPOLL_CTL_ADD, source->fd, &event);
}

void
reader_io_unwatch (Reader *self, Source *source)
{
  epoll_ctl (self->load->epoll, EPOLL_CTL_DEL, source->fd, NULL);
}

void
reader_io_close (Reader *self, Source *source)
{
  if (source->fd >= 0)
    close (source->fd);
  source->fd = -1;
}

// Adds how far apart audio and video of one instant arrive, by the newest frame of each.
static void
note_skew (const Reader *self, const Track *video)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    const Track *other = &self->tracks[i];

    if (!other->video && other->late_known && video->late_known)
      weir_histogram_add (&self->load->results.av_skew, ABS (video->late_ns - other->late_ns));
  }
}

static void
note_first (Reader *self, const Track *track)
{
  Results *results = &self->load->results;

  if (self->first_packet_ns == 0 && track->first_ns) {
    self->first_packet_ns = track->first_ns;
    weir_histogram_add (&results->first_packet, self->first_packet_ns - self->play_ns);
  }
  if (self->first_frame_ns == 0 && track->first_frame_ns) {
    self->first_frame_ns = track->first_frame_ns;
    weir_histogram_add (&results->first_frame, self->first_frame_ns - self->play_ns);
  }
}

static void
compare (Reader *self, const WeirRtp *rtp, const guint8 *data, gint64 arrival_ns)
{
  Load *load = self->load;
  guint64 key = against_key (rtp->timestamp, data + rtp->payload_offset, rtp->payload_length);

  if (self->origin) {
    against_add_origin (load->against, key, arrival_ns);
    return;
  }
  if (against_is_full (load->against))
    load_match (load, G_MAXINT64);
  against_add_reader (load->against, key, arrival_ns);
}

static void
on_rtp (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns)
{
  Track *track = user;
  Reader *reader = track->rtp.reader;
  Load *load = reader->load;
  guint64 frames = track->n_frames;
  WeirRtp rtp;

  if (reader->state < READER_STARTING)
    return;
  if (weir_rtp_parse (data, len, &rtp) != 0) {
    track->invalid++;
    return;
  }
  track_rtp (track, reader->measured ? &load->results : NULL, &rtp, data, len, arrival_ns);
  if (load->against && (reader->measured || reader->origin))
    compare (reader, &rtp, data, arrival_ns);
  if (!reader->measured)
    return;
  note_first (reader, track);
  if (track->video && track->n_frames != frames)
    note_skew (reader, track);
}

static void
on_rtcp (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns)
{
  track_rtcp (user, data, len, arrival_ns);
}

typedef struct {
  Track *track;
  gint64 arrival_ns;
} Unjudged;

GArray *
reader_io_unjudged (void)
{
  return g_array_new (FALSE, FALSE, sizeof (Unjudged));
}

// Counts a datagram that arrived before the answer to PLAY. While the answer is not read, it may
// already have arrived: then the datagram waits in Load.unjudged.
static void
note_early (Track *track, gint64 arrival_ns)
{
  const Reader *reader = track->rtp.reader;
  Unjudged unjudged = { track, arrival_ns };

  if (reader->state == READER_STARTING)
    g_array_append_val (reader->load->unjudged, unjudged);
  else if (reader->state == READER_PLAYING)
    track->early += arrival_ns < reader->answered_ns;
}

static void
on_rtp_datagram (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns)
{
  note_early (user, arrival_ns);
  on_rtp (user, data, len, arrival_ns);
}

static void
on_rtcp_datagram (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns)
{
  note_early (user, arrival_ns);
  on_rtcp (user, data, len, arrival_ns);
}

static int
read_datagrams (Source *source)
{
  return receiver_read (source->reader->load->receiver, source->fd, &source->track->socket_drops,
      source->kind == SOURCE_RTP ? on_rtp_datagram : on_rtcp_datagram, source->track);
}

void
reader_io_drain (Reader *self)
{
  if (!self->udp || self->ignores_media || self->slow)
    return;
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];

    // The limit keeps a socket that never runs empty from blocking the others.
    for (int n = 0; n < 1000 && track->rtp.fd >= 0 && read_datagrams (&track->rtp) > 0; n++)
      ;
  }
}

void
reader_io_send_rtcp (Reader *self, Track *track, const guint8 *data, gsize len)
{
  if (self->udp) {
    if (track->rtcp.fd >= 0 && track->rtcp_to_len)
      sendto (track->rtcp.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL,
          (struct sockaddr *) &track->rtcp_to, track->rtcp_to_len);
    return;
  }
  if (self->out->len + len > MAX_UNSENT)
    return;
  g_string_append_c (self->out, '$');
  g_string_append_c (self->out, (gchar) (track->channel + 1));
  g_string_append_c (self->out, (gchar) (len >> 8));
  g_string_append_c (self->out, (gchar) len);
  g_string_append_len (self->out, (const gchar *) data, (gssize) len);
  reader_io_flush (self);
}

static void
on_frame (Reader *self, guint8 channel, const guint8 *data, gsize len, gint64 now)
{
  if (self->ignores_media)
    return;
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];

    if (channel == track->channel || channel == track->channel + 1)
      track->early += self->state == READER_STARTING;
    if (channel == track->channel)
      on_rtp (track, data, len, now);
    else if (channel == track->channel + 1)
      on_rtcp (track, data, len, now);
  }
}

// Handles the first interleaved frame or message. Returns FALSE if it is incomplete, or if the
// reader has been closed.
static gboolean
take_one (Reader *self, WeirBytes *bytes, gint64 now)
{
  const guint8 *body;
  guint8 dollar, channel;
  guint16 size;
  WeirBytes frame = *bytes;

  if (bytes->at[0] == '$') {
    weir_bytes_u8 (&frame, &dollar);
    weir_bytes_u8 (&frame, &channel);
    weir_bytes_u16 (&frame, &size);
    if (!weir_bytes_take (&frame, size, &body))
      return FALSE;
    *bytes = frame;
    on_frame (self, channel, body, size, now);
  } else if (bytes->at[0] == '\r' || bytes->at[0] == '\n') {
    weir_bytes_skip (bytes, 1);
  } else {
    GstRTSPMessage *answer = NULL;
    gsize used = 0;

    switch (rtsp_text_read (bytes->at, weir_bytes_left (bytes), &answer, &used)) {
      case RTSP_TEXT_PARTIAL:
        return FALSE;
      case RTSP_TEXT_BAD:
        reader_fail (self, "bad-answer", "the server sent bytes that are not RTSP");
        return FALSE;
      case RTSP_TEXT_ANSWER:
        reader_on_answer (self, answer, now);
        gst_rtsp_message_free (answer);
        break;
      case RTSP_TEXT_REQUEST:
        break;
    }
    weir_bytes_skip (bytes, used);
  }
  return self->control.fd >= 0;
}

static void
keep_rest (Reader *self, const WeirBytes *rest)
{
  self->in_len = weir_bytes_left (rest);
  if (self->in_len > self->in_room) {
    self->in_room = self->in_len * 2;
    self->in = g_realloc (self->in, self->in_room);
  }
  if (self->in_len)
    memcpy (self->in, rest->at, self->in_len);
}

static void
on_closed (Reader *self, int error)
{
  if (self->state == READER_LEAVING) {
    reader_close (self);
    return;
  }
  reader_fail (self, "closed", "the server closed the connection%s%s", error ? ": " : "",
      error ? g_strerror (error) : "");
}

static void
on_readable (Reader *self)
{
  guint8 *scratch = self->load->scratch;
  WeirBytes bytes;
  gint64 now;
  gssize n;

  if (self->in_len)
    memcpy (scratch, self->in, self->in_len);
  n = receiver_read_stream (self->load->receiver, self->control.fd, scratch + self->in_len,
      LOAD_SCRATCH - self->in_len, &self->heard_ns);
  if (n <= 0) {
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
      on_closed (self, n == 0 ? 0 : errno);
    return;
  }
  now = receiver_sync (self->load->receiver);
  bytes = weir_bytes (scratch, self->in_len + (gsize) n);
  while (weir_bytes_left (&bytes) > 0 && take_one (self, &bytes, now))
    ;
  if (self->control.fd >= 0)
    keep_rest (self, &bytes);
}

void
reader_io_on_datagram (Source *source)
{
  Reader *self = source->reader;
  GArray *unjudged = self->load->unjudged;

  read_datagrams (source);
  if (unjudged->len == 0)
    return;
  // If the answer is still missing after this read, the waiting datagrams are early.
  on_readable (self);
  for (guint i = 0; i < unjudged->len; i++) {
    const Unjudged *one = &g_array_index (unjudged, Unjudged, i);

    gint64 answered_ns = one->track->rtp.reader->answered_ns;

    one->track->early += !answered_ns || one->arrival_ns < answered_ns;
  }
  g_array_set_size (unjudged, 0);
}

void
reader_on_control (Reader *self, guint32 events, gint64 now)
{
  if (self->state == READER_CONNECTING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
    int error = 0;
    socklen_t len = sizeof error;

    getsockopt (self->control.fd, SOL_SOCKET, SO_ERROR, &error, &len);
    reader_on_connect (self, error, now);
    return;
  }
  if (events & EPOLLOUT)
    reader_io_flush (self);
  if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && self->control.fd >= 0)
    on_readable (self);
}
