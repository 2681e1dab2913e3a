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
#define PADDING 16         // so many of the last packets are sent again to fill a line

// Runs that are remembered: FEWEST at first, and twice as many each time a second of them does not
// fit, up to MOST. Half as many when two seconds, one after the other, would have had room in that:
// a reader that catches up gets far more packets than later.
#define FEWEST 16
#define MOST 2048
#define RUN_MS 20       // between the first and the last packet of a run
#define RUN_PACKETS 512 // at most
#define SPAN 0x8000     // numbers between the first and the last packet remembered

// Packets that have been sent again are remembered in a table by number, of this size at first.
#define AGAIN_FEWEST 32

// Packets that the reader was sent one after the other: numbers and positions go on by one. With
// what differs from the packets in the window.
typedef struct {
  uint32_t sent_ms; // when the first was sent; low bits
  uint32_t position;
  uint32_t time_ahead; // by which the timestamps are ahead
  uint16_t seq, n;
  uint16_t picture_ahead;
  bool flips_marker;
} Run;

// A packet that was sent again.
typedef struct {
  uint32_t last_ms; // low bits
  uint16_t seq;
  uint8_t n;
} Again;

// What was counted in the current second and in the one before.
typedef struct {
  uint64_t now, before;
} Count;

// For the thread that serves the reader.
struct resends {
  Run *runs;          // run i is at i % n
  size_t n;           // a power of two
  size_t first, end;  // the runs that are there
  Again *again;       // NULL: nothing was sent again for a second
  size_t n_again;     // a power of two
  uint32_t stream;    // all packets are of the stream of layers with this id
  int64_t second_ns;  // when the current second began
  Count sent, resent; // bytes
  Count noted;        // runs
};

Resends *
weir_resends_new (void)
{
  Resends *self = calloc (1, sizeof *self);

  if (!self)
    return NULL;
  self->runs = calloc (FEWEST, sizeof *self->runs);
  self->n = FEWEST;
  if (self->runs)
    return self;
  free (self);
  return NULL;
}

void
weir_resends_free (Resends *self)
{
  if (!self)
    return;
  free (self->runs);
  free (self->again);
  free (self);
}

size_t
weir_resends_room (const Resends *self)
{
  return self->n;
}

// ---- times ----

static uint32_t
to_ms (int64_t ns)
{
  return (uint32_t) (ns / MS);
}

static bool
is_fresh (uint32_t ms, int64_t now_ns)
{
  return to_ms (now_ns) - ms <= RESEND_NS / MS;
}

// ---- the ring ----

static Run *
run_at (const Resends *self, size_t i)
{
  return &self->runs[i & (self->n - 1)];
}

// Gives the ring room for `n` runs; the oldest go if they do not fit. Without memory it stays.
static void
resize (Resends *self, size_t n)
{
  Run *runs = calloc (n, sizeof *runs);

  if (!runs)
    return;
  if (self->end - self->first > n)
    self->first = self->end - n;
  for (size_t i = self->first; i < self->end; i++)
    runs[i & (n - 1)] = *run_at (self, i);
  free (self->runs);
  self->runs = runs;
  self->n = n;
}

// `most`: runs of a second.
static void
shrink (Resends *self, uint64_t most)
{
  size_t n = self->n;

  while (n > FEWEST && n / 2 >= most + most / 8)
    n /= 2;
  if (n < self->n)
    resize (self, n);
}

// ---- the table ----

// Gives the table room for `n` packets. Returns whether there was memory.
static bool
resize_again (Resends *self, size_t n)
{
  Again *again = calloc (n, sizeof *again);

  if (!again)
    return false;
  for (size_t i = 0; i < self->n_again; i++) {
    Again *place = &again[self->again[i].seq & (n - 1)];

    if (self->again[i].n > 0
        && (place->n == 0 || (int32_t) (self->again[i].last_ms - place->last_ms) >= 0))
      *place = self->again[i];
  }
  free (self->again);
  self->again = again;
  self->n_again = n;
  return true;
}

// Returns the packet's place, or NULL if there is no memory.
static Again *
find_again (Resends *self, uint16_t seq, int64_t now_ns)
{
  Again *again;

  if (!self->again && !resize_again (self, AGAIN_FEWEST))
    return NULL;
  again = &self->again[seq & (self->n_again - 1)];
  while (again->n > 0 && again->seq != seq && is_fresh (again->last_ms, now_ns)
         && self->n_again < MOST && resize_again (self, 2 * self->n_again))
    again = &self->again[seq & (self->n_again - 1)];
  if (again->seq != seq || !is_fresh (again->last_ms, now_ns))
    *again = (Again) { .seq = seq };
  return again;
}

static void
free_again (Resends *self)
{
  free (self->again);
  self->again = NULL;
  self->n_again = 0;
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
  shift (&self->resent, adjacent);
  shift (&self->noted, adjacent);
  shrink (self, adjacent ? most : 0);
  if (self->resent.before == 0)
    free_again (self);
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
  return (last_second (self, &self->resent, now_ns) + len) * BUDGET_PART
         <= last_second (self, &self->sent, now_ns);
}

// ---- what was sent ----

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

// Forgets what was sent too long ago to be sent again.
static void
forget_old (Resends *self, uint16_t end, int64_t now_ns)
{
  while (self->first < self->end) {
    const Run *oldest = run_at (self, self->first);

    if (is_fresh (oldest->sent_ms, now_ns) && (uint16_t) (end - oldest->seq) <= SPAN)
      break;
    self->first++;
  }
}

// Reports whether the packet of `next`, a run of one, is the next of a run.
static bool
continues (const Run *run, const Run *next)
{
  return next->seq == (uint16_t) (run->seq + run->n) && next->position == run->position + run->n
         && next->time_ahead == run->time_ahead && next->picture_ahead == run->picture_ahead
         && next->flips_marker == run->flips_marker && next->sent_ms - run->sent_ms <= RUN_MS
         && run->n < RUN_PACKETS;
}

static void
begin_run (Resends *self, const Run *run)
{
  if (self->end - self->first == self->n && self->n < MOST)
    resize (self, 2 * self->n);
  if (self->end - self->first == self->n)
    self->first++;
  *run_at (self, self->end++) = *run;
  self->noted.now++;
}

static void
note (const Pass *pass, Resends *self, const uint8_t *data, const WeirPacket *packet)
{
  const uint8_t *from = weir_packet_data (packet);
  const Run next = {
    .sent_ms = to_ms (pass->now_ns),
    .position = (uint32_t) packet->position,
    .time_ahead = weir_rtp_get_timestamp (data) - weir_rtp_get_timestamp (from),
    .seq = weir_rtp_get_seq (data),
    .n = 1,
    .picture_ahead = pass->is_vp8 ? picture_ahead (data, packet) : 0,
    .flips_marker = (data[1] ^ from[1]) & 0x80,
  };
  Run *last = self->first < self->end ? run_at (self, self->end - 1) : NULL;

  // The numbers must rise.
  if (last && (uint16_t) (next.seq - last->seq) >= SPAN)
    self->first = self->end;
  forget_old (self, (uint16_t) (next.seq + 1), pass->now_ns);
  if (self->first < self->end && continues (last, &next))
    last->n++;
  else
    begin_run (self, &next);
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
    self->first = self->end;
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

// Returns the run that has the packet, or NULL. The runs have rising numbers.
static const Run *
find_run (const Resends *self, uint16_t seq)
{
  size_t low = self->first, high = self->end;
  uint16_t origin;

  if (low == high)
    return NULL;
  origin = run_at (self, low)->seq;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;

    if ((uint16_t) (run_at (self, middle)->seq - origin) <= (uint16_t) (seq - origin))
      low = middle;
    else
      high = middle;
  }
  return (uint16_t) (seq - run_at (self, low)->seq) < run_at (self, low)->n ? run_at (self, low)
                                                                            : NULL;
}

// Copies the packet with the low bits of a position from the window to `out`, which has room for
// LONGEST bytes. Returns its length, or 0 if it is gone.
static size_t
copy_packet (WeirFanout *fanout, const WeirReader *reader, uint32_t low, uint8_t *out)
{
  const LayerStream *stream;
  const WeirWindow *window;
  const WeirPacket *packet;
  int64_t cursor = get_cursor (reader), position, at;
  size_t len = 0;

  pthread_mutex_lock (&fanout->lock);
  stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  window = stream ? &stream->window : &fanout->window;
  position = cursor + (int32_t) (low - (uint32_t) cursor); // a reader may have gone back
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
write_numbers (const Run *run, uint16_t seq, uint8_t *packet, size_t len)
{
  WeirRtp rtp;

  weir_rtp_set_seq (packet, seq);
  weir_rtp_set_timestamp (packet, weir_rtp_get_timestamp (packet) + run->time_ahead);
  if (run->flips_marker)
    packet[1] ^= 0x80;
  if (run->picture_ahead != 0 && weir_rtp_parse (packet, len, &rtp) == 0)
    weir_vp8_shift_picture_id (
        packet + rtp.payload_offset, rtp.payload_length, (uint16_t) -run->picture_ahead);
}

// Returns the place in which to count that the packet is sent again, or NULL if it may not be now.
static Again *
may_send (Resends *self, uint16_t seq, int64_t round_trip_ns, int64_t now_ns)
{
  int64_t apart_ns = round_trip_ns > AGAIN_NS ? round_trip_ns : AGAIN_NS;
  Again *again = find_again (self, seq, now_ns);

  if (!again || again->n >= AGAIN_MOST
      || (again->n > 0 && to_ms (now_ns) - again->last_ms < to_ms (apart_ns)))
    return NULL;
  return again;
}

// Sends the packet of `len` bytes, as it is in the window, again. Returns its bytes then, or 0 if
// it was not sent.
static size_t
send_copy (WeirFanout *fanout, WeirReader *reader, const Run *run, uint16_t seq, uint8_t *packet,
    size_t len, int64_t now_ns)
{
  uint8_t sealed[LONGEST + WEIR_PROTECT_ROOM];
  struct iovec iov = { .iov_base = sealed };
  struct msghdr msg = { .msg_name = &reader->address.any,
    .msg_namelen = weir_address_len (&reader->address),
    .msg_iov = &iov,
    .msg_iovlen = 1 };

  write_numbers (run, seq, packet, len);
  if (reader->has_guise)
    reader_put_guise (reader, packet);
  iov.iov_len = reader->protect.protect_again (reader->protect.data, packet, len, sealed);
  if (iov.iov_len == 0 || weir_send_one (fanout->ops, reader->fd, &msg) < 0)
    return 0;
  if (reader->protect.sent)
    reader->protect.sent (reader->protect.data, sealed, iov.iov_len, now_ns);
  return iov.iov_len;
}

static bool
send_again (
    WeirFanout *fanout, WeirReader *reader, uint16_t seq, int64_t round_trip_ns, int64_t now_ns)
{
  Resends *self = reader->resends;
  const Run *run = find_run (self, seq);
  uint8_t packet[LONGEST];
  Again *again;
  size_t len;

  if (!run || !is_fresh (run->sent_ms, now_ns))
    return false;
  len = copy_packet (fanout, reader, run->position + (uint16_t) (seq - run->seq), packet);
  if (len == 0 || !has_budget (self, len, now_ns))
    return false;
  again = may_send (self, seq, round_trip_ns, now_ns);
  if (!again)
    return false;
  len = send_copy (fanout, reader, run, seq, packet, len, now_ns);
  if (len == 0)
    return false;
  again->n++;
  again->last_ms = to_ms (now_ns);
  self->resent.now += len;
  return true;
}

size_t
weir_resends_pad (WeirFanout *fanout, WeirReader *reader, unsigned i, int64_t now_ns)
{
  const Resends *self = reader->resends;
  const Run *run = self->first < self->end ? run_at (self, self->end - 1) : NULL;
  uint8_t packet[LONGEST];
  uint16_t seq;
  size_t len;

  if (!run)
    return 0;
  // Where it has sent fewer, the last one.
  seq = (uint16_t) (run->seq + run->n - 1);
  if (find_run (self, (uint16_t) (seq - i % PADDING)))
    seq = (uint16_t) (seq - i % PADDING);
  run = find_run (self, seq);
  if (!run)
    return 0;
  len = copy_packet (fanout, reader, run->position + (uint16_t) (seq - run->seq), packet);
  return len > 0 ? send_copy (fanout, reader, run, seq, packet, len, now_ns) : 0;
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
