// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout/fanout.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <unistd.h>

#include "clones.h"
#include "packets.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define FRAME_NS (40 * MS)
#define FRAME_TICKS 3600
#define HEAD 24 // bytes of a packet before its filler: RTP, VP8, and the packet's number
#define PACKETS_MAX 700000
#define READERS_MAX 8000

// ---- the stream ----

typedef struct {
  uint32_t len, timestamp;
  int64_t arrival_ns;
  uint16_t seq;
  bool start, marker, key, discardable;
} Sent;

static Sent stream[PACKETS_MAX];
static size_t n_stream;
static uint8_t filler[70000];
static int64_t now;
static uint16_t next_seq, first_seq = 65400;
static uint32_t next_time, first_time = 0xffff0000;

static void
make_packet (uint8_t *out, size_t id)
{
  const Sent *sent = &stream[id];
  uint64_t number = id;

  memcpy (out, filler + id % 251, sent->len);
  put_rtp (out, sent->seq, sent->timestamp, sent->marker);
  put_vp8 (out + RTP_HEADER, sent->start, sent->key, sent->discardable, 0);
  memcpy (out + HEAD - sizeof number, &number, sizeof number);
}

// ---- the readers, and the packets they got ----

typedef struct {
  uint32_t id;
  uint16_t seq;
  uint32_t timestamp;
  int64_t at_ns;
} Got;

typedef struct {
  WeirReader *reader;
  Got *got;
  size_t n, capacity;
  uint64_t bytes;
  size_t n_segmented; // sends
  bool wrong;         // it got a packet that was not sent
  bool irregular;     // the test checks its packets itself
  unsigned device;    // over which clones reach it; 0: none
  size_t n_clones;
  // Over a connection.
  int peer;
  WeirConn *conn;
  uint8_t rest[80000];
  size_t n_rest;
} Reader;

static Reader *readers[READERS_MAX];
static size_t n_readers;
static WeirFanout *fanout;
static WeirFanoutSettings settings;

// Makes some sends to one reader fail.
static struct {
  size_t victim; // the reader's index; SIZE_MAX: all readers
  int error;
  unsigned percent;
  bool only_gso;
} fault;

static size_t n_calls;    // system calls made
static size_t sends_left; // sends for which the socket has room

static Reader *served_first; // NULL: the next reader

static void
got_packet (Reader *reader, const uint8_t *data, size_t len)
{
  static uint8_t expected[70000];
  uint64_t id;
  Got *got;

  if (len < HEAD) {
    reader->wrong = true;
    return;
  }
  memcpy (&id, data + HEAD - sizeof id, sizeof id);
  if (id >= n_stream || len != stream[id].len) {
    reader->wrong = true;
    return;
  }
  if (reader->n == reader->capacity) {
    reader->capacity = reader->capacity ? 2 * reader->capacity : 64;
    reader->got = realloc (reader->got, reader->capacity * sizeof *reader->got);
  }
  got = &reader->got[reader->n++];
  *got = (Got) {
    .id = (uint32_t) id,
    .seq = (uint16_t) (data[2] << 8 | data[3]),
    .timestamp = (uint32_t) data[4] << 24 | (uint32_t) data[5] << 16 | data[6] << 8 | data[7],
    .at_ns = now,
  };
  reader->bytes += len;
  // Everything except the reader's own numbers is as sent.
  make_packet (expected, id);
  reader->wrong |= memcmp (data, expected, 2) != 0 || memcmp (data + 8, expected + 8, len - 8) != 0;
}

static int
fake_send_one (const struct msghdr *msg)
{
  const struct iovec *iov = msg->msg_iov;
  struct cmsghdr *cmsg = msg->msg_controllen ? CMSG_FIRSTHDR (msg) : NULL;
  const uint8_t *data = iov->iov_base;
  size_t segment = iov->iov_len;
  struct sockaddr_in address;
  size_t index;
  uint16_t size;

  memcpy (&address, msg->msg_name, sizeof address);
  index = ntohl (address.sin_addr.s_addr) & 0xffffff;
  if (fault.error && (fault.victim == SIZE_MAX || fault.victim == index)
      && (!fault.only_gso || cmsg) && random_percent (fault.percent)) {
    errno = fault.error;
    return -1;
  }
  if (sends_left == 0) {
    errno = EAGAIN;
    return -1;
  }
  sends_left--;
  if (cmsg) {
    memcpy (&size, CMSG_DATA (cmsg), sizeof size);
    segment = size;
    readers[index]->n_segmented++;
  }
  if (!served_first)
    served_first = readers[index];
  for (size_t at = 0; at < iov->iov_len; at += segment)
    got_packet (
        readers[index], data + at, iov->iov_len - at < segment ? iov->iov_len - at : segment);
  return 0;
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  n_calls++;
  return fake_send_one (msg) < 0 ? -1 : (ssize_t) msg->msg_iov->iov_len;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  n_calls++;
  for (unsigned i = 0; i < n; i++) {
    if (fake_send_one (&msgs[i].msg_hdr) < 0)
      return i > 0 ? (int) i : -1;
  }
  return (int) n;
}

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

// ---- clones ----

static size_t n_triggers, n_routes;
static unsigned refused_percent, dropped_percent; // of triggers, and of clones

static unsigned
fake_device (WeirCloneRoute *route)
{
  return ((Reader *) route)->device;
}

static WeirClones
fake_why_not (WeirCloneRoute *route)
{
  return fake_device (route) ? WEIR_CLONES_SENT : WEIR_CLONES_NEIGHBOUR;
}

static size_t
fake_clone (const WeirCloneMessage *message, int fd, WeirCloneTarget *targets, size_t n)
{
  static ClonedPacket packet;

  CHECK_INT (fd, 3);
  check_clones (message, targets, n);
  if (refused_percent > 0 && random_percent (refused_percent))
    n = random_below (n + 1);
  n_triggers++;
  for (size_t t = 0; t < n; t++) {
    Reader *reader = (Reader *) targets[t].route;

    CHECK_INT (reader->device, ((Reader *) targets[0].route)->device);
    targets[t].error = dropped_percent > 0 && random_percent (dropped_percent) ? ENOBUFS : 0;
    if (targets[t].error)
      continue;
    reader->n_clones++;
    for (size_t i = 0; i < message->n_packets; i++) {
      clone_packet (message, i, &targets[t], &packet);
      got_packet (reader, packet.bytes, packet.len);
    }
  }
  return n;
}

static void
fake_release (WeirCloneRoute *route)
{
  n_routes--;
}

static const WeirCloner fake_cloner = { fake_device, fake_why_not, fake_clone, fake_release };

// ---- driving the engine ----

static void
begin (void)
{
  n_stream = n_readers = 0;
  now = 100000 * MS;
  next_seq = first_seq;
  next_time = first_time;
  memset (&fault, 0, sizeof fault);
  sends_left = SIZE_MAX;
  n_triggers = n_routes = refused_percent = dropped_percent = 0;
  settings = (WeirFanoutSettings) {
    .gso = WEIR_GSO_AUTO,
    .catch_up_live = true,
    .catch_up_rate = 8,
    .coalesce_ns = 5 * MS,
    .bounds = { 64 << 20, 100000, 30000 * MS, false },
  };
}

static void
start (void)
{
  fanout = weir_fanout_new (NULL, &fake_ops, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_start (fanout);
}

static bool
push (size_t len, bool first, bool marker, bool key, bool discardable)
{
  size_t id = n_stream++;
  uint8_t *room;

  stream[id] = (Sent) { .len = (uint32_t) len,
    .timestamp = next_time,
    .arrival_ns = now,
    .seq = next_seq++,
    .start = first,
    .marker = marker,
    .key = key,
    .discardable = discardable };
  room = weir_fanout_reserve (fanout, len);
  if (!room)
    return false;
  make_packet (room, id);
  weir_fanout_commit (fanout, len, now);
  return true;
}

// A frame of `n` packets, the last of them shorter.
static void
push_frame (size_t n, size_t len, bool key, bool discardable)
{
  if (weir_fanout_begin (fanout)) {
    for (size_t i = 0; i < n; i++)
      push (i + 1 < n ? len : HEAD + len / 3, i == 0, i + 1 == n, key, discardable);
    weir_fanout_end (fanout, now);
  }
  next_time += FRAME_TICKS;
}

static Reader *
reader_new (void)
{
  Reader *reader = calloc (1, sizeof *reader);

  reader->peer = -1;
  readers[n_readers++] = reader;
  return reader;
}

// A reader whose address holds its number.
static Reader *
udp_reader (void)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons (5000),
                              .sin_addr.s_addr = htonl (0x0a000000 + (uint32_t) n_readers) } };
  Reader *reader = reader_new ();

  reader->reader = weir_reader_new_udp ();
  weir_reader_set_route (reader->reader, 3, &address);
  return reader;
}

static void
clone_over (Reader *reader, unsigned device)
{
  reader->device = device;
  weir_reader_set_clone_route (reader->reader, &fake_cloner, (WeirCloneRoute *) reader);
  n_routes++;
}

static Reader *
add (void)
{
  Reader *reader = udp_reader ();

  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  return reader;
}

static WeirReaderCounters
counters (const Reader *reader)
{
  WeirReaderCounters c;

  weir_reader_counters (fanout, reader->reader, now, &c);
  return c;
}

static uint64_t
sum_of (const uint64_t *dropped)
{
  uint64_t sum = 0;

  for (int i = 0; i < WEIR_N_DROPS; i++)
    sum += dropped[i];
  return sum;
}

static uint64_t
left_out (const uint64_t *dropped)
{
  return dropped[WEIR_DROP_THINNED] + dropped[WEIR_DROP_CATCH_UP];
}

// Checks the invariants of every reader: no packet twice, out of order, or not sent; counters that
// add up; and sequence numbers that skip lost packets only.
static void
check_reader (const Reader *reader)
{
  WeirReaderCounters c = counters (reader);
  uint64_t missing = 0, gaps = 0;

  CHECK (!reader->wrong);
  CHECK_INT (c.due, c.packets + sum_of (c.dropped));
  CHECK_INT (c.packets, reader->n);
  CHECK_INT (c.bytes, reader->bytes);
  for (size_t i = 1; i < reader->n && !reader->irregular; i++) {
    const Got *last = &reader->got[i - 1], *got = &reader->got[i];
    uint64_t gap = (uint16_t) (got->seq - last->seq - 1);

    CHECK (got->id > last->id);
    CHECK (gap <= got->id - last->id - 1);
    missing += got->id - last->id - 1;
    gaps += gap;
  }
  CHECK (missing <= sum_of (c.dropped));
  CHECK (gaps <= sum_of (c.dropped) - left_out (c.dropped));
  CHECK (missing - gaps <= left_out (c.dropped));
}

// Checks that it got all packets from `first` to `last`, unchanged.
static void
check_all (const Reader *reader, size_t first, size_t last)
{
  CHECK_INT (reader->n, last - first + 1);
  for (size_t i = 0; i < reader->n; i++) {
    CHECK_INT (reader->got[i].id, first + i);
    CHECK_INT (reader->got[i].seq, stream[first + i].seq);
    CHECK_INT (reader->got[i].timestamp, stream[first + i].timestamp);
    if (!tap_ok)
      return;
  }
}

static void
check_sums (void)
{
  WeirFanoutCounters c;

  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.due, c.packets + sum_of (c.dropped));
}

static void
finish (void)
{
  check_sums ();
  weir_fanout_stop (fanout);
  check_sums ();
  for (size_t i = 0; i < n_readers; i++) {
    check_reader (readers[i]);
    if (readers[i]->conn)
      weir_conn_break (readers[i]->conn, EPIPE);
  }
  weir_fanout_free (fanout);
  for (size_t i = 0; i < n_readers; i++) {
    weir_reader_unref (readers[i]->reader);
    if (readers[i]->conn)
      weir_conn_unref (readers[i]->conn);
    if (readers[i]->peer >= 0)
      close (readers[i]->peer);
    free (readers[i]->got);
    free (readers[i]);
  }
}

static void
run (void)
{
  weir_fanout_run (fanout, now);
}

static void
frames (size_t n)
{
  for (size_t i = 0; i < n; i++) {
    now += FRAME_NS;
    push_frame (4, 1200, false, false);
    run ();
  }
}

// ---- at the live edge ----

static void
every_reader_gets_every_packet (void)
{
  begin ();
  start ();
  for (int i = 0; i < 200; i++)
    add ();
  for (int i = 0; i < 300; i++) {
    now += FRAME_NS;
    push_frame (1 + random_below (100), HEAD + random_below (1500), i % 25 == 0, i % 3 == 1);
    run ();
  }
  for (size_t i = 0; i < n_readers; i++)
    check_all (readers[i], 0, n_stream - 1);
  finish ();
}

// A reader that has caught up has the stream's own numbers, and shares sends with the others.
static void
readers_of_the_same_bytes_share_a_send (void)
{
  Reader *late;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  for (int i = 0; i < 63; i++)
    add ();
  push_frame (5, 1200, true, false);
  run ();
  for (int i = 0; i < 10; i++) {
    now += FRAME_NS;
    push_frame (4, 1200, false, true);
    run ();
  }
  late = add (); // does not get the discardable frames
  for (int i = 0; i < 100; i++) {
    now += FRAME_NS;
    push_frame (5, 1200, false, false);
    run ();
  }
  n_calls = 0;
  push_frame (5, 1200, false, false);
  run ();
  CHECK_INT (n_calls, 1);
  // A frame with more packets than fit into one send.
  n_calls = 0;
  push_frame (200, 1200, false, false);
  run ();
  CHECK (n_calls <= 4 * 2);
  CHECK_INT (late->got[late->n - 1].seq, stream[n_stream - 1].seq);
  CHECK (counters (late).dropped[WEIR_DROP_CATCH_UP] > 0);
  for (size_t i = 0; i < 63; i++)
    check_all (readers[i], 0, n_stream - 1);
  finish ();
}

static Reader *
add_cloned (unsigned device)
{
  Reader *reader = udp_reader ();

  clone_over (reader, device);
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  return reader;
}

// One message is cloned for all readers of a device; a reader that is alone on its device, or that
// clones do not reach, gets a send.
static void
readers_of_a_device_get_clones_of_one_message (void)
{
  WeirFanoutCounters c;

  begin ();
  start ();
  for (int i = 0; i < 60; i++)
    add_cloned (1 + i % 2);
  add_cloned (3);
  add_cloned (0);
  add ();
  n_calls = 0;
  frames (10);
  CHECK_INT (n_triggers, 20);
  CHECK_INT (n_calls, 10);
  for (size_t i = 0; i < n_readers; i++) {
    check_all (readers[i], 0, n_stream - 1);
    CHECK_INT (readers[i]->n_clones, i < 60 ? 10 : 0);
    if (i < 60)
      CHECK_INT (counters (readers[i]).clones, WEIR_CLONES_SENT);
  }
  CHECK_INT (counters (readers[60]).clones, WEIR_CLONES_ALONE);
  CHECK_INT (counters (readers[61]).clones, WEIR_CLONES_NEIGHBOUR);
  CHECK_INT (counters (readers[62]).clones, WEIR_CLONES_UNFIT);
  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.sends.triggers, 20);
  CHECK_INT (c.sends.clones, 600);
  CHECK_INT (c.sends.clones_dropped, 0);

  for (size_t i = 0; i < n_readers; i++)
    weir_reader_set_clone_route (readers[i]->reader, NULL, NULL);
  CHECK_INT (n_routes, 0);
  frames (1);
  CHECK_INT (n_triggers, 20);
  CHECK_INT (counters (readers[0]).clones, WEIR_CLONES_UNFIT);
  finish ();
}

// The packets of a message that cannot be cloned are sent. Those of a dropped clone are counted,
// and the reader gets no clones for a second.
static void
packets_that_cannot_be_cloned_are_sent (void)
{
  WeirFanoutCounters c;

  begin ();
  start ();
  for (int i = 0; i < 50; i++)
    add_cloned (1);
  refused_percent = 40;
  for (int i = 0; i < 200; i++) {
    now += FRAME_NS;
    // Several messages each.
    for (int k = 0; k < 3; k++)
      push_frame (1 + random_below (40), HEAD + random_below (1400), false, false);
    run ();
  }
  CHECK (n_triggers > 0);
  for (size_t i = 0; i < n_readers; i++)
    check_all (readers[i], 0, n_stream - 1);

  refused_percent = 0;
  dropped_percent = 100;
  frames (1);
  for (size_t i = 0; i < n_readers; i++)
    CHECK_INT (counters (readers[i]).dropped[WEIR_DROP_NO_BUFFERS], 4);
  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.sends.clones_dropped, 50);
  n_triggers = 0;
  frames (24);
  CHECK_INT (n_triggers, 0);
  dropped_percent = 0;
  frames (2);
  CHECK_INT (n_triggers, 2);
  finish ();
}

static uint16_t
same_seq (void *data, uint16_t seq)
{
  return seq;
}

static size_t
protect_nothing (void *data, const uint8_t *in, size_t len, bool rtp, uint8_t *out)
{
  memcpy (out, in, len);
  return len;
}

static void
release_nothing (void *data)
{
}

// A reader with protected packets among those with clones.
static Reader *
add_protected (void)
{
  static const WeirProtect ops = {
    .next_seq = same_seq, .protect = protect_nothing, .release = release_nothing
  };
  Reader *reader = udp_reader ();

  clone_over (reader, 1);
  weir_reader_set_protect (reader->reader, &ops);
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  return reader;
}

// A reader with its own sequence numbers.
static Reader *
add_cloned_from (uint16_t seq)
{
  Reader *reader = udp_reader ();
  WeirPlan plan;

  clone_over (reader, 1);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  plan.continues = true;
  plan.seq = seq;
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
  return reader;
}

// Checks that it got all packets from `first` on, with sequence numbers of its own.
static void
check_numbers (const Reader *reader, size_t first, uint16_t seq)
{
  CHECK_INT (reader->n, n_stream - first);
  for (size_t i = 0; i < reader->n && tap_ok; i++) {
    CHECK_INT (reader->got[i].id, first + i);
    CHECK_INT (reader->got[i].seq, (uint16_t) (seq + i));
    CHECK_INT (reader->got[i].timestamp, stream[first + i].timestamp);
  }
}

// Readers with any numbers get clones of one message, whose numbers are those of most of them.
static void
readers_with_own_numbers_get_clones (void)
{
  uint16_t seqs[110];
  size_t first;

  for (int refused = 0; refused <= 40; refused += 40) {
    WeirFanoutCounters before;

    begin ();
    start ();
    add ();
    frames (2);
    first = n_stream;
    for (int i = 0; i < 110; i++) {
      // Most have one offset, and some have the stream's. Some wrap at once.
      seqs[i] = i % 10 < 6   ? 777
                : i % 10 < 8 ? stream[first - 1].seq + 1
                             : (uint16_t) -random_below (200);
      add_cloned_from (seqs[i]);
      if (i % 10 == 0)
        add_protected ();
    }
    frames (1);
    weir_fanout_counters (fanout, &before);
    CHECK_INT (before.sends.clones, 110);
    CHECK_INT (before.sends.triggers, 1);
    refused_percent = (unsigned) refused;
    for (int i = 0; i < 400; i++) {
      now += FRAME_NS;
      push_frame (1 + random_below (63), HEAD + random_below (1400), i % 25 == 0, false);
      run ();
    }
    refused_percent = 0;
    for (size_t i = 0, r = 1; i < 110; i++) {
      CHECK (refused || counters (readers[r]).clones == WEIR_CLONES_SENT);
      check_numbers (readers[r++], first, seqs[i]);
      if (i % 10 != 0)
        continue;
      CHECK_INT (counters (readers[r]).clones, WEIR_CLONES_UNFIT);
      CHECK_INT (readers[r]->n_clones, 0);
      check_all (readers[r++], first, n_stream - 1);
    }
    finish ();
  }
}

// Pushes the packet `i` of a frame of 6, which the sink publishes by itself.
static void
part_of_frame (int i)
{
  CHECK (weir_fanout_begin (fanout));
  push (1000, i == 0, i == 5, false, false);
  weir_fanout_end (fanout, now);
  run ();
}

static void
a_live_reader_begins_at_the_start_of_a_frame (void)
{
  Reader *early, *middle = NULL, *after;

  begin ();
  settings.coalesce_ns = 0; // published packet by packet
  start ();
  early = add ();
  frames (3);
  for (int i = 0; i < 6; i++) {
    part_of_frame (i);
    if (i == 2)
      middle = add ();
  }
  next_time += FRAME_TICKS;
  after = add ();
  run ();
  frames (3);
  check_all (early, 0, n_stream - 1);
  check_all (middle, 12, n_stream - 1);
  check_all (after, 18, n_stream - 1);
  finish ();
}

static void
thousands_of_readers_are_added_and_removed (void)
{
  size_t gone[READERS_MAX], n_gone = 0;
  uint64_t due = 0;
  WeirFanoutCounters c;

  begin ();
  start ();
  for (int i = 0; i < 250; i++) {
    for (int k = 0; k < 30; k++) {
      add ();
      weir_fanout_set_priority (fanout, readers[random_below (n_readers)]->reader, 0);
    }
    frames (1);
    while (weir_fanout_n_readers (fanout) > 400) {
      size_t which = random_below (n_readers);
      bool already = false;

      for (size_t g = 0; g < n_gone; g++)
        already |= gone[g] == which;
      if (already)
        continue;
      gone[n_gone++] = which;
      weir_fanout_remove (fanout, readers[which]->reader);
    }
  }
  for (size_t i = 0; i < n_readers; i++) {
    if (readers[i]->n > 0)
      check_all (readers[i], readers[i]->got[0].id, readers[i]->got[readers[i]->n - 1].id);
    due += readers[i]->n;
  }
  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.due, due);
  CHECK_INT (c.packets, due);
  CHECK_INT (weir_fanout_n_readers (fanout), 400);
  finish ();
}

static void
readers_take_turns_at_being_first (void)
{
  unsigned n_begun[64] = { 0 };

  begin ();
  start ();
  for (size_t i = 0; i < 64; i++)
    add ();
  for (int i = 0; i < 64 * 3; i++) {
    served_first = NULL;
    frames (1);
    for (size_t r = 0; r < 64; r++)
      n_begun[r] += readers[r] == served_first;
  }
  for (size_t r = 0; r < 64 && tap_ok; r++)
    CHECK_INT (n_begun[r], 3);
  finish ();
}

static void
packets_are_not_kept_while_stopped (void)
{
  begin ();
  start ();
  CHECK (weir_fanout_begin (fanout));
  weir_fanout_end (fanout, now);
  weir_fanout_stop (fanout);
  CHECK (!weir_fanout_begin (fanout));
  weir_fanout_start (fanout);
  finish ();
}

static void
a_reader_after_the_last_one_gets_whole_frames (void)
{
  Reader *first, *next = NULL;

  begin ();
  settings.coalesce_ns = 0; // published packet by packet
  start ();
  first = add ();
  frames (3);
  for (int i = 0; i < 6; i++) {
    part_of_frame (i);
    if (i == 1)
      weir_fanout_remove (fanout, first->reader);
    if (i == 3)
      next = add ();
  }
  next_time += FRAME_TICKS;
  run ();
  frames (3);
  check_all (first, 0, 13);
  check_all (next, 12, n_stream - 1);
  finish ();
}

static void
incoming_packets_are_counted (void)
{
  WeirFanoutCounters c;
  uint8_t *room;

  begin ();
  start ();
  add ();
  frames (5);
  CHECK (weir_fanout_begin (fanout));
  CHECK (!weir_fanout_reserve (fanout, 70000));
  room = weir_fanout_reserve (fanout, 100);
  memset (room, 0x47, 100);
  weir_fanout_commit (fanout, 100, now);
  weir_fanout_end (fanout, now);
  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.packets_in, 22);
  CHECK_INT (c.bytes_in, 5 * (3 * 1200 + 400 + HEAD) + 70100);
  CHECK_INT (c.packets_refused, 1);
  CHECK_INT (c.packets_opaque, 1);
  CHECK_INT (c.bursts, 6);
  weir_fanout_stop (fanout);
  weir_fanout_start (fanout);
  readers[0]->n = 0;
  readers[0]->bytes = 0;
  frames (1);
  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.packets_in, 4);
  CHECK_INT (c.packets_opaque, 0);
  CHECK_INT (c.due, 4);
  finish ();
}

static void
a_reader_gets_as_many_copies_as_it_was_added (void)
{
  Reader *one, *three, *none;

  begin ();
  settings.send_duplicates = true;
  start ();
  one = add ();
  three = add ();
  none = add ();
  weir_reader_set_times (three->reader, 3);
  weir_reader_set_times (none->reader, 0);
  frames (4);
  check_all (one, 0, 15);
  CHECK_INT (three->n, 48);
  CHECK_INT (counters (three).due, 48);
  CHECK_INT (none->n, 0);
  // The whole burst is repeated, not each packet.
  for (size_t i = 0; i < three->n; i++)
    CHECK_INT (three->got[i].id, i / 12 * 4 + i % 4);

  settings.send_duplicates = false;
  weir_fanout_set (fanout, &settings);
  frames (1);
  CHECK_INT (three->n, 52);
  now += FRAME_NS;
  push_frame (4, 1200, false, false);
  weir_fanout_stop (fanout);
  CHECK_INT (counters (three).dropped[WEIR_DROP_FLUSHED], 4);
  CHECK_INT (counters (three).due, 56);
  three->irregular = true;
  finish ();
}

static void
stopping_counts_waiting_packets_as_flushed (void)
{
  Reader *reader;

  begin ();
  start ();
  reader = add ();
  frames (2);
  now += FRAME_NS;
  push_frame (5, 1000, false, false);
  CHECK (weir_fanout_begin (fanout)); // an incomplete frame
  push (500, true, false, false, false);
  weir_fanout_end (fanout, now);
  weir_fanout_stop (fanout);
  CHECK_INT (counters (reader).dropped[WEIR_DROP_FLUSHED], 6);
  CHECK_INT (counters (reader).due, 14);
  run ();
  CHECK_INT (reader->n, 8);
  check_sums ();
  finish ();
}

static void
readers_change_priority_and_lose_nothing (void)
{
  begin ();
  start ();
  for (int i = 0; i < 300; i++)
    add ();
  for (int k = 0; k < 20; k++) {
    for (size_t i = 0; i < n_readers; i++) {
      unsigned priority = (unsigned) random_below (10);

      CHECK_INT (weir_fanout_set_priority (fanout, readers[i]->reader, priority), 0);
      CHECK_INT (counters (readers[i]).priority, priority < 8 ? priority : 7);
    }
    frames (1);
  }
  for (size_t i = 0; i < n_readers; i++)
    check_all (readers[i], 0, n_stream - 1);
  finish ();
}

// ---- joining ----

// 25 frames per second; a key frame every 50; every third frame discardable.
static void
gop_frame (int i)
{
  push_frame (i % 50 == 0 ? 20 : 3, 1200, i % 50 == 0, i % 50 != 0 && i % 3 == 1);
}

static void
gop_frames (int from, int to)
{
  for (int i = from; i < to; i++) {
    now += FRAME_NS;
    gop_frame (i);
    run ();
  }
}

static size_t
last_key (void)
{
  size_t id = n_stream - 1;

  while (!(stream[id].start && stream[id].key))
    id--;
  return id;
}

static int32_t
ticks (uint32_t a, uint32_t b)
{
  return (int32_t) (a - b);
}

static void
check_catch_up (int at_frame, bool compress)
{
  size_t join, seen = 0, n_before, n_skipped = 0;
  int64_t begun, from_arrival, live_since = 0;
  uint32_t live_time;
  Reader *reader;

  begin ();
  settings.join_at_keyframe = true;
  settings.catch_up_live = compress;
  start ();
  gop_frames (0, at_frame);
  join = last_key ();
  now += 7 * MS;
  begun = now;
  from_arrival = stream[join].arrival_ns;
  live_time = stream[n_stream - 1].timestamp;
  n_before = n_stream;
  for (size_t id = join; id < n_before; id++)
    n_skipped += stream[id].discardable;
  reader = add ();
  for (int i = at_frame, step = 0; i < at_frame + 150; step++) {
    run ();
    for (; seen < reader->n; seen++) {
      const Got *got = &reader->got[seen];
      const Sent *sent = &stream[got->id];
      int64_t due = begun + (sent->arrival_ns - from_arrival) / 8;
      int64_t shift = ticks (sent->timestamp, stream[join].timestamp) / 8 + (int64_t) live_time
                      - sent->timestamp;

      if (due < sent->arrival_ns)
        due = sent->arrival_ns;
      else if (due > sent->arrival_ns)
        CHECK (!sent->discardable || got->id >= n_before);
      CHECK (now >= due && now < due + MS);
      shift = compress && (int32_t) shift > 0 ? (int32_t) shift : 0;
      CHECK_INT (got->timestamp, (uint32_t) (sent->timestamp + shift));
      CHECK_INT (got->seq, (uint16_t) (stream[join].seq + n_skipped + seen));
      CHECK (got->id < n_before || got->seq == sent->seq);
      CHECK (seen == 0 || ticks (got->timestamp, reader->got[seen - 1].timestamp) >= 0);
    }
    if (reader->n > 0 && reader->got[reader->n - 1].id == n_stream - 1 && live_since == 0)
      live_since = now;
    now += MS;
    if (step % 40 == 32)
      gop_frame (i++);
  }
  CHECK (reader->n > 0);
  CHECK_INT (reader->got[0].id, join);
  // It reaches the live edge after a seventh of its delay, and stays there.
  CHECK (live_since > 0 && live_since - begun <= (begun - from_arrival) / 7 + 2 * FRAME_NS);
  CHECK (!counters (reader).catching_up);
  CHECK_INT (reader->got[reader->n - 1].timestamp, stream[reader->got[reader->n - 1].id].timestamp);
  CHECK_INT (reader->got[reader->n - 1].id - join + 1 - reader->n, n_skipped);
  CHECK_INT (counters (reader).dropped[WEIR_DROP_CATCH_UP], n_skipped);
  finish ();
}

static void
a_new_reader_catches_up_with_the_live_edge (void)
{
  check_catch_up (95, true);
  check_catch_up (51, true);
  check_catch_up (75, true);
}

// The timestamps wrap somewhere in the GOP that the reader catches up with.
static void
a_new_reader_catches_up_over_a_timestamp_wrap (void)
{
  for (unsigned k = 0; k < 12; k++) {
    first_time = (uint32_t) -FRAME_TICKS * (50 + k * 8) + k;
    first_seq = (uint16_t) -(190 + k * 20);
    check_catch_up (95, true);
  }
  first_time = 0xffff0000;
  first_seq = 65400;
}

// A reader with its own numbers, because it continues where another reader was removed.
static void
sequence_numbers_wrap_ten_times (void)
{
  Reader *reader = NULL;
  WeirPlan plan;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  gop_frames (0, 30);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  plan.continues = true;
  plan.seq += 1000;
  reader = udp_reader ();
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
  gop_frames (30, 100);
  CHECK (reader->got[reader->n - 1].seq != stream[reader->got[reader->n - 1].id].seq);
  while (n_stream + 64 < PACKETS_MAX) {
    now += FRAME_NS;
    push_frame (60, 30, false, false);
    next_time += 0x10000000;
    run ();
  }
  CHECK (n_stream > 10 * 65536);
  CHECK_INT (reader->got[reader->n - 1].id, n_stream - 1);
  for (size_t i = 1; i < reader->n; i++)
    CHECK_INT (reader->got[i].seq, (uint16_t) (reader->got[0].seq + i));
  for (size_t i = 200; i < reader->n; i++)
    CHECK_INT (reader->got[i].timestamp, stream[reader->got[i].id].timestamp);
  finish ();
}

static void
a_new_reader_catches_up_with_the_stream_s_timestamps (void)
{
  check_catch_up (95, false);
}

// This holds even if packets arrive between the plan and the start.
static void
a_reader_begins_as_its_plan_says (void)
{
  for (int keyframe = 0; keyframe < 2; keyframe++) {
    for (int later = 0; later < (keyframe ? 30 : 24); later++) { // the window holds one second
      for (int at = 51; at < 56; at++) {
        Reader *reader;
        WeirPlan plan;

        begin ();
        settings.join_at_keyframe = keyframe;
        start ();
        add ();
        gop_frames (0, at);
        // Sometimes in the middle of a frame.
        if (at % 2) {
          settings.coalesce_ns = 0;
          weir_fanout_set (fanout, &settings);
          CHECK (weir_fanout_begin (fanout));
          push (500, true, false, false, at % 3 == 0);
          weir_fanout_end (fanout, now);
        }
        CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
        if (at % 2) {
          CHECK (weir_fanout_begin (fanout));
          push (500, false, true, false, at % 3 == 0);
          weir_fanout_end (fanout, now);
          next_time += FRAME_TICKS;
        }
        gop_frames (at, at + later);
        reader = udp_reader ();
        CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
        run ();
        gop_frames (at + later, at + later + 2);
        now += 2000 * MS;
        run ();
        CHECK (reader->n > 0);
        if (!tap_ok)
          return;
        CHECK_INT (reader->got[0].seq, plan.seq);
        CHECK_INT (reader->got[0].id, plan.position);
        if (plan.rtp_time_known)
          CHECK_INT (reader->got[0].timestamp, plan.rtp_time);
        CHECK (plan.rtp_time_known || !keyframe);
        finish ();
      }
    }
  }
}

// Pictures that are presented before earlier ones keep their timestamps.
static void
a_plan_holds_amid_reordered_pictures (void)
{
  Reader *reader;
  WeirPlan plan;

  begin ();
  settings.coalesce_ns = 0;
  start ();
  add ();
  frames (3);
  next_time += 2 * FRAME_TICKS;
  frames (1);
  next_time -= 3 * FRAME_TICKS;
  CHECK (weir_fanout_begin (fanout));
  push (500, true, false, false, false);
  weir_fanout_end (fanout, now);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  CHECK_INT (plan.rtp_time, next_time);
  frames (1);
  reader = udp_reader ();
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
  run ();
  CHECK_INT (reader->got[0].id, plan.position);
  CHECK_INT (reader->got[0].timestamp, plan.rtp_time);
  finish ();
}

// A plan made before the first packet also holds, whichever packet comes first: here pictures that
// are presented before earlier ones.
static void
a_plan_made_before_the_first_packet_holds (void)
{
  for (int n = 0; n < 2; n++) {
    Reader *reader;
    WeirPlan plan;

    begin ();
    settings.join_at_keyframe = true;
    start ();
    if (n > 0)
      push_frame (3, 100, false, false);
    CHECK_INT (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan), n > 0);
    CHECK (!plan.rtp_time_known);
    for (int i = 0; i < 20; i++) {
      now += FRAME_NS;
      next_time -= i % 2 ? 3 * FRAME_TICKS : 0;
      push_frame (2, 100, false, false);
      next_time += i % 2 ? 3 * FRAME_TICKS : 0;
    }
    reader = udp_reader ();
    CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
    now += 200 * MS;
    run ();
    CHECK_INT (reader->n, 40);
    for (size_t i = 0; i < reader->n; i++)
      CHECK_INT (reader->got[i].timestamp, stream[reader->got[i].id].timestamp);
    finish ();
  }
}

static void
an_old_plan_is_ignored (void)
{
  Reader *reader;
  WeirPlan plan, empty;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  CHECK (!weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &empty));
  gop_frames (0, 20);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  gop_frames (20, 75);
  reader = udp_reader ();
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
  run ();
  CHECK (reader->got[0].id != plan.position);
  CHECK_INT (reader->got[0].id, last_key ());

  // A plan whose packets were dropped is ignored too.
  settings.bounds.packets = 100;
  weir_fanout_set (fanout, &settings);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan));
  for (int i = 0; i < 100; i++)
    push_frame (4, 100, i == 90, false);
  reader = udp_reader ();
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, &plan, now), 0);
  run ();
  CHECK_INT (reader->got[0].id, last_key ());
  finish ();
}

// An upstream that restarts with lower timestamps does not put new readers hours ahead.
static void
a_restarted_stream_does_not_shift_new_readers (void)
{
  Reader *reader;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  next_time = 1000000000;
  gop_frames (0, 60);
  next_time = 5000;
  gop_frames (100, 120);
  reader = add ();
  now += 400 * MS;
  run ();
  CHECK_INT (reader->got[0].id, last_key ());
  CHECK_INT (reader->got[0].timestamp, stream[n_stream - 1].timestamp);
  finish ();
}

// Sends one second of frames without a keyframe. Returns how often a keyframe was requested.
static size_t
ask_for_a_second (void)
{
  size_t n = 0;

  for (int i = 0; i < 25; i++) {
    now += FRAME_NS;
    push_frame (3, 500, false, false);
    run ();
    n += weir_fanout_wants_key (fanout, now);
  }
  return n;
}

static void
a_reader_that_begins_without_a_keyframe_requests_one (void)
{
  Reader *reader;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  add ();
  // Its first frame may be a keyframe.
  push_frame (3, 500, true, false);
  CHECK (!weir_fanout_wants_key (fanout, now));
  CHECK_INT (ask_for_a_second (), 0);
  add ();
  CHECK_INT (ask_for_a_second (), 0);

  // The window drops the keyframe.
  settings.bounds.packets = 20;
  weir_fanout_set (fanout, &settings);
  CHECK_INT (ask_for_a_second (), 0);
  for (int i = 0; i < 3; i++)
    add ();
  CHECK (!weir_fanout_wants_key (fanout, now));
  CHECK_INT (ask_for_a_second (), 1);
  CHECK_INT (ask_for_a_second (), 1);
  CHECK_INT (ask_for_a_second (), 1);
  now += FRAME_NS;
  push_frame (3, 500, true, false);
  run ();
  CHECK (!weir_fanout_wants_key (fanout, now + 1000 * MS));
  CHECK_INT (ask_for_a_second (), 0);

  // A removed reader no longer waits.
  add ();
  reader = add ();
  weir_fanout_remove (fanout, readers[n_readers - 2]->reader);
  CHECK_INT (ask_for_a_second (), 1);
  weir_fanout_remove (fanout, reader->reader);
  CHECK (!weir_fanout_wants_key (fanout, now + 1000 * MS));
  CHECK_INT (ask_for_a_second (), 0);
  finish ();
}

// Keyframes of an opaque stream cannot be recognised, and at the live edge a reader does not wait
// for one.
static void
no_keyframe_is_requested_if_none_can_come (void)
{
  for (int live = 0; live < 2; live++) {
    begin ();
    settings.join_at_keyframe = !live;
    start ();
    weir_fanout_set_codec (fanout, live ? WEIR_CODEC_VP8 : WEIR_CODEC_OPAQUE, 0);
    CHECK_INT (ask_for_a_second (), 0);
    add ();
    CHECK_INT (ask_for_a_second (), 0);
    finish ();
  }
}

// A group is one reader for many: it stays at the live edge, whatever its plan.
static void
a_multicast_group_begins_at_the_live_edge (void)
{
  WeirAddress group = { .v4 = { .sin_family = AF_INET, .sin_port = htons (5000) } };

  for (int planned = 0; planned < 2; planned++) {
    Reader *reader;
    WeirPlan plan;

    begin ();
    settings.join_at_keyframe = true;
    start ();
    gop_frames (0, 20);
    weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan);
    group.v4.sin_addr.s_addr = htonl (0xe0000000 + (uint32_t) n_readers);
    reader = udp_reader ();
    weir_reader_set_route (reader->reader, 3, &group);
    CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, planned ? &plan : NULL, now), 0);
    CHECK (!counters (reader).catching_up);
    gop_frames (20, 25);
    check_all (reader, n_stream - 15, n_stream - 1);
    finish ();
  }
}

// ---- faults ----

// Reads packets from `seq` on, and checks that they are those of the stream from `first` on.
static void
check_read (int seq, size_t first)
{
  int64_t position = weir_fanout_find (fanout, seq);
  static uint8_t expected[70000];
  size_t id = first;
  WeirSpan span;

  while (weir_fanout_span (fanout, position, &span)) {
    for (size_t i = 0; i < span.n; i++, id++) {
      CHECK (id < n_stream);
      if (!tap_ok)
        return;
      make_packet (expected, id);
      CHECK_INT (span.packets[i].length, stream[id].len);
      CHECK (memcmp (weir_packet_data (&span.packets[i]), expected, stream[id].len) == 0);
    }
    position = span.first + (int64_t) span.n;
    weir_span_clear (&span);
  }
  CHECK_INT (id, n_stream);
}

static void
packets_of_the_window_can_be_read_from_a_sequence_number_on (void)
{
  size_t middle = 0;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  CHECK_INT (weir_fanout_find (fanout, -1), 0);
  check_read (-1, 0);
  add ()->irregular = true;
  // The numbers wrap, and some are missing.
  for (int i = 0; i < 200; i++) {
    now += FRAME_NS;
    if (i == 180)
      middle = n_stream;
    push_frame (5, 1200, i % 30 == 0, false);
    if (i % 7 == 0)
      next_seq += (uint16_t) (1 + i % 5);
    run ();
    if (i < 180)
      continue;
    check_read (-1, middle);
    for (size_t id = middle; id < n_stream; id++)
      check_read (stream[id].seq, id);
    check_read (next_seq, n_stream);
    check_read ((uint16_t) (next_seq + 1000), n_stream);
  }
  // A missing number stands for the next one that is there.
  for (size_t id = middle + 1; id < n_stream; id++)
    check_read ((uint16_t) (stream[id - 1].seq + 1), id);
  // Numbers that have left the window stand for the oldest one.
  CHECK (weir_fanout_find (fanout, (uint16_t) (stream[middle].seq - 2000)) <= (int64_t) middle);
  finish ();
}

static void
a_failing_reader_affects_no_other (void)
{
  static const struct {
    int error;
    bool only_gso;
    WeirDrop reason; // WEIR_N_DROPS: no packet is lost
  } cases[] = {
    { ENOBUFS, false, WEIR_DROP_NO_BUFFERS },
    { ECONNREFUSED, false, WEIR_DROP_ERROR },
    { EPERM, false, WEIR_DROP_ERROR },
    { EMSGSIZE, false, WEIR_DROP_TOO_BIG },
    { EIO, false, WEIR_DROP_ERROR },
    { EINVAL, false, WEIR_DROP_ERROR },
    { EINVAL, true, WEIR_N_DROPS },
    { EIO, true, WEIR_N_DROPS },
    { EMSGSIZE, true, WEIR_N_DROPS },
    { EOPNOTSUPP, true, WEIR_N_DROPS },
    { EINTR, false, WEIR_N_DROPS },
  };
  static const unsigned percents[] = { 100, 30 };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t k = cases[i].error == EINTR; k < 2; k++) {
      WeirReaderCounters c;

      begin ();
      start ();
      for (int r = 0; r < 70; r++)
        add ();
      frames (5);
      fault.victim = 66;
      fault.error = cases[i].error;
      fault.only_gso = cases[i].only_gso;
      fault.percent = percents[k];
      frames (20);
      fault.error = 0;
      frames (5);
      for (size_t r = 0; r < n_readers; r++) {
        if (r != 66 || cases[i].reason == WEIR_N_DROPS)
          check_all (readers[r], 0, n_stream - 1);
      }
      c = counters (readers[66]);
      CHECK_INT (c.due, n_stream);
      if (cases[i].reason != WEIR_N_DROPS && percents[k] == 100)
        CHECK_INT (c.dropped[cases[i].reason], 80);
      finish ();
    }
  }
}

static size_t
segmented_sends (size_t from, size_t end)
{
  size_t n = 0;

  for (size_t r = from; r < end; r++)
    n += readers[r]->n_segmented;
  return n;
}

// While the path to one reader refuses segmented sends, the other readers keep theirs. The reader
// gets them again when the path accepts them.
static void
segmented_sends_are_tried_again (void)
{
  static const int errors[] = { EIO, EINVAL, EMSGSIZE, EOPNOTSUPP };
  WeirFanoutCounters c;
  size_t n_others;

  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    begin ();
    start ();
    for (int r = 0; r < 70; r++)
      add ();
    fault.victim = 0;
    fault.error = errors[i];
    fault.only_gso = true;
    fault.percent = 100;
    n_others = segmented_sends (1, n_readers);
    // Tries come after 0, 1, 3, 7, 15, 31 and 63 s, and then every minute.
    frames (180 * 25);
    weir_fanout_counters (fanout, &c);
    CHECK_INT (c.sends.fallbacks, 8);
    CHECK_INT (segmented_sends (1, n_readers) - n_others, 69 * 180 * 25);
    fault.error = 0;
    frames (62 * 25);
    CHECK (readers[0]->n_segmented > 0);
    // After a success, the first pause is the shortest again.
    fault.error = errors[i];
    frames (25 / 2);
    fault.error = 0;
    readers[0]->n_segmented = 0;
    frames (25);
    CHECK (readers[0]->n_segmented > 0);
    for (size_t r = 0; r < n_readers; r++)
      check_all (readers[r], 0, n_stream - 1);
    finish ();
  }
}

// This holds for any number of failures.
static void
failed_sends_are_reported_once_in_10_s (void)
{
  begin ();
  start ();
  for (int r = 0; r < 3; r++)
    add ();
  frames (1);
  CHECK (!weir_fanout_has_failed (fanout, now));
  fault.victim = 1;
  fault.error = EPERM;
  fault.only_gso = false;
  fault.percent = 100;
  for (int i = 0; i < 3; i++) {
    int64_t begun;

    frames (1);
    CHECK (weir_fanout_has_failed (fanout, now));
    CHECK_INT (weir_reader_take_error (readers[0]->reader), 0);
    CHECK_INT (weir_reader_take_error (readers[1]->reader), EPERM);
    CHECK_INT (weir_reader_take_error (readers[1]->reader), 0);
    begun = now;
    while (now < begun + 9000 * MS) {
      frames (1);
      CHECK (!weir_fanout_has_failed (fanout, now));
    }
    now = begun + 10000 * MS;
  }
  // Failures in between are reported, and none after that.
  fault.error = 0;
  CHECK (weir_fanout_has_failed (fanout, now));
  now += 20000 * MS;
  frames (1);
  CHECK (!weir_fanout_has_failed (fanout, now));
  finish ();
}

// Reported once, until the path takes segmented sends again.
static void
refused_segmented_sends_are_reported (void)
{
  WeirReaderNews news;

  begin ();
  start ();
  for (int r = 0; r < 3; r++)
    add ();
  frames (1);
  CHECK (!weir_fanout_has_news (fanout, now));
  for (int i = 0; i < 2; i++) {
    fault.victim = 1;
    fault.error = EIO;
    fault.only_gso = true;
    fault.percent = 100;
    frames (1);
    CHECK (weir_fanout_has_news (fanout, now));
    CHECK (!weir_reader_take_news (readers[0]->reader, &news));
    CHECK (weir_reader_take_news (readers[1]->reader, &news));
    CHECK_INT (news.gso_error, EIO);
    CHECK_INT (news.state, WEIR_READER_OK);
    CHECK (!weir_reader_take_news (readers[1]->reader, &news));
    frames (20 * 25);
    CHECK (!weir_fanout_has_news (fanout, now));
    fault.error = 0;
    frames (60 * 25);
    CHECK (!weir_fanout_has_news (fanout, now));
  }
  finish ();
}

static void
a_full_socket_is_given_100_ms (void)
{
  for (int times = 50; times < 250; times += 100) {
    Reader *others[70], *victim = NULL;
    WeirReaderCounters c;

    begin ();
    start ();
    for (size_t i = 0; i < 70; i++) {
      others[i] = add ();
      if (i == 20)
        victim = add ();
    }
    frames (5);
    fault.victim = 21;
    fault.error = EAGAIN;
    fault.percent = 100;
    for (int t = 0; t < times; t++) {
      int64_t next;

      if (t % 40 == 0)
        push_frame (4, 1200, false, false);
      next = weir_fanout_run (fanout, now);
      CHECK_INT (next, counters (victim).lag_packets > 0 ? now + MS : WEIR_NEVER);
      now += MS;
    }
    fault.error = 0;
    run ();
    CHECK_INT (weir_fanout_run (fanout, now), WEIR_NEVER);
    frames (5);
    for (size_t i = 0; i < 70; i++)
      check_all (others[i], 0, n_stream - 1);
    c = counters (victim);
    CHECK_INT (c.due, n_stream);
    CHECK_INT (victim->got[victim->n - 1].id, n_stream - 1);
    if (times < 100)
      check_all (victim, 0, n_stream - 1);
    else
      CHECK (c.dropped[WEIR_DROP_WOULD_BLOCK] > 0
             && c.dropped[WEIR_DROP_WOULD_BLOCK] == n_stream - victim->n);
    finish ();
  }
}

// The machine is busy between two tries, and the socket has room at the second.
static void
a_reader_that_was_not_tried_is_not_late (void)
{
  begin ();
  start ();
  for (int i = 0; i < 10; i++)
    add ();
  frames (3);
  sends_left = 3;
  push_frame (20, 1200, true, false);
  run ();
  now += 300 * MS;
  sends_left = SIZE_MAX;
  run ();
  for (size_t i = 0; i < n_readers && tap_ok; i++)
    check_all (readers[i], 0, n_stream - 1);
  finish ();
}

// The socket drains in less than a second.
static void
readers_wait_while_their_socket_drains (void)
{
  begin ();
  start ();
  for (int i = 0; i < 60; i++)
    add ();
  frames (3);
  push_frame (200, 1200, true, false);
  for (int t = 0; t < 900; t++) {
    sends_left = t % 3 == 0;
    run ();
    now += MS;
  }
  sends_left = SIZE_MAX;
  for (size_t i = 0; i < n_readers && tap_ok; i++)
    check_all (readers[i], 0, n_stream - 1);
  frames (3);
  finish ();
}

// While the socket is full, no reader gets data; afterwards all continue, and the counts add up.
static void
readers_of_a_full_socket_wait_together (void)
{
  begin ();
  start ();
  for (int i = 0; i < 100; i++)
    add ();
  frames (3);
  fault.victim = SIZE_MAX;
  fault.error = EAGAIN;
  fault.percent = 100;
  for (int t = 0; t < 1000; t++) {
    if (t % 40 == 0)
      push_frame (4, 1200, false, false);
    run ();
    now += MS;
  }
  fault.error = 0;
  run ();
  frames (3);
  for (size_t i = 0; i < n_readers; i++) {
    CHECK_INT (readers[i]->got[readers[i]->n - 1].id, n_stream - 1);
    CHECK_INT (counters (readers[i]).due, n_stream);
  }
  finish ();
}

// ---- the window is smaller than a reader's lag ----

static void
a_reader_behind_the_window_continues (void)
{
  static const struct {
    WeirOverrun overrun;
    size_t goes_to; // position after the skip, counted from the tail
  } cases[] = { { WEIR_OVERRUN_TO_JOIN, 30 }, { WEIR_OVERRUN_TO_TAIL, 0 } };

  for (size_t i = 0; i < 2; i++) {
    Reader *reader;
    size_t n;

    begin ();
    settings.bounds.packets = 100;
    settings.overrun = cases[i].overrun;
    start ();
    reader = add ();
    frames (5);
    n = n_stream;
    for (int k = 0; k < 300; k++)
      push_frame (1, 300, k == 230, false);
    run ();
    CHECK_INT (counters (reader).dropped[WEIR_DROP_OVERRUN], 200 + cases[i].goes_to);
    CHECK_INT (reader->got[n].id, n + 200 + cases[i].goes_to);
    CHECK_INT (reader->got[reader->n - 1].id, n_stream - 1);
    CHECK_INT (counters (reader).lag_packets, 0);
    finish ();
  }
}

static void
a_reader_has_got_as_far_as_its_counters_say (void)
{
  uint32_t first;
  Reader *reader;

  begin ();
  start ();
  reader = add ();
  CHECK (!counters (reader).rtp_time_known);
  first = (uint32_t) next_time;
  frames (5);
  CHECK (counters (reader).rtp_time_known);
  CHECK_INT (counters (reader).rtp_time, (uint32_t) (first + 4 * FRAME_TICKS));
  for (int k = 0; k < 3; k++)
    push_frame (4, 1200, false, false);
  CHECK_INT (counters (reader).rtp_time, (uint32_t) (first + 5 * FRAME_TICKS));
  weir_fanout_remove (fanout, reader->reader);
  frames (50);
  CHECK_INT (counters (reader).rtp_time, (uint32_t) (first + 5 * FRAME_TICKS));
  finish ();
}

static void
tail_drop_refuses_packets_that_would_push_a_reader_out (void)
{
  Reader *reader;
  WeirFanoutCounters c;

  begin ();
  settings.bounds.packets = 100;
  settings.overrun = WEIR_OVERRUN_TAIL_DROP;
  start ();
  reader = add ();
  for (int k = 0; k < 30; k++)
    push_frame (10, 300, false, false);
  weir_fanout_counters (fanout, &c);
  CHECK_INT (c.packets_refused, 200);
  run ();
  CHECK_INT (reader->n, 100);
  // The refused packets leave unused bytes in the window, which no reader may get.
  for (int k = 0; k < 30; k++) {
    push_frame (10, 300, false, false);
    if (k % 15 == 14)
      run ();
  }
  CHECK (!reader->wrong);
  CHECK_INT (reader->n, 300);
  CHECK_INT (counters (reader).due, 300);
  CHECK_INT (counters (reader).packets, 300);
  // Refused packets were never due to readers; sequence numbers have a gap, as after upstream loss.
  for (size_t i = 0; i < reader->n; i++)
    CHECK_INT (reader->got[i].seq, stream[reader->got[i].id].seq);
  reader->irregular = true;
  finish ();
}

// ---- over connections ----

static Reader *
tcp_reader (WeirFraming framing, int buffer)
{
  int fds[2];
  Reader *reader = reader_new ();

  CHECK_INT (socketpair (AF_UNIX, SOCK_STREAM, 0, fds), 0);
  setsockopt (fds[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  reader->conn = weir_conn_new (fds[0], NULL);
  CHECK (reader->conn);
  close (fds[0]);
  reader->peer = fds[1];
  reader->reader = weir_reader_new_conn (reader->conn, framing, 6);
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, NULL, now), 0);
  return reader;
}

// Reads the available bytes, few or many at a time, and splits them into packets.
static size_t
read_peer (Reader *reader)
{
  size_t all = 0;

  for (;;) {
    size_t room = sizeof reader->rest - reader->n_rest, at = 0;
    ssize_t n = recv (reader->peer, reader->rest + reader->n_rest,
        1 + random_below (room > 5000 && random_percent (80) ? 5000 : room), MSG_DONTWAIT);

    if (n <= 0)
      return all;
    all += (size_t) n;
    reader->n_rest += (size_t) n;
    while (reader->n_rest - at >= 4) {
      const uint8_t *frame = reader->rest + at;
      size_t len = (size_t) (frame[2] << 8 | frame[3]);

      CHECK (frame[0] == '$' && frame[1] == 6);
      if (!tap_ok || reader->n_rest - at < 4 + len)
        break;
      got_packet (reader, frame + 4, len);
      at += 4 + len;
    }
    memmove (reader->rest, reader->rest + at, reader->n_rest - at);
    reader->n_rest -= at;
    if (!tap_ok)
      return all;
  }
}

// Reads and runs the engine until the reader has caught up.
static void
let_read (Reader *reader)
{
  struct pollfd wait = { .fd = reader->peer, .events = POLLIN };

  while (tap_ok && counters (reader).state != WEIR_READER_CLOSED) {
    read_peer (reader);
    run ();
    if (counters (reader).lag_packets == 0 && counters (reader).packets == reader->n)
      break;
    poll (&wait, 1, 1); // lets the poller's thread run
  }
}

static void
a_connection_gets_everything_in_order (void)
{
  Reader *small, *large;

  begin ();
  start ();
  small = tcp_reader (WEIR_FRAMING_INTERLEAVED, 4096);
  large = tcp_reader (WEIR_FRAMING_INTERLEAVED, 1 << 20);
  add ();
  for (int i = 0; i < 100; i++) {
    now += FRAME_NS;
    push_frame (
        1 + random_below (20), HEAD + random_below (i % 10 == 0 ? 20000 : 1400), false, false);
    run ();
    let_read (small);
    let_read (large);
  }
  check_all (small, 0, n_stream - 1);
  check_all (large, 0, n_stream - 1);
  check_all (readers[2], 0, n_stream - 1);
  finish ();
}

// A frame of several packets: key, discardable, or neither.
static void
thin_frame (int i)
{
  push_frame (5, 1200, i % 25 == 0, i % 25 != 0 && i % 2 == 1);
}

static void
a_lagging_reader_is_thinned_and_recovers (void)
{
  WeirReaderState seen = WEIR_READER_OK, expected;
  Reader *slow, *fast, *udp;
  WeirReaderNews news;
  size_t full_until;
  int i = 0;

  begin ();
  settings.bounds = (WeirWindowBounds) { 64 << 20, 100000, 5000 * MS, false };
  start ();
  slow = tcp_reader (WEIR_FRAMING_INTERLEAVED, 4096);
  fast = tcp_reader (WEIR_FRAMING_INTERLEAVED, 1 << 20);
  udp = add ();
  // It reads no data for 3 s.
  for (; i < 75; i++) {
    now += FRAME_NS;
    thin_frame (i);
    run ();
    let_read (fast);
    expected = counters (slow).lag_ns >= 1000 * MS  ? WEIR_READER_KEYFRAMES
               : counters (slow).lag_ns >= 500 * MS ? WEIR_READER_REFERENCES
               : counters (slow).lag_ns >= 250 * MS ? WEIR_READER_NO_UPPER_LAYERS
                                                    : WEIR_READER_OK;
    CHECK_INT (counters (slow).state, expected);
    CHECK (expected >= seen);
    seen = expected;
  }
  CHECK_INT (seen, WEIR_READER_KEYFRAMES);
  CHECK (weir_fanout_has_news (fanout, now));
  CHECK (!weir_reader_take_news (fast->reader, &news));
  CHECK (weir_reader_take_news (slow->reader, &news));
  CHECK_INT (news.before, WEIR_READER_OK);
  CHECK_INT (news.state, WEIR_READER_KEYFRAMES);
  full_until = counters (slow).packets;
  // When it reads again, it gets the rest of the current frame, and then key frames only.
  let_read (slow);
  CHECK (slow->n > full_until);
  for (size_t k = full_until; k < slow->n; k++)
    CHECK (stream[slow->got[k].id].key || slow->got[k].id / 5 == slow->got[full_until - 1].id / 5);
  CHECK_INT (slow->n % 5, 0);
  CHECK (counters (slow).dropped[WEIR_DROP_THINNED] > 0);
  CHECK_INT (counters (slow).lag_packets, 0);
  for (size_t k = 1; k < slow->n; k++)
    CHECK_INT (slow->got[k].seq, (uint16_t) (slow->got[0].seq + k));

  // Each step back takes 5 s and happens where a decoder can start.
  for (int left = WEIR_READER_KEYFRAMES; left > WEIR_READER_OK; left--) {
    int n = 0;

    while ((int) counters (slow).state == left && n++ < 400) {
      now += FRAME_NS;
      thin_frame (i++);
      run ();
      let_read (slow);
      let_read (fast);
    }
    CHECK (n >= 100 && n <= 160);
    CHECK_INT (counters (slow).state, left - 1);
    CHECK (stream[slow->got[slow->n - 1].id].key);
  }
  CHECK (weir_fanout_has_news (fanout, now));
  CHECK (weir_reader_take_news (slow->reader, &news));
  CHECK_INT (news.before, WEIR_READER_KEYFRAMES);
  CHECK_INT (news.state, WEIR_READER_OK);
  full_until = n_stream - 5;
  for (int k = 0; k < 20; k++) {
    now += FRAME_NS;
    thin_frame (i++);
    run ();
    let_read (slow);
    let_read (fast);
  }
  for (size_t k = 0; k < 105; k++)
    CHECK_INT (slow->got[slow->n - 1 - k].id, n_stream - 1 - k);
  for (size_t k = 1; k < slow->n; k++)
    CHECK_INT (slow->got[k].seq, (uint16_t) (slow->got[0].seq + k));
  check_all (fast, 0, n_stream - 1);
  check_all (udp, 0, n_stream - 1);
  finish ();
}

static void
a_restricted_reader_gets_less (void)
{
  Reader *restricted, *other;
  size_t before;
  int i = 0;

  begin ();
  start ();
  restricted = add ();
  other = add ();
  for (int state = WEIR_READER_OK; state <= WEIR_READER_KEYFRAMES; state++) {
    weir_reader_restrict (restricted->reader, (WeirReaderState) state);
    before = restricted->n;
    for (int k = 0; k < 50; k++) {
      now += FRAME_NS;
      thin_frame (i++);
      run ();
    }
    CHECK_INT (counters (restricted).state, state);
    CHECK_INT (counters (restricted).restricted, state);
    // Of 50 frames two are keyframes, and each other one is discardable.
    CHECK_INT (restricted->n - before, 5
                                           * (state == WEIR_READER_KEYFRAMES     ? 2
                                               : state == WEIR_READER_REFERENCES ? 26
                                                                                 : 50));
  }
  // It gets all again from the next keyframe on.
  weir_reader_restrict (restricted->reader, WEIR_READER_OK);
  before = restricted->n;
  for (int k = 0; k < 50; k++) {
    now += FRAME_NS;
    thin_frame (i++);
    run ();
  }
  CHECK_INT (counters (restricted).state, WEIR_READER_OK);
  CHECK_INT (restricted->n - before, 50 * 5);
  for (size_t k = 1; k < restricted->n; k++)
    CHECK_INT (restricted->got[k].seq, (uint16_t) (restricted->got[0].seq + k));
  CHECK (counters (restricted).dropped[WEIR_DROP_THINNED] > 0);
  check_all (other, 0, n_stream - 1);
  finish ();
}

// The stream has no key frames, so the reader does not wait for one.
static void
a_stream_without_key_frames_is_not_thinned (void)
{
  Reader *slow;

  begin ();
  start ();
  slow = tcp_reader (WEIR_FRAMING_INTERLEAVED, 4096);
  frames (75);
  CHECK_INT (counters (slow).state, WEIR_READER_KEYFRAMES);
  let_read (slow);
  for (int i = 0; i < 400; i++) {
    frames (1);
    let_read (slow);
  }
  CHECK_INT (counters (slow).state, WEIR_READER_OK);
  check_all (slow, 0, n_stream - 1);
  finish ();
}

// A new reader is late by design: it is not thinned until it has reached the live edge.
static void
a_reader_that_catches_up_slowly_is_not_thinned (void)
{
  Reader *reader;
  size_t join;

  begin ();
  settings.join_at_keyframe = true;
  start ();
  for (int i = 0; i < 95; i++) {
    now += FRAME_NS;
    push_frame (1, 2900, i % 50 == 0, false);
  }
  join = last_key ();
  reader = tcp_reader (WEIR_FRAMING_INTERLEAVED, 4096);
  // It reads no data until after it would have caught up.
  for (int i = 0; i < 10; i++) {
    run ();
    now += FRAME_NS;
    push_frame (1, 2900, false, false);
  }
  run ();
  CHECK (counters (reader).lag_packets > 20);
  now += 10 * MS;
  let_read (reader);
  CHECK (!counters (reader).catching_up);
  CHECK_INT (counters (reader).dropped[WEIR_DROP_THINNED], 0);
  CHECK_INT (reader->n, n_stream - join);
  finish ();
}

// The window is short, so it moves past the reader's position again and again.
static void
a_reader_that_takes_no_data_is_closed (void)
{
  Reader *stuck, *fast;
  WeirReaderNews news;
  int i = 0;

  begin ();
  settings.bounds = (WeirWindowBounds) { 64 << 20, 100000, 2000 * MS, false };
  start ();
  stuck = tcp_reader (WEIR_FRAMING_INTERLEAVED, 4096);
  fast = tcp_reader (WEIR_FRAMING_INTERLEAVED, 1 << 20);
  for (; i < 1000 && counters (stuck).state != WEIR_READER_CLOSED; i++) {
    now += FRAME_NS;
    thin_frame (i);
    run ();
    let_read (fast);
  }
  CHECK (i > 250 && i < 260);
  CHECK_INT (weir_conn_error (stuck->conn), ETIMEDOUT);
  CHECK (weir_fanout_has_news (fanout, now));
  CHECK (weir_reader_take_news (stuck->reader, &news));
  CHECK_INT (news.state, WEIR_READER_CLOSED);
  CHECK_INT (news.closed_by, ETIMEDOUT);
  for (int k = 0; k < 30; k++) {
    now += FRAME_NS;
    thin_frame (i++);
    run ();
    let_read (fast);
  }
  check_all (fast, 0, n_stream - 1);
  stuck->n = counters (stuck).packets; // it never read them
  stuck->bytes = counters (stuck).bytes;
  CHECK (stuck->n < 20);
  stuck->irregular = true;
  finish ();
}

static void
a_broken_connection_closes_one_reader (void)
{
  Reader *broken, *other;
  WeirReaderNews news;

  begin ();
  start ();
  broken = tcp_reader (WEIR_FRAMING_INTERLEAVED, 1 << 20);
  other = tcp_reader (WEIR_FRAMING_INTERLEAVED, 1 << 20);
  frames (3);
  let_read (broken);
  close (broken->peer);
  broken->peer = -1;
  for (int i = 0; i < 10; i++) {
    frames (1);
    let_read (other);
  }
  CHECK_INT (counters (broken).state, WEIR_READER_CLOSED);
  CHECK_INT (counters (broken).dropped[WEIR_DROP_ERROR], 4);
  CHECK (weir_fanout_has_news (fanout, now));
  CHECK (weir_reader_take_news (broken->reader, &news));
  CHECK_INT (news.closed_by, weir_conn_error (broken->conn));
  CHECK (news.closed_by != 0);
  check_all (other, 0, n_stream - 1);
  finish ();
}

// ---- at random ----

#define TCP_SLOTS 12

static void
random_fault (void)
{
  static const int errors[] = { 0, 0, 0, EAGAIN, ENOBUFS, ECONNREFUSED, EPERM, EMSGSIZE, EIO,
    EINVAL, EINTR };

  fault.error = errors[random_below (sizeof errors / sizeof *errors)];
  fault.victim = random_percent (10) ? SIZE_MAX : random_below (n_readers + 1);
  fault.percent = (unsigned) (fault.error == EINTR ? 50 : 20 + random_below (81));
  fault.only_gso = random_percent (20);
}

static void
random_settings (void)
{
  static const int64_t times[] = { 100 * MS, 1000 * MS, 10000 * MS };

  settings.gso = (WeirGso) random_below (3);
  refused_percent = (unsigned) random_below (3) * 20;
  dropped_percent = (unsigned) random_below (3) * 5;
  settings.join_at_keyframe = random_percent (70);
  settings.catch_up_live = random_percent (70);
  settings.catch_up_rate = 2 + (unsigned) random_below (10);
  settings.coalesce_ns = random_percent (30) ? 0 : 5 * MS;
  settings.bounds.bytes = WEIR_WINDOW_BYTES_MIN << random_below (6);
  settings.bounds.packets = 50 + random_below (2000);
  settings.bounds.time_ns = times[random_below (3)];
  settings.overrun = (WeirOverrun) random_below (2);
  weir_fanout_set (fanout, &settings);
}

// Reads the packets sent before the reader was removed or closed. The last one may be incomplete.
static void
read_to_the_end (Reader *reader)
{
  struct pollfd wait = { .fd = reader->peer, .events = POLLIN };
  WeirReaderCounters c = counters (reader);

  while (tap_ok && reader->n < c.packets) {
    if (read_peer (reader) == 0 && weir_conn_error (reader->conn)) {
      CHECK_INT (reader->n, c.packets - 1);
      reader->n += 1;
      reader->bytes = c.bytes;
      reader->irregular = true;
    }
    poll (&wait, 1, 1);
  }
}

// Lets time pass until a reader that was added lately has caught up.
static void
let_catch_up (Reader *reader)
{
  while (tap_ok && counters (reader).catching_up && counters (reader).lag_packets > 0
         && counters (reader).state != WEIR_READER_CLOSED) {
    now += MS;
    read_peer (reader);
    run ();
  }
}

static void
random_changes_keep_the_counts (void)
{
  static bool gone[READERS_MAX];
  Reader *slots[TCP_SLOTS] = { 0 };
  int frame = 0;

  begin ();
  start ();
  memset (gone, 0, sizeof gone);
  for (int step = 0; step < 10000 && tap_ok; step++) {
    uint64_t what = random_below (1000);
    size_t which = n_readers ? random_below (n_readers) : 0;

    now += (int64_t) random_below (20 * MS);
    if (what < 350) {
      bool key = frame++ % 40 == 0;
      push_frame (1 + random_below (key ? 40 : 6), HEAD + random_below (1400), key,
          !key && random_percent (30));
    } else if (what < 750) {
      run ();
    } else if (what < 780 && n_readers < 300) {
      Reader *reader = udp_reader ();
      WeirPlan plan;
      bool planned = weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, now, &plan);

      if (random_percent (70))
        clone_over (reader, (unsigned) random_below (3));
      if (random_percent (30)) {
        now += (int64_t) random_below (500 * MS);
        push_frame (3, 500, false, false);
      }
      CHECK_INT (weir_fanout_add (fanout, reader->reader, (unsigned) random_below (8),
                     planned && random_percent (50) ? &plan : NULL, now),
          0);
    } else if (what < 785) {
      size_t slot = random_below (TCP_SLOTS);

      if (!slots[slot])
        slots[slot] = tcp_reader (WEIR_FRAMING_INTERLEAVED, 4096 << random_below (6));
    } else if (what < 805 && n_readers > 0 && !gone[which]) {
      gone[which] = true;
      weir_fanout_remove (fanout, readers[which]->reader);
    } else if (what < 830 && n_readers > 0 && !gone[which]) {
      weir_fanout_set_priority (fanout, readers[which]->reader, (unsigned) random_below (8));
    } else if (what < 900) {
      Reader *reader = slots[random_below (TCP_SLOTS)];

      if (reader)
        read_peer (reader);
    } else if (what < 930) {
      random_fault ();
    } else if (what < 935 && n_readers > 0) {
      readers[which]->device = (unsigned) random_below (3);
    } else if (what < 938 && n_readers > 0 && !readers[which]->conn) {
      if (random_percent (50))
        clone_over (readers[which], (unsigned) random_below (3));
      else
        weir_reader_set_clone_route (readers[which]->reader, NULL, NULL);
    } else if (what < 950) {
      random_settings ();
    }
  }
  fault.error = 0;
  frames (1);
  for (size_t i = 0; i < n_readers; i++) {
    if (readers[i]->conn && !gone[i]) {
      let_catch_up (readers[i]);
      let_read (readers[i]);
    }
    if (readers[i]->conn)
      read_to_the_end (readers[i]);
  }
  finish ();
}

int
main (void)
{
  random_init ();
  for (size_t i = 0; i < sizeof filler; i++)
    filler[i] = (uint8_t) random_next ();
  RUN (every_reader_gets_every_packet);
  RUN (readers_of_the_same_bytes_share_a_send);
  RUN (readers_of_a_device_get_clones_of_one_message);
  RUN (packets_that_cannot_be_cloned_are_sent);
  RUN (readers_with_own_numbers_get_clones);
  RUN (a_live_reader_begins_at_the_start_of_a_frame);
  RUN (thousands_of_readers_are_added_and_removed);
  RUN (readers_take_turns_at_being_first);
  RUN (packets_are_not_kept_while_stopped);
  RUN (a_reader_after_the_last_one_gets_whole_frames);
  RUN (incoming_packets_are_counted);
  RUN (a_reader_gets_as_many_copies_as_it_was_added);
  RUN (stopping_counts_waiting_packets_as_flushed);
  RUN (readers_change_priority_and_lose_nothing);
  RUN (a_new_reader_catches_up_with_the_live_edge);
  RUN (a_new_reader_catches_up_over_a_timestamp_wrap);
  RUN (sequence_numbers_wrap_ten_times);
  RUN (a_new_reader_catches_up_with_the_stream_s_timestamps);
  RUN (a_reader_begins_as_its_plan_says);
  RUN (a_plan_holds_amid_reordered_pictures);
  RUN (a_plan_made_before_the_first_packet_holds);
  RUN (an_old_plan_is_ignored);
  RUN (a_restarted_stream_does_not_shift_new_readers);
  RUN (a_reader_that_begins_without_a_keyframe_requests_one);
  RUN (no_keyframe_is_requested_if_none_can_come);
  RUN (a_multicast_group_begins_at_the_live_edge);
  RUN (packets_of_the_window_can_be_read_from_a_sequence_number_on);
  RUN (a_failing_reader_affects_no_other);
  RUN (segmented_sends_are_tried_again);
  RUN (failed_sends_are_reported_once_in_10_s);
  RUN (refused_segmented_sends_are_reported);
  RUN (a_full_socket_is_given_100_ms);
  RUN (a_reader_that_was_not_tried_is_not_late);
  RUN (readers_wait_while_their_socket_drains);
  RUN (readers_of_a_full_socket_wait_together);
  RUN (a_reader_behind_the_window_continues);
  RUN (a_reader_has_got_as_far_as_its_counters_say);
  RUN (tail_drop_refuses_packets_that_would_push_a_reader_out);
  RUN (a_connection_gets_everything_in_order);
  RUN (a_lagging_reader_is_thinned_and_recovers);
  RUN (a_restricted_reader_gets_less);
  RUN (a_stream_without_key_frames_is_not_thinned);
  RUN (a_reader_that_catches_up_slowly_is_not_thinned);
  RUN (a_reader_that_takes_no_data_is_closed);
  RUN (a_broken_connection_closes_one_reader);
  RUN (random_changes_keep_the_counts);
  return tap_done ();
}
