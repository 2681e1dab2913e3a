// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests which packets the window keeps, and for whom.
#include "fanout/fanout_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packets.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define S (1000 * MS)
#define FRAME_NS (40 * MS)
#define FRAME_TICKS 3600
#define FRAME_PACKETS 3
#define GOP 25 // frames; 1 s
#define LEN 1000
#define SR 200
#define READERS_MAX 1024

typedef struct {
  WeirReader *reader;
  int64_t n, first, last; // packets that it got, and the numbers of the first and the last
  int64_t n_gaps;         // packets between them that it did not get
  // Over a connection.
  WeirConn *conn;
  int peer;
  uint8_t rest[4 * (LEN + 4)];
  size_t n_rest;
} Reader;

static Reader readers[READERS_MAX];
static size_t n_readers;
static size_t deaf; // the index of a reader whose socket is full; SIZE_MAX: none
static WeirFanout *fanout;
static WeirFanoutSettings settings;
static int64_t now;
static int64_t n_frames, n_packets;
static bool markers; // whether frames end with a marker
static bool mixed;   // whether a packet that is not RTP precedes each keyframe
static bool moving;  // whether readers move back

static void
got_packet (Reader *reader, const uint8_t *data)
{
  int64_t id;

  if (data[1] == SR)
    return;
  memcpy (&id, data + RTP_HEADER + VP8_PAYLOAD, sizeof id);
  if (reader->n++ == 0)
    reader->first = id;
  else
    reader->n_gaps += id - reader->last - 1;
  CHECK (moving || reader->n == 1 || id > reader->last);
  reader->last = id;
}

static int
take (const struct msghdr *msg)
{
  const struct iovec *iov = msg->msg_iov;
  struct sockaddr_in address;
  size_t index;

  memcpy (&address, msg->msg_name, sizeof address);
  index = ntohl (address.sin_addr.s_addr) & 0xffffff;
  if (index == deaf) {
    errno = EAGAIN;
    return -1;
  }
  for (size_t at = 0; at < iov->iov_len; at += LEN)
    got_packet (&readers[index], (const uint8_t *) iov->iov_base + at);
  return 0;
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  return take (msg) < 0 ? -1 : (ssize_t) msg->msg_iov->iov_len;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  for (unsigned i = 0; i < n; i++) {
    if (take (&msgs[i].msg_hdr) < 0)
      return i > 0 ? (int) i : -1;
  }
  return (int) n;
}

// ---- driving the engine ----

static void
begin_as (WeirCodec codec)
{
  static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

  memset (readers, 0, sizeof readers);
  n_readers = 0;
  n_frames = n_packets = 0;
  deaf = SIZE_MAX;
  now = 100 * S;
  markers = true;
  mixed = moving = false;
  settings = (WeirFanoutSettings) {
    .join_at_keyframe = true,
    .catch_up_live = true,
    .catch_up_rate = 8,
    .coalesce_ns = 5 * MS,
    .bounds = { 64 << 20, 100000, 1000 * S, false },
    .trim = true,
  };
  fanout = weir_fanout_new (NULL, &fake_ops, &settings);
  weir_fanout_set_codec (fanout, codec, 0);
  weir_fanout_set_clock_rate (fanout, 90000);
  weir_fanout_start (fanout);
}

static void
begin (void)
{
  begin_as (WEIR_CODEC_VP8);
}

static void
push (bool rtp, bool first, bool marker, bool key)
{
  uint8_t *room = weir_fanout_reserve (fanout, LEN);

  memset (room, 0, LEN);
  put_rtp (room, (uint16_t) n_packets, (uint32_t) (n_frames * FRAME_TICKS), marker);
  if (rtp) {
    put_vp8 (room + RTP_HEADER, first, key, false, n_frames % GOP % 2);
    memcpy (room + RTP_HEADER + VP8_PAYLOAD, &n_packets, sizeof n_packets);
    n_packets++;
  } else {
    room[0] = mixed ? 0 : room[0];
    room[1] = SR;
  }
  weir_fanout_commit (fanout, LEN, now);
}

static void
push_frame (void)
{
  bool key = n_frames % GOP == 0;

  if (weir_fanout_begin (fanout)) {
    if (mixed && key)
      push (false, true, true, true);
    for (int i = 0; i < FRAME_PACKETS; i++)
      push (true, i == 0, markers && i + 1 == FRAME_PACKETS, key);
    weir_fanout_end (fanout, now);
  }
  n_frames++;
}

static void
frame_ends (void)
{
  for (int i = 0; i < 8; i++, now += FRAME_NS / 8)
    weir_fanout_run (fanout, now);
}

static void
frame (void)
{
  push_frame ();
  frame_ends ();
}

static void
frames (int n)
{
  while (n-- > 0)
    frame ();
}

// Plays until the next frame is the first of a group of pictures.
static void
frames_to_key (void)
{
  while (n_frames % GOP != 0)
    frame ();
}

static int64_t
held (void)
{
  return fanout->window.head - fanout->window.tail;
}

// Returns the packets of the last group of pictures.
static int64_t
last_gop (void)
{
  return ((n_frames - 1) % GOP + 1) * FRAME_PACKETS;
}

static Reader *
new_reader (void)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons (5000),
                              .sin_addr.s_addr = htonl (0x0a000000 + (uint32_t) n_readers) } };
  Reader *reader = &readers[n_readers++];

  *reader = (Reader) { .reader = weir_reader_new_udp (), .peer = -1 };
  weir_reader_set_route (reader->reader, 3, &address);
  return reader;
}

static Reader *
add (void)
{
  Reader *reader = new_reader ();

  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  return reader;
}

static Reader *
add_tcp (void)
{
  Reader *reader = &readers[n_readers++];
  int fds[2], size = 4000;

  CHECK_INT (socketpair (AF_UNIX, SOCK_STREAM, 0, fds), 0);
  CHECK_INT (setsockopt (fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
  reader->conn = weir_conn_new (fds[0], NULL);
  close (fds[0]);
  reader->peer = fds[1];
  reader->reader = weir_reader_new_conn (reader->conn, WEIR_FRAMING_INTERLEAVED, 0);
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  return reader;
}

// Reads up to `n` packets from the reader's connection.
static void
read_peer (Reader *reader, int n)
{
  while (n > 0) {
    ssize_t got =
        recv (reader->peer, reader->rest + reader->n_rest, LEN + 4 - reader->n_rest, MSG_DONTWAIT);

    if (got <= 0) {
      weir_fanout_run (fanout, now);
      got = recv (
          reader->peer, reader->rest + reader->n_rest, LEN + 4 - reader->n_rest, MSG_DONTWAIT);
      if (got <= 0)
        return;
    }
    reader->n_rest += (size_t) got;
    if (reader->n_rest == LEN + 4) {
      got_packet (reader, reader->rest + 4);
      reader->n_rest = 0;
      n--;
    }
  }
}

static WeirReaderCounters
counters (const Reader *reader)
{
  WeirReaderCounters c;

  weir_reader_counters (fanout, reader->reader, now, &c);
  return c;
}

static int64_t
cursor (const Reader *reader)
{
  return atomic_load (&reader->reader->cursor);
}

// Checks that the window has never dropped a packet that the reader needed.
static void
check_kept (const Reader *reader)
{
  WeirReaderCounters c = counters (reader);

  CHECK_INT (c.moved, 0);
  CHECK_INT (c.dropped[WEIR_DROP_OVERRUN], 0);
}

static void
finish (void)
{
  weir_fanout_stop (fanout);
  for (size_t i = 0; i < n_readers; i++) {
    WeirReaderCounters c = counters (&readers[i]);
    uint64_t dropped = 0;

    for (int reason = 0; reason < WEIR_N_DROPS; reason++)
      dropped += c.dropped[reason];
    CHECK_INT (c.due, c.packets + dropped);
  }
  weir_fanout_free (fanout);
  for (size_t i = 0; i < n_readers; i++) {
    weir_reader_unref (readers[i].reader);
    if (readers[i].conn)
      weir_conn_unref (readers[i].conn);
    if (readers[i].peer >= 0)
      close (readers[i].peer);
  }
}

// ---- without slow readers ----

static void
without_readers_the_last_group_of_pictures_stays (void)
{
  begin ();
  for (int i = 0; i < 10 * GOP; i++) {
    frame ();
    CHECK_INT (held (), last_gop ());
    CHECK_INT (fanout->window.tail, fanout->window.last_join);
  }
  finish ();
}

static void
readers_at_the_live_edge_keep_no_more (void)
{
  begin ();
  for (int i = 0; i < 3; i++)
    add ();
  for (int i = 0; i < 10 * GOP; i++) {
    frame ();
    CHECK_INT (held (), last_gop ());
  }
  for (size_t i = 0; i < n_readers; i++) {
    check_kept (&readers[i]);
    CHECK_INT (readers[i].n, n_packets);
  }
  CHECK (fanout->layers.frames_size <= 2 * GOP && !fanout->layers.work);
  finish ();
}

// The frame that is arriving stays, for readers that join with it.
static void
readers_that_join_at_the_live_edge_keep_the_newest_block (void)
{
  uint64_t n_blocks;
  int n_trims = 0;

  begin ();
  settings.join_at_keyframe = false;
  weir_fanout_set (fanout, &settings);
  add ();
  for (int i = 0; i < 10 * GOP; i++) {
    n_blocks = fanout->window.n_blocks;
    frame ();
    // The reader gets the frame after the trim.
    if (fanout->window.n_blocks != n_blocks)
      CHECK_INT (held (), FRAME_PACKETS);
    n_trims += fanout->window.n_blocks != n_blocks;
    CHECK (held () <= 16384 / LEN + FRAME_PACKETS);
  }
  CHECK (n_trims > 10);
  CHECK_INT (readers[0].n, n_packets);
  finish ();
}

static void
the_frame_that_is_arriving_stays (void)
{
  begin_as (WEIR_CODEC_OPAQUE);
  settings.join_at_keyframe = false;
  weir_fanout_set (fanout, &settings);
  add ();
  frames (GOP);
  for (int i = 0; i < 4; i++) {
    weir_fanout_begin (fanout);
    for (int k = 0; k < WEIR_STAGE_PACKETS; k++)
      push (true, i == 0 && k == 0, false, false);
    weir_fanout_end (fanout, now);
    weir_fanout_run (fanout, now);
    now += 2 * MS;
    CHECK_INT (held (), (i + 1) * WEIR_STAGE_PACKETS);
  }
  finish ();
}

static void
every_audio_packet_but_the_newest_goes (void)
{
  begin_as (WEIR_CODEC_AUDIO);
  add ();
  for (int i = 0; i < 100; i++) {
    weir_fanout_begin (fanout);
    push (true, true, true, false);
    weir_fanout_end (fanout, now);
    weir_fanout_run (fanout, now);
    now += 20 * MS;
    CHECK_INT (held (), 1);
  }
  CHECK_INT (readers[0].n, 100);
  finish ();
}

static void
of_sender_reports_the_newest_stays (void)
{
  begin_as (WEIR_CODEC_OPAQUE);
  for (int i = 0; i < 1000; i++) {
    weir_fanout_begin (fanout);
    push (false, true, true, true);
    weir_fanout_end (fanout, now);
    now += 5 * S;
    CHECK_INT (held (), 1);
  }
  CHECK_INT (fanout->window.block->size, WEIR_BLOCK_BYTES_MIN);
  CHECK_INT (fanout->window.capacity, 16);
  CHECK_INT (fanout->window.stage_size, 4);
  CHECK (!fanout->layers.input && !fanout->layers.frames && !fanout->layers.work);
  CHECK (sizeof *fanout <= 4096);
  finish ();
}

// After an RTCP packet, the sequence number of the next RTP packet is still known.
static void
the_newest_rtp_packet_stays (void)
{
  WeirPlan plan;

  begin ();
  settings.join_at_keyframe = false;
  weir_fanout_set (fanout, &settings);
  add ();
  frames (GOP);
  for (int i = 0; i < 60; i++) {
    weir_fanout_begin (fanout);
    push (false, true, true, true);
    weir_fanout_end (fanout, now);
    weir_fanout_run (fanout, now);
  }
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  CHECK_INT (plan.seq, n_packets);
  finish ();
}

// Frames end without a marker: a frame is complete when the next one begins.
static void
a_frame_without_a_marker_stays_until_its_layers_are_read (void)
{
  WeirRates rates;
  uint64_t read = 0;

  begin ();
  markers = false;
  settings.coalesce_ns = 0;
  weir_fanout_set (fanout, &settings);
  frames (4 * GOP);
  weir_fanout_rates (fanout, &rates);
  for (size_t i = 0; i < rates.n; i++)
    read += rates.layers[i].total_bytes;
  CHECK_INT (read, (4 * GOP - 1) * FRAME_PACKETS * (LEN - RTP_HEADER));
  finish ();
  begin ();
  markers = false;
  settings.coalesce_ns = 0;
  weir_fanout_set (fanout, &settings);
  add ();
  weir_reader_set_layers (readers[0].reader, (WeirLayerSet) { -1, 0, -1 });
  for (int i = 0; i < 10 * GOP; i++) {
    frame ();
    CHECK (held () <= last_gop () + FRAME_PACKETS);
  }
  check_kept (&readers[0]);
  // 13 frames of each group of pictures are of the base layer; the last one is in progress. One
  // more frame shows that there is another layer.
  CHECK_INT (readers[0].n, 10 * 13 * FRAME_PACKETS);
  finish ();
}

// A packet that is not RTP precedes each keyframe. A frame is kept with the packets before it that
// count as its own, so that readers can choose their layers there.
static void
a_layer_set_begins_at_the_newest_keyframe (void)
{
  Reader *reader;

  begin ();
  mixed = true;
  frames (3 * GOP + 5);
  CHECK (weir_layer_streams_frame_at (&fanout->layers, fanout->window.last_join) >= 0);
  reader = new_reader ();
  weir_reader_set_layers (reader->reader, (WeirLayerSet) { -1, 0, -1 });
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  frames (GOP);
  CHECK_INT (reader->first, 3 * GOP * FRAME_PACKETS);
  // 13 frames of a whole group of pictures, and 3 of its first 5, are of the base layer.
  CHECK_INT (reader->n, 16 * FRAME_PACKETS);
  finish ();
}

// ---- readers that need older packets ----

static void
a_slow_connection_keeps_its_packets (void)
{
  int64_t longest = 0;
  Reader *reader;
  WeirReaderCounters c;

  begin ();
  add ();
  reader = add_tcp ();
  for (int i = 0; i < 10 * GOP; i++) {
    int64_t position = cursor (reader);

    push_frame ();
    if ((n_frames - 1) % GOP == 0)
      CHECK_INT (fanout->window.tail, position);
    read_peer (reader, i % 20 == 0);
    frame_ends ();
    longest = held () > longest ? held () : longest;
  }
  CHECK (longest > 2 * GOP * FRAME_PACKETS);
  while (cursor (reader) < fanout->window.head)
    read_peer (reader, 1000);
  read_peer (reader, 1000);
  c = counters (reader);
  CHECK_INT (c.due, n_packets);
  CHECK_INT (reader->n, c.packets);
  CHECK_INT (c.due - c.packets, c.dropped[WEIR_DROP_THINNED] + c.dropped[WEIR_DROP_LAYERS]);
  frames (1);
  read_peer (reader, 1000);
  CHECK_INT (held (), last_gop ());
  check_kept (reader);
  CHECK_INT (readers[0].n, n_packets);
  finish ();
}

static void
a_reader_whose_socket_is_full_keeps_its_packets (void)
{
  begin ();
  add ();
  add ();
  frames (GOP - 1);
  deaf = 0;
  frames (2); // 80 ms; the second is a keyframe
  CHECK_INT (fanout->window.tail, (GOP - 1) * FRAME_PACKETS);
  deaf = SIZE_MAX;
  frames (2 * GOP);
  check_kept (&readers[0]);
  CHECK_INT (readers[0].n, n_packets);
  CHECK_INT (held (), last_gop ());
  finish ();
}

static void
a_paused_reader_keeps_its_packets (void)
{
  int64_t position;

  begin ();
  add ();
  frames (30);
  position = cursor (&readers[0]);
  CHECK_INT (weir_fanout_pause (fanout, readers[0].reader, now), 0);
  frames (20 * GOP);
  CHECK_INT (fanout->window.tail, position);
  CHECK_INT (weir_fanout_resume (fanout, readers[0].reader, now, NULL), 0);
  frames (5 * GOP);
  // Its delay stays, so the window goes with it.
  CHECK (cursor (&readers[0]) > position);
  CHECK (held () >= 20 * GOP * FRAME_PACKETS && held () <= 22 * GOP * FRAME_PACKETS);
  CHECK_INT (weir_fanout_set_delay (fanout, readers[0].reader, 0, now, NULL), 0);
  frames (GOP);
  frames_to_key ();
  frame ();
  CHECK_INT (held (), last_gop ());
  check_kept (&readers[0]);
  finish ();
}

// As RTSP's PAUSE and PLAY do it.
static void
a_reader_that_is_removed_while_paused_finds_its_packets (void)
{
  WeirPlan kept, plan;
  Reader *again;

  begin ();
  add ();
  frames (30);
  weir_fanout_pause (fanout, readers[0].reader, now);
  weir_fanout_next (fanout, readers[0].reader, now, &kept);
  weir_fanout_remove (fanout, readers[0].reader);
  frames (10 * GOP);
  CHECK (weir_fanout_plan_again (fanout, &kept, -1, now, &plan));
  CHECK (!plan.moved);
  again = new_reader ();
  CHECK_INT (weir_fanout_add (fanout, again->reader, 0, &plan, now), 0);
  frames (5 * GOP);
  CHECK_INT (readers[0].last + 1, again->first);
  CHECK_INT (again->n_gaps, 0);
  check_kept (again);
  finish ();
}

static void
a_reader_that_does_not_come_back_keeps_nothing_beyond_the_bounds (void)
{
  begin ();
  settings.bounds.time_ns = 10 * S;
  weir_fanout_set (fanout, &settings);
  add ();
  frames (30);
  weir_fanout_pause (fanout, readers[0].reader, now);
  weir_fanout_remove (fanout, readers[0].reader);
  frames (8 * GOP);
  CHECK (held () > 8 * GOP * FRAME_PACKETS);
  frames (4 * GOP);
  CHECK_INT (held (), last_gop ());
  finish ();
}

static void
a_reader_that_catches_up_keeps_its_packets (void)
{
  int64_t position;

  begin ();
  settings.catch_up_rate = 2;
  weir_fanout_set (fanout, &settings);
  frames (2 * GOP - 1);
  add ();
  frame ();
  position = cursor (&readers[0]);
  CHECK (position < (GOP + 5) * FRAME_PACKETS);
  frame (); // a new group of pictures begins
  CHECK_INT (fanout->window.tail, position);
  frames (4 * GOP);
  check_kept (&readers[0]);
  CHECK_INT (readers[0].first, GOP * FRAME_PACKETS);
  CHECK_INT (readers[0].n_gaps, 0);
  CHECK_INT (held (), last_gop ());
  finish ();
}

static void
a_plan_keeps_its_packets_for_two_seconds (void)
{
  Reader *reader;
  WeirPlan plan;

  begin ();
  frames (2 * GOP - 1);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  CHECK_INT (plan.position, GOP * FRAME_PACKETS);
  frames (GOP);
  reader = new_reader ();
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
  weir_fanout_run (fanout, now);
  CHECK_INT (reader->first, plan.position);
  frames (3 * GOP);
  check_kept (reader);
  CHECK_INT (held (), last_gop ());
  finish ();
}

static void
a_removed_reader_keeps_nothing (void)
{
  begin ();
  settings.join_at_keyframe = false;
  weir_fanout_set (fanout, &settings);
  add ();
  frame ();
  deaf = 0;
  frames (2);
  CHECK_INT (held (), 2 * FRAME_PACKETS);
  weir_fanout_remove (fanout, readers[0].reader);
  frame (); // finds that nobody wants it
  CHECK_INT (held (), FRAME_PACKETS);
  finish ();
}

static void
a_closed_reader_keeps_nothing (void)
{
  Reader *reader;

  begin ();
  reader = add_tcp ();
  frames (12 * GOP);
  CHECK_INT (counters (reader).state, WEIR_READER_CLOSED);
  frames_to_key ();
  frame ();
  CHECK_INT (held (), last_gop ());
  finish ();
}

// ---- bounds and costs ----

static void
the_bounds_hold_for_slow_readers (void)
{
  int64_t longest = 0;

  begin ();
  settings.bounds.packets = 100;
  weir_fanout_set (fanout, &settings);
  add ();
  frames (30);
  weir_fanout_pause (fanout, readers[0].reader, now);
  for (int i = 0; i < 5 * GOP; i++) {
    frame ();
    longest = held () > longest ? held () : longest;
  }
  CHECK_INT (longest, 100);
  CHECK (counters (&readers[0]).moved > 0);
  finish ();
}

static void
a_window_that_is_kept_is_not_trimmed (void)
{
  for (int i = 0; i < 2; i++) {
    begin ();
    settings.keep_window = i == 0;
    settings.trim = i == 0;
    weir_fanout_set (fanout, &settings);
    add ();
    frames (10 * GOP);
    CHECK_INT (held (), 10 * GOP * FRAME_PACKETS);
    finish ();
  }
}

static void
many_readers_are_searched_once_a_second (void)
{
  int64_t searched_ns = 0;
  int n_searches = 0;

  begin ();
  settings.join_at_keyframe = false;
  weir_fanout_set (fanout, &settings);
  for (int i = 0; i < 1000; i++)
    add ();
  for (int i = 0; i < 10 * GOP; i++) {
    frame ();
    n_searches += fanout->trim.at_ns != searched_ns;
    searched_ns = fanout->trim.at_ns;
    CHECK (held () <= (GOP + 5) * FRAME_PACKETS);
  }
  CHECK (n_searches >= 8 && n_searches <= 10);
  finish ();
}

// After a reader was slow, the index shrinks to a few times the window again.
static void
the_index_shrinks (void)
{
  begin ();
  add ();
  frames (GOP);
  CHECK_INT (fanout->window.capacity, 128);
  weir_fanout_pause (fanout, readers[0].reader, now);
  frames (50 * GOP);
  CHECK_INT (fanout->window.capacity, 4096);
  weir_fanout_remove (fanout, readers[0].reader);
  fanout->left_at = -1;
  frames (10 * GOP);
  CHECK_INT (held (), last_gop ());
  CHECK_INT (fanout->window.capacity, 256);
  finish ();
}

static size_t
block_bytes (void)
{
  const WeirWindowBlock *last = NULL;
  size_t sum = 0;

  for (int64_t p = fanout->window.tail; p < fanout->window.head; p++) {
    const WeirWindowBlock *block = weir_window_at (&fanout->window, p)->block;

    sum += block != last ? block->size : 0;
    last = block;
  }
  return sum + (last != fanout->window.block ? fanout->window.block->size : 0);
}

// 600 kb/s: blocks of 8 KiB.
static void
a_window_has_at_most_three_blocks_more_than_its_packets (void)
{
  begin ();
  frames (5 * GOP);
  for (int i = 0; i < 10 * GOP; i++) {
    frame ();
    CHECK (block_bytes () <= (size_t) held () * LEN * 5 / 4 + (3 << 13));
  }
  finish ();
}

static void
all_return_to_the_live_edge (void)
{
  for (size_t i = 0; i < n_readers; i++) {
    if (atomic_load (&readers[i].reader->removed))
      continue;
    weir_fanout_resume (fanout, readers[i].reader, now, NULL);
    weir_fanout_set_delay (fanout, readers[i].reader, 0, now, NULL);
  }
}

// Readers come, go, pause, move and lose their socket at random, within bounds that are never
// reached.
static void
random_readers_find_all_their_packets (void)
{
  int64_t tail = 0;
  int n_trims = 0;

  begin ();
  moving = true;
  settings.bounds = (WeirWindowBounds) { SIZE_MAX, SIZE_MAX, INT64_MAX / 2, false };
  weir_fanout_set (fanout, &settings);
  add_tcp (); // without it, and without a join point, the bound is 1 s
  for (int step = 0; step < 20000 && tap_ok; step++) {
    Reader *reader = &readers[random_below (n_readers)];
    bool removed = reader == readers || atomic_load (&reader->reader->removed);
    WeirPlan plan;

    switch (random_below (50)) {
      case 0:
        if (n_readers < READERS_MAX - 1)
          add ();
        break;
      case 1:
        if (n_readers < READERS_MAX - 1
            && weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan)) {
          frames ((int) random_below (GOP));
          reader = new_reader ();
          weir_fanout_add (fanout, reader->reader, 0, &plan, now);
          weir_fanout_run (fanout, now);
          CHECK_INT (cursor (reader) >= plan.position, 1);
        }
        break;
      case 2:
        // A reader that is removed while it is paused would keep the window for ever.
        if (!removed && !reader_paused (reader->reader))
          weir_fanout_remove (fanout, reader->reader);
        break;
      case 3:
        if (!removed)
          weir_fanout_pause (fanout, reader->reader, now);
        break;
      case 4:
        if (!removed)
          weir_fanout_resume (fanout, reader->reader, now, NULL);
        break;
      case 5:
        if (!removed)
          weir_fanout_set_delay (fanout, reader->reader, (int64_t) random_below (5) * S, now, NULL);
        break;
      case 6:
        deaf = random_percent (50) ? SIZE_MAX : random_below (READERS_MAX) % (n_readers + 1);
        break;
      case 7:
        all_return_to_the_live_edge ();
        break;
      case 8:
        settings.join_at_keyframe = random_percent (70);
        weir_fanout_set (fanout, &settings);
        break;
      default:
        frame ();
        break;
    }
    n_trims += fanout->window.tail > tail;
    tail = fanout->window.tail;
  }
  CHECK (n_trims > 50);
  for (size_t i = 0; i < n_readers; i++)
    check_kept (&readers[i]);
  finish ();
}

int
main (void)
{
  random_init ();
  RUN (without_readers_the_last_group_of_pictures_stays);
  RUN (readers_at_the_live_edge_keep_no_more);
  RUN (readers_that_join_at_the_live_edge_keep_the_newest_block);
  RUN (the_frame_that_is_arriving_stays);
  RUN (every_audio_packet_but_the_newest_goes);
  RUN (of_sender_reports_the_newest_stays);
  RUN (the_newest_rtp_packet_stays);
  RUN (a_frame_without_a_marker_stays_until_its_layers_are_read);
  RUN (a_layer_set_begins_at_the_newest_keyframe);
  RUN (a_slow_connection_keeps_its_packets);
  RUN (a_reader_whose_socket_is_full_keeps_its_packets);
  RUN (a_paused_reader_keeps_its_packets);
  RUN (a_reader_that_is_removed_while_paused_finds_its_packets);
  RUN (a_reader_that_does_not_come_back_keeps_nothing_beyond_the_bounds);
  RUN (a_reader_that_catches_up_keeps_its_packets);
  RUN (a_plan_keeps_its_packets_for_two_seconds);
  RUN (a_removed_reader_keeps_nothing);
  RUN (a_closed_reader_keeps_nothing);
  RUN (the_bounds_hold_for_slow_readers);
  RUN (a_window_that_is_kept_is_not_trimmed);
  RUN (many_readers_are_searched_once_a_second);
  RUN (the_index_shrinks);
  RUN (a_window_has_at_most_three_blocks_more_than_its_packets);
  RUN (random_readers_find_all_their_packets);
  return tap_done ();
}
