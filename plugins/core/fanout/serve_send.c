// SPDX-License-Identifier: LGPL-2.1-or-later
// Sends the chosen packets to one reader.
#include <errno.h>
#include <string.h>

#include "codec/layers_private.h"
#include "fanout/serve_private.h"
#include "rtp/rtp.h"

// GSO_PAUSE: pause after a refused segmented send; it doubles with each further refusal, up to
// GSO_PAUSE_MOST.
#define GSO_PAUSE (1000 * MS)
#define GSO_PAUSE_MOST (60000 * MS)

#define VP8_HEADER 4 // bytes of a payload up to the end of the picture id

// ---- the burst ----

// Prepares the chosen packets in hand for the sender: in place, or in the copy if they have to be
// changed.
static Load *
load (Server *server, uint64_t mask, bool copy)
{
  const WeirSpan *span = &server->hand.packets;
  Load *loaded = &server->loads[copy ? COPIED : IN_PLACE];
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

// Adds `by` to the picture id in the copy `data`, which may hold the id of the previous reader.
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

// Reports whether packet `k` is the last of its frame that is sent, because the packet with the
// marker is left out. Looks at the first `n` packets.
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

// Counts the pictures that are left out between two packets. They take no picture id: a gap would
// look like loss to a player.
static uint16_t
pictures_left_out (const WeirSpan *span, uint64_t mask, size_t from, size_t to)
{
  uint16_t n = 0;

  for (size_t i = from; i < to; i++)
    n += !(mask >> i & 1) && span->packets[i].flags & WEIR_PACKET_START;
  return n;
}

// Writes the reader's own numbers into the copies of the first `n` packets. Packets that are left
// out take no number.
static void
patch (const Pass *pass, const WeirReader *reader, size_t n)
{
  Server *server = pass->server;
  Load *copy = &server->loads[COPIED];
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
    if (reader->has_guise)
      reader_put_guise (reader, data);
    weir_rtp_set_timestamp (data, (uint32_t) (time + reader_ahead (reader, packet->rtp_time)));
    weir_rtp_set_marker (
        data, packet->flags & WEIR_PACKET_MARKER
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

// Reports whether the reader has its own sequence numbers, timestamps, picture ids or SSRC.
static bool
has_own_numbers (const Pass *pass, const WeirReader *reader)
{
  return reader->seq_delta != 0 || reader->time_ahead != 0 || reader->late_by != 0
         || reader->has_guise || (pass->is_vp8 && reader->picture_delta != 0)
         || (reader->join.rate > 0 && reader->join.compress);
}

// Returns where the picture id is in a packet, as in WeirCloneMessage.
static uint16_t
picture_id_at (const uint8_t *data, size_t len)
{
  bool wide = false;
  size_t at = 0;
  WeirRtp rtp;

  if (weir_rtp_parse (data, len, &rtp) >= 0)
    at = weir_vp8_picture_id_at (data + rtp.payload_offset, rtp.payload_length, &wide);
  return at == 0 ? 0 : (uint16_t) ((rtp.payload_offset + at) | (wide ? WEIR_CLONES_WIDE_ID : 0));
}

WeirBurstNumbers
weir_serve_find_numbers (const Pass *pass, const Load *loaded, uint16_t *picture_at)
{
  const WeirBurst *burst = &loaded->sender.burst;
  const WeirPacket *packets = pass->server->hand.packets.packets;
  WeirBurstNumbers numbers = { 0, pass->is_vp8 ? picture_at : NULL };

  for (size_t k = 0; k < burst->n; k++) {
    bool rtp = packets[loaded->picked[k]].flags & WEIR_PACKET_RTP;

    numbers.rtp |= (uint64_t) rtp << k;
    if (pass->is_vp8)
      picture_at[k] =
          rtp ? picture_id_at (burst->data + burst->offset[k], weir_burst_len (burst, k)) : 0;
  }
  return numbers;
}

Load *
weir_serve_load_for (Pass *pass, const WeirReader *reader, const Choice *choice)
{
  bool own = has_own_numbers (pass, reader) || choice->mask != first_bits (choice->n);
  Load *loaded = load (pass->server, choice->mask, own);

  if (own)
    patch (pass, reader, choice->n);
  return loaded;
}

// ---- the send ----

void
weir_serve_book (const Pass *pass, WeirReader *reader, const WeirSendResult *result)
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

// The error belongs to the path to this reader only: for example, a device without checksum offload
// gives EIO for its readers. The path may change, so segmented sends are tried again later.
void
weir_serve_remember_refusal (const Pass *pass, WeirReader *reader, int error)
{
  bool before = atomic_load_explicit (&reader->gso_again_ns, memory_order_relaxed) != 0;
  int64_t pause = before ? 2 * reader->gso_pause_ns : GSO_PAUSE;

  reader->gso_pause_ns = pause < GSO_PAUSE_MOST ? pause : GSO_PAUSE_MOST;
  atomic_store_explicit (
      &reader->gso_again_ns, pass->now_ns + reader->gso_pause_ns, memory_order_relaxed);
  if (before)
    return;
  atomic_store_explicit (&reader->gso_error, error, memory_order_relaxed);
  tell_news (pass);
}

// send_udp() and send_conn() send the burst and return the number of settled packets.

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
      weir_serve_remember_refusal (pass, reader, result.gso_error);
    else if (sender->counters.gso_sends > n_segmented)
      atomic_store_explicit (&reader->gso_again_ns, 0, memory_order_relaxed);
    // The progress of each copy is not recorded: packets without room are dropped.
    if (pass->times > 1) {
      result.dropped[WEIR_DROP_WOULD_BLOCK] += sender->burst.n - settled;
      settled = sender->burst.n;
    }
    weir_serve_book (pass, reader, &result);
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
    set_state (pass, reader, WEIR_READER_CLOSED);
    taken = (int) burst->n;
  } else {
    result.packets = (uint64_t) taken;
    result.bytes = burst->offset[taken];
  }
  weir_serve_book (pass, reader, &result);
  return (size_t) taken;
}

// Protects and sends the loaded packets. Drops those that cannot be protected. Returns how many are
// settled.
static size_t
send_protected (Pass *pass, WeirReader *reader, const Load *loaded)
{
  Load *sealed = weir_serve_protect (pass, reader, loaded);
  WeirSendResult refused = { .error = EBADMSG };
  size_t sent = 0, settled = loaded->sender.burst.n;

  if (sealed->sender.burst.n > 0)
    sent = reader->conn ? send_conn (pass, reader, &sealed->sender)
                        : send_udp (pass, reader, &sealed->sender);
  weir_serve_note_sent (pass, reader, loaded, sent);
  if (reader->resends && sent > 0)
    weir_resends_note (pass, reader, loaded, sent);
  if (sent < sealed->sender.burst.n)
    settled = sealed->picked[sent];
  if (settled > sent) {
    refused.dropped[WEIR_DROP_ERROR] = (settled - sent) * pass->times;
    weir_serve_book (pass, reader, &refused);
  }
  return settled;
}

// Moves the reader's cursor to packet `end` of the span. `n_skipped` of the packets before it were
// not given to the reader.
static void
settle (const Pass *pass, WeirReader *reader, const Choice *choice, size_t end, uint64_t n_skipped)
{
  // Both reasons rarely occur in one span: all packets are counted under one of them.
  WeirDrop reason = choice->n_catch_up > 0 ? WEIR_DROP_CATCH_UP : WEIR_DROP_THINNED;
  const Hand *hand = &pass->server->hand;
  uint64_t n_extra = 0;
  int64_t position;
  bool past_extra;

  if (choice->live_at != NOT_HERE && end >= choice->live_at)
    atomic_store_explicit (&reader->joining, false, memory_order_relaxed);
  if (choice->adopt_at != NOT_HERE && end >= choice->adopt_at
      && !reader_is (reader, WEIR_READER_CLOSED))
    set_state (pass, reader, get_wanted (reader));
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

bool
weir_serve_end_send (
    const Pass *pass, WeirReader *reader, const Choice *choice, const Load *loaded, size_t settled)
{
  size_t end = settled < loaded->sender.burst.n ? loaded->picked[settled] : choice->n;

  if (settled > 0)
    end_wait_for_room (pass, reader);
  settle (pass, reader, choice, end, end - settled);
  return settled == loaded->sender.burst.n;
}

bool
weir_serve_send (Pass *pass, WeirReader *reader, const Choice *choice)
{
  size_t settled;
  Load *loaded;

  weir_serve_number (pass, reader, choice->mask);
  if (choice->mask == 0) {
    settle (pass, reader, choice, choice->n, choice->n);
    return true;
  }
  loaded = weir_serve_load_for (pass, reader, choice);
  reader_set_clones (
      reader, weir_serve_may_clone (pass, reader) ? WEIR_CLONES_ALONE : WEIR_CLONES_UNFIT);
  if (reader->is_protected)
    settled = send_protected (pass, reader, loaded);
  else
    settled = reader->conn ? send_conn (pass, reader, &loaded->sender)
                           : send_udp (pass, reader, &loaded->sender);
  return weir_serve_end_send (pass, reader, choice, loaded, settled);
}
