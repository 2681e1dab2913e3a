// SPDX-License-Identifier: LGPL-2.1-or-later

// Work on a track that its owner does: receives from its sockets, sends its RTCP.

#include <stdlib.h>
#include <unistd.h>

#include "ingest/engine_private.h"

#define S INT64_C (1000000000)
#define BUFFER_MAX (64 << 20)

static void
take_datagram (WeirIngestTrack *self, unsigned which, const WeirMessage *message, uint8_t *data,
    size_t len, int64_t now_ns)
{
  int64_t arrival_ns = weir_message_arrival (message, self->loop->unix_offset_ns, now_ns);

  // A datagram that is cut off, or from nowhere, is nothing that can be read.
  if (message->truncated || !message->from_known)
    len = 0;
  if (which == 0)
    weir_track_take (&self->track, &message->from, data, len, arrival_ns, now_ns);
  else
    weir_track_take_rtcp (&self->track, &message->from, data, len, now_ns);
}

// Takes the datagrams of a message apart. Returns their number.
static unsigned
take_message (WeirIngestTrack *self, unsigned which, const WeirMessage *message, int64_t now_ns)
{
  unsigned n = 0;
  size_t at = 0;

  if (message->drops_known) {
    uint32_t drops = message->drops - self->last_drops[which];

    self->drops += drops;
    self->second_datagrams += drops;
    self->last_drops[which] = message->drops;
    if (drops > 0 && self->ops->overflowed && !atomic_load (&self->track.stopped))
      self->ops->overflowed (self->data, drops);
  }
  do {
    size_t left = message->len - at, len = left < message->segment ? left : message->segment;

    take_datagram (self, which, message, message->data + at, len, now_ns);
    at += len;
    n++;
  } while (at < message->len);
  self->second_bytes += message->len;
  self->second_datagrams += n;
  return n;
}

// Once a second: makes the buffer large enough for a second like the last one.
static void
fit_buffer (WeirIngestTrack *self, int64_t now_ns)
{
  uint64_t wanted;

  if (now_ns - self->second_ns < S)
    return;
  wanted = weir_udp_buffer_for (self->second_bytes, self->second_datagrams);
  wanted = wanted * S / (uint64_t) (now_ns - self->second_ns);
  if (self->second_ns != 0 && wanted > self->buffer && self->buffer < BUFFER_MAX)
    self->buffer = weir_udp_set_buffer (
        self->fds[0], wanted < BUFFER_MAX ? (size_t) wanted : (size_t) BUFFER_MAX);
  self->second_ns = now_ns;
  self->second_bytes = self->second_datagrams = 0;
}

bool
weir_drain (WeirIngestTrack *self, unsigned which, int64_t now_ns)
{
  IngestLoop *loop = self->loop;
  unsigned used = 0;
  int n;

  do {
    n = weir_receiver_fill (&loop->receiver, self->fds[which]);
    for (int i = 0; i < n; i++)
      used += take_message (self, which, &loop->receiver.messages[i], now_ns);
    if (atomic_load (&self->track.stopped))
      return false;
  } while (n == WEIR_RECEIVE_MESSAGES && used < loop->budget);
  fit_buffer (self, now_ns);
  if (used > 0 && self->ops->settled)
    self->ops->settled (self->data);
  return n == WEIR_RECEIVE_MESSAGES;
}

void
weir_run_due (WeirIngestTrack *self, int64_t now_ns)
{
  uint8_t rtcp[WEIR_TRACK_RTCP_MAX];
  uint64_t delivered = self->track.stats.delivered;
  size_t len;

  weir_track_expire (&self->track, now_ns);
  if (self->track.stats.delivered != delivered && self->ops->settled
      && !atomic_load (&self->track.stopped))
    self->ops->settled (self->data);
  len = weir_track_write_rtcp (&self->track, now_ns, rtcp);
  if (len == 0 || atomic_load (&self->track.stopped))
    return;
  if (self->track.settings.interleaved && self->ops->send)
    self->ops->send (self->data, rtcp, len);
  else if (!self->track.settings.interleaved)
    weir_udp_send (self->fds[self->fds[1] >= 0], weir_track_rtcp_to (&self->track), rtcp, len);
}

void
weir_ingest_track_free (WeirIngestTrack *self)
{
  for (int i = 0; i < 2; i++) {
    if (self->fds[i] >= 0)
      close (self->fds[i]);
  }
  weir_track_clear (&self->track);
  free (self);
}
