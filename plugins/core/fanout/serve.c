// SPDX-License-Identifier: LGPL-2.1-or-later
// How one reader is served: which packets are its turn, which of them it gets, and the send.
#include <errno.h>
#include <string.h>

#include "codec/layers_private.h"
#include "fanout/fanout_private.h"
#include "rtp/rtp.h"

#define MS 1000000LL
#define VP8_HEADER 4 // bytes of a payload up to the end of the picture id

// A reader that has not got a packet so long after it came goes without (see WeirReaderState).
#define LAG_NO_UPPER_LAYERS (250 * MS)
#define LAG_REFERENCES (500 * MS)
#define LAG_KEYFRAMES (1000 * MS)
// It gets more again after it has been nearer to the live edge than this for so long.
#define LAG_WELL (100 * MS)
#define WELL_TIME (5000 * MS)
// A connection that takes nothing for so long is closed.
#define STALL_TIME (10000 * MS)

// A reader that waited so long for room in a UDP socket goes to the live edge: while the socket
// drains, it waits longer. Where nobody tells that there is room, the socket is asked so often.
#define UDP_RETRY (1 * MS)
#define UDP_PATIENCE (100 * MS)
#define UDP_PATIENCE_MOST (1000 * MS)
#define UDP_BLOCKED_MOST 4 // sends without room in a pass, after which it is no use to go on

// A reader whose path refused a segmented send is tried with one again after so long, and after
// twice as long each time that it is refused once more.
#define GSO_PAUSE (1000 * MS)
#define GSO_PAUSE_MOST (60000 * MS)

// Readers with a delay are served at times that are a multiple of this, those of a shard together.
#define BEAT (5 * MS)

// Frames that are shown before the first one that is at the live edge may come after it.
#define JOIN_SETTLE (1000 * MS)

void
weir_server_init (Server *server, const WeirSendOps *ops)
{
  if (server->ready)
    return;
  for (size_t i = 0; i < 2; i++)
    weir_sender_init (&server->loads[i].sender, ops);
  server->ready = true;
}

void
weir_server_clear (Server *server)
{
  weir_span_clear (&server->hand.packets);
  server->hand.valid = false;
  server->loads[0].valid = server->loads[1].valid = false;
}

static int64_t
get_cursor (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->cursor, memory_order_relaxed);
}

static void
add_to (_Atomic uint64_t *counter, uint64_t n)
{
  // One thread writes, others read.
  atomic_store_explicit (
      counter, atomic_load_explicit (counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static void
count_due (const Pass *pass, WeirReader *reader, uint64_t n)
{
  add_to (&reader->due, n);
  add_to (&pass->shard->counts.due, n);
}

static void
count_dropped (const Pass *pass, WeirReader *reader, uint64_t n, WeirDrop reason)
{
  add_to (&reader->dropped[reason], n);
  add_to (&pass->shard->counts.dropped[reason], n);
}

static void
drop (const Pass *pass, WeirReader *reader, uint64_t n, WeirDrop reason)
{
  if (n > 0)
    count_dropped (pass, reader, n * pass->times, reason);
}

// Every packet from the cursor to `position` is settled.
static void
advance (const Pass *pass, WeirReader *reader, int64_t position)
{
  count_due (pass, reader, (uint64_t) (position - get_cursor (reader)) * pass->times);
  atomic_store_explicit (&reader->cursor, position, memory_order_relaxed);
  reader->past_extra = false;
}

// ---- the packets in hand ----

// When a packet came, as it is for a reader with a delay.
static int64_t
came_ns (const WeirReader *reader, const WeirPacket *packet)
{
  return packet->arrival_ns + reader_delay (reader);
}

static int64_t
next_beat (int64_t due_ns)
{
  return (due_ns + BEAT - 1) / BEAT * BEAT;
}

// Of the packets that a reader with a delay has before it, up to where they are due. If that is
// nowhere, it has to wait. With the lock held.
static int64_t
end_of_due (const Pass *pass, WeirReader *reader, int64_t from, int64_t to)
{
  bool joining = reader_joining (reader);
  int64_t end = from;

  if (to > from + WEIR_STAGE_PACKETS)
    to = from + WEIR_STAGE_PACKETS;
  for (; end < to; end++) {
    int64_t due = came_ns (reader, weir_window_at (&pass->fanout->window, end));

    if (joining)
      due = weir_join_due (&reader->join, due);
    if (due > pass->now_ns) {
      if (end == from)
        reader->next_ns = next_beat (due);
      break;
    }
  }
  return end;
}

static void send_batch (Pass *pass);

// Takes the packets of the reader's layers from its cursor on in hand. With the lock held.
static void
take_hand (Pass *pass, WeirReader *reader, int64_t from, int64_t to)
{
  WeirFanout *fanout = pass->fanout;
  const LayerStream *stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  const WeirWindow *window = stream ? &stream->window : &fanout->window;
  int64_t at = stream ? weir_window_find (window, from) : from;
  Hand *hand = &pass->server->hand;

  hand->stream = stream ? stream->id : 0;
  hand->from = from;
  hand->past_extra = reader->past_extra;
  if (reader->past_extra && stream && at < window->head
      && weir_window_at (window, at)->flags & WEIR_PACKET_EXTRA)
    at++;
  hand->to = to;
  hand->valid = true;
  if (stream ? at < window->head && weir_window_at (window, at)->position < to : at < to)
    weir_window_span (window, at, stream ? weir_window_find (window, to) : to, &hand->packets);
  at += (int64_t) hand->packets.n;
  if (!stream)
    hand->to = at;
  else if (at < window->head && weir_window_at (window, at)->position < to)
    hand->to = weir_window_at (window, at)->position;
}

static bool
has_hand (const Pass *pass, const WeirReader *reader)
{
  const Hand *hand = &pass->server->hand;
  const LayerStream *stream;

  // The stream is the reader's own, and stays as long as it is.
  if (!hand->valid || hand->from != get_cursor (reader) || hand->past_extra != reader->past_extra
      || !weir_reader_is_steady (pass->fanout, reader))
    return false;
  stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  return hand->stream == (stream ? stream->id : 0);
}

// Takes what is before the reader in hand. False if nothing is, or it has to wait.
static bool
take_span (Pass *pass, WeirReader *reader)
{
  WeirFanout *fanout = pass->fanout;
  int64_t cursor = get_cursor (reader), from = cursor, to;
  WeirDrop reason = WEIR_DROP_OVERRUN;
  bool late = reader->late && reader->blocked_since;

  reader->late = false;
  if (!late && has_hand (pass, reader))
    return true;
  send_batch (pass);
  weir_server_clear (pass->server);

  pthread_mutex_lock (&fanout->lock);
  if (late) {
    from = weir_places_edge (fanout, reader, pass->now_ns);
    reason = WEIR_DROP_WOULD_BLOCK;
  }
  if (from < cursor)
    from = cursor;
  if (from < fanout->window.tail) {
    from = weir_places_move_on (fanout, reader, pass->now_ns);
    reason = WEIR_DROP_OVERRUN;
  }
  to = weir_choose_stream (pass, reader, from);
  if (to > from && reader_delay (reader) > 0)
    to = end_of_due (pass, reader, from, to);
  if (to > from)
    take_hand (pass, reader, from, to);
  pthread_mutex_unlock (&fanout->lock);

  weir_span_read_ahead (&pass->server->hand.packets);
  if (from > cursor) {
    if (late)
      reader->blocked_since = 0;
    advance (pass, reader, from);
    drop (pass, reader, (uint64_t) (from - cursor), reason);
  }
  return to > from;
}

// ---- which packets ----

static WeirReaderState
get_state (const WeirReader *reader)
{
  return (WeirReaderState) atomic_load_explicit (&reader->state, memory_order_relaxed);
}

static WeirReaderState
get_wanted (const WeirReader *reader)
{
  return (WeirReaderState) atomic_load_explicit (&reader->wanted, memory_order_relaxed);
}

static void
set_wanted (WeirReader *reader, WeirReaderState wanted)
{
  atomic_store_explicit (&reader->wanted, (int) wanted, memory_order_relaxed);
}

static void
judge_lag (const Pass *pass, WeirReader *reader, int64_t lag_ns)
{
  WeirReaderState wanted = WEIR_READER_OK, before = get_wanted (reader);

  if (reader_joining (reader))
    return;
  if (lag_ns >= LAG_KEYFRAMES)
    wanted = WEIR_READER_KEYFRAMES;
  else if (lag_ns >= LAG_REFERENCES)
    wanted = WEIR_READER_REFERENCES;
  else if (lag_ns >= LAG_NO_UPPER_LAYERS)
    wanted = WEIR_READER_NO_UPPER_LAYERS;

  if (wanted > before)
    set_wanted (reader, wanted);
  if (lag_ns > LAG_WELL) {
    reader->well_since = 0;
  } else if (reader->well_since == 0) {
    reader->well_since = pass->now_ns;
  } else if (before > WEIR_READER_OK && pass->now_ns - reader->well_since >= WELL_TIME) {
    set_wanted (reader, before - 1);
    reader->well_since = pass->now_ns;
  }
}

// A frame is never cut: the state changes where one begins, to a better one only where a decoder
// can start.
static bool
adopts_wanted (WeirReaderState state, WeirReaderState wanted, const WeirPacket *packet)
{
  return wanted != state && packet->flags & WEIR_PACKET_START
         && (wanted > state || packet->flags & WEIR_PACKET_KEY);
}

static bool
is_thinned (const Pass *pass, WeirReaderState state, const WeirPacket *packet)
{
  if (state == WEIR_READER_OK || !(packet->flags & WEIR_PACKET_RTP))
    return false;
  // Where layers are known, it is the stream that has fewer (serve_layers.c).
  if (!pass->has_layers && (packet->spatial > 0 || packet->quality > 0 || packet->temporal > 0))
    return true;
  if (state >= WEIR_READER_REFERENCES && packet->flags & WEIR_PACKET_DISCARDABLE)
    return true;
  return state >= WEIR_READER_KEYFRAMES && !(packet->flags & WEIR_PACKET_KEY);
}

#define NOT_HERE SIZE_MAX

typedef struct {
  size_t n;      // packets of the span whose time has come
  uint64_t mask; // of them, those the reader gets
  int64_t next_ns;
  uint64_t n_catch_up; // left out of the first n
  uint64_t n_thinned;
  size_t adopt_at; // where the reader takes the state that it wants, or NOT_HERE
  size_t live_at;  // where it is at the live edge, or NOT_HERE
} Choice;

static uint64_t
first_bits (size_t n)
{
  return n >= 64 ? UINT64_MAX : (UINT64_C (1) << n) - 1;
}

static bool
is_plain (const WeirReader *reader)
{
  return reader->join.rate == 0 && reader_delay (reader) == 0
         && get_wanted (reader) == WEIR_READER_OK && reader_is (reader, WEIR_READER_OK);
}

static Choice
all_in_hand (const Pass *pass)
{
  const size_t n = pass->server->hand.packets.n;

  return (Choice) {
    .n = n,
    .mask = first_bits (n),
    .next_ns = WEIR_NEVER,
    .adopt_at = NOT_HERE,
    .live_at = NOT_HERE,
  };
}

static bool
gets_all (const Pass *pass, const Choice *choice)
{
  return choice->n == pass->server->hand.packets.n && choice->mask == first_bits (choice->n)
         && choice->next_ns == WEIR_NEVER && choice->adopt_at == NOT_HERE
         && choice->live_at == NOT_HERE;
}

static Choice
choose (Pass *pass, WeirReader *reader)
{
  const WeirSpan *span = &pass->server->hand.packets;
  bool joining = reader_joining (reader);
  Choice choice = { .next_ns = WEIR_NEVER, .adopt_at = NOT_HERE, .live_at = NOT_HERE };
  WeirReaderState state = get_state (reader), wanted;

  judge_lag (pass, reader, pass->now_ns - came_ns (reader, &span->packets[0]));
  wanted = get_wanted (reader);
  if (is_plain (reader))
    return all_in_hand (pass);

  for (size_t i = 0; i < span->n; i++) {
    const WeirPacket *packet = &span->packets[i];
    int64_t came = came_ns (reader, packet);
    int64_t due = joining ? weir_join_due (&reader->join, came) : came;

    if (due > pass->now_ns) {
      choice.next_ns = reader_delay (reader) > 0 ? next_beat (due) : due;
      break;
    }
    // A frame is not cut: it is left out as a whole, or sent.
    if (joining && due == came
        && (packet->flags & WEIR_PACKET_START || !(packet->flags & WEIR_PACKET_RTP))) {
      joining = false;
      choice.live_at = i;
    }
    if (adopts_wanted (state, wanted, packet)) {
      state = wanted;
      choice.adopt_at = i;
    }
    choice.n++;
    // The frame it begins with was told to it.
    if (joining && packet->flags & WEIR_PACKET_DISCARDABLE && !pass->is_stacked
        && packet->rtp_time != reader->join.from_time)
      choice.n_catch_up++;
    else if (is_thinned (pass, state, packet))
      choice.n_thinned++;
    else
      choice.mask |= UINT64_C (1) << i;
  }
  if (!joining && reader->join.rate > 0
      && came_ns (reader, &span->packets[0]) - reader->join.begun_ns
             > reader->join.begun_ns - reader->join.from_arrival + JOIN_SETTLE)
    reader->join.rate = 0;
  return choice;
}

// ---- the burst ----

// Lays the chosen packets out for the sender: where they lie, or in the copy, to be changed.
static Load *
load (Server *server, uint64_t mask, bool copy)
{
  const WeirSpan *span = &server->hand.packets;
  Load *loaded = &server->loads[copy];
  WeirBurst burst;

  if (loaded->valid && loaded->mask == mask)
    return loaded;
  burst.data = copy ? server->copy : weir_packet_data (&span->packets[0]);
  burst.n = 0;
  burst.offset[0] = 0;
  for (size_t i = 0; i < span->n; i++) {
    const WeirPacket *packet = &span->packets[i];

    if (!(mask >> i & 1))
      continue;
    loaded->picked[burst.n] = (uint8_t) i;
    if (copy)
      memcpy (server->copy + burst.offset[burst.n], weir_packet_data (packet), packet->length);
    burst.offset[burst.n + 1] = burst.offset[burst.n] + packet->length;
    burst.n++;
  }
  weir_sender_load (&loaded->sender, &burst);
  loaded->mask = mask;
  loaded->valid = true;
  loaded->shifted = false;
  return loaded;
}

// `data` is a copy, with what the reader before made of it.
static void
shift_picture_id (uint8_t *data, const WeirPacket *packet, uint16_t by)
{
  const uint8_t *from = weir_packet_data (packet);
  WeirRtp rtp;

  if (weir_rtp_parse (from, packet->length, &rtp) < 0)
    return;
  memcpy (data + rtp.payload_offset, from + rtp.payload_offset,
      rtp.payload_length < VP8_HEADER ? rtp.payload_length : VP8_HEADER);
  weir_vp8_shift_picture_id (data + rtp.payload_offset, rtp.payload_length, (uint16_t) -by);
}

// Of the first `n` packets, the one that ends the frame is left out, and this is the last of the
// frame that is not.
static bool
ends_frame (const WeirSpan *span, const Load *copy, size_t k, size_t n)
{
  size_t i = copy->picked[k], next = k + 1 < copy->sender.burst.n ? copy->picked[k + 1] : n;

  for (size_t j = i + 1; j < next; j++) {
    if (span->packets[j].rtp_time == span->packets[i].rtp_time
        && span->packets[j].flags & WEIR_PACKET_MARKER)
      return true;
  }
  return false;
}

// A picture that the reader is not given takes no id either: a gap would be a loss to a player.
static uint16_t
pictures_left_out (const WeirSpan *span, uint64_t mask, size_t from, size_t to)
{
  uint16_t n = 0;

  for (size_t i = from; i < to; i++)
    n += !(mask >> i & 1) && span->packets[i].flags & WEIR_PACKET_START;
  return n;
}

static void
set_marker (uint8_t *data, bool marker)
{
  data[1] = (uint8_t) ((data[1] & 0x7f) | (marker ? 0x80 : 0));
}

// Writes the reader's own numbers into the copy of what it gets of the first `n` packets. A packet
// that it is not given takes no number.
static void
patch (const Pass *pass, const WeirReader *reader, size_t n)
{
  Server *server = pass->server;
  Load *copy = &server->loads[1];
  const WeirBurst *burst = &copy->sender.burst;
  bool compress = reader->join.rate > 0 && reader->join.compress;
  uint16_t picture_delta = pass->is_vp8 ? reader->picture_delta : 0;
  bool shifted = false;

  for (size_t k = 0; k < burst->n; k++) {
    const WeirPacket *packet = &server->hand.packets.packets[copy->picked[k]];
    uint8_t *data = server->copy + burst->offset[k];
    size_t n_skipped = copy->picked[k] - k;
    int64_t time = packet->rtp_time;

    if (!(packet->flags & WEIR_PACKET_RTP))
      continue;
    if (compress)
      time = weir_join_time (&reader->join, time);
    weir_rtp_set_seq (data, (uint16_t) (packet->seq + reader->seq_delta - n_skipped));
    weir_rtp_set_timestamp (data, (uint32_t) (time + reader->time_ahead));
    set_marker (data, packet->flags & WEIR_PACKET_MARKER
                          || (n > burst->n && ends_frame (&server->hand.packets, copy, k, n)));
    if (pass->is_vp8 && n_skipped > 0)
      picture_delta -= pictures_left_out (
          &server->hand.packets, copy->mask, k > 0 ? copy->picked[k - 1] : 0, copy->picked[k]);
    if (picture_delta != 0 || copy->shifted)
      shift_picture_id (data, packet, picture_delta);
    shifted |= picture_delta != 0;
  }
  copy->shifted = shifted;
}

// ---- the send ----

static size_t
family_of (const WeirReader *reader)
{
  return reader->address.any.sa_family == AF_INET6;
}

static void
book (const Pass *pass, WeirReader *reader, const WeirSendResult *result)
{
  add_to (&reader->packets, result->packets);
  add_to (&reader->bytes, result->bytes);
  add_to (&pass->shard->counts.packets, result->packets);
  add_to (&pass->shard->counts.bytes, result->bytes);
  for (size_t reason = 0; reason < WEIR_N_DROPS; reason++) {
    if (result->dropped[reason] > 0)
      count_dropped (pass, reader, result->dropped[reason], (WeirDrop) reason);
  }
  if (result->error) {
    atomic_store_explicit (&reader->error, result->error, memory_order_relaxed);
    atomic_store_explicit (&pass->fanout->failed, true, memory_order_release);
  }
}

static bool
uses_gso (const Pass *pass, const WeirReader *reader)
{
  if (pass->settings.gso != WEIR_GSO_AUTO)
    return pass->settings.gso == WEIR_GSO_ON;
  return atomic_load_explicit (&reader->gso_again_ns, memory_order_relaxed) <= pass->now_ns;
}

// Whatever the error is, it is of the path to this reader: a device without checksums gives EIO for
// those behind it alone. And paths change.
static void
remember_refusal (const Pass *pass, WeirReader *reader)
{
  bool before = atomic_load_explicit (&reader->gso_again_ns, memory_order_relaxed) != 0;
  int64_t pause = before ? 2 * reader->gso_pause_ns : GSO_PAUSE;

  reader->gso_pause_ns = pause < GSO_PAUSE_MOST ? pause : GSO_PAUSE_MOST;
  atomic_store_explicit (
      &reader->gso_again_ns, pass->now_ns + reader->gso_pause_ns, memory_order_relaxed);
}

// These send the burst, and return how many of its packets are settled.

static size_t
send_udp (Pass *pass, WeirReader *reader, WeirSender *sender)
{
  size_t settled = sender->burst.n;

  for (unsigned t = 0; t < pass->times; t++) {
    WeirSendResult result = { 0 };
    uint64_t n_segmented = sender->counters.gso_sends;

    settled = weir_sender_send (
        sender, reader->fd, &reader->address, uses_gso (pass, reader), 0, &result);
    if (result.gso_error)
      remember_refusal (pass, reader);
    else if (sender->counters.gso_sends > n_segmented)
      atomic_store_explicit (&reader->gso_again_ns, 0, memory_order_relaxed);
    // Nobody keeps account of how far each copy has gone.
    if (pass->times > 1) {
      result.dropped[WEIR_DROP_WOULD_BLOCK] += sender->burst.n - settled;
      settled = sender->burst.n;
    }
    book (pass, reader, &result);
  }
  return settled;
}

static size_t
send_conn (const Pass *pass, WeirReader *reader, WeirSender *sender)
{
  const WeirBurst *burst = &sender->burst;
  WeirSendResult result = { 0 };
  int taken = weir_conn_send (
      reader->conn, reader->framing, reader->channel, weir_sender_packets (sender), burst->n);

  if (taken < 0) {
    result.dropped[WEIR_DROP_ERROR] = burst->n;
    atomic_store_explicit (&reader->state, WEIR_READER_CLOSED, memory_order_relaxed);
    taken = (int) burst->n;
  } else {
    result.packets = (uint64_t) taken;
    result.bytes = burst->offset[taken];
  }
  book (pass, reader, &result);
  return (size_t) taken;
}

// The reader's cursor goes to packet number `end` of the span; `n_skipped` of the packets before it
// were not given to it.
static void
settle (const Pass *pass, WeirReader *reader, const Choice *choice, size_t end, uint64_t n_skipped)
{
  // Where both reasons meet in one span, which is hardly ever, the sum is what counts.
  WeirDrop reason = choice->n_catch_up > 0 ? WEIR_DROP_CATCH_UP : WEIR_DROP_THINNED;
  const Hand *hand = &pass->server->hand;
  uint64_t n_extra = 0;
  int64_t position;
  bool past_extra;

  if (choice->live_at != NOT_HERE && end >= choice->live_at)
    atomic_store_explicit (&reader->joining, false, memory_order_relaxed);
  if (choice->adopt_at != NOT_HERE && end >= choice->adopt_at
      && !reader_is (reader, WEIR_READER_CLOSED))
    atomic_store_explicit (&reader->state, (int) get_wanted (reader), memory_order_relaxed);
  reader->seq_delta = (uint16_t) (reader->seq_delta - n_skipped);
  if (pass->is_vp8 && n_skipped > 0)
    reader->picture_delta -= pictures_left_out (&hand->packets, choice->mask, 0, end);
  position = end < hand->packets.n ? hand->packets.packets[end].position : hand->to;
  for (size_t i = 0; i < end; i++)
    n_extra += (hand->packets.packets[i].flags & WEIR_PACKET_EXTRA) != 0;
  drop (pass, reader, n_skipped, reason);
  drop (
      pass, reader, (uint64_t) (position - get_cursor (reader)) + n_extra - end, WEIR_DROP_LAYERS);
  count_due (pass, reader, n_extra * pass->times);
  past_extra = end > 0 ? hand->packets.packets[end - 1].flags & WEIR_PACKET_EXTRA
                       : reader->past_extra && position == get_cursor (reader);
  advance (pass, reader, position);
  reader->past_extra = past_extra;
}

// The reader got the first `settled` packets that were laid out. False if there was no room for
// all.
static bool
end_send (
    const Pass *pass, WeirReader *reader, const Choice *choice, const Load *loaded, size_t settled)
{
  size_t end = settled < loaded->sender.burst.n ? loaded->picked[settled] : choice->n;

  if (settled > 0 && reader->blocked_since) {
    if (reader->room)
      weir_room_note (reader->room, pass->now_ns);
    reader->blocked_since = 0;
  }
  settle (pass, reader, choice, end, end - settled);
  return settled == loaded->sender.burst.n;
}

// It gets the packets in hand as they are.
static bool
has_own_numbers (const Pass *pass, const WeirReader *reader)
{
  return reader->seq_delta != 0 || reader->time_ahead != 0
         || (pass->is_vp8 && reader->picture_delta != 0)
         || (reader->join.rate > 0 && reader->join.compress);
}

// False if there was no room for all of it.
static bool
send_choice (Pass *pass, WeirReader *reader, const Choice *choice)
{
  bool own = has_own_numbers (pass, reader) || choice->mask != first_bits (choice->n);
  size_t settled;
  Load *loaded;

  if (choice->mask == 0) {
    settle (pass, reader, choice, choice->n, choice->n);
    return true;
  }
  loaded = load (pass->server, choice->mask, own);
  if (own)
    patch (pass, reader, choice->n);
  settled = reader->conn ? send_conn (pass, reader, &loaded->sender)
                         : send_udp (pass, reader, &loaded->sender);
  return end_send (pass, reader, choice, loaded, settled);
}

// The reader has found no room once more, and for too long. (It has to ask first: maybe it is only
// its own turn that did not come for so long.)
static bool
is_late (const Pass *pass, const WeirReader *reader)
{
  int64_t since = reader->blocked_since, moved;

  if (pass->now_ns - since <= UDP_PATIENCE)
    return false;
  moved = reader->room ? weir_room_moved (reader->room) : 0;
  return pass->now_ns - moved > UDP_PATIENCE || pass->now_ns - since > UDP_PATIENCE_MOST;
}

// When to look at a reader again whose socket is full, if nobody tells that it has room.
static int64_t
look_again (const Pass *pass, const WeirReader *reader)
{
  bool watched = reader->room && weir_room_watch (reader->room, pass->shard);

  return pass->now_ns + (watched ? UDP_PATIENCE : UDP_RETRY);
}

static void
end_turn (Turn *turn, int64_t next_ns)
{
  turn->more = false;
  turn->next_ns = next_ns;
}

// Nothing more fits.
static void
wait_for_room (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;

  if (reader->blocked_since == 0)
    reader->blocked_since = pass->now_ns;
  if (!reader->conn) {
    pass->n_blocked[family_of (reader)]++;
    if (!reader->room)
      reader->room = weir_room_of (pass->fanout, reader->fd);
    reader->late = is_late (pass, reader);
    if (!reader->late)
      end_turn (turn, look_again (pass, reader));
    return;
  }
  if (pass->now_ns - reader->blocked_since > STALL_TIME) {
    atomic_store_explicit (&reader->state, WEIR_READER_CLOSED, memory_order_relaxed);
    weir_conn_break (reader->conn, ETIMEDOUT);
  }
  end_turn (turn, WEIR_NEVER); // the connection tells
}

// Nothing of what is in hand is for the reader's layers.
static void
skip_layers (const Pass *pass, WeirReader *reader)
{
  int64_t to = pass->server->hand.to;

  drop (pass, reader, (uint64_t) (to - get_cursor (reader)), WEIR_DROP_LAYERS);
  advance (pass, reader, to);
}

// Whoever is paused may be where the window is no more.
static void
keep_in_window (Pass *pass, WeirReader *reader)
{
  int64_t cursor = get_cursor (reader), to = cursor;

  if (cursor >= pass->tail)
    return;
  pthread_mutex_lock (&pass->fanout->lock);
  if (cursor < pass->fanout->window.tail)
    to = weir_places_move_on (pass->fanout, reader, pass->now_ns);
  pthread_mutex_unlock (&pass->fanout->lock);
  advance (pass, reader, to);
  drop (pass, reader, (uint64_t) (to - cursor), WEIR_DROP_OVERRUN);
}

// ---- the turn ----

// So many readers of one socket found no room in this pass that it is no use to go on. They are
// told for all.
static bool
is_full (const Pass *pass, const WeirReader *reader)
{
  return !reader->conn && !reader->late && pass->n_blocked[family_of (reader)] >= UDP_BLOCKED_MOST;
}

// Whether the reader may get what is in hand together with others: nothing is its own, and nothing
// is to be found out.
static bool
joins_batch (const Pass *pass, const WeirReader *reader, const Choice *choice)
{
  return !reader->conn && pass->times == 1 && gets_all (pass, choice)
         && !has_own_numbers (pass, reader) && pass->settings.gso != WEIR_GSO_OFF
         && atomic_load_explicit (&reader->gso_again_ns, memory_order_relaxed) == 0
         && (pass->n_batch == 0 || pass->batch[0]->reader->fd == reader->fd);
}

static void
end_batched (Pass *pass, Turn *turn, const WeirSendTarget *target)
{
  WeirReader *reader = turn->reader;
  Choice all = all_in_hand (pass);

  book (pass, reader, &target->result);
  if (target->result.gso_error)
    remember_refusal (pass, reader);
  if (!end_send (pass, reader, &all, &pass->server->loads[0], target->settled))
    wait_for_room (pass, turn);
  else
    turn->more = get_cursor (reader) < pass->head;
}

// Sends what is in hand to those who are to get it.
static void
send_batch (Pass *pass)
{
  WeirSendTarget targets[SHARD_READERS];
  unsigned times = pass->times;
  size_t n = pass->n_batch, at = 0;
  Load *loaded;

  if (n == 0)
    return;
  pass->n_batch = 0;
  pass->times = 1;
  loaded = load (pass->server, all_in_hand (pass).mask, false);
  for (size_t i = 0; i < n; i++)
    targets[i] = (WeirSendTarget) { .address = &pass->batch[i]->reader->address };
  while (at < n && !is_full (pass, pass->batch[at]->reader)) {
    size_t end = at
                 + weir_sender_send_many (
                     &loaded->sender, pass->batch[at]->reader->fd, targets + at, n - at);

    for (; at < end; at++)
      end_batched (pass, pass->batch[at], &targets[at]);
  }
  for (; at < n; at++)
    end_turn (pass->batch[at], pass->now_ns + UDP_PATIENCE);
  for (size_t i = 0; i < n; i++)
    reader_let_go (pass->batch[i]->reader);
  pass->times = times;
}

void
weir_serve_end_round (Pass *pass)
{
  send_batch (pass);
}

// True if the reader waits for the others who get the same.
static bool
serve (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;
  Choice choice;

  if (reader_paused (reader)) {
    keep_in_window (pass, reader);
    end_turn (turn, WEIR_NEVER);
  } else if (reader->next_ns > pass->now_ns) {
    end_turn (turn, reader->next_ns);
  } else if (get_cursor (reader) >= pass->head
             || atomic_load_explicit (&reader->gone, memory_order_relaxed)
             || reader_is (reader, WEIR_READER_CLOSED)) {
    reader->next_ns = 0;
    end_turn (turn, WEIR_NEVER);
  } else if (is_full (pass, reader)) {
    reader->next_ns = 0;
    end_turn (turn, pass->now_ns + UDP_PATIENCE);
  } else {
    reader->next_ns = 0;
    if (!take_span (pass, reader)) {
      end_turn (turn, reader->next_ns ? reader->next_ns : WEIR_NEVER);
    } else if (pass->server->hand.packets.n == 0) {
      skip_layers (pass, reader);
    } else {
      choice = choose (pass, reader);
      if (joins_batch (pass, reader, &choice)) {
        pass->batch[pass->n_batch++] = turn;
        return true;
      }
      if (choice.n > 0 && !send_choice (pass, reader, &choice))
        wait_for_room (pass, turn);
      else if (choice.next_ns != WEIR_NEVER)
        end_turn (turn, choice.next_ns);
      else
        turn->more = get_cursor (reader) < pass->head;
    }
  }
  return false;
}

void
weir_serve_turn (Pass *pass, Turn *turn)
{
  WeirReader *reader = turn->reader;

  // A reader that changes its class is in two shards for a moment.
  if (atomic_flag_test_and_set_explicit (&reader->busy, memory_order_acquire)) {
    end_turn (turn, pass->now_ns + UDP_RETRY);
    return;
  }
  pass->times = reader_times (reader, &pass->settings);
  if (!serve (pass, turn))
    reader_let_go (reader);
}
