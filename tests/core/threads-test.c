// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout/fanout_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "packets.h"
#include "tap.h"

// Tests the engine with its workers over real sockets. One thread writes, one receives, and one
// changes settings and readers at random. The received packets must equal those sent, and the
// counts must add up.

#define MS INT64_C (1000000)
#define RUN_NS (700 * MS)
#define UDP_SLOTS 40
#define TCP_SLOTS 6
#define READERS_MAX 20000
#define HEAD 24
#define SIZE_OF(id) (HEAD + (id) % 1300)

// ---- the receiver ----

typedef struct {
  int fd;
  WeirAddress address;
  WeirConn *conn; // NULL: UDP
  uint8_t rest[70000];
  size_t n_rest;
  uint64_t n_packets;
} Slot;

static Slot slots[UDP_SLOTS + TCP_SLOTS];
static atomic_bool writing, receiving, reads_slowly;
static atomic_ullong n_wrong, n_written;
static int send_fd;

// Frames of five packets, of the temporal layers 0 2 1 2.
static void
fill (uint8_t *out, uint64_t id, bool marker)
{
  static const uint8_t temporal[] = { 0, 2, 1, 2 };
  size_t len = SIZE_OF (id);

  put_rtp (out, (uint16_t) id, (uint32_t) (id / 5 * 3000), marker);
  put_vp8 (out + RTP_HEADER, id % 5 == 0, id % 100 < 5, id % 10 >= 5, temporal[id / 5 % 4]);
  memcpy (out + HEAD - sizeof id, &id, sizeof id);
  memset (out + HEAD, (int) id, len - HEAD);
}

static void
check_packet (Slot *slot, const uint8_t *data, size_t len)
{
  uint8_t expected[HEAD + 1300];
  uint64_t id = 0;

  slot->n_packets++;
  if (len >= HEAD)
    memcpy (&id, data + HEAD - sizeof id, sizeof id);
  if (len < HEAD || len != SIZE_OF (id)) {
    atomic_fetch_add (&n_wrong, 1);
    return;
  }
  fill (expected, id, id % 5 == 4);
  // Everything except the numbers, which are the reader's own.
  if (memcmp (data, expected, 2) != 0 || memcmp (data + 8, expected + 8, len - 8) != 0)
    atomic_fetch_add (&n_wrong, 1);
}

static bool
receive_udp (Slot *slot)
{
  uint8_t data[2000];
  ssize_t n = recv (slot->fd, data, sizeof data, MSG_DONTWAIT);

  if (n >= 0)
    check_packet (slot, data, (size_t) n);
  return n >= 0;
}

static bool
receive_tcp (Slot *slot)
{
  ssize_t n =
      recv (slot->fd, slot->rest + slot->n_rest, sizeof slot->rest - slot->n_rest, MSG_DONTWAIT);
  size_t at = 0;

  if (n <= 0)
    return false;
  slot->n_rest += (size_t) n;
  while (slot->n_rest - at >= 4) {
    const uint8_t *frame = slot->rest + at;
    size_t len = (size_t) (frame[2] << 8 | frame[3]);

    if (frame[0] != '$')
      atomic_fetch_add (&n_wrong, 1);
    if (slot->n_rest - at < 4 + len)
      break;
    check_packet (slot, frame + 4, len);
    at += 4 + len;
  }
  memmove (slot->rest, slot->rest + at, slot->n_rest - at);
  slot->n_rest -= at;
  return true;
}

static void *
receive (void *data)
{
  struct pollfd fds[UDP_SLOTS + TCP_SLOTS];

  for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++)
    fds[i] = (struct pollfd) { .fd = slots[i].fd, .events = POLLIN };
  // One more round after the end, for packets sent over a connection.
  for (bool more = true; more || atomic_load (&receiving);) {
    more = false;
    poll (fds, UDP_SLOTS + TCP_SLOTS, 5);
    for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++) {
      for (int k = slots[i].conn && atomic_load (&reads_slowly) ? 62 : 0; k < 64; k++) {
        if (!(slots[i].conn ? receive_tcp (&slots[i]) : receive_udp (&slots[i])))
          break;
        more = true;
      }
    }
  }
  return NULL;
}

// Returns a UDP socket bound to a free port of loopback, and its address.
static int
open_udp (struct sockaddr_in *address)
{
  int fd = socket (AF_INET, SOCK_DGRAM, 0);
  socklen_t len = sizeof *address;

  *address =
      (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  CHECK_INT (bind (fd, (struct sockaddr *) address, len), 0);
  CHECK_INT (getsockname (fd, (struct sockaddr *) address, &len), 0);
  return fd;
}

static void
open_slots (void)
{
  struct sockaddr_in sender;

  send_fd = open_udp (&sender);
  for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++) {
    Slot *slot = &slots[i];
    int fds[2];

    memset (slot, 0, sizeof *slot);
    if (i < UDP_SLOTS) {
      slot->fd = open_udp (&slot->address.v4);
      // Packets of other programs, meant for an earlier owner of the port, do not arrive.
      CHECK_INT (connect (slot->fd, (struct sockaddr *) &sender, sizeof sender), 0);
    } else {
      CHECK_INT (socketpair (AF_UNIX, SOCK_STREAM, 0, fds), 0);
      slot->conn = weir_conn_new (fds[0], NULL);
      CHECK (slot->conn);
      close (fds[0]);
      slot->fd = fds[1];
    }
  }
}

static void
close_slots (void)
{
  for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++) {
    if (slots[i].conn)
      weir_conn_unref (slots[i].conn);
    close (slots[i].fd);
  }
  close (send_fd);
}

// ---- the writer ----

static WeirFanout *fanout;
static WeirFanoutSettings settings;
static uint64_t next_id; // for the writer

static void *
write_frames (void *data)
{
  struct timespec pause = { .tv_nsec = 300000 };
  uint64_t id;
  uint8_t *room;

  for (id = 0; atomic_load (&writing);) {
    unsigned n = 0;

    // A frame is five packets, which come together or in two parts.
    while (n < 5 && weir_fanout_begin (fanout)) {
      unsigned end = id % 3 == 0 && n == 0 ? 2 : 5;

      for (; n < end; n++, id++) {
        room = weir_fanout_reserve (fanout, SIZE_OF (id));
        if (!room)
          continue;
        fill (room, id, id % 5 == 4);
        weir_fanout_commit (fanout, SIZE_OF (id), weir_now_ns ());
        atomic_fetch_add (&n_written, 1);
      }
      weir_fanout_end (fanout, weir_now_ns ());
    }
    id += 5 - n;
    nanosleep (&pause, NULL);
  }
  next_id = id;
  return NULL;
}

// ---- the thread that changes everything ----

static WeirReader *readers[READERS_MAX];
static size_t n_readers;
static WeirReader *present[UDP_SLOTS + TCP_SLOTS];
static bool restarts; // whether the engine restarts, which resets the counters
static bool with_layers, with_plans;

static void
change_settings (void)
{
  settings.gso = (WeirGso) random_below (3);
  settings.join_at_keyframe = random_percent (60);
  settings.catch_up_live = random_percent (60);
  settings.catch_up_rate = 2 + (unsigned) random_below (8);
  settings.inline_readers = (unsigned) random_below (40);
  settings.send_duplicates = random_percent (30);
  settings.spread_ns = random_percent (30) ? MS : 0;
  settings.coalesce_ns = random_percent (30) ? 0 : 2 * MS;
  settings.bounds = (WeirWindowBounds) { WEIR_WINDOW_BYTES_MIN << random_below (5),
    50 + random_below (5000), 100 * MS << random_below (5), false };
  settings.overrun = (WeirOverrun) random_below (3);
  settings.trim = random_percent (50);
  weir_fanout_set (fanout, &settings);
}

static WeirLayerSet
some_layers (void)
{
  return (WeirLayerSet) { -1, (int8_t) (random_below (4) - 1), -1 };
}

static void
add_reader (size_t at)
{
  Slot *slot = &slots[at];
  WeirReader *reader;
  WeirPlan plan;
  bool planned;

  if (present[at] || n_readers == READERS_MAX)
    return;
  reader = slot->conn ? weir_reader_new_conn (slot->conn, WEIR_FRAMING_INTERLEAVED, 0)
                      : weir_reader_new_udp ();
  if (!slot->conn)
    weir_reader_set_route (reader, send_fd, &slot->address);
  if (with_layers && random_percent (50))
    weir_reader_set_layers (reader, some_layers ());
  if (random_percent (30))
    weir_reader_set_delay (reader, (int64_t) random_below (500) * MS);
  planned = with_plans && weir_fanout_plan (fanout, WEIR_LAYER_SET_ALL, 0, weir_now_ns (), &plan)
            && random_percent (50);
  CHECK_INT (weir_fanout_add (fanout, reader, (unsigned) random_below (WEIR_PRIORITIES),
                 planned ? &plan : NULL, weir_now_ns ()),
      0);
  readers[n_readers++] = present[at] = reader;
}

static void
remove_reader (size_t at)
{
  if (present[at])
    weir_fanout_remove (fanout, present[at]);
  present[at] = NULL;
}

static void
change_position (WeirReader *reader)
{
  int64_t now_ns = weir_now_ns ();
  WeirPlan plan;

  switch (random_below (4)) {
    case 0:
      weir_fanout_pause (fanout, reader, now_ns);
      break;
    case 1:
      weir_fanout_resume (fanout, reader, now_ns, NULL);
      break;
    case 2:
      weir_fanout_set_delay (fanout, reader, (int64_t) random_below (200) * MS, now_ns, &plan);
      break;
    default:
      weir_fanout_set_delay (fanout, reader, 0, now_ns, NULL);
      weir_fanout_next (fanout, reader, now_ns, &plan);
      break;
  }
}

static void
change_something (void)
{
  size_t at = random_below (UDP_SLOTS + TCP_SLOTS);
  WeirReader *reader = present[at];
  WeirReaderCounters counters;
  WeirFanoutCounters sums;
  uint64_t what = random_below (1000);

  if (what < 400) {
    add_reader (at);
  } else if (what < 600) {
    remove_reader (at);
  } else if (what < 800 && reader) {
    CHECK_INT (weir_fanout_set_priority (fanout, reader, (unsigned) random_below (8)), 0);
  } else if (what < 825 && reader) {
    weir_reader_set_layers (reader, some_layers ());
  } else if (what < 830 && reader) {
    change_position (reader);
  } else if (what < 850 && reader) {
    weir_reader_set_times (reader, (unsigned) random_below (4));
  } else if (what < 950 && reader) {
    weir_reader_counters (fanout, reader, weir_now_ns (), &counters);
  } else if (what < 980) {
    weir_fanout_counters (fanout, &sums);
  } else if (what < 990) {
    change_settings ();
  } else if (what < 994) {
    weir_fanout_drain (fanout, weir_now_ns () + 5 * MS);
  } else if (what < 997) {
    weir_fanout_interrupt (fanout, random_percent (50));
  } else if (restarts) {
    weir_fanout_stop (fanout);
    weir_fanout_start (fanout);
  }
}

static uint64_t
sum_of (const uint64_t *dropped)
{
  uint64_t sum = 0;

  for (int i = 0; i < WEIR_N_DROPS; i++)
    sum += dropped[i];
  return sum;
}

static void
check_sums (void)
{
  WeirFanoutCounters sums;
  uint64_t due = 0, packets = 0;

  weir_fanout_counters (fanout, &sums);
  CHECK_INT (sums.due, sums.packets + sum_of (sums.dropped));
  for (size_t i = 0; i < n_readers; i++) {
    WeirReaderCounters counters;

    weir_reader_counters (fanout, readers[i], weir_now_ns (), &counters);
    CHECK_INT (counters.due, counters.packets + sum_of (counters.dropped));
    due += counters.due;
    packets += counters.packets;
  }
  if (!restarts) {
    CHECK_INT (sums.due, due);
    CHECK_INT (sums.packets, packets);
  }
}

static WeirWorkers *
begin (unsigned n_threads)
{
  WeirWorkers *workers = weir_workers_new (n_threads, weir_fanout_scratch_size ());

  settings = (WeirFanoutSettings) {
    .catch_up_rate = 8, .coalesce_ns = 2 * MS, .bounds = { 8 << 20, 10000, 2000 * MS, false }
  };
  n_readers = 0;
  with_plans = true;
  memset (present, 0, sizeof present);
  open_slots ();
  fanout = weir_fanout_new (workers, NULL, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_start (fanout);
  atomic_store (&n_wrong, 0);
  atomic_store (&n_written, 0);
  return workers;
}

static void
finish (WeirWorkers *workers)
{
  weir_fanout_stop (fanout);
  check_sums ();
  weir_fanout_free (fanout);
  weir_workers_free (workers);
  for (size_t i = 0; i < n_readers; i++)
    weir_reader_unref (readers[i]);
  close_slots ();
}

static ssize_t
send_to_peer (int fd, const struct msghdr *msg, int flags)
{
  return send (fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags);
}

static int
send_all_to_peer (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  unsigned i = 0;

  while (i < n && send_to_peer (fd, &msgs[i].msg_hdr, flags) >= 0)
    i++;
  return i > 0 || n == 0 ? (int) i : -1;
}

// Writes a burst that a socket with a small buffer cannot take at once.
static void
write_burst (uint64_t *n_sent)
{
  CHECK (weir_fanout_begin (fanout));
  for (int i = 0; i < 100; i++, (*n_sent)++) {
    fill (weir_fanout_reserve (fanout, SIZE_OF (*n_sent)), *n_sent, *n_sent % 5 == 4);
    weir_fanout_commit (fanout, SIZE_OF (*n_sent), weir_now_ns ());
  }
  weir_fanout_end (fanout, weir_now_ns ());
}

// Empties the socket each time that it is full, until all packets are sent or dropped. Returns the
// shortest time to the next send, in ns.
static int64_t
drain_socket (int fd, uint64_t n_sent, uint64_t *n_received, int64_t deadline_ns)
{
  int64_t fastest_ns = INT64_MAX;
  WeirFanoutCounters sums;
  // If this thread pauses for 100 ms, packets are dropped.
  const uint64_t *late = &sums.dropped[WEIR_DROP_WOULD_BLOCK];
  uint8_t data[2000];

  weir_fanout_counters (fanout, &sums);
  while (*n_received + *late < n_sent && weir_now_ns () < deadline_ns) {
    uint64_t n_blocked = sums.sends.blocked;
    int64_t round_ns = weir_now_ns ();

    while (recv (fd, data, sizeof data, MSG_DONTWAIT) > 0)
      ++*n_received;
    while (sums.sends.blocked == n_blocked && sums.packets + *late < n_sent
           && weir_now_ns () < deadline_ns) {
      weir_fanout_counters (fanout, &sums);
      poll (NULL, 0, 1); // leaves the processor to the workers
    }
    round_ns = weir_now_ns () - round_ns;
    if (sums.sends.blocked > n_blocked && round_ns < fastest_ns)
      fastest_ns = round_ns;
  }
  CHECK_INT (*n_received + *late, n_sent);
  return fastest_ns;
}

// A full socket is tried again when it has room, and not before.
static void
a_full_socket_wakes_its_readers_when_it_has_room (void)
{
  static const WeirSendOps to_peer = { send_to_peer, send_all_to_peer };
  const WeirAddress address = { .v4 = { .sin_family = AF_INET } };
  WeirWorkers *workers = weir_workers_new (2, weir_fanout_scratch_size ());
  uint64_t n_sent = 0, n_received = 0;
  int64_t began_ns = weir_now_ns (), fastest_ns, round_ns;
  WeirFanoutCounters sums = { 0 };
  WeirReader *reader;
  uint8_t data[2000];
  int fds[2];

  settings = (WeirFanoutSettings) { .gso = WEIR_GSO_OFF,
    .catch_up_rate = 8,
    .bounds = { 8 << 20, 10000, 60000 * MS, false },
    .keep_window = true };
  CHECK_INT (socketpair (AF_UNIX, SOCK_DGRAM, 0, fds), 0);
  CHECK_INT (setsockopt (fds[0], SOL_SOCKET, SO_SNDBUF, &(int) { 4000 }, sizeof (int)), 0);
  fanout = weir_fanout_new (workers, &to_peer, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_start (fanout);
  reader = weir_reader_new_udp ();
  weir_reader_set_route (reader, fds[0], &address);
  CHECK_INT (weir_fanout_add (fanout, reader, 0, NULL, began_ns), 0);
  write_burst (&n_sent);

  while (sums.sends.blocked == 0 && weir_now_ns () - began_ns < 10000 * MS)
    weir_fanout_counters (fanout, &sums);
  poll (NULL, 0, 50);
  weir_fanout_counters (fanout, &sums);
  CHECK (sums.sends.blocked >= 1 && sums.sends.blocked < 10);
  fastest_ns = drain_socket (fds[1], n_sent, &n_received, began_ns + 50000 * MS);
  CHECK (n_received > 0);
  // A wake-up comes sooner than the retry every 100 ms; on a busy machine not each of them does.
  while (tap_ok && fastest_ns >= 50 * MS && weir_now_ns () - began_ns < 30000 * MS) {
    write_burst (&n_sent);
    round_ns = drain_socket (fds[1], n_sent, &n_received, began_ns + 50000 * MS);
    fastest_ns = round_ns < fastest_ns ? round_ns : fastest_ns;
  }
  CHECK (fastest_ns < 50 * MS);
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  weir_workers_free (workers);
  weir_reader_unref (reader);
  // No duplicate of the descriptor keeps the socket open.
  close (fds[0]);
  CHECK_INT (recv (fds[1], data, sizeof data, MSG_DONTWAIT), -1);
  CHECK (send (fds[1], data, 1, MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED);
  close (fds[1]);
}

static size_t
shards_with_readers (void)
{
  size_t n = 0;

  pthread_mutex_lock (&fanout->lock);
  for (Shard *shard = fanout->shards; shard; shard = shard->next)
    n += shard->list && shard->list->n > 0;
  pthread_mutex_unlock (&fanout->lock);
  return n;
}

// After most readers are removed, the remaining ones share a shard.
static void
nearly_empty_shards_are_merged (void)
{
  WeirWorkers *workers = weir_workers_new (1, weir_fanout_scratch_size ());
  WeirFanoutCounters sums;

  settings = (WeirFanoutSettings) {
    .catch_up_rate = 8, .spread_ns = 1, .bounds = { 8 << 20, 10000, 2000 * MS, false }
  };
  fanout = weir_fanout_new (workers, NULL, &settings);
  weir_fanout_start (fanout);
  for (n_readers = 0; n_readers < 1000; n_readers++) {
    readers[n_readers] = weir_reader_new_udp (); // without a socket
    CHECK_INT (
        weir_fanout_add (fanout, readers[n_readers], n_readers % 2, NULL, weir_now_ns ()), 0);
  }
  CHECK_INT (shards_with_readers (), 64); // of up to 16, as passes are spread
  for (size_t i = 0; i < n_readers; i++) {
    if (i % 50 > 1)
      weir_fanout_remove (fanout, readers[i]);
  }
  CHECK_INT (weir_fanout_n_readers (fanout), 40);
  CHECK_INT (shards_with_readers (), 6);

  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    if (shard->list->n == 0)
      shard->task.due_ns = -1;
  }
  CHECK (weir_fanout_begin (fanout));
  fill (weir_fanout_reserve (fanout, SIZE_OF (4)), 4, true);
  weir_fanout_commit (fanout, SIZE_OF (4), weir_now_ns ());
  weir_fanout_end (fanout, weir_now_ns ());
  for (Shard *shard = fanout->shards; shard; shard = shard->next)
    CHECK (shard->list->n > 0 || shard->task.due_ns == -1);
  CHECK (weir_fanout_drain (fanout, weir_now_ns () + 10000 * MS));
  weir_fanout_counters (fanout, &sums);
  CHECK_INT (sums.due, 40);
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  weir_workers_free (workers);
  while (n_readers > 0)
    weir_reader_unref (readers[--n_readers]);
}

static void
change_everything_while_it_streams (void)
{
  WeirWorkers *workers = begin (3);
  int64_t end_ns = weir_now_ns () + RUN_NS;
  pthread_t writer, receiver;
  uint64_t received = 0;

  atomic_store (&writing, true);
  atomic_store (&receiving, true);
  CHECK_INT (pthread_create (&receiver, NULL, receive, NULL), 0);
  CHECK_INT (pthread_create (&writer, NULL, write_frames, NULL), 0);
  while (weir_now_ns () < end_ns && n_readers < READERS_MAX) {
    for (int i = 0; i < 10; i++)
      change_something ();
    nanosleep (&(struct timespec) { .tv_nsec = 200000 }, NULL);
  }
  atomic_store (&writing, false);
  pthread_join (writer, NULL);
  // The other half of the readers stays until the engine is freed.
  for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i += 2)
    remove_reader (i);
  atomic_store (&receiving, false);
  pthread_join (receiver, NULL);
  for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++)
    received += slots[i].n_packets;
  CHECK_INT (atomic_load (&n_wrong), 0);
  CHECK (atomic_load (&n_written) > 0 && received > 0);
  finish (workers);
}

static void
everything_changes_while_it_streams (void)
{
  restarts = false;
  with_layers = true;
  change_everything_while_it_streams ();
}

static void
everything_changes_while_the_engine_restarts (void)
{
  restarts = true;
  change_everything_while_it_streams ();
}

static bool paused[UDP_SLOTS + TCP_SLOTS];

// Readers may have had a delay from the beginning, too.
static void
all_return_to_the_live_edge (void)
{
  for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++) {
    if (present[i]) {
      weir_fanout_resume (fanout, present[i], weir_now_ns (), NULL);
      weir_fanout_set_delay (fanout, present[i], 0, weir_now_ns (), NULL);
    }
    paused[i] = false;
  }
}

// Adds, removes or pauses a reader, or moves all to the live edge. A reader that is removed while
// it is paused would keep the window for ever.
static void
change_a_reader (void)
{
  size_t at = random_below (UDP_SLOTS + TCP_SLOTS);
  uint64_t what = random_below (100);

  if (what < 45) {
    add_reader (at);
  } else if (what < 90) {
    if (!paused[at])
      remove_reader (at);
  } else if (what < 98 && present[at] && !paused[at]) {
    paused[at] = true;
    weir_fanout_pause (fanout, present[at], weir_now_ns ());
  } else {
    all_return_to_the_live_edge ();
  }
}

// Writes frames until the window holds the newest group of pictures only.
static void
write_until_trimmed (void)
{
  int64_t end_ns = weir_now_ns () + 60000 * MS;

  do {
    CHECK (weir_fanout_begin (fanout));
    for (int i = 0; i < 5; i++, next_id++) {
      fill (weir_fanout_reserve (fanout, SIZE_OF (next_id)), next_id, next_id % 5 == 4);
      weir_fanout_commit (fanout, SIZE_OF (next_id), weir_now_ns ());
    }
    weir_fanout_end (fanout, weir_now_ns ());
    CHECK (weir_fanout_drain (fanout, end_ns));
  } while (fanout->window.head - fanout->window.tail > 100 && weir_now_ns () < end_ns);
  CHECK (fanout->window.head - fanout->window.tail <= 100);
}

// Readers come, go, pause and read slowly while packets that nobody needs are dropped.
static void
no_reader_loses_packets_to_trimming (void)
{
  WeirWorkers *workers = begin (3);
  int64_t end_ns = weir_now_ns () + RUN_NS;
  pthread_t writer, receiver;

  settings.trim = settings.join_at_keyframe = true;
  settings.bounds = (WeirWindowBounds) { SIZE_MAX, SIZE_MAX, INT64_MAX / 2, false };
  weir_fanout_set (fanout, &settings);
  with_plans = false; // a plan keeps the window for 2 s
  memset (paused, 0, sizeof paused);
  atomic_store (&writing, true);
  atomic_store (&receiving, true);
  atomic_store (&reads_slowly, true);
  CHECK_INT (pthread_create (&receiver, NULL, receive, NULL), 0);
  CHECK_INT (pthread_create (&writer, NULL, write_frames, NULL), 0);
  while (weir_now_ns () < end_ns && n_readers < READERS_MAX) {
    change_a_reader ();
    if (random_percent (2)) {
      settings.inline_readers = random_percent (50) ? 0 : 100;
      weir_fanout_set (fanout, &settings);
    }
    nanosleep (&(struct timespec) { .tv_nsec = 200000 }, NULL);
  }
  atomic_store (&writing, false);
  pthread_join (writer, NULL);
  atomic_store (&reads_slowly, false);
  CHECK (fanout->window.tail > 0);
  all_return_to_the_live_edge ();
  write_until_trimmed ();
  weir_fanout_stop (fanout);
  atomic_store (&receiving, false);
  pthread_join (receiver, NULL);
  CHECK_INT (atomic_load (&n_wrong), 0);
  for (size_t i = 0; i < n_readers; i++) {
    WeirReaderCounters counters;

    weir_reader_counters (fanout, readers[i], weir_now_ns (), &counters);
    CHECK_INT (counters.moved, 0);
    CHECK_INT (counters.dropped[WEIR_DROP_OVERRUN], 0);
  }
  finish (workers);
}

// Without changes or slow readers, every reader gets every packet, with and without workers.
static void
every_reader_gets_every_packet (void)
{
  for (unsigned inline_readers = 0; inline_readers <= 100; inline_readers += 100) {
    WeirWorkers *workers = begin (2);
    pthread_t receiver;

    settings.inline_readers = inline_readers;
    weir_fanout_set (fanout, &settings);
    atomic_store (&receiving, true);
    CHECK_INT (pthread_create (&receiver, NULL, receive, NULL), 0);
    for (size_t i = 0; i < UDP_SLOTS + TCP_SLOTS; i++)
      add_reader (i);
    for (uint64_t id = 0; id < 300; id++) {
      CHECK (weir_fanout_begin (fanout));
      fill (weir_fanout_reserve (fanout, SIZE_OF (id)), id, id % 5 == 4);
      weir_fanout_commit (fanout, SIZE_OF (id), weir_now_ns ());
      weir_fanout_end (fanout, weir_now_ns ());
      if (id % 50 == 49)
        CHECK (weir_fanout_drain (fanout, weir_now_ns () + 60000 * MS));
    }
    CHECK (weir_fanout_drain (fanout, weir_now_ns () + 60000 * MS));
    for (size_t i = 0; i < n_readers; i++) {
      WeirReaderCounters counters;

      weir_reader_counters (fanout, readers[i], weir_now_ns (), &counters);
      CHECK_INT (counters.due, 300);
      CHECK_INT (counters.lag_packets, 0);
    }
    weir_fanout_stop (fanout);
    atomic_store (&receiving, false);
    pthread_join (receiver, NULL);
    CHECK_INT (atomic_load (&n_wrong), 0);
    finish (workers);
  }
}

// ---- a removal during a send ----

static atomic_bool sending, removed;

// Takes 100 ms, unless a removal returns before the send ends, which is the fault.
static ssize_t
slow_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  int64_t end_ns = weir_now_ns () + 100 * MS;

  atomic_store (&sending, true);
  while (!atomic_load (&removed) && weir_now_ns () < end_ns)
    sched_yield ();
  atomic_store (&sending, false);
  return (ssize_t) msg->msg_iov->iov_len;
}

static int
slow_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  slow_sendmsg (fd, &msgs[0].msg_hdr, flags);
  return (int) n;
}

static void *
send_slowly (void *data)
{
  weir_fanout_run (fanout, weir_now_ns ());
  return NULL;
}

static void
nothing_is_sent_to_a_removed_reader (void)
{
  static const WeirSendOps ops = { slow_sendmsg, slow_sendmmsg };
  WeirReader *reader = weir_reader_new_udp ();
  WeirAddress address = { .v4 = { .sin_family = AF_INET, .sin_port = 9 } };
  pthread_t pass;

  settings = (WeirFanoutSettings) { .bounds = { 8 << 20, 10000, 2000 * MS, false } };
  fanout = weir_fanout_new (NULL, &ops, &settings);
  weir_fanout_set_codec (fanout, WEIR_CODEC_VP8, 0);
  weir_fanout_start (fanout);
  weir_reader_set_route (reader, 3, &address);
  CHECK_INT (weir_fanout_add (fanout, reader, 0, NULL, weir_now_ns ()), 0);
  // More than one send takes.
  for (uint64_t id = 0; id < 300; id++) {
    CHECK (weir_fanout_begin (fanout));
    fill (weir_fanout_reserve (fanout, SIZE_OF (id)), id, id % 5 == 4);
    weir_fanout_commit (fanout, SIZE_OF (id), weir_now_ns ());
    weir_fanout_end (fanout, weir_now_ns ());
  }
  atomic_store (&removed, false);
  CHECK_INT (pthread_create (&pass, NULL, send_slowly, NULL), 0);
  while (!atomic_load (&sending))
    sched_yield ();
  weir_fanout_remove (fanout, reader);
  CHECK (!atomic_load (&sending));
  atomic_store (&removed, true);
  pthread_join (pass, NULL);
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  weir_reader_unref (reader);
}

static void
write_packet (uint64_t id, bool marker)
{
  CHECK (weir_fanout_begin (fanout));
  fill (weir_fanout_reserve (fanout, SIZE_OF (id)), id, marker);
  weir_fanout_commit (fanout, SIZE_OF (id), weir_now_ns ());
  weir_fanout_end (fanout, weir_now_ns ());
}

static void
the_flush_timer_runs_for_incomplete_frames_only (void)
{
  WeirWorkers *workers = weir_workers_new (1, weir_fanout_scratch_size ());

  settings = (WeirFanoutSettings) {
    .coalesce_ns = 60000 * MS, .bounds = { 1 << 20, 1000, 60000 * MS, false }, .keep_window = true
  };
  fanout = weir_fanout_new (workers, NULL, &settings);
  weir_fanout_start (fanout);
  for (uint64_t id = 0; id < 10; id++) {
    write_packet (id, id % 2 == 1);
    CHECK ((fanout->flush.due.at == 0) == (id % 2 == 1));
  }
  weir_fanout_stop (fanout);
  weir_fanout_free (fanout);
  weir_workers_free (workers);
}

int
main (void)
{
  random_init ();
  RUN (the_flush_timer_runs_for_incomplete_frames_only);
  RUN (a_full_socket_wakes_its_readers_when_it_has_room);
  RUN (nearly_empty_shards_are_merged);
  RUN (every_reader_gets_every_packet);
  RUN (everything_changes_while_it_streams);
  RUN (everything_changes_while_the_engine_restarts);
  RUN (no_reader_loses_packets_to_trimming);
  RUN (nothing_is_sent_to_a_removed_reader);
  return tap_done ();
}
