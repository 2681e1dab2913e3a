// SPDX-License-Identifier: LGPL-2.1-or-later
// Sends packets again that a protected reader reports lost (RFC 4585), from the window.
#include <stdlib.h>
#include <string.h>

#include "codec/layers_private.h"
#include "fanout/serve_private.h"
#include "rtp/rtp.h"

#define AGAIN_NS (20 * MS) // a packet is not sent again sooner after it was
#define AGAIN_MOST 3       // nor more often
#define BUDGET_PART 5      // the bytes sent again are at most this part of those sent
#define LONGEST 2048       // bytes of a packet that is sent again

// Packets that are remembered: FEWEST at first, and twice as many each time a second of them does
// not fit, up to MOST. Half as many when two seconds, one after the other, would have had room in
// that: a reader that catches up gets far more packets than later.
#define FEWEST 64
#define MOST 2048

// A packet that the reader was sent, with what differs from the packet in the window.
typedef struct {
  uint32_t sent_ms, again_ms; // when it was sent first and last; low bits, as these two
  uint32_t position;
  uint32_t rtp_time;
  uint16_t seq, picture_ahead;
  uint8_t n_again; // how often it was sent again
  bool used, marker;
} Sent;

// What was counted in the current second and in the one before.
typedef struct {
  uint64_t now, before;
} Count;

// For the thread that serves the reader.
struct resends {
  Sent *ring;        // by sequence number
  size_t n;          // a power of two
  uint32_t stream;   // all packets are of the stream of layers with this id
  int64_t second_ns; // when the current second began
  Count sent, again; // bytes
  Count noted;       // packets
};

Resends *
weir_resends_new (void)
{
  Resends *self = calloc (1, sizeof *self);

  if (!self)
    return NULL;
  self->ring = calloc (FEWEST, sizeof *self->ring);
  self->n = FEWEST;
  if (self->ring)
    return self;
  free (self);
  return NULL;
}

void
weir_resends_free (Resends *self)
{
  if (!self)
    return;
  free (self->ring);
  free (self);
}

size_t
weir_resends_room (const Resends *self)
{
  return self->n;
}

// ---- the ring ----

// Gives the ring room for `n` packets. Without memory it stays.
static void
resize (Resends *self, size_t n)
{
  Sent *ring = calloc (n, sizeof *ring);

  if (!ring)
    return;
  for (size_t i = 0; i < self->n; i++) {
    const Sent *sent = &self->ring[i];
    Sent *place = &ring[sent->seq & (n - 1)];

    if (sent->used && (!place->used || (int32_t) (sent->sent_ms - place->sent_ms) >= 0))
      *place = *sent;
  }
  free (self->ring);
  self->ring = ring;
  self->n = n;
}

// `most`: packets of a second.
static void
shrink (Resends *self, uint64_t most)
{
  size_t n = self->n;

  while (n > FEWEST && n / 2 >= most + most / 8)
    n /= 2;
  if (n < self->n)
    resize (self, n);
}

// ---- the budget ----

static void
shift (Count *count, bool adjacent)
{
  count->before = adjacent ? count->now : 0;
  count->now = 0;
}

static void
begin_second (Resends *self, int64_t now_ns)
{
  int64_t elapsed = now_ns - self->second_ns;
  bool adjacent = elapsed < 2 * RESEND_NS;
  uint64_t most = self->noted.now > self->noted.before ? self->noted.now : self->noted.before;

  if (elapsed < RESEND_NS)
    return;
  shift (&self->sent, adjacent);
  shift (&self->again, adjacent);
  shift (&self->noted, adjacent);
  shrink (self, adjacent ? most : 0);
  self->second_ns = adjacent ? self->second_ns + RESEND_NS : now_ns;
}

// Returns the bytes of the last second, as if those of the second before had been spread evenly.
static uint64_t
last_second (const Resends *self, const Count *bytes, int64_t now_ns)
{
  uint64_t left_ms = (uint64_t) ((self->second_ns + RESEND_NS - now_ns) / MS);

  return bytes->now + bytes->before * left_ms / 1000;
}

static bool
has_budget (Resends *self, size_t len, int64_t now_ns)
{
  begin_second (self, now_ns);
  return (last_second (self, &self->again, now_ns) + len) * BUDGET_PART
         <= last_second (self, &self->sent, now_ns);
}

// ---- what was sent ----

static uint32_t
to_ms (int64_t ns)
{
  return (uint32_t) (ns / MS);
}

static bool
is_fresh (const Sent *sent, int64_t now_ns)
{
  return to_ms (now_ns) - sent->sent_ms <= RESEND_NS / MS;
}

static Sent *
place_for (Resends *self, uint16_t seq, int64_t now_ns)
{
  Sent *sent = &self->ring[seq & (self->n - 1)];

  while (sent->used && sent->seq != seq && is_fresh (sent, now_ns) && self->n < MOST) {
    size_t n = self->n;

    resize (self, 2 * n);
    if (self->n == n)
      break;
    sent = &self->ring[seq & (self->n - 1)];
  }
  return sent;
}

static uint16_t
get_picture (const uint8_t *payload, bool wide)
{
  return wide ? (uint16_t) (payload[0] << 8 | payload[1]) : payload[0];
}

// Returns by how much the VP8 picture id in `data` is ahead of the window's.
static uint16_t
picture_ahead (const uint8_t *data, const WeirPacket *packet)
{
  const uint8_t *from = weir_packet_data (packet);
  bool wide = false;
  WeirRtp rtp;
  size_t at;

  if (data == from || weir_rtp_parse (from, packet->length, &rtp) < 0)
    return 0;
  at = weir_vp8_picture_id_at (from + rtp.payload_offset, rtp.payload_length, &wide);
  if (at == 0)
    return 0;
  at += rtp.payload_offset;
  return (uint16_t) (get_picture (data + at, wide) - get_picture (from + at, wide));
}

static void
note (const Pass *pass, Resends *self, const uint8_t *data, const WeirPacket *packet)
{
  const uint16_t seq = weir_rtp_get_seq (data);
  Sent *sent = place_for (self, seq, pass->now_ns);

  self->noted.now++;
  *sent = (Sent) {
    .sent_ms = to_ms (pass->now_ns),
    .position = (uint32_t) packet->position,
    .rtp_time = weir_rtp_get_timestamp (data),
    .seq = seq,
    .picture_ahead = pass->is_vp8 ? picture_ahead (data, packet) : 0,
    .used = true,
    .marker = data[1] & 0x80,
  };
}

void
weir_resends_note (Pass *pass, WeirReader *reader, const Load *loaded, size_t n)
{
  const Hand *hand = &pass->server->hand;
  const Load *sealed = &pass->server->loads[SEALED];
  Resends *self = reader->resends;

  begin_second (self, pass->now_ns);
  self->sent.now += sealed->sender.burst.offset[n];
  if (self->stream != hand->stream)
    memset (self->ring, 0, self->n * sizeof *self->ring);
  self->stream = hand->stream;
  for (size_t i = 0; i < n; i++) {
    size_t k = sealed->picked[i];
    const WeirPacket *packet = &hand->packets.packets[loaded->picked[k]];

    // An inserted packet has the position of another.
    if (packet->flags & WEIR_PACKET_RTP && !(packet->flags & WEIR_PACKET_EXTRA))
      note (pass, self, loaded->sender.burst.data + loaded->sender.burst.offset[k], packet);
  }
}

// ---- sending again ----

// Copies the packet from the window to `out`, which has room for LONGEST bytes. Returns its length,
// or 0 if it is gone.
static size_t
copy_packet (WeirFanout *fanout, const WeirReader *reader, const Sent *sent, uint8_t *out)
{
  const LayerStream *stream;
  const WeirWindow *window;
  const WeirPacket *packet;
  int64_t cursor = get_cursor (reader), position, at;
  size_t len = 0;

  pthread_mutex_lock (&fanout->lock);
  stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  window = stream ? &stream->window : &fanout->window;
  position = cursor - (int64_t) (uint32_t) ((uint32_t) cursor - sent->position);
  at = stream ? weir_window_find (window, position) : position;
  if ((stream ? stream->id : 0) == reader->resends->stream && at >= window->tail
      && at < window->head) {
    packet = weir_window_at (window, at);
    if (packet->position == position && !(packet->flags & WEIR_PACKET_EXTRA)
        && packet->length <= LONGEST) {
      len = packet->length;
      memcpy (out, weir_packet_data (packet), len);
    }
  }
  pthread_mutex_unlock (&fanout->lock);
  return len;
}

// Writes the numbers with which the reader was sent the packet.
static void
write_numbers (const Sent *sent, uint8_t *packet, size_t len)
{
  WeirRtp rtp;

  weir_rtp_set_seq (packet, sent->seq);
  weir_rtp_set_timestamp (packet, sent->rtp_time);
  weir_rtp_set_marker (packet, sent->marker);
  if (sent->picture_ahead != 0 && weir_rtp_parse (packet, len, &rtp) == 0)
    weir_vp8_shift_picture_id (
        packet + rtp.payload_offset, rtp.payload_length, (uint16_t) -sent->picture_ahead);
}

static bool
send_again (
    WeirFanout *fanout, WeirReader *reader, uint16_t seq, int64_t round_trip_ns, int64_t now_ns)
{
  Resends *self = reader->resends;
  Sent *sent = &self->ring[seq & (self->n - 1)];
  uint8_t packet[LONGEST], sealed[LONGEST + WEIR_PROTECT_ROOM];
  struct iovec iov = { .iov_base = sealed };
  struct msghdr msg = { .msg_name = &reader->address.any,
    .msg_namelen = weir_address_len (&reader->address),
    .msg_iov = &iov,
    .msg_iovlen = 1 };
  int64_t apart_ns = round_trip_ns > AGAIN_NS ? round_trip_ns : AGAIN_NS;
  size_t len;

  if (!sent->used || sent->seq != seq || !is_fresh (sent, now_ns) || sent->n_again >= AGAIN_MOST
      || (sent->n_again > 0 && to_ms (now_ns) - sent->again_ms < to_ms (apart_ns)))
    return false;
  len = copy_packet (fanout, reader, sent, packet);
  if (len == 0 || !has_budget (self, len, now_ns))
    return false;
  write_numbers (sent, packet, len);
  iov.iov_len = reader->protect.protect_again (reader->protect.data, packet, len, sealed);
  if (iov.iov_len == 0 || weir_send_one (fanout->ops, reader->fd, &msg) < 0)
    return false;
  sent->n_again++;
  sent->again_ms = to_ms (now_ns);
  self->again.now += iov.iov_len;
  return true;
}

// Sends count as a pass, so that the engine stops only after them. Under the lock.
static bool
begin_resend (WeirFanout *fanout, const WeirReader *reader)
{
  bool may = fanout->running && !atomic_load (&reader->removed) && reader->fd >= 0;

  fanout->n_passes += may;
  return may;
}

static void
end_resend (WeirFanout *fanout)
{
  pthread_mutex_lock (&fanout->lock);
  fanout->n_passes--;
  if (fanout->n_draining > 0 || !fanout->running)
    pthread_cond_broadcast (&fanout->passed);
  pthread_mutex_unlock (&fanout->lock);
}

unsigned
weir_fanout_resend (WeirFanout *fanout, WeirReader *reader, const uint16_t *seqs, size_t n,
    int64_t round_trip_ns, int64_t now_ns)
{
  unsigned n_sent = 0;
  bool may;

  if (!reader->resends)
    return 0;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  may = begin_resend (fanout, reader);
  pthread_mutex_unlock (&fanout->lock);
  for (size_t i = 0; may && i < n; i++)
    n_sent += send_again (fanout, reader, seqs[i], round_trip_ns, now_ns);
  add_to (&reader->resent, n_sent);
  add_to (&reader->resend_refused, n - n_sent);
  reader_release (reader);
  if (may)
    end_resend (fanout);
  return n_sent;
}
