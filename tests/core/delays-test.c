// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests readers with different delays in one window: when each gets which packets, and with which
// numbers.
#include "fanout/fanout.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <signal.h>
#include <sys/resource.h>

#include "packets.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define S (1000 * MS)
#define BEAT (5 * MS)
#define FRAME_NS (40 * MS)
#define RATE 90000
#define FRAME_TICKS 3600
#define FRAME_PACKETS 3
#define GOP 25
#define LEN 1000
#define SENDER_REPORT 200
#define PACKETS_MAX 65536
#define READERS_MAX 1024

typedef struct {
  int64_t arrival_ns;
  uint32_t timestamp;
  uint16_t seq;
  bool key;
} Sent;

typedef struct {
  uint32_t id, timestamp;
  uint16_t seq;
  int64_t at_ns;
} Got;

typedef struct {
  WeirReader *reader;
  Got *got;
  size_t n, capacity;
  size_t n_other; // packets without a sequence number
} Reader;

static Sent stream[PACKETS_MAX];
static size_t n_stream;
static Reader readers[READERS_MAX];
static size_t n_readers;
static WeirFanout *fanout;
static WeirFanoutSettings settings;
static int64_t now;
static size_t deaf; // the index of a reader whose socket is full; SIZE_MAX: none
static unsigned n_frames;
static uint16_t next_seq;
static uint32_t next_time;
static bool mixed; // whether the stream has packets that are not RTP

static void
got_packet (Reader *reader, const uint8_t *data)
{
  uint32_t id;

  if (data[0] != 0x80 || data[1] == SENDER_REPORT) {
    reader->n_other++;
    return;
  }
  memcpy (&id, data + RTP_HEADER + VP8_PAYLOAD, sizeof id);
  if (reader->n == reader->capacity) {
    reader->capacity = reader->capacity ? 2 * reader->capacity : 256;
    reader->got = realloc (reader->got, reader->capacity * sizeof *reader->got);
  }
  reader->got[reader->n++] = (Got) {
    .id = id,
    .timestamp = (uint32_t) data[4] << 24 | (uint32_t) data[5] << 16 | data[6] << 8 | data[7],
    .seq = (uint16_t) (data[2] << 8 | data[3]),
    .at_ns = now,
  };
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

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

// ---- driving the engine ----

static void
begin (int64_t window_ns)
{
  n_stream = n_readers = n_frames = 0;
  now = 100 * S;
  next_seq = 65000;
  next_time = 0xfffff000;
  deaf = SIZE_MAX;
  mixed = false;
  settings = (WeirFanoutSettings) {
    .join_at_keyframe = true,
    .catch_up_live = true,
    .catch_up_rate = 8,
    .coalesce_ns = 5 * MS,
    .bounds = { 64 << 20, PACKETS_MAX, window_ns, false },
  };
  fanout = weir_fanout_new (NULL, &fake_ops, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_set_clock_rate (fanout, RATE);
  weir_fanout_start (fanout);
}

static void
push (bool first, bool marker, bool key)
{
  uint32_t id = (uint32_t) n_stream++;
  uint8_t *room = weir_fanout_reserve (fanout, LEN);

  stream[id] = (Sent) { now, next_time, next_seq, key };
  memset (room, (int) id, LEN);
  put_rtp (room, next_seq++, next_time, marker);
  put_vp8 (room + RTP_HEADER, first, key, false, 0);
  memcpy (room + RTP_HEADER + VP8_PAYLOAD, &id, sizeof id);
  weir_fanout_commit (fanout, LEN, now);
}

static void
push_other (void)
{
  uint8_t *room = weir_fanout_reserve (fanout, LEN);

  memset (room, 0, LEN);
  if (random_percent (50)) {
    room[0] = 0x80;
    room[1] = SENDER_REPORT;
  }
  weir_fanout_commit (fanout, LEN, now);
}

static void
push_frame (void)
{
  bool key = n_frames++ % GOP == 0;

  weir_fanout_begin (fanout);
  if (mixed)
    push_other ();
  for (size_t i = 0; i < FRAME_PACKETS; i++)
    push (i == 0, i + 1 == FRAME_PACKETS, key);
  for (uint64_t n = mixed ? random_below (3) : 0; n > 0; n--)
    push_other ();
  weir_fanout_end (fanout, now);
  next_time += FRAME_TICKS;
}

// Advances the time: a frame comes each 40 ms, and the readers are served.
static void
play (int64_t ns)
{
  for (int64_t end = now + ns; now < end; now += BEAT) {
    if (now % FRAME_NS == 0)
      push_frame ();
    weir_fanout_run (fanout, now);
  }
}

static Reader *
add_planned (int64_t delay_ns, const WeirPlan *plan)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons (5000),
                              .sin_addr.s_addr = htonl (0x0a000000 + (uint32_t) n_readers) } };
  Reader *reader = &readers[n_readers++];

  *reader = (Reader) { .reader = weir_reader_new_udp () };
  weir_reader_set_route (reader->reader, 3, &address);
  weir_reader_set_delay (reader->reader, delay_ns);
  CHECK_INT (weir_fanout_add (fanout, reader->reader, 0, plan, now), 0);
  return reader;
}

static Reader *
add (int64_t delay_ns)
{
  return add_planned (delay_ns, NULL);
}

static WeirReaderCounters
counters (const Reader *reader)
{
  WeirReaderCounters c;

  weir_reader_counters (fanout, reader->reader, now, &c);
  return c;
}

// Sequence numbers skip dropped packets only.
static void
check_sums (const Reader *reader)
{
  WeirReaderCounters c = counters (reader);
  uint64_t dropped = 0, gaps = 0;

  for (int i = 0; i < WEIR_N_DROPS; i++)
    dropped += c.dropped[i];
  CHECK_INT (c.due, c.packets + dropped);
  CHECK_INT (c.packets, reader->n + reader->n_other);
  for (size_t i = 1; i < reader->n; i++)
    gaps += (uint16_t) (reader->got[i].seq - reader->got[i - 1].seq - 1);
  CHECK (gaps <= dropped);
}

static void
finish (void)
{
  for (size_t i = 0; i < n_readers; i++)
    check_sums (&readers[i]);
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  for (size_t i = 0; i < n_readers; i++) {
    weir_reader_unref (readers[i].reader);
    free (readers[i].got);
  }
}

// Checks that from packet `from` on the reader got everything, `delay_ns` after it came, with its
// timestamps shifted by the delay.
static void
check_delayed (const Reader *reader, size_t from, int64_t delay_ns)
{
  for (size_t i = from; i < reader->n && tap_ok; i++) {
    const Got *got = &reader->got[i];
    const Sent *sent = &stream[got->id];
    int64_t late = got->at_ns - sent->arrival_ns - delay_ns;

    if (i > from)
      CHECK_INT (got->id, got[-1].id + 1);
    CHECK (late >= 0 && late < BEAT);
    CHECK_INT (got->timestamp, (uint32_t) (sent->timestamp + delay_ns / 1000 * RATE / 1000000));
  }
}

// ---- the tests ----

static void
each_packet_is_sent_its_delay_after_it_arrived (void)
{
  const int64_t delay = 12345 * MS;
  Reader *reader;

  begin (60 * S);
  play (30 * S);
  reader = add (delay);
  play (5 * S);
  CHECK (stream[reader->got[0].id].key);
  CHECK (reader->got[0].at_ns - stream[reader->got[0].id].arrival_ns >= delay);
  CHECK (reader->got[0].at_ns - stream[reader->got[0].id].arrival_ns <= delay + 2 * S);
  CHECK_INT (counters (reader).delay_ns, delay);
  CHECK (!counters (reader).catching_up);
  CHECK (counters (reader).lag_ns < BEAT);
  // A GOP at eight times the speed is less than half a second.
  check_delayed (reader, 2 * GOP * FRAME_PACKETS, delay);
  finish ();
}

static void
every_reader_has_its_own_delay (void)
{
  begin (60 * S);
  play (62 * S);
  for (int i = 0; i < 1000; i++)
    add (50 * MS + i * 57 * MS);
  play (4 * S);
  for (size_t i = 0; i < n_readers && tap_ok; i++)
    check_delayed (&readers[i], 2 * GOP * FRAME_PACKETS, 50 * MS + (int64_t) i * 57 * MS);
  finish ();
}

static void
a_delay_longer_than_the_window_is_shortened (void)
{
  WeirPlan plan;
  Reader *reader;

  begin (10 * S);
  CHECK (!weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 5 * S, now, &plan));
  play (3 * S);
  // The whole window is available.
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 30 * S, now, &plan));
  CHECK_INT (plan.delay_ns, 3 * S);
  CHECK_INT (plan.seq, stream[0].seq);
  CHECK_INT (plan.rtp_time, (uint32_t) (stream[0].timestamp + 3 * RATE));
  play (20 * S);
  // The plan stays clear of the tail, where packets are dropped next.
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, WEIR_DELAY_OLDEST, now, &plan));
  CHECK (plan.delay_ns >= 8 * S && plan.delay_ns <= 9 * S);
  reader = add (WEIR_DELAY_OLDEST);
  play (2 * S);
  CHECK_INT (counters (reader).delay_ns, plan.delay_ns);
  CHECK_INT (reader->got[0].seq, plan.seq);
  CHECK_INT (reader->got[0].timestamp, plan.rtp_time);
  check_delayed (reader, 0, plan.delay_ns);
  play (20 * S);
  CHECK_INT (counters (reader).moved, 0);
  finish ();
}

static void
a_plan_with_a_delay_is_kept (void)
{
  WeirPlan plan, begun;
  Reader *reader;

  begin (60 * S);
  play (20 * S);
  CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 7 * S, now, &plan));
  play (300 * MS);
  reader = add_planned (7 * S, &plan);
  play (2 * S);
  weir_fanout_next (fanout, reader->reader, now, &begun);
  CHECK_INT (begun.seq, plan.seq);
  CHECK_INT (begun.rtp_time, plan.rtp_time);
  play (1 * S);
  weir_fanout_next (fanout, reader->reader, now, &begun);
  CHECK_INT (begun.seq, (uint16_t) (reader->got[reader->n - 1].seq + 1));
  CHECK_INT (reader->got[0].seq, plan.seq);
  CHECK_INT (reader->got[0].timestamp, plan.rtp_time);
  check_delayed (reader, 2 * GOP * FRAME_PACKETS, 7 * S);
  finish ();
}

// Checks that packet `i` has the next sequence number, and that its timestamp does not go back.
static void
check_follows (const Reader *reader, size_t i)
{
  CHECK_INT (reader->got[i].seq, (uint16_t) (reader->got[i - 1].seq + 1));
  CHECK ((int32_t) (reader->got[i].timestamp - reader->got[i - 1].timestamp) >= 0);
}

static void
visit_positions (bool with_others)
{
  const int64_t delays[] = { 20 * S, 0, 5 * S, 4 * S, 30 * S, 0 };
  Reader *reader;

  begin (60 * S);
  mixed = with_others;
  play (50 * S);
  reader = add (0);
  play (2 * S);
  for (size_t k = 0; k < sizeof delays / sizeof *delays; k++) {
    size_t n = reader->n;
    WeirPlan plan;

    CHECK_INT (weir_fanout_set_delay (fanout, reader->reader, delays[k], now, &plan), 0);
    CHECK_INT (plan.delay_ns, delays[k]);
    play (3 * S);
    CHECK_INT (reader->got[n].seq, plan.seq);
    CHECK_INT (reader->got[n].timestamp, plan.rtp_time);
    CHECK (stream[reader->got[n].id].key);
    check_follows (reader, n);
    // The last packet arrived `delay` ago, by the clock and by its timestamp.
    check_delayed (reader, reader->n - 10, delays[k]);
  }
  // Setting the same delay again changes nothing.
  CHECK_INT (weir_fanout_set_delay (fanout, reader->reader, 0, now, NULL), 0);
  play (1 * S);
  check_delayed (reader, reader->n - 60, 0);
  finish ();
}

static void
a_reader_changes_its_delay (void)
{
  visit_positions (false);
}

// RTCP and other packets that are not RTP have no sequence number.
static void
a_reader_changes_its_delay_amid_packets_without_numbers (void)
{
  visit_positions (true);
}

static void
a_paused_reader_keeps_its_position (void)
{
  Reader *reader, *live;
  WeirPlan plan;
  size_t n;

  begin (60 * S);
  live = add (0);
  play (30 * S);
  reader = add (10 * S);
  play (5 * S);
  n = reader->n;
  CHECK_INT (weir_fanout_pause (fanout, reader->reader, now), 0);
  play (8 * S);
  CHECK_INT (reader->n, n);
  CHECK (counters (reader).paused);
  CHECK_INT (counters (reader).delay_ns, 18 * S);
  CHECK_INT (counters (reader).lag_ns, 0);
  CHECK_INT (weir_fanout_resume (fanout, reader->reader, now, &plan), 0);
  CHECK_INT (plan.delay_ns, 18 * S);
  play (5 * S);
  CHECK_INT (reader->got[n].id, reader->got[n - 1].id + 1);
  CHECK_INT (reader->got[n].seq, plan.seq);
  CHECK_INT (reader->got[n].timestamp, plan.rtp_time);
  check_follows (reader, n);
  check_delayed (reader, n, 18 * S);
  CHECK_INT (counters (reader).state, WEIR_READER_OK);

  // The same for a reader at the live edge.
  n = live->n;
  CHECK_INT (weir_fanout_pause (fanout, live->reader, now), 0);
  play (2 * S);
  CHECK_INT (weir_fanout_resume (fanout, live->reader, now, NULL), 0);
  play (2 * S);
  check_delayed (live, n, 2 * S);
  check_follows (live, n);
  finish ();
}

// The RTSP server does this: PAUSE removes the reader, and PLAY adds it again.
static void
a_reader_removed_while_paused_can_return (void)
{
  Reader *reader, *again;
  WeirPlan kept, plan;
  size_t n;

  begin (60 * S);
  play (30 * S);
  reader = add (10 * S);
  play (5 * S);
  weir_fanout_pause (fanout, reader->reader, now);
  play (1 * S);
  weir_fanout_next (fanout, reader->reader, now, &kept);
  weir_fanout_remove (fanout, reader->reader);
  play (7 * S);
  CHECK (weir_fanout_plan_again (fanout, &kept, -1, now, &plan));
  CHECK (!plan.moved);
  again = add_planned (0, &plan);
  play (2 * S);
  n = reader->n - 1;
  CHECK_INT (again->got[0].id, reader->got[n].id + 1);
  CHECK_INT (again->got[0].seq, (uint16_t) (reader->got[n].seq + 1));
  CHECK_INT (again->got[0].timestamp, plan.rtp_time);
  check_delayed (again, 0, 18 * S);

  // With another delay: sequence numbers still continue.
  CHECK (weir_fanout_plan_again (fanout, &kept, 3 * S, now, &plan));
  again = add_planned (0, &plan);
  play (2 * S);
  CHECK_INT (again->got[0].seq, (uint16_t) (reader->got[n].seq + 1));
  CHECK (stream[again->got[0].id].key);
  check_delayed (again, again->n - 10, 3 * S);

  // When the window has dropped its position, the reader moves.
  play (60 * S);
  CHECK (weir_fanout_plan_again (fanout, &kept, -1, now, &plan));
  CHECK (plan.moved);
  again = add_planned (0, &plan);
  play (2 * S);
  CHECK (stream[again->got[0].id].key);
  CHECK_INT ((uint16_t) (again->got[0].seq - reader->got[n].seq),
      (uint16_t) (again->got[0].id - reader->got[n].id));
  finish ();
}

static void
the_tail_moves_a_paused_reader (void)
{
  Reader *reader;
  size_t n;
  Got *got;

  begin (10 * S);
  play (8 * S);
  reader = add (3 * S);
  play (3 * S);
  n = reader->n;
  weir_fanout_pause (fanout, reader->reader, now);
  play (20 * S);
  CHECK (counters (reader).moved >= 1);
  CHECK (counters (reader).delay_ns <= 10 * S);
  CHECK (counters (reader).dropped[WEIR_DROP_OVERRUN] > 0);
  weir_fanout_resume (fanout, reader->reader, now, NULL);
  play (5 * S);
  got = &reader->got[n];
  CHECK (stream[got->id].key);
  // The skipped packets count as lost, and sequence numbers and timestamps have the gap.
  CHECK_INT ((uint16_t) (got->seq - got[-1].seq), got->id - got[-1].id);
  CHECK_INT (got->timestamp - got[-1].timestamp,
      (stream[got->id].timestamp - stream[got[-1].id].timestamp) + 20 * RATE);
  for (size_t i = n + 1; i < reader->n; i++)
    CHECK_INT (reader->got[i].id, reader->got[i - 1].id + 1);
  finish ();
}

// The window shrinks below a reader's delay.
static void
the_tail_moves_a_playing_reader (void)
{
  Reader *reader;

  begin (30 * S);
  play (32 * S);
  reader = add (25 * S);
  play (3 * S);
  settings.bounds.time_ns = 10 * S;
  weir_fanout_set (fanout, &settings);
  play (5 * S);
  CHECK_INT (counters (reader).moved, 1);
  CHECK (counters (reader).delay_ns <= 9 * S);
  CHECK (counters (reader).delay_ns >= 7 * S);
  CHECK_INT (reader->got[reader->n - 1].id, reader->got[reader->n - 2].id + 1);
  CHECK_INT (counters (reader).state, WEIR_READER_OK);
  finish ();
}

// A socket without room: packets too old for the reader's delay are dropped.
static void
a_reader_without_room_continues_at_its_delay (void)
{
  Reader *reader;
  size_t n;

  begin (60 * S);
  play (30 * S);
  reader = add (10 * S);
  play (3 * S);
  n = reader->n;
  deaf = 0;
  play (500 * MS);
  CHECK (counters (reader).lag_ns > 0 && counters (reader).lag_ns <= 500 * MS);
  deaf = SIZE_MAX;
  play (10 * S);
  CHECK (counters (reader).dropped[WEIR_DROP_WOULD_BLOCK] > 0);
  CHECK (stream[reader->got[n].id].arrival_ns - stream[reader->got[n - 1].id].arrival_ns < 1 * S);
  check_delayed (reader, reader->n - 20, 10 * S);
  finish ();
}

// Two tracks with one delay and different clocks stay in sync by the stream's own sender reports.
static void
tracks_stay_in_sync (void)
{
  const uint32_t rates[] = { 90000, 48000, 44100, 8000 };
  const int64_t delay = 17171717171;
  WeirPlan plan;

  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    double seconds;

    begin (60 * S);
    weir_fanout_set_clock_rate (fanout, rates[i]);
    play (30 * S);
    CHECK (weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, delay, now, &plan));
    seconds = (double) (uint32_t) (plan.rtp_time - (uint32_t) plan.live_time) / rates[i];
    CHECK (seconds > 17.171717171 - 1.0 / rates[i] && seconds <= 17.171717171);
    finish ();
  }
}

static void
the_window_keeps_only_packets_that_readers_can_ask_for (void)
{
  WeirPlan plan;

  begin (20 * S);
  settings.join_at_keyframe = false;
  weir_fanout_set (fanout, &settings);
  add (0);
  play (10 * S);
  weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 20 * S, now, &plan);
  CHECK (plan.delay_ns <= 1 * S);
  settings.keep_window = true;
  weir_fanout_set (fanout, &settings);
  play (10 * S);
  weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 20 * S, now, &plan);
  CHECK (plan.delay_ns >= 8 * S);
  finish ();
}

static void
random_delays_and_pauses_keep_the_counts (void)
{
  begin (20 * S);
  settings.bounds.packets = 1000;
  weir_fanout_set (fanout, &settings);
  for (int i = 0; i < 40; i++)
    add (0);
  for (int i = 0; i < 2000; i++) {
    Reader *reader = &readers[random_below (n_readers)];

    play ((int64_t) random_below (10) * BEAT);
    switch (random_below (5)) {
      case 0:
        weir_fanout_pause (fanout, reader->reader, now);
        break;
      case 1:
        weir_fanout_resume (fanout, reader->reader, now, NULL);
        break;
      case 2:
        weir_fanout_set_delay (fanout, reader->reader, (int64_t) random_below (30) * S, now, NULL);
        break;
      case 3:
        deaf = random_percent (50) ? SIZE_MAX : random_below (n_readers);
        break;
      default:
        break;
    }
  }
  finish ();
}

// ---- in a file ----

static void
begin_in_file (int64_t window_ns)
{
  WeirBlockFile *file = weir_block_file_new ("/tmp");

  CHECK (file);
  begin (window_ns);
  weir_fanout_stop (fanout);
  weir_fanout_set_file (fanout, file);
  weir_block_file_unref (file);
  weir_fanout_start (fanout);
}

static void
a_window_in_a_file_works_as_in_memory (void)
{
  begin_in_file (60 * S);
  play (62 * S);
  for (int i = 0; i < 100; i++)
    add (50 * MS + i * 570 * MS);
  play (90 * S); // the file's blocks are reused
  for (size_t i = 0; i < n_readers && tap_ok; i++)
    check_delayed (&readers[i], 2 * GOP * FRAME_PACKETS, 50 * MS + (int64_t) i * 570 * MS);
  CHECK (weir_fanout_limit (fanout) == SIZE_MAX);
  finish ();
}

// The kernel's limit of a file's size stands for a full disk.
static void
a_full_disk_makes_the_window_smaller (void)
{
  const struct rlimit small = { 12 << 20, RLIM_INFINITY };
  struct rlimit before;
  WeirFanoutCounters sums;
  Reader *oldest, *live;

  getrlimit (RLIMIT_FSIZE, &before);
  signal (SIGXFSZ, SIG_IGN);
  CHECK_INT (setrlimit (RLIMIT_FSIZE, &small), 0);
  begin_in_file (1000 * S);
  live = add (0);
  play (400 * S);
  CHECK (weir_fanout_limit (fanout) < 12 << 20);
  CHECK (weir_fanout_limit (fanout) >= 10 << 20);
  weir_fanout_counters (fanout, &sums);
  CHECK_INT (sums.packets_refused, 0);
  CHECK_INT (live->n, n_stream);
  oldest = add (WEIR_DELAY_OLDEST);
  play (5 * S);
  CHECK (counters (oldest).delay_ns > 130 * S);
  CHECK (counters (oldest).delay_ns < 170 * S);
  check_delayed (oldest, 2 * GOP * FRAME_PACKETS, counters (oldest).delay_ns);
  finish ();
  CHECK_INT (setrlimit (RLIMIT_FSIZE, &before), 0);
}

static void
a_missing_folder_is_an_error (void)
{
  errno = 0;
  CHECK (!weir_block_file_new ("/nowhere/at/all"));
  CHECK_INT (errno, ENOENT);
}

int
main (void)
{
  random_init ();
  RUN (each_packet_is_sent_its_delay_after_it_arrived);
  RUN (every_reader_has_its_own_delay);
  RUN (a_delay_longer_than_the_window_is_shortened);
  RUN (a_plan_with_a_delay_is_kept);
  RUN (a_reader_changes_its_delay);
  RUN (a_reader_changes_its_delay_amid_packets_without_numbers);
  RUN (a_paused_reader_keeps_its_position);
  RUN (a_reader_removed_while_paused_can_return);
  RUN (the_tail_moves_a_paused_reader);
  RUN (the_tail_moves_a_playing_reader);
  RUN (a_reader_without_room_continues_at_its_delay);
  RUN (tracks_stay_in_sync);
  RUN (the_window_keeps_only_packets_that_readers_can_ask_for);
  RUN (random_delays_and_pauses_keep_the_counts);
  RUN (a_window_in_a_file_works_as_in_memory);
  RUN (a_full_disk_makes_the_window_smaller);
  RUN (a_missing_folder_is_an_error);
  return tap_done ();
}
