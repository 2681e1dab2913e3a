// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/protect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>

#include "fanout/fanout_private.h"
#include "packets.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define LEN 1020
#define TAG 10
#define READERS 3

// ---- readers, each with its key ----

typedef struct {
  uint8_t key;       // 0: not protected
  bool fails;        // its packets cannot be protected
  unsigned fails_at; // nor can the one with this sequence number; 0: none
  bool used;
  uint16_t last; // sequence number protected last
  unsigned n_protected, n_released;
  WeirReader *reader;
  // What it got.
  size_t n, n_sends;
  size_t longest; // bytes of a send
  uint16_t first_seq, last_seq;
  bool gap, wrong;
  // What it got again.
  bool again;      // it gets retransmissions
  bool same_again; // and drops those that it has
  size_t n_again, n_got_again;
  size_t n_told; // packets of which it was told that they were sent
  uint16_t last_again;
  bool again_coming, differs;
  uint64_t pace;           // bit/s; 0: any
  size_t longest_run;      // packets that it got at once
  uint8_t sent[65536][64]; // the first bytes of each packet
} Peer;

static Peer peers[READERS];
static WeirFanout *fanout;
static size_t room; // sends for which the socket has room
static int64_t now;
static uint16_t seq;

static uint16_t
next_seq (void *data, uint16_t stream_seq)
{
  const Peer *peer = data;

  return peer->used ? (uint16_t) (peer->last + 1) : stream_seq & 0x7fff;
}

// The payload, and a tag with the key.
static size_t
protect (void *data, const uint8_t *in, size_t len, bool rtp, uint8_t *packet)
{
  Peer *peer = data;

  if (peer->fails || (peer->fails_at && in[3] == peer->fails_at))
    return 0;
  memcpy (packet, in, len);
  for (size_t i = rtp ? RTP_HEADER : 8; i < len; i++)
    packet[i] ^= peer->key;
  memset (packet + len, peer->key, TAG);
  peer->n_protected++;
  if (rtp) {
    uint16_t number = (uint16_t) (packet[2] << 8 | packet[3]);

    if (!peer->used || (int16_t) (uint16_t) (number - peer->last) > 0)
      peer->last = number;
    peer->used = true;
  }
  return len + TAG;
}

static size_t
protect_again (void *data, const uint8_t *in, size_t len, uint8_t *packet)
{
  Peer *peer = data;

  peer->n_again++;
  peer->again_coming = room > 0;
  peer->last_again = (uint16_t) (in[2] << 8 | in[3]);
  return protect (data, in, len, true, packet);
}

static void
note_sent (void *data, const uint8_t *packet, size_t len, int64_t now_ns)
{
  Peer *peer = data;
  uint16_t number = (uint16_t) (packet[2] << 8 | packet[3]);

  CHECK_INT (len, LEN + TAG);
  CHECK_INT (now_ns, now);
  CHECK (!memcmp (packet, peer->sent[number], sizeof peer->sent[number]));
  peer->n_told++;
}

static uint64_t
get_pace (void *data)
{
  return ((Peer *) data)->pace;
}

static void
release (void *data)
{
  ((Peer *) data)->n_released++;
}

// ---- the socket ----

static void
got_packet (Peer *peer, const uint8_t *data, size_t len)
{
  uint16_t got = (uint16_t) (data[2] << 8 | data[3]);

  if (peer->again_coming) {
    peer->again_coming = false;
    peer->n_got_again++;
    peer->differs |= len != LEN + TAG || got != peer->last_again
                     || memcmp (data, peer->sent[got], sizeof peer->sent[got]) != 0;
    return;
  }
  memcpy (peer->sent[got], data, 64);
  peer->wrong |= len != LEN + (peer->key ? TAG : 0);
  for (size_t i = RTP_HEADER; i < LEN && i < len; i++)
    peer->wrong |= data[i] != (uint8_t) (i ^ peer->key);
  for (size_t i = LEN; i < len; i++)
    peer->wrong |= data[i] != peer->key;
  if (peer->n == 0)
    peer->first_seq = got;
  else
    peer->gap |= got != (uint16_t) (peer->last_seq + 1);
  peer->last_seq = got;
  peer->n++;
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  struct cmsghdr *cmsg = msg->msg_controllen ? CMSG_FIRSTHDR (msg) : NULL;
  size_t len = msg->msg_iov->iov_len, segment = len;
  struct sockaddr_in address;
  uint16_t size;
  Peer *peer;

  if (room == 0) {
    errno = EAGAIN;
    return -1;
  }
  room--;
  if (cmsg) {
    memcpy (&size, CMSG_DATA (cmsg), sizeof size);
    segment = size;
  }
  memcpy (&address, msg->msg_name, sizeof address);
  peer = &peers[ntohs (address.sin_port) - 5000];
  peer->n_sends++;
  if (len > peer->longest)
    peer->longest = len;
  if ((len + segment - 1) / segment > peer->longest_run)
    peer->longest_run = (len + segment - 1) / segment;
  for (size_t at = 0; at < len; at += segment)
    got_packet (peer, (const uint8_t *) msg->msg_iov->iov_base + at,
        len - at < segment ? len - at : segment);
  return (ssize_t) len;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  for (unsigned i = 0; i < n; i++) {
    if (fake_sendmsg (fd, &msgs[i].msg_hdr, flags) < 0)
      return i > 0 ? (int) i : -1;
  }
  return (int) n;
}

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

// ---- driving ----

static void
begin (uint16_t first_seq)
{
  WeirFanoutSettings settings = {
    .gso = WEIR_GSO_AUTO,
    .coalesce_ns = 5 * MS,
    .trim = true,
    .join_at_keyframe = true,
    .catch_up_live = true,
    .catch_up_rate = 4,
    .bounds = { 64 << 20, 100000, 30000 * MS, false },
  };

  memset (peers, 0, sizeof peers);
  now = 100000 * MS;
  room = SIZE_MAX;
  seq = first_seq;
  fanout = weir_fanout_new (NULL, &fake_ops, &settings);
  weir_fanout_start (fanout);
}

static void
add (size_t i)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t) (5000 + i)),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) } };
  WeirProtect ops = { .data = &peers[i],
    .next_seq = next_seq,
    .protect = protect,
    .sent = note_sent,
    .pace = get_pace,
    .release = release };

  if (peers[i].again) {
    ops.protect_again = protect_again;
    ops.again_is_new = !peers[i].same_again;
  }

  peers[i].reader = weir_reader_new_udp ();
  weir_reader_set_route (peers[i].reader, 3, &address);
  if (peers[i].key)
    weir_reader_set_protect (peers[i].reader, &ops);
  CHECK_INT (weir_fanout_add (fanout, peers[i].reader, 0, NULL, now), 0);
}

static void
drop (size_t i)
{
  weir_fanout_remove (fanout, peers[i].reader);
  weir_reader_unref (peers[i].reader);
  peers[i].reader = NULL;
}

static void
push_at (int64_t at, size_t n)
{
  now = at;
  if (!weir_fanout_begin (fanout))
    return;
  for (size_t k = 0; k < n; k++) {
    uint8_t *packet = weir_fanout_reserve (fanout, LEN);

    for (size_t i = 0; packet && i < LEN; i++)
      packet[i] = (uint8_t) i;
    put_rtp (packet, seq++, 0, k + 1 == n);
    weir_fanout_commit (fanout, LEN, now);
  }
  weir_fanout_end (fanout, now);
}

static void
push (size_t n)
{
  push_at (now + 40 * MS, n);
}

static void
run (void)
{
  weir_fanout_run (fanout, now);
}

static WeirReaderCounters
counters (size_t i)
{
  WeirReaderCounters c;
  uint64_t dropped = 0;

  weir_reader_counters (fanout, peers[i].reader, now, &c);
  for (size_t reason = 0; reason < WEIR_N_DROPS; reason++)
    dropped += c.dropped[reason];
  CHECK_INT (c.due, c.packets + dropped);
  CHECK_INT (c.packets, peers[i].n);
  return c;
}

static void
finish (void)
{
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  for (size_t i = 0; i < READERS; i++) {
    if (peers[i].reader)
      weir_reader_unref (peers[i].reader);
    if (peers[i].key)
      CHECK (peers[i].n_released > 0);
    if (peers[i].key)
      CHECK_INT (peers[i].n_told, peers[i].n + peers[i].n_got_again);
  }
}

// ---- tests ----

static void
each_reader_gets_its_own_protection (void)
{
  begin (100);
  peers[1].key = 0x5a;
  peers[2].key = 0xc3;
  for (size_t i = 0; i < READERS; i++)
    add (i);
  for (size_t i = 0; i < 50; i++) {
    push (8);
    run ();
  }
  for (size_t i = 0; i < READERS; i++) {
    CHECK_INT (peers[i].n, 400);
    CHECK (!peers[i].wrong && !peers[i].gap);
    CHECK_INT (peers[i].first_seq, 100);
    CHECK_INT (peers[i].n_sends, 50); // segmented
    counters (i);
  }
  finish ();
}

// The rollover counter of SRTP is then 0 at the first packet, also if packets after it are lost
// (RFC 3711, 3.3.1).
static void
sequence_numbers_begin_in_the_lower_half (void)
{
  begin (65533);
  peers[0].key = 1;
  add (0);
  add (1);
  push (6);
  run ();
  CHECK_INT (peers[0].first_seq, 65533 - 32768);
  CHECK_INT (peers[1].first_seq, 65533);
  CHECK (!peers[0].gap && !peers[0].wrong);
  finish ();
}

// A number that came twice, with other bytes, would give the cipher's key stream away.
static void
a_reader_that_returns_uses_no_number_again (void)
{
  uint16_t last;

  begin (500);
  peers[0].key = 1;
  add (0);
  add (1); // keeps the packets in the window
  push (10);
  run ();
  last = peers[0].last_seq;
  drop (0);
  push (10);
  run ();
  add (0);
  push (10);
  run ();
  CHECK_INT (peers[0].last_seq, last + 10);
  CHECK (!peers[0].gap && !peers[0].wrong);
  finish ();
  CHECK_INT (peers[0].n_released, 2);
}

static void
packets_without_room_are_protected_again (void)
{
  begin (0);
  peers[0].key = 1;
  add (0);
  room = 0;
  push (5);
  run ();
  CHECK_INT (peers[0].n, 0);
  room = SIZE_MAX;
  now += 5 * MS;
  run ();
  CHECK_INT (peers[0].n, 5);
  CHECK_INT (peers[0].n_protected, 10);
  CHECK (!peers[0].wrong && !peers[0].gap);
  counters (0);
  finish ();
}

// Also while the socket has no room for the others.
static void
the_neighbours_of_such_a_packet_are_sent (void)
{
  begin (0);
  peers[0].key = 1;
  peers[0].fails_at = 3;
  add (0);
  room = 0;
  push (10);
  run ();
  CHECK_INT (peers[0].n, 0);
  CHECK_INT (counters (0).dropped[WEIR_DROP_ERROR], 0);
  room = SIZE_MAX;
  now += 5 * MS;
  run ();
  CHECK_INT (peers[0].n, 9);
  CHECK_INT (counters (0).dropped[WEIR_DROP_ERROR], 1);
  CHECK (!peers[0].wrong);
  finish ();
}

static void
what_cannot_be_protected_is_not_sent (void)
{
  begin (0);
  peers[0].key = 1;
  peers[0].fails = true;
  peers[1].key = 2;
  add (0);
  add (1);
  push (5);
  run ();
  CHECK_INT (peers[0].n, 0);
  CHECK_INT (counters (0).dropped[WEIR_DROP_ERROR], 5);
  CHECK_INT (weir_reader_take_error (peers[0].reader), EBADMSG);
  CHECK_INT (peers[1].n, 5);
  peers[0].fails = false;
  push (5);
  run ();
  CHECK_INT (peers[0].n, 5);
  CHECK (!peers[0].wrong);
  finish ();
}

// Otherwise its cipher would use numbers again, or its player would miscount the wraps.
static void
a_jump_of_the_numbers_does_not_reach_the_reader (void)
{
  uint16_t jumps[] = { 40000, 60000, 20000, 30000 };

  begin (100);
  peers[0].key = 1;
  add (0);
  for (size_t i = 0; i < 4; i++) {
    push (5);
    run ();
    seq = (uint16_t) (seq + jumps[i]);
  }
  CHECK_INT (peers[0].n, 20);
  CHECK_INT (peers[0].last_seq, 119);
  CHECK (!peers[0].gap && !peers[0].wrong);
  finish ();
}

// The reader sees how much is missing.
static void
a_gap_of_the_numbers_reaches_the_reader (void)
{
  begin (100);
  peers[0].key = 1;
  add (0);
  push (5);
  run ();
  seq = (uint16_t) (seq + 1000);
  push (5);
  run ();
  CHECK_INT (peers[0].last_seq, 1109);
  seq = (uint16_t) (seq - 8); // late packets
  push (3);
  run ();
  CHECK_INT (peers[0].last_seq, 1104);
  CHECK (!peers[0].wrong);
  finish ();
}

// 64 packets fit into one message, but not with their tags.
static void
a_burst_that_grows_beyond_a_message_is_cut (void)
{
  begin (0);
  peers[0].key = 1;
  add (0);
  add (1);
  for (size_t i = 0; i < 4; i++) {
    push (64);
    run ();
  }
  CHECK_INT (peers[0].n, 256);
  CHECK_INT (peers[1].n, 256);
  CHECK (peers[0].longest <= WEIR_PACKET_MAX);
  CHECK (!peers[0].wrong && !peers[0].gap);
  finish ();
}

// ---- retransmissions ----

static int64_t round_trip;

static unsigned
resend (uint16_t number)
{
  return weir_fanout_resend (fanout, peers[0].reader, &number, 1, round_trip, now);
}

// Begins with a reader that has got `n` frames of 8 packets.
static void
begin_again (uint16_t first_seq, size_t n)
{
  begin (first_seq);
  peers[0].key = 1;
  peers[0].again = true;
  add (0);
  for (size_t i = 0; i < n; i++) {
    push (8);
    run ();
  }
  CHECK (!peers[0].gap && !peers[0].wrong);
}

static void
a_lost_packet_is_sent_again (void)
{
  uint16_t first;

  begin_again (60000, 5);
  first = peers[0].first_seq;
  for (uint16_t i = 0; i < 8; i++) {
    CHECK_INT (resend ((uint16_t) (first + 3 * i)), 1);
    CHECK_INT (peers[0].last_again, (uint16_t) (first + 3 * i));
  }
  CHECK_INT (peers[0].n_again, 8);
  CHECK (!peers[0].differs);
  CHECK_INT (counters (0).resent, 8);
  CHECK_INT (counters (0).resend_refused, 0);
  finish ();
}

// Pushes a frame of VP8, every second one discardable, with picture ids of 15 or 7 bits.
static void
push_vp8 (unsigned frame, bool wide)
{
  now += 40 * MS;
  if (!weir_fanout_begin (fanout))
    return;
  for (size_t k = 0; k < 4; k++) {
    uint8_t *packet = weir_fanout_reserve (fanout, LEN), *payload = packet + RTP_HEADER;

    memset (packet, 0, LEN);
    put_rtp (packet, seq++, frame * 3600, k == 3);
    payload[0] = (uint8_t) (0x80 | (frame % 2 ? 0x20 : 0) | (k == 0 ? 0x10 : 0));
    payload[1] = 0x80; // a picture id follows
    payload[2] = (uint8_t) (wide ? 0x80 | frame >> 8 : frame & 0x7f);
    payload[3] = (uint8_t) (wide ? frame : 0);
    payload[wide ? 4 : 3] = frame % 50 != 0;
    weir_fanout_commit (fanout, LEN, now);
  }
  weir_fanout_end (fanout, now);
}

// Its bytes would tell the key stream if they differed: the reader's numbers, compressed
// timestamps, markers and picture ids of then come again, although its numbers have changed since.
static void
what_is_sent_again_is_the_same (void)
{
  for (int wide = 0; wide <= 1; wide++) {
    begin (60000);
    weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
    weir_fanout_set_clock_rate (fanout, 90000);
    peers[1].key = 1;
    add (1);
    for (unsigned frame = 0; frame < 150; frame++) {
      push_vp8 (1000 + frame, wide);
      run ();
    }
    for (unsigned frame = 150; frame < 180; frame++) // a group of pictures to catch up with
      push_vp8 (1000 + frame, wide);
    peers[0].key = 1;
    peers[0].again = true;
    add (0);
    for (unsigned frame = 180; frame < 220; frame++) {
      uint16_t last = peers[0].last_seq;

      push_vp8 (1000 + frame, wide);
      for (size_t i = 0; i < 4; i++, now += 2 * MS)
        run ();
      for (size_t k = 0; k < 4 && peers[0].n > 12; k++)
        resend ((uint16_t) (last - 3 * k));
    }
    CHECK (peers[0].n > 150 && !peers[0].gap);
    CHECK (peers[0].n_again > 30);
    CHECK (!peers[0].differs);
    CHECK (counters (0).dropped[WEIR_DROP_CATCH_UP] > 0);
    finish ();
  }
}

static uint32_t
timestamp_of (size_t i, uint16_t number)
{
  const uint8_t *packet = peers[i].sent[number];

  return (uint32_t) packet[4] << 24 | (uint32_t) packet[5] << 16 | (uint32_t) packet[6] << 8
         | packet[7];
}

// The keyframe comes again, and all that came after it. Numbers go on by one, and timestamps do not
// go back.
static void
a_reader_begins_again_at_the_keyframe (void)
{
  uint16_t before;
  size_t n;

  begin (60000);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_set_clock_rate (fanout, 90000);
  peers[0].key = 1;
  peers[0].again = true;
  add (0);
  CHECK (!weir_fanout_rejoin (fanout, peers[0].reader, now)); // there is no keyframe yet
  for (unsigned frame = 0; frame <= 55; frame++) {
    push_vp8 (1000 + frame, true);
    run ();
  }
  n = peers[0].n;
  before = peers[0].last_seq;
  CHECK (weir_fanout_rejoin (fanout, peers[0].reader, now));
  CHECK_INT (resend ((uint16_t) (before - 2)), 1);
  for (unsigned frame = 56; frame < 70; frame++) {
    push_vp8 (1000 + frame, true);
    for (size_t i = 0; i < 4; i++, now += 2 * MS)
      run ();
  }
  CHECK_INT (peers[0].sent[(uint16_t) (before + 1)][15] ^ 1, 1050 & 0xff); // its picture id
  CHECK (peers[0].n - n > 4 * 16 && !peers[0].gap && !peers[0].differs);
  for (uint16_t i = peers[0].first_seq; i != peers[0].last_seq; i++)
    CHECK (timestamp_of (0, (uint16_t) (i + 1)) - timestamp_of (0, i) < 90000);
  finish ();
}

static void
what_was_not_sent_is_not_sent_again (void)
{
  begin_again (100, 5);
  CHECK_INT (resend (99), 0);
  CHECK_INT (resend (140), 0);
  CHECK_INT (resend (40000), 0);
  CHECK_INT (peers[0].n_again, 0);
  CHECK_INT (counters (0).resend_refused, 3);
  peers[1].key = 1; // without retransmissions
  add (1);
  push (8);
  run ();
  CHECK_INT (weir_fanout_resend (fanout, peers[1].reader, &peers[1].last_seq, 1, 0, now), 0);
  finish ();
}

static void
a_packet_is_sent_again_for_a_second (void)
{
  begin_again (100, 40);
  CHECK_INT (resend (peers[0].last_seq), 1);
  now += 900 * MS;
  CHECK_INT (resend (peers[0].last_seq), 1);
  now += 101 * MS;
  CHECK_INT (resend (peers[0].last_seq), 0);
  finish ();
}

static void
a_packet_is_sent_again_once_in_20_ms (void)
{
  begin_again (100, 40);
  CHECK_INT (resend (peers[0].last_seq), 1);
  now += 19 * MS;
  CHECK_INT (resend (peers[0].last_seq), 0);
  now += 1 * MS;
  CHECK_INT (resend (peers[0].last_seq), 1);
  finish ();
}

static void
a_packet_is_sent_again_once_in_a_round_trip (void)
{
  begin_again (100, 40);
  round_trip = 150 * MS;
  CHECK_INT (resend (peers[0].last_seq), 1); // the first time at once
  now += 149 * MS;
  CHECK_INT (resend (peers[0].last_seq), 0);
  now += 1 * MS;
  CHECK_INT (resend (peers[0].last_seq), 1);
  round_trip = 0;
  finish ();
}

static void
a_packet_is_sent_again_three_times (void)
{
  unsigned n_again = 0;

  begin_again (100, 40);
  for (size_t i = 0; i < 20; i++, now += 30 * MS)
    n_again += resend (peers[0].last_seq);
  CHECK_INT (n_again, 3);
  CHECK_INT (resend ((uint16_t) (peers[0].last_seq - 1)), 1);
  CHECK_INT (counters (0).resend_refused, 17);
  finish ();
}

// 25 frames a second, 8 packets each.
static void
a_fifth_of_what_is_sent_is_sent_again (void)
{
  size_t n_again = 0, n = 0;

  begin_again (100, 50);
  for (size_t i = 0; i < 100; i++) {
    push (8);
    run ();
    for (size_t k = 0; k < 8; k++, n++)
      n_again += resend ((uint16_t) (peers[0].last_seq - k));
  }
  CHECK (n_again > n / 6 && n_again <= n / 5);
  CHECK_INT (counters (0).resent, n_again);
  CHECK_INT (counters (0).resend_refused, n - n_again);
  finish ();
}

static void
what_was_sent_long_ago_gives_no_budget (void)
{
  unsigned n_again = 0;

  begin_again (100, 50);
  now += 5000 * MS;
  push (8);
  push (8);
  run ();
  for (size_t k = 0; k < 16; k++)
    n_again += resend ((uint16_t) (peers[0].last_seq - k));
  CHECK_INT (n_again, 3);
  finish ();
}

// As many as a second has, also if nobody else needs them.
static void
a_second_of_packets_is_kept (void)
{
  begin_again (100, 0);
  for (size_t i = 0; i < 25; i++) {
    push (60);
    run ();
  }
  CHECK_INT (peers[0].n, 1500);
  for (size_t i = 0; i < 100; i++)
    CHECK_INT (resend ((uint16_t) (peers[0].last_seq - 1400 + 13 * i)), 1);
  finish ();
}

// Lets 400 packets a second come for 4 s, and asks for some of them.
static void
push_for_seconds (unsigned apart)
{
  for (size_t i = 0; i < 4 * 25; i++) {
    for (size_t k = 0; k < 16; k++, seq = (uint16_t) (seq + apart - 1))
      push_at (now + (k == 0 ? 40 * MS : 0), 1);
    run ();
    if (i % 10 == 9)
      CHECK_INT (resend ((uint16_t) (peers[0].last_seq - 70 * apart)), 1);
  }
  for (size_t i = 0; i < 40; i++)
    CHECK_INT (resend ((uint16_t) (peers[0].last_seq - (380 - 7 * i) * apart)), 1);
}

// What a burst needed is freed, and what may be sent again stays.
static void
no_more_than_a_second_of_packets_is_kept (void)
{
  begin_again (100, 0);
  for (size_t i = 0; i < 1500; i++, seq++)
    push_at (now + MS, 1);
  run ();
  CHECK_INT (weir_resends_room (peers[0].reader->resends), 2048);
  push_for_seconds (2);
  CHECK_INT (weir_resends_room (peers[0].reader->resends), 512);
  now += 5000 * MS;
  push (8);
  run ();
  CHECK_INT (weir_resends_room (peers[0].reader->resends), 16);
  for (uint16_t i = 0; i < 2; i++)
    CHECK_INT (resend ((uint16_t) (peers[0].last_seq - i)), i == 0);
  CHECK (!peers[0].differs);
  finish ();
}

// As for packets whose numbers go on.
static void
packets_without_gaps_need_little_room (void)
{
  begin_again (60000, 0);
  push_for_seconds (1);
  CHECK_INT (weir_resends_room (peers[0].reader->resends), 32);
  CHECK (!peers[0].differs);
  finish ();
}

static void
a_full_socket_refuses_retransmissions (void)
{
  begin_again (100, 40);
  room = 0;
  CHECK_INT (resend (peers[0].last_seq), 0);
  room = SIZE_MAX;
  CHECK_INT (resend (peers[0].last_seq), 1);
  finish ();
}

static void
a_reader_that_left_gets_nothing_again (void)
{
  begin_again (100, 40);
  weir_fanout_remove (fanout, peers[0].reader);
  CHECK_INT (resend (peers[0].last_seq), 0);
  finish ();
}

// ---- probes ----

#define STEP (5 * MS)

// Runs for `time`, and returns when something is due after it.
static int64_t
run_for (int64_t time)
{
  int64_t until = now + time, next;

  do {
    next = weir_fanout_run (fanout, now);
    now = next < until ? (next > now ? next : now + STEP) : until;
  } while (now < until);
  return weir_fanout_run (fanout, now);
}

static int
probe (uint64_t bits, int64_t duration)
{
  return weir_fanout_probe (fanout, peers[0].reader, bits, duration, now);
}

static void
a_probe_fills_the_line (void)
{
  begin_again (100, 40);
  CHECK_INT (probe (2000000, 200 * MS), 0);
  CHECK_INT (weir_fanout_run (fanout, now), now + STEP);
  run_for (100 * MS);
  // 25,000 bytes are due, and the last packet may reach beyond that.
  CHECK_INT (peers[0].n_got_again, 25000 / (LEN + TAG) + 1);
  CHECK_INT (run_for (500 * MS), WEIR_NEVER);
  CHECK (peers[0].n_got_again >= 46 && peers[0].n_got_again <= 50000 / (LEN + TAG) + 1);
  CHECK_INT (counters (0).probed, peers[0].n_got_again);
  CHECK_INT (counters (0).resent, 0);
  CHECK (!peers[0].differs);
  finish ();
}

static void
a_probe_is_ended (void)
{
  begin_again (100, 40);
  CHECK_INT (probe (2000000, 200 * MS), 0);
  run_for (100 * MS);
  CHECK_INT (probe (0, 200 * MS), -EINVAL);
  CHECK_INT (probe (2000000, 0), -EINVAL);
  CHECK_INT (probe (0, 0), 0);
  CHECK_INT (run_for (100 * MS), WEIR_NEVER);
  CHECK_INT (peers[0].n_got_again, 25000 / (LEN + TAG) + 1);
  finish ();
}

// What the stream has counts.
static void
a_probe_adds_what_is_missing (void)
{
  size_t before;

  begin_again (100, 40);
  before = peers[0].n;
  CHECK_INT (probe (4000000, 400 * MS), 0);
  for (size_t i = 0; i < 10; i++) {
    push (10);
    run_for (STEP);
  }
  run_for (400 * MS);
  CHECK_INT (peers[0].n, before + 100);
  CHECK (peers[0].n_got_again > 200000 / (LEN + TAG) - 105);
  CHECK (peers[0].n_got_again < 200000 / (LEN + TAG) - 95);
  finish ();
}

static void
a_probe_ends_when_nothing_can_be_sent (void)
{
  begin_again (100, 40);
  room = 0;
  CHECK_INT (probe (2000000, 200 * MS), 0);
  CHECK_INT (run_for (20 * MS), WEIR_NEVER);
  room = SIZE_MAX;
  CHECK_INT (run_for (20 * MS), WEIR_NEVER);
  CHECK_INT (peers[0].n_got_again, 0);
  finish ();
}

// As to one that gets keyframes only.
static void
a_reader_with_few_pictures_is_probed_with_old_packets (void)
{
  begin_again (100, 40);
  now += 1900 * MS;
  CHECK_INT (probe (2000000, 100 * MS), 0);
  CHECK_INT (run_for (200 * MS), WEIR_NEVER);
  CHECK (peers[0].n_got_again >= 22);
  CHECK_INT (resend (peers[0].last_seq), 0);
  finish ();
}

static void
wrong_probes_are_refused (void)
{
  begin_again (100, 40);
  CHECK_INT (probe (0, 200 * MS), -EINVAL);
  CHECK_INT (probe (1000000001, 200 * MS), -EINVAL);
  CHECK_INT (probe (1000, 0), -EINVAL);
  CHECK_INT (probe (1000, 5001 * MS), -EINVAL);
  CHECK_INT (run_for (20 * MS), WEIR_NEVER);
  finish ();
  begin (100);
  peers[0].key = 1;
  add (0);
  CHECK_INT (probe (1000000, 200 * MS), -ENOTSUP);
  finish ();
}

static void
a_reader_that_drops_what_it_has_is_not_probed (void)
{
  begin (100);
  peers[0].key = 1;
  peers[0].again = peers[0].same_again = true;
  add (0);
  push (40);
  run_for (STEP);
  CHECK_INT (probe (1000000, 200 * MS), -ENOTSUP);
  CHECK_INT (run_for (200 * MS), WEIR_NEVER);
  CHECK_INT (peers[0].n_got_again, 0);
  now += 100 * MS;
  CHECK_INT (resend (peers[0].last_seq), 1);
  finish ();
}

// ---- spreading ----

static void
begin_paced (uint64_t pace)
{
  begin (100);
  peers[0].key = 1;
  add (0);
  push (1);
  run ();
  push (1);
  run ();
  peers[0].pace = pace;
}

// 64 packets are 65,280 bytes: 26 ms at 20 Mb/s.
static void
a_large_frame_is_spread_over_the_time_that_the_line_needs (void)
{
  begin_paced (20000000);
  push (64);
  CHECK (weir_fanout_run (fanout, now) > now);
  CHECK_INT (peers[0].n, 2 + 8);
  CHECK_INT (peers[0].longest_run, 8);
  run_for (13 * MS);
  CHECK (peers[0].n >= 2 + 32 && peers[0].n <= 2 + 48);
  CHECK_INT (run_for (15 * MS), WEIR_NEVER);
  CHECK_INT (peers[0].n, 2 + 64);
  CHECK_INT (peers[0].longest_run, 8);
  CHECK (!peers[0].gap && !peers[0].wrong);
  finish ();
}

// Frames are 40 ms apart.
static void
a_frame_takes_no_longer_than_its_duration (void)
{
  begin_paced (100000);
  for (size_t i = 0; i < 20; i++) {
    push (64);
    run_for (40 * MS);
    now -= 40 * MS; // push() adds it
    CHECK_INT (peers[0].n, 2 + 64 * (i + 1));
  }
  CHECK (!peers[0].gap && !peers[0].wrong);
  finish ();
}

static void
small_frames_and_fast_lines_are_not_spread (void)
{
  begin_paced (100000);
  push (8);
  CHECK_INT (weir_fanout_run (fanout, now), WEIR_NEVER);
  CHECK_INT (peers[0].n, 2 + 8);
  peers[0].pace = 100000000;
  push (64);
  CHECK_INT (weir_fanout_run (fanout, now), WEIR_NEVER);
  CHECK_INT (peers[0].n, 2 + 8 + 64);
  finish ();
}

// Nor does it lag.
static void
what_comes_while_a_frame_is_spread_waits_for_it (void)
{
  begin_paced (20000000);
  push (64);
  weir_fanout_run (fanout, now);
  CHECK_INT (peers[0].n, 2 + 8);
  now -= 40 * MS; // at the same time
  push (4);
  weir_fanout_run (fanout, now);
  CHECK_INT (peers[0].n, 2 + 8);
  CHECK_INT (run_for (40 * MS), WEIR_NEVER);
  CHECK_INT (peers[0].n, 2 + 64 + 4);
  CHECK_INT (counters (0).lag_packets, 0);
  finish ();
}

static void
a_full_socket_does_not_stop_a_spread_frame (void)
{
  begin_paced (20000000);
  room = 1;
  push (64);
  run_for (10 * MS);
  CHECK_INT (peers[0].n, 2 + 8);
  room = SIZE_MAX;
  CHECK_INT (run_for (50 * MS), WEIR_NEVER);
  CHECK_INT (peers[0].n, 2 + 64);
  CHECK (!peers[0].gap);
  finish ();
}

static void
sequence_numbers_wrap (void)
{
  begin (60000);
  peers[0].key = 1;
  add (0);
  for (size_t i = 0; i < 2000; i++) {
    push (50);
    run ();
  }
  CHECK_INT (peers[0].n, 100000);
  CHECK (!peers[0].wrong && !peers[0].gap);
  CHECK_INT (peers[0].last_seq, (uint16_t) (60000 - 32768 + 100000 - 1));
  finish ();
}

int
main (void)
{
  RUN (each_reader_gets_its_own_protection);
  RUN (sequence_numbers_begin_in_the_lower_half);
  RUN (a_reader_that_returns_uses_no_number_again);
  RUN (packets_without_room_are_protected_again);
  RUN (what_cannot_be_protected_is_not_sent);
  RUN (the_neighbours_of_such_a_packet_are_sent);
  RUN (a_jump_of_the_numbers_does_not_reach_the_reader);
  RUN (a_gap_of_the_numbers_reaches_the_reader);
  RUN (a_burst_that_grows_beyond_a_message_is_cut);
  RUN (sequence_numbers_wrap);
  RUN (a_lost_packet_is_sent_again);
  RUN (what_is_sent_again_is_the_same);
  RUN (a_reader_begins_again_at_the_keyframe);
  RUN (what_was_not_sent_is_not_sent_again);
  RUN (a_packet_is_sent_again_for_a_second);
  RUN (a_packet_is_sent_again_once_in_20_ms);
  RUN (a_packet_is_sent_again_once_in_a_round_trip);
  RUN (a_packet_is_sent_again_three_times);
  RUN (a_fifth_of_what_is_sent_is_sent_again);
  RUN (what_was_sent_long_ago_gives_no_budget);
  RUN (a_second_of_packets_is_kept);
  RUN (no_more_than_a_second_of_packets_is_kept);
  RUN (packets_without_gaps_need_little_room);
  RUN (a_full_socket_refuses_retransmissions);
  RUN (a_reader_that_left_gets_nothing_again);
  RUN (a_probe_fills_the_line);
  RUN (a_probe_is_ended);
  RUN (a_probe_adds_what_is_missing);
  RUN (a_probe_ends_when_nothing_can_be_sent);
  RUN (a_reader_with_few_pictures_is_probed_with_old_packets);
  RUN (wrong_probes_are_refused);
  RUN (a_reader_that_drops_what_it_has_is_not_probed);
  RUN (a_large_frame_is_spread_over_the_time_that_the_line_needs);
  RUN (a_frame_takes_no_longer_than_its_duration);
  RUN (small_frames_and_fast_lines_are_not_spread);
  RUN (what_comes_while_a_frame_is_spread_waits_for_it);
  RUN (a_full_socket_does_not_stop_a_spread_frame);
  return tap_done ();
}
