// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/engine_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rtp/rtcp_read.h"
#include "run/clock.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define SSRC 0x11223344
#define PT 96
#define LEN 40

// ---- the receiver, with a fake system call ----

static struct {
  int n, error;
  size_t len;
  int segment; // 0: no control message
  bool truncated;
  uint32_t drops;
} fake;

static void
put_control (struct msghdr *msg, size_t *used, int level, int type, const void *data, size_t len)
{
  struct cmsghdr *c = (struct cmsghdr *) ((uint8_t *) msg->msg_control + *used);

  c->cmsg_level = level;
  c->cmsg_type = type;
  c->cmsg_len = CMSG_LEN (len);
  memcpy (CMSG_DATA (c), data, len);
  *used += CMSG_SPACE (len);
}

static int
fake_recvmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout)
{
  struct timespec t = { 5, 7 };

  CHECK (flags & MSG_DONTWAIT);
  if (fake.error) {
    errno = fake.error;
    return -1;
  }
  for (int i = 0; i < fake.n; i++) {
    struct msghdr *msg = &msgs[i].msg_hdr;
    struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons ((uint16_t) (100 + i)) };
    size_t used = 0;

    CHECK_INT (msg->msg_controllen, 128);
    CHECK_INT (msg->msg_namelen, sizeof (struct sockaddr_storage));
    memset (msg->msg_control, 0, msg->msg_controllen);
    memcpy (msg->msg_name, &from, sizeof from);
    msg->msg_namelen = sizeof from;
    msg->msg_flags = fake.truncated ? MSG_TRUNC : 0;
    msgs[i].msg_len = (unsigned) fake.len;
    put_control (msg, &used, SOL_SOCKET, SCM_TIMESTAMPNS, &t, sizeof t);
    if (fake.drops)
      put_control (msg, &used, SOL_SOCKET, SO_RXQ_OVFL, &fake.drops, sizeof fake.drops);
    if (fake.segment)
      put_control (msg, &used, SOL_UDP, UDP_GRO, &fake.segment, sizeof fake.segment);
    msg->msg_controllen = used;
  }
  return fake.n;
}

static void
control_messages_are_read (void)
{
  static const WeirReceiveOps ops = { fake_recvmmsg };
  static WeirReceiver receiver;

  CHECK_INT (weir_receiver_init (&receiver, &ops), 0);
  fake.n = 3;
  fake.len = 1000;
  fake.segment = 300;
  fake.drops = 9;
  for (int turn = 0; turn < 2; turn++) {
    CHECK_INT (weir_receiver_fill (&receiver, -1), 3);
    for (int i = 0; i < 3; i++) {
      const WeirMessage *message = &receiver.messages[i];

      CHECK_INT (message->len, 1000);
      CHECK_INT (message->segment, turn == 0 ? 300 : 1000);
      CHECK_INT (message->unix_ns, 5000000007);
      CHECK_INT (message->drops_known, turn == 0);
      CHECK_INT (message->truncated, turn == 1);
      CHECK (message->from_known);
      CHECK_INT (ntohs (message->from.v4.sin_port), 100 + i);
    }
    CHECK_INT (turn == 0 ? receiver.messages[0].drops : 9, 9);
    fake.segment = 0;
    fake.drops = 0;
    fake.truncated = true;
  }
  fake.segment = 5000; // longer than the message
  weir_receiver_fill (&receiver, -1);
  CHECK_INT (receiver.messages[0].segment, 1000);
  fake.error = EAGAIN;
  CHECK_INT (weir_receiver_fill (&receiver, -1), 0);
  fake.error = ENOMEM;
  CHECK_INT (weir_receiver_fill (&receiver, -1), -ENOMEM);
  weir_receiver_clear (&receiver);
}

static void
a_message_has_the_time_of_its_arrival (void)
{
  const int64_t s = INT64_C (1000000000), now_ns = 100 * s, offset_ns = 5000 * s;
  const struct {
    int64_t unix_ns, arrival_ns;
  } cases[] = {
    { 5099 * s, 99 * s },
    { 5100 * s, now_ns },
    { 5090 * s, 90 * s },
    { 0, now_ns }, // not known
    // The clock was set meanwhile.
    { 5100 * s + 1, now_ns },
    { 5090 * s - 1, now_ns },
    { 1, now_ns },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const WeirMessage message = { .unix_ns = cases[i].unix_ns };

    CHECK_INT (weir_message_arrival (&message, offset_ns, now_ns), cases[i].arrival_ns);
  }
}

// ---- tracks over loopback sockets ----

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the cases' counts
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct {
  WeirIngestTrack *track;
  WeirAddress at; // address of its media socket
  int sender;
  // Guarded by `lock`.
  uint64_t n, n_settled, n_sent, n_overflowed;
  int64_t next, first_arrival_ns, last_arrival_ns;
  bool out_of_order, held, inside, removes_itself, asks;
  uint8_t rtcp[WEIR_TRACK_RTCP_MAX];
  size_t rtcp_len;
} Case;

static void
on_packet (void *data, const WeirIngestPacket *packet)
{
  Case *c = data;

  pthread_mutex_lock (&lock);
  if (c->n++ == 0)
    c->first_arrival_ns = packet->arrival_ns;
  else
    c->out_of_order |= packet->seq != c->next;
  c->next = packet->seq + 1;
  c->last_arrival_ns = packet->arrival_ns;
  c->out_of_order |= packet->len != LEN || packet->data[LEN - 1] != (uint8_t) packet->seq;
  c->inside = true;
  pthread_cond_broadcast (&changed);
  while (c->held)
    pthread_cond_wait (&changed, &lock);
  c->inside = false;
  pthread_mutex_unlock (&lock);
  if (c->asks)
    weir_ingest_ask_key (c->track);
  if (c->removes_itself)
    weir_ingest_remove (c->track, NULL);
}

static void
on_settled (void *data)
{
  Case *c = data;

  pthread_mutex_lock (&lock);
  c->n_settled++;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

static void
on_send (void *data, const uint8_t *rtcp, size_t len)
{
  Case *c = data;

  pthread_mutex_lock (&lock);
  memcpy (c->rtcp, rtcp, len);
  c->rtcp_len = len;
  c->n_sent++;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

static void
on_overflowed (void *data, uint32_t n)
{
  Case *c = data;

  pthread_mutex_lock (&lock);
  c->n_overflowed += n;
  pthread_mutex_unlock (&lock);
}

static const WeirIngestOps ops = { { .packet = on_packet }, on_settled, on_send, on_overflowed };

static const WeirTrackSettings plain = {
  .payload_types = { 0, UINT64_C (1) << (PT - 64) }, .ssrc = 5, .cname = "weir"
};

// Waits, for 20 s at most, until `*n` is `wanted`.
static void
wait_for (const uint64_t *n, uint64_t wanted)
{
  struct timespec until;

  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  pthread_mutex_lock (&lock);
  while (*n < wanted && pthread_cond_timedwait (&changed, &lock, &until) == 0)
    ;
  CHECK (*n >= wanted);
  pthread_mutex_unlock (&lock);
}

static WeirAddress
loopback (uint16_t port)
{
  return (WeirAddress) { .v4 = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
                             .sin_port = htons (port) } };
}

// Opens sockets for a case, and the sender's.
static WeirIngestSockets
open_case (Case *c)
{
  WeirAddress any = loopback (0);
  int fds[2], port = weir_udp_open_pair (&any, 0, 0, true, fds);

  CHECK (port > 0 && port % 2 == 0);
  *c = (Case) { .at = loopback ((uint16_t) port) };
  c->sender = socket (AF_INET, SOCK_DGRAM, 0);
  CHECK_INT (bind (c->sender, &any.any, sizeof any.v4), 0);
  return (WeirIngestSockets) { fds[0], fds[1] };
}

static void
add_case (WeirIngest *engine, Case *c, const WeirTrackSettings *settings)
{
  WeirIngestSockets sockets = open_case (c);

  CHECK_INT (weir_ingest_add (engine, settings, sockets, &ops, c, &c->track), 0);
}

static void
write_packet (uint8_t *out, int64_t seq)
{
  const uint8_t head[] = { 0x80, PT, (uint8_t) (seq >> 8), (uint8_t) seq, 0, 0, 0, 0, SSRC >> 24,
    SSRC >> 16 & 0xff, SSRC >> 8 & 0xff, SSRC & 0xff };

  memset (out, (int) seq, LEN);
  memcpy (out, head, sizeof head);
}

static void
send_packet (Case *c, int64_t seq)
{
  uint8_t packet[LEN];

  write_packet (packet, seq);
  CHECK_INT (sendto (c->sender, packet, LEN, 0, &c->at.any, sizeof c->at.v4), LEN);
}

// Sends `n` packets as one segmented message, which the kernel does not split on loopback.
static void
send_segmented (Case *c, int64_t seq, size_t n)
{
  uint8_t packets[64 * LEN];
  struct iovec iov = { packets, n * LEN };
  union {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE (sizeof (uint16_t))];
  } control = { 0 };
  struct msghdr msg = { .msg_name = &c->at,
    .msg_namelen = sizeof c->at.v4,
    .msg_iov = &iov,
    .msg_iovlen = 1,
    .msg_control = control.bytes,
    .msg_controllen = sizeof control.bytes };
  struct cmsghdr *cmsg = CMSG_FIRSTHDR (&msg);
  const uint16_t segment = LEN;

  for (size_t i = 0; i < n; i++)
    write_packet (packets + i * LEN, seq + (int64_t) i);
  cmsg->cmsg_level = SOL_UDP;
  cmsg->cmsg_type = UDP_SEGMENT;
  cmsg->cmsg_len = CMSG_LEN (sizeof segment);
  memcpy (CMSG_DATA (cmsg), &segment, sizeof segment);
  CHECK_INT (sendmsg (c->sender, &msg, 0), n * LEN);
}

static void
check_sums (const WeirIngestStats *stats)
{
  uint64_t sum = stats->delivered + stats->rtcp + stats->held;

  for (int i = 0; i < WEIR_INGEST_N_DROPS; i++)
    sum += stats->dropped[i];
  CHECK_INT (sum, stats->datagrams);
}

// Removes a case; all packets sent were delivered, or dropped by the kernel.
static void
remove_case (Case *c, uint64_t sent)
{
  WeirIngestStats stats;

  weir_ingest_remove (c->track, &stats);
  check_sums (&stats);
  CHECK_INT (stats.delivered, c->n);
  CHECK_INT (stats.delivered + stats.kernel_drops, sent);
  close (c->sender);
}

static void
run_streams (int64_t tick_ns)
{
  enum { N = 40, PACKETS = 100 };
  static Case cases[N];
  const WeirIngestSettings settings = { .threads = 3, .tick_ns = tick_ns };
  WeirIngest *engine = weir_ingest_new (&settings);
  int64_t start_ns = weir_now_ns ();

  for (int i = 0; i < N; i++)
    add_case (engine, &cases[i], &plain);
  for (int64_t seq = 0; seq < PACKETS; seq++) {
    for (int i = 0; i < N; i++) {
      if (i % 2 == 0)
        send_packet (&cases[i], 65500 + seq);
      else if (seq % 20 == 0)
        send_segmented (&cases[i], 65500 + seq, 20);
    }
  }
  for (int i = 0; i < N; i++) {
    wait_for (&cases[i].n, PACKETS);
    pthread_mutex_lock (&lock);
    CHECK (!cases[i].out_of_order);
    CHECK (cases[i].n_settled <= cases[i].n);
    // The kernel's times, on the clock of the threads.
    CHECK (cases[i].first_arrival_ns >= start_ns);
    CHECK (cases[i].last_arrival_ns >= cases[i].first_arrival_ns);
    CHECK (cases[i].last_arrival_ns <= weir_now_ns ());
    pthread_mutex_unlock (&lock);
    remove_case (&cases[i], PACKETS);
  }
  weir_ingest_free (engine);
}

static void
streams_are_received_at_once (void)
{
  run_streams (0);
}

static void
streams_are_received_on_a_tick (void)
{
  run_streams (WEIR_INGEST_TICK_NS);
}

// A callback that blocks lets the buffer fill. The kernel's drops are counted, also those behind
// the last packet received.
static void
kernel_drops_are_counted (void)
{
  enum { SENT = 20000 };
  WeirIngest *engine = weir_ingest_new (NULL);
  WeirIngestStats stats;
  Case c;

  add_case (engine, &c, &plain);
  c.held = true;
  for (int64_t seq = 0; seq < SENT; seq++)
    send_packet (&c, seq);
  pthread_mutex_lock (&lock);
  c.held = false;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
  do
    weir_ingest_stats (c.track, &stats);
  while (stats.delivered + stats.kernel_drops < SENT);
  CHECK (stats.kernel_drops > 0);
  CHECK (stats.buffer >= 256 << 10);
  check_sums (&stats);
  // The next packet tells of those before it.
  send_packet (&c, SENT);
  wait_for (&c.n, stats.delivered + 1);
  pthread_mutex_lock (&lock);
  CHECK_INT (c.n_overflowed, stats.kernel_drops);
  pthread_mutex_unlock (&lock);
  remove_case (&c, SENT + 1);
  weir_ingest_free (engine);
}

// Drains by hand, with times of its own: 400 packets in a second need more than the least buffer.
static void
buffers_grow_to_a_second_of_the_stream (void)
{
  static IngestLoop loop = { .budget = 10000 };
  static WeirIngestTrack track;
  WeirIngestSockets sockets;
  size_t least;
  Case c;

  CHECK_INT (weir_receiver_init (&loop.receiver, NULL), 0);
  sockets = open_case (&c);
  least = weir_udp_set_buffer (sockets.rtp, 256 << 10);
  track = (WeirIngestTrack) {
    .loop = &loop, .ops = &ops, .data = &c, .fds = { sockets.rtp, sockets.rtcp }, .buffer = least
  };
  weir_track_init (&track.track, &plain, &ops.track, &c);
  send_packet (&c, 0);
  CHECK (!weir_drain (&track, 0, 1000 * MS));
  for (int64_t seq = 1; seq <= 400; seq++) {
    send_packet (&c, seq);
    if (seq % 100 == 0)
      CHECK (!weir_drain (&track, 0, (1000 + seq) * MS));
  }
  CHECK_INT (track.buffer, least);
  send_packet (&c, 401);
  CHECK (!weir_drain (&track, 0, 2100 * MS));
  CHECK_INT (c.n, 402);
  CHECK (track.buffer > least);
  CHECK_INT (weir_udp_set_buffer (sockets.rtp, 0), track.buffer);
  weir_track_clear (&track.track);
  weir_receiver_clear (&loop.receiver);
  close (sockets.rtp);
  close (sockets.rtcp);
  close (c.sender);
}

// 3000 packets wait in a socket, and then one comes to another socket of the same thread.
static void
a_flood_does_not_starve_others (void)
{
  const WeirIngestSettings settings = { .threads = 1, .tick_ns = 5 * MS, .budget = 64 };
  WeirIngest *engine = weir_ingest_new (&settings);
  WeirIngestSockets sockets;
  uint64_t flood;
  Case flooded, other;

  sockets = open_case (&flooded);
  weir_udp_set_buffer (sockets.rtp, 8 << 20);
  for (int64_t seq = 0; seq < 3000; seq++)
    send_packet (&flooded, seq);
  CHECK_INT (weir_ingest_add (engine, &plain, sockets, &ops, &flooded, &flooded.track), 0);
  wait_for (&flooded.n, 64);
  add_case (engine, &other, &plain);
  send_packet (&other, 0);
  wait_for (&other.n, 1);
  pthread_mutex_lock (&lock);
  flood = flooded.n;
  pthread_mutex_unlock (&lock);
  CHECK (flood < 3000);
  wait_for (&flooded.n, 3000);
  remove_case (&other, 1);
  remove_case (&flooded, 3000);
  weir_ingest_free (engine);
}

// ---- removal ----

static atomic_bool removed;

static void *
remove_in_thread (void *data)
{
  weir_ingest_remove (((Case *) data)->track, NULL);
  atomic_store (&removed, true);
  return NULL;
}

static void
removal_waits_for_the_running_callback_only (void)
{
  WeirIngest *engine = weir_ingest_new (NULL);
  pthread_t thread;
  Case c;

  add_case (engine, &c, &plain);
  c.held = true;
  for (int64_t seq = 0; seq < 30; seq++)
    send_packet (&c, seq);
  wait_for (&c.n, 1);
  atomic_store (&removed, false);
  pthread_create (&thread, NULL, remove_in_thread, &c);
  while (!atomic_load (&c.track->track.stopped))
    sched_yield ();
  CHECK (!atomic_load (&removed));
  pthread_mutex_lock (&lock);
  c.held = false;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
  pthread_join (thread, NULL);
  CHECK_INT (c.n, 1);
  close (c.sender);
  weir_ingest_free (engine);
}

static void
a_callback_may_remove_its_track (void)
{
  WeirIngest *engine = weir_ingest_new (NULL);
  Case c, other;

  add_case (engine, &other, &plain);
  add_case (engine, &c, &plain);
  c.removes_itself = true;
  for (int64_t seq = 0; seq < 10; seq++)
    send_packet (&c, seq);
  wait_for (&c.n, 1);
  send_packet (&other, 1);
  wait_for (&other.n, 1); // the thread lives
  CHECK_INT (c.n, 1);
  remove_case (&other, 1);
  close (c.sender);
  weir_ingest_free (engine);
}

static atomic_bool sending;

static void *
send_all (void *data)
{
  Case *cases = data;
  int64_t seq = 0;

  do { // at least once: the other thread may be done before this one begins
    for (int i = 0; i < 4; i++)
      send_packet (&cases[i], seq);
    seq++;
    sched_yield ();
  } while (atomic_load (&sending));
  return NULL;
}

// Tracks come and go on three threads while packets, stats and keyframe requests go on.
static void
tracks_come_and_go_under_load (void)
{
  const WeirIngestSettings settings = { .threads = 3, .tick_ns = 0, .budget = 16 };
  WeirIngest *engine = weir_ingest_new (&settings);
  WeirTrackSettings asking = plain;
  static Case cases[4];
  pthread_t thread;

  asking.key = WEIR_KEY_PLI;
  asking.rtcp_mux = true;
  asking.reorder = (WeirReorderLimits) { 16, 1 << 16, MS };
  for (int i = 0; i < 4; i++) {
    add_case (engine, &cases[i], &asking);
    cases[i].asks = true;
  }
  atomic_store (&sending, true);
  pthread_create (&thread, NULL, send_all, cases);
  for (int turn = 0; turn < 300; turn++) {
    WeirIngestStats stats;
    WeirAddress any = loopback (0);
    WeirIngestTrack *track;
    Case guest = { 0 };
    int fd = weir_udp_open (&any, 0, 0, true);

    CHECK_INT (
        weir_ingest_add (engine, &asking, (WeirIngestSockets) { fd, -1 }, &ops, &guest, &track), 0);
    guest.track = track;
    weir_ingest_ask_key (cases[turn % 4].track);
    weir_ingest_stats (cases[turn % 4].track, &stats);
    check_sums (&stats);
    weir_ingest_remove (track, &stats);
  }
  atomic_store (&sending, false);
  pthread_join (thread, NULL);
  for (int i = 0; i < 4; i++) {
    WeirIngestStats stats;

    wait_for (&cases[i].n, 1);
    weir_ingest_remove (cases[i].track, &stats);
    check_sums (&stats);
    CHECK_INT (stats.delivered, cases[i].n);
    close (cases[i].sender);
  }
  weir_ingest_free (engine);
}

// ---- RTCP ----

static size_t
receive (int fd, uint8_t *out, size_t room)
{
  struct timeval limit = { .tv_sec = 20 };
  ssize_t n;

  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  n = recv (fd, out, room, 0);
  CHECK (n > 0);
  return n > 0 ? (size_t) n : 0;
}

static void
reports_and_keyframe_requests_reach_the_sender (void)
{
  static const uint8_t rr[] = { 0x80, 201, 0, 1, SSRC >> 24, SSRC >> 16 & 0xff, SSRC >> 8 & 0xff,
    SSRC & 0xff };
  WeirIngest *engine = weir_ingest_new (NULL);
  WeirTrackSettings settings = plain;
  WeirRtcpReport report;
  WeirAddress rtcp;
  WeirIngestStats stats;
  uint8_t in[200];
  size_t len;
  Case c;

  settings.report_interval_ns = 20 * MS;
  settings.key = WEIR_KEY_PLI;
  add_case (engine, &c, &settings);
  send_packet (&c, 7);
  wait_for (&c.n, 1);
  rtcp = loopback ((uint16_t) (ntohs (c.at.v4.sin_port) + 1));
  CHECK_INT (sendto (c.sender, rr, sizeof rr, 0, &rtcp.any, sizeof rtcp.v4), sizeof rr);
  len = receive (c.sender, in, sizeof in);
  CHECK_INT (weir_rtcp_read (in, len, &report), 0);
  CHECK_INT (report.ssrc, 5);
  weir_ingest_ask_key (c.track);
  do
    len = receive (c.sender, in, sizeof in);
  while (len > 0 && !weir_rtcp_asks_key (in, len, SSRC));
  do // the counts of a batch follow it
    weir_ingest_stats (c.track, &stats);
  while (stats.keys_asked == 0);
  CHECK_INT (stats.rtcp, 1);
  CHECK (stats.reports_sent > 0);
  CHECK_INT (stats.keys_asked, 1);
  weir_ingest_remove (c.track, &stats);
  close (c.sender);
  weir_ingest_free (engine);
}

static void
a_socket_for_ipv6_receives_from_ipv4_and_answers (void)
{
  WeirIngest *engine = weir_ingest_new (NULL);
  WeirAddress any = { .v6.sin6_family = AF_INET6 }, own = loopback (0), bound;
  int fd = weir_udp_open (&any, 0, 0, true);
  WeirTrackSettings settings = plain;
  socklen_t len = sizeof bound;
  WeirIngestStats stats;
  uint8_t in[200];
  Case c = { .sender = socket (AF_INET, SOCK_DGRAM, 0) };

  if (fd == -EAFNOSUPPORT) {
    printf ("# this system has no IPv6\n");
    close (c.sender);
    weir_ingest_free (engine);
    return;
  }
  getsockname (fd, &bound.any, &len);
  c.at = loopback (ntohs (bound.v6.sin6_port));
  CHECK_INT (bind (c.sender, &own.any, sizeof own.v4), 0);
  settings.rtcp_mux = true;
  settings.report_interval_ns = 20 * MS;
  CHECK_INT (
      weir_ingest_add (engine, &settings, (WeirIngestSockets) { fd, -1 }, &ops, &c, &c.track), 0);
  send_packet (&c, 1);
  wait_for (&c.n, 1);
  CHECK (weir_rtp_is_rtcp (in, receive (c.sender, in, sizeof in)));
  weir_ingest_remove (c.track, &stats);
  check_sums (&stats);
  close (c.sender);
  weir_ingest_free (engine);
}

static void
packets_can_be_put_in (void)
{
  WeirIngest *engine = weir_ingest_new (NULL);
  WeirTrackSettings settings = plain;
  WeirIngestStats stats;
  uint8_t packet[LEN];
  Case c = { 0 };

  settings.key = WEIR_KEY_FIR;
  settings.reorder = (WeirReorderLimits) { 16, 1 << 16, 10 * MS };
  CHECK_INT (weir_ingest_add (engine, &settings, WEIR_INGEST_NO_SOCKETS, &ops, &c, &c.track), 0);
  for (int64_t seq = 0; seq < 100; seq++) {
    write_packet (packet, seq);
    CHECK_INT (weir_ingest_push (c.track, false, packet, LEN, weir_now_ns ()), 0);
  }
  CHECK_INT (c.n, 100);
  CHECK_INT (c.n_settled, 100);
  write_packet (packet, 101); // behind a gap: leaves from the engine's thread
  weir_ingest_push (c.track, false, packet, LEN, weir_now_ns ());
  wait_for (&c.n, 101);
  weir_ingest_push (c.track, true, packet, LEN, weir_now_ns ());
  weir_ingest_ask_key (c.track);
  wait_for (&c.n_sent, 1);
  pthread_mutex_lock (&lock);
  CHECK (weir_rtcp_asks_key (c.rtcp, c.rtcp_len, SSRC));
  pthread_mutex_unlock (&lock);
  weir_ingest_remove (c.track, &stats);
  check_sums (&stats);
  CHECK_INT (stats.dropped[WEIR_INGEST_MALFORMED], 1);
  CHECK_INT (stats.delivered, 101);
  CHECK_INT (stats.lost, 1);
  weir_ingest_free (engine);
}

static void
a_track_with_sockets_takes_no_calls (void)
{
  WeirIngest *engine = weir_ingest_new (NULL);
  uint8_t packet[LEN] = { 0 };
  Case c;

  add_case (engine, &c, &plain);
  CHECK_INT (weir_ingest_push (c.track, false, packet, LEN, 0), -EINVAL);
  remove_case (&c, 0);
  CHECK_INT (
      weir_ingest_add (engine, &plain, (WeirIngestSockets) { -1, dup (0) }, &ops, &c, &c.track),
      -EINVAL);
  CHECK_INT (
      weir_ingest_add (engine, &plain, (WeirIngestSockets) { 999999, -1 }, &ops, &c, &c.track),
      -EBADF);
  weir_ingest_free (engine);
}

static void
groups_are_joined (void)
{
  WeirIngest *engine = weir_ingest_new (NULL);
  WeirAddress group = loopback (0);
  struct ip_mreqn out = { .imr_ifindex = 1 };
  socklen_t len = sizeof group;
  Case c = { .sender = socket (AF_INET, SOCK_DGRAM, 0) };
  int fd, error;

  inet_pton (AF_INET, "239.255.77.9", &group.v4.sin_addr);
  fd = weir_udp_open (&group, 1, 0, true);
  CHECK (fd >= 0);
  getsockname (fd, &c.at.any, &len);
  CHECK_INT (c.at.v4.sin_addr.s_addr, group.v4.sin_addr.s_addr);
  setsockopt (c.sender, IPPROTO_IP, IP_MULTICAST_IF, &out, sizeof out);
  error = weir_ingest_add (engine, &plain, (WeirIngestSockets) { fd, -1 }, &ops, &c, &c.track);
  CHECK_INT (error, 0);
  send_packet (&c, 1);
  wait_for (&c.n, 1);
  remove_case (&c, 1);
  weir_ingest_free (engine);
}

int
main (void)
{
  RUN (control_messages_are_read);
  RUN (a_message_has_the_time_of_its_arrival);
  RUN (streams_are_received_at_once);
  RUN (streams_are_received_on_a_tick);
  RUN (kernel_drops_are_counted);
  RUN (buffers_grow_to_a_second_of_the_stream);
  RUN (a_flood_does_not_starve_others);
  RUN (removal_waits_for_the_running_callback_only);
  RUN (a_callback_may_remove_its_track);
  RUN (tracks_come_and_go_under_load);
  RUN (reports_and_keyframe_requests_reach_the_sender);
  RUN (a_socket_for_ipv6_receives_from_ipv4_and_answers);
  RUN (packets_can_be_put_in);
  RUN (a_track_with_sockets_takes_no_calls);
  RUN (groups_are_joined);
  return tap_done ();
}
