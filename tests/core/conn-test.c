// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/conn.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

// Fake system calls: each call takes as many bytes as its turn in the script says, or fails; after
// the script, calls take everything. The socket itself always has room.

#define SCRIPT_MAX 64
#define ALL 1000000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards everything below
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long script[SCRIPT_MAX];
static size_t script_at, script_n;
static uint8_t out[1 << 20];
static size_t out_n;
static unsigned n_calls;
static bool held; // threads other than the main thread find no room
static pthread_t main_thread;

static ssize_t
scripted_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  size_t take, taken = 0;
  long turn;

  pthread_mutex_lock (&lock);
  if (held && !pthread_equal (main_thread, pthread_self ()))
    turn = -EAGAIN;
  else
    turn = script_at < script_n ? script[script_at++] : ALL;
  take = turn < 0 ? 0 : (size_t) turn;
  for (size_t i = 0; i < msg->msg_iovlen; i++) {
    size_t len = msg->msg_iov[i].iov_len < take ? msg->msg_iov[i].iov_len : take;

    CHECK (out_n + len <= sizeof out);
    if (len > 0)
      memcpy (out + out_n, msg->msg_iov[i].iov_base, len);
    out_n += len;
    take -= len;
    taken += len;
  }
  CHECK ((flags & MSG_DONTWAIT) && (flags & MSG_NOSIGNAL));
  pthread_mutex_unlock (&lock);
  errno = turn < 0 ? (int) -turn : 0;
  return turn < 0 ? -1 : (ssize_t) taken;
}

static const WeirConnOps scripted = { scripted_sendmsg };

static void
set_script (const long *turns, size_t n)
{
  pthread_mutex_lock (&lock);
  for (size_t i = 0; i < n; i++)
    script[i] = turns[i];
  script_at = 0;
  script_n = n;
  out_n = 0;
  pthread_mutex_unlock (&lock);
}

static void
hold (bool yes)
{
  pthread_mutex_lock (&lock);
  held = yes;
  pthread_mutex_unlock (&lock);
}

static void
count_call (void *data)
{
  pthread_mutex_lock (&lock);
  n_calls++;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

static unsigned
calls (void)
{
  unsigned n;

  pthread_mutex_lock (&lock);
  n = n_calls;
  pthread_mutex_unlock (&lock);
  return n;
}

static void
wait_for_call (unsigned seen)
{
  pthread_mutex_lock (&lock);
  while (n_calls == seen)
    pthread_cond_wait (&changed, &lock);
  pthread_mutex_unlock (&lock);
}

static WeirConn *
open_pair (const WeirConnOps *ops, int *peer)
{
  int fds[2];
  WeirConn *conn;

  CHECK_INT (socketpair (AF_UNIX, SOCK_STREAM, 0, fds), 0);
  conn = weir_conn_new (fds[0], ops);
  CHECK (conn);
  close (fds[0]);
  *peer = fds[1];
  return conn;
}

// A TCP connection with small buffers, and segments to match: while a segment larger than the
// buffer waits, the kernel can keep its window closed except for probes at growing intervals.
static WeirConn *
open_tcp (int *peer)
{
  struct sockaddr_in address = { .sin_family = AF_INET,
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t len = sizeof address;
  int small = 4096, segment = 512, listener = socket (AF_INET, SOCK_STREAM, 0), fd;
  WeirConn *conn;

  CHECK_INT (bind (listener, (struct sockaddr *) &address, len), 0);
  CHECK_INT (listen (listener, 1), 0);
  CHECK_INT (getsockname (listener, (struct sockaddr *) &address, &len), 0);
  *peer = socket (AF_INET, SOCK_STREAM, 0);
  setsockopt (*peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  setsockopt (*peer, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
  CHECK_INT (connect (*peer, (struct sockaddr *) &address, len), 0);
  fd = accept (listener, NULL, NULL);
  setsockopt (fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  conn = weir_conn_new (fd, NULL);
  CHECK (conn);
  close (fd);
  close (listener);
  return conn;
}

// ---- bytes ----

static uint8_t payload[1 << 17];

static size_t
header (uint8_t *to, WeirFraming framing, uint8_t channel, size_t len)
{
  switch (framing) {
    case WEIR_FRAMING_RFC4571:
      to[0] = (uint8_t) (len / 256);
      to[1] = (uint8_t) (len % 256);
      return 2;
    case WEIR_FRAMING_INTERLEAVED:
      memcpy (to, (uint8_t[]) { 0x24, channel, (uint8_t) (len / 256), (uint8_t) (len % 256) }, 4);
      return 4;
    default:
      return 0;
  }
}

static size_t
lay_out (const size_t *sizes, size_t n, WeirFraming framing, uint8_t channel, struct iovec *packets,
    uint8_t *expected)
{
  size_t len = 0;

  for (size_t i = 0; i < n; i++) {
    packets[i] = (struct iovec) { payload + i * 7, sizes[i] };
    len += header (expected + len, framing, channel, sizes[i]);
    memcpy (expected + len, packets[i].iov_base, sizes[i]);
    len += sizes[i];
  }
  return len;
}

// Sends all packets, trying again each time that there is room.
static int
send_all (
    WeirConn *conn, WeirFraming framing, uint8_t channel, const struct iovec *packets, size_t n)
{
  size_t sent = 0;

  for (;;) {
    unsigned seen = calls ();
    int r = weir_conn_send (conn, framing, channel, packets + sent, n - sent);

    if (r < 0)
      return r;
    CHECK ((size_t) r <= n - sent);
    sent += (size_t) r;
    if (sent == n)
      return (int) n;
    wait_for_call (seen);
  }
}

// Waits until no bytes wait in the connection.
static void
settle (WeirConn *conn)
{
  WeirConnCounters counters;
  unsigned seen;

  for (;;) {
    seen = calls ();
    weir_conn_counters (conn, &counters);
    if (counters.waiting == 0 || weir_conn_error (conn))
      return;
    wait_for_call (seen);
  }
}

static uint8_t expected[1 << 20];

static void
check_out (size_t len)
{
  pthread_mutex_lock (&lock);
  CHECK_INT (out_n, len);
  CHECK (out_n == len && memcmp (out, expected, len) == 0);
  pthread_mutex_unlock (&lock);
}

static const WeirFraming framings[] = { WEIR_FRAMING_NONE, WEIR_FRAMING_RFC4571,
  WEIR_FRAMING_INTERLEAVED };

static void
writes_may_end_at_any_byte (void)
{
  static const size_t sizes[] = { 5, 1, 0, 12, 3 };
  struct iovec packets[5];
  int peer;
  WeirConn *conn = open_pair (&scripted, &peer);

  CHECK (weir_conn_watch (conn, count_call, NULL));
  for (size_t f = 0; f < 3; f++) {
    size_t len = lay_out (sizes, 5, framings[f], 3, packets, expected);

    for (size_t cut = 0; cut <= len; cut++) {
      for (long second = 1; second <= 5; second += 2) {
        set_script ((long[]) { (long) cut, -EAGAIN, -EINTR, second, -EAGAIN, second }, 6);
        CHECK_INT (send_all (conn, framings[f], 3, packets, 5), 5);
        settle (conn);
        check_out (len);
      }
    }
  }
  weir_conn_unwatch (conn, count_call, NULL);
  weir_conn_unref (conn);
  close (peer);
}

static void
packets_of_every_size_and_number_arrive (void)
{
  static const size_t lengths[] = { 0, 1, 255, 256, 65535 };
  static size_t sizes[200];
  static struct iovec packets[200];
  WeirConnCounters counters;
  int peer;
  WeirConn *conn = open_pair (&scripted, &peer);

  CHECK (weir_conn_watch (conn, count_call, NULL));
  for (size_t f = 0; f < 3; f++) {
    size_t len = lay_out (lengths, 5, framings[f], 255, packets, expected);

    set_script (NULL, 0);
    CHECK_INT (weir_conn_send (conn, framings[f], 255, packets, 5), 5);
    check_out (len);
    // All but one byte of the longest packet waits.
    set_script ((long[]) { (long) (len - 65534), -EAGAIN, 40000, -EAGAIN }, 4);
    CHECK_INT (weir_conn_send (conn, framings[f], 255, packets, 5), 5);
    settle (conn);
    check_out (len);

    for (size_t i = 0; i < 200; i++)
      sizes[i] = i;
    len = lay_out (sizes, 200, framings[f], 0, packets, expected);
    for (size_t n = 0; n <= 200; n++) {
      size_t part = lay_out (sizes, n, framings[f], 0, packets, expected);

      set_script (NULL, 0);
      CHECK_INT (weir_conn_send (conn, framings[f], 0, packets, n), n);
      check_out (part);
    }
    set_script ((long[]) { 3000, -EAGAIN, 1, 2, 3000 }, 5);
    CHECK_INT (send_all (conn, framings[f], 0, packets, 200), 200);
    settle (conn);
    check_out (len);
  }
  weir_conn_counters (conn, &counters);
  CHECK_INT (counters.packets, 3 * (5 + 5 + 200 * 201 / 2 + 200));
  CHECK_INT (counters.waiting, 0);

  packets[0] = (struct iovec) { payload, 65536 };
  CHECK_INT (weir_conn_send (conn, WEIR_FRAMING_NONE, 0, packets, 2), -EMSGSIZE);
  CHECK_INT (weir_conn_error (conn), 0);
  weir_conn_unwatch (conn, count_call, NULL);
  weir_conn_unref (conn);
  close (peer);
}

// An answer that comes while a packet is half out goes after that packet, and before the next.
static void
control_data_goes_between_packets (void)
{
  static const size_t sizes[] = { 9, 9, 9 };
  struct iovec packets[3];
  int peer;
  WeirConn *conn = open_pair (&scripted, &peer);
  size_t len = lay_out (sizes, 3, WEIR_FRAMING_INTERLEAVED, 1, packets, expected);
  const size_t frame = len / 3;

  CHECK (weir_conn_watch (conn, count_call, NULL));
  for (size_t cut = 1; cut < len; cut++) {
    size_t begun = (cut + frame - 1) / frame;
    int taken;

    if (cut % frame == 0)
      continue; // no packet was begun
    set_script ((long[]) { (long) cut, 2, -EAGAIN, 7, 2 }, 5);
    hold (true);
    taken = weir_conn_send (conn, WEIR_FRAMING_INTERLEAVED, 1, packets, 3);
    CHECK_INT (taken, begun);
    CHECK_INT (weir_conn_send_control (conn, "answer ", 7), 0);
    CHECK_INT (weir_conn_send_control (conn, "another ", 8), 0);
    CHECK_INT (weir_conn_send (conn, WEIR_FRAMING_INTERLEAVED, 1, packets, 1), 0);
    hold (false);
    CHECK_INT (send_all (conn, WEIR_FRAMING_INTERLEAVED, 1, packets + taken, 3 - (size_t) taken),
        3 - taken);
    settle (conn);

    pthread_mutex_lock (&lock);
    CHECK_INT (out_n, len + 15);
    CHECK (memcmp (out, expected, begun * frame) == 0);
    CHECK (memcmp (out + begun * frame, "answer another ", 15) == 0);
    CHECK (memcmp (out + begun * frame + 15, expected + begun * frame, len - begun * frame) == 0);
    pthread_mutex_unlock (&lock);
  }
  weir_conn_unwatch (conn, count_call, NULL);
  weir_conn_unref (conn);
  close (peer);
}

static void
waiting_control_data_is_bounded (void)
{
  static uint8_t answer[WEIR_CONN_CONTROL_ALONE_MAX + 1];
  int peer;
  WeirConn *conn = open_tcp (&peer);
  WeirConnCounters counters;
  size_t kept = 0;
  int r;

  CHECK_INT (weir_conn_send_control (conn, answer, sizeof answer), -ENOBUFS);
  while ((r = weir_conn_send_control (conn, payload + kept % 251, 1000)) == 0)
    kept += 1000;
  CHECK_INT (r, -ENOBUFS);
  CHECK_INT (weir_conn_error (conn), 0);
  weir_conn_counters (conn, &counters);
  CHECK (counters.waiting <= WEIR_CONN_CONTROL_MAX);
  CHECK (counters.waiting > WEIR_CONN_CONTROL_MAX - 1000);
  CHECK (counters.unsent > 0);
  CHECK_INT (counters.bytes + counters.waiting, kept);

  // All accepted data arrives, including data accepted meanwhile.
  for (size_t got = 0; got < kept; got += 1000) {
    CHECK_INT (recv (peer, answer, 1000, MSG_WAITALL), 1000);
    CHECK (memcmp (answer, payload + got % 251, 1000) == 0);
    if (kept < 4000000 && weir_conn_send_control (conn, payload + kept % 251, 1000) == 0)
      kept += 1000;
  }
  weir_conn_unref (conn);
  CHECK_INT (recv (peer, answer, sizeof answer, 0), 0);
  close (peer);
}

static void
a_long_answer_is_kept_whole_if_no_other_waits (void)
{
  static uint8_t answer[WEIR_CONN_CONTROL_ALONE_MAX], got[sizeof answer];
  int peer;
  WeirConn *conn = open_tcp (&peer);
  WeirConnCounters counters;
  size_t sent = 0;

  for (size_t i = 0; i < sizeof answer; i++)
    answer[i] = (uint8_t) (i % 251);
  // Until one waits, at least in part.
  do {
    CHECK_INT (weir_conn_send_control (conn, answer, sizeof answer), 0);
    sent++;
    weir_conn_counters (conn, &counters);
  } while (counters.waiting == 0);
  CHECK (counters.waiting <= WEIR_CONN_CONTROL_ALONE_MAX);
  CHECK_INT (weir_conn_send_control (conn, answer, sizeof answer), -ENOBUFS);
  CHECK_INT (weir_conn_error (conn), 0);
  if (counters.waiting > WEIR_CONN_CONTROL_MAX)
    CHECK_INT (weir_conn_send_control (conn, answer, 1), -ENOBUFS);

  for (size_t i = 0; i < sent; i++) {
    CHECK_INT (recv (peer, got, sizeof got, MSG_WAITALL), sizeof got);
    CHECK (memcmp (got, answer, sizeof got) == 0);
  }
  CHECK_INT (weir_conn_send_control (conn, answer, sizeof answer), 0);
  CHECK_INT (recv (peer, got, sizeof got, MSG_WAITALL), sizeof got);
  weir_conn_unref (conn);
  close (peer);
}

// ---- the end ----

static void
a_connection_breaks_once (void)
{
  static const int errors[] = { EPIPE, ECONNRESET, ETIMEDOUT, EBADF };
  struct iovec packet = { payload, 100 };

  for (size_t i = 0; i < 4; i++) {
    for (int waits = 0; waits < 2; waits++) {
      int peer;
      unsigned seen = calls ();
      uint8_t byte;
      WeirConn *conn = open_pair (&scripted, &peer);

      CHECK (weir_conn_watch (conn, count_call, NULL));
      set_script ((long[]) { waits ? 50 : -errors[i], -errors[i] }, 2);
      if (waits)
        CHECK_INT (weir_conn_send (conn, WEIR_FRAMING_NONE, 0, &packet, 1), 1);
      else
        CHECK_INT (weir_conn_send (conn, WEIR_FRAMING_NONE, 0, &packet, 1), -errors[i]);
      wait_for_call (seen);
      CHECK_INT (weir_conn_error (conn), errors[i]);
      weir_conn_break (conn, EIO);
      CHECK_INT (weir_conn_error (conn), errors[i]);
      CHECK_INT (weir_conn_send (conn, WEIR_FRAMING_NONE, 0, &packet, 1), -errors[i]);
      CHECK_INT (weir_conn_send_control (conn, "x", 1), -errors[i]);
      // The peer sees the end while the connection is still referenced.
      CHECK_INT (recv (peer, &byte, 1, 0), 0);
      weir_conn_unwatch (conn, count_call, NULL);
      weir_conn_unref (conn);
      close (peer);
    }
  }
}

static void
watchers_are_told_that_the_peer_has_closed (void)
{
  static const struct linger reset = { 1, 0 };
  struct iovec packet = { payload, 60000 };

  for (int how = 0; how < 2; how++) {
    int peer, r;
    WeirConn *conn = open_tcp (&peer);
    unsigned seen = calls ();

    CHECK (weir_conn_watch (conn, count_call, NULL));
    while ((r = weir_conn_send (conn, WEIR_FRAMING_INTERLEAVED, 0, &packet, 1)) == 1)
      ;
    CHECK_INT (r, 0);
    if (how)
      setsockopt (peer, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close (peer); // with unread bytes, which also resets the connection
    while (!weir_conn_error (conn)) {
      wait_for_call (seen);
      seen = calls ();
    }
    CHECK (weir_conn_error (conn) == ECONNRESET || weir_conn_error (conn) == EPIPE);
    weir_conn_unwatch (conn, count_call, NULL);
    weir_conn_unref (conn);
  }
}

static void
unconnected_and_datagram_sockets_are_refused (void)
{
  int udp = socket (AF_INET, SOCK_DGRAM, 0), tcp = socket (AF_INET, SOCK_STREAM, 0);

  CHECK (!weir_conn_new (udp, NULL) && errno == ENOTSUP);
  CHECK (!weir_conn_new (tcp, NULL) && errno == ENOTCONN);
  CHECK (!weir_conn_new (-1, NULL) && errno == EBADF);
  close (udp);
  close (tcp);
}

// ---- watchers ----

static struct {
  WeirConn *conn;
  bool done;
} self;

static void
unwatch_self (void *data)
{
  weir_conn_unwatch (self.conn, unwatch_self, NULL);
  weir_conn_unref (self.conn);
  pthread_mutex_lock (&lock);
  self.done = true;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

static void
a_watcher_may_unwatch_and_unref_while_it_is_called (void)
{
  for (int i = 0; i < 200; i++) {
    int peer;

    self.conn = open_pair (NULL, &peer);
    self.done = false;
    CHECK (weir_conn_watch (self.conn, unwatch_self, NULL));
    weir_conn_break (self.conn, EIO);
    pthread_mutex_lock (&lock);
    while (!self.done)
      pthread_cond_wait (&changed, &lock);
    pthread_mutex_unlock (&lock);
    close (peer);
  }
}

static void
come_and_go (void *data)
{
  count_call (NULL);
  usleep (500);
  *(bool *) data = true;
}

static void
unwatch_waits_for_a_running_call (void)
{
  for (int i = 0; i < 50; i++) {
    int peer;
    bool over = false;
    unsigned seen = calls ();
    WeirConn *conn = open_pair (NULL, &peer);

    CHECK (weir_conn_watch (conn, come_and_go, &over));
    weir_conn_break (conn, EIO);
    wait_for_call (seen);
    weir_conn_unwatch (conn, come_and_go, &over);
    CHECK (over);
    weir_conn_unref (conn);
    close (peer);
  }
}

static size_t order[16], n_order;

static void
note_order (void *data)
{
  pthread_mutex_lock (&lock);
  if (n_order < 16)
    order[n_order++] = (size_t) data;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

static void
watchers_take_turns (void)
{
  struct iovec packet = { payload, 100 };
  size_t firsts[4] = { 0 };
  int peer;
  WeirConn *conn = open_pair (&scripted, &peer);

  n_order = 0;
  for (size_t i = 1; i <= 3; i++)
    CHECK (weir_conn_watch (conn, note_order, (void *) i));
  for (size_t round = 1; round <= 3; round++) {
    set_script ((long[]) { 10 }, 1);
    CHECK_INT (weir_conn_send (conn, WEIR_FRAMING_NONE, 0, &packet, 1), 1);
    pthread_mutex_lock (&lock);
    while (n_order < 3 * round)
      pthread_cond_wait (&changed, &lock);
    pthread_mutex_unlock (&lock);
  }
  for (size_t round = 0; round < 3; round++)
    firsts[order[3 * round]]++;
  for (size_t i = 1; i <= 3; i++) {
    CHECK_INT (firsts[i], 1);
    weir_conn_unwatch (conn, note_order, (void *) i);
  }
  weir_conn_unref (conn);
  close (peer);
}

// ---- many threads, over TCP ----

#define N_SENDERS 3
#define N_PACKETS 3000

typedef struct {
  WeirConn *conn;
  uint8_t channel;
  pthread_mutex_t lock;
  pthread_cond_t room;
  unsigned calls;
  bool ok;
} Sender;

static void
sender_has_room (void *data)
{
  Sender *sender = data;

  pthread_mutex_lock (&sender->lock);
  sender->calls++;
  pthread_cond_signal (&sender->room);
  pthread_mutex_unlock (&sender->lock);
}

static size_t
packet_len (uint8_t channel, unsigned n)
{
  return 4 + (n * 37 + channel * 101) % 1400;
}

static void *
send_stream (void *data)
{
  Sender *sender = data;
  uint8_t bytes[1404];

  sender->ok = weir_conn_watch (sender->conn, sender_has_room, sender);
  for (unsigned n = 0; n < N_PACKETS && sender->ok; n++) {
    struct iovec packet = { bytes, packet_len (sender->channel, n) };
    int r;

    memset (bytes, (int) (n + sender->channel), sizeof bytes);
    memcpy (bytes, &n, sizeof n);
    do {
      unsigned seen;

      pthread_mutex_lock (&sender->lock);
      seen = sender->calls;
      pthread_mutex_unlock (&sender->lock);
      r = weir_conn_send (sender->conn, WEIR_FRAMING_INTERLEAVED, sender->channel, &packet, 1);
      pthread_mutex_lock (&sender->lock);
      while (r == 0 && sender->calls == seen)
        pthread_cond_wait (&sender->room, &sender->lock);
      pthread_mutex_unlock (&sender->lock);
    } while (r == 0);
    sender->ok = r == 1;
    if (n % 100 == 0)
      sender->ok &= weir_conn_send_control (sender->conn, "RTSP", 4) == 0;
  }
  weir_conn_unwatch (sender->conn, sender_has_room, sender);
  return NULL;
}

static bool
read_exactly (int fd, void *to, size_t len)
{
  return recv (fd, to, len, MSG_WAITALL) == (ssize_t) len;
}

static bool
read_frame (int fd, unsigned *next, unsigned *answers)
{
  uint8_t head[4], bytes[1404];
  size_t len;
  unsigned n;

  if (!read_exactly (fd, head, 4))
    return false;
  if (memcmp (head, "RTSP", 4) == 0) {
    ++*answers;
    return true;
  }
  len = (size_t) head[2] << 8 | head[3];
  if (head[0] != '$' || head[1] >= N_SENDERS || len != packet_len (head[1], next[head[1]])
      || !read_exactly (fd, bytes, len))
    return false;
  memcpy (&n, bytes, sizeof n);
  for (size_t i = 4; i < len; i++) {
    if (bytes[i] != (uint8_t) (n + head[1]))
      return false;
  }
  return n == next[head[1]]++;
}

static void
many_senders_share_a_connection (void)
{
  Sender senders[N_SENDERS];
  pthread_t threads[N_SENDERS];
  unsigned next[N_SENDERS] = { 0 }, answers = 0, frames = 0;
  const unsigned due = N_SENDERS * (N_PACKETS + N_PACKETS / 100);
  int peer;
  WeirConn *conn = open_tcp (&peer);

  for (uint8_t i = 0; i < N_SENDERS; i++) {
    senders[i] = (Sender) { .conn = conn, .channel = i };
    pthread_mutex_init (&senders[i].lock, NULL);
    pthread_cond_init (&senders[i].room, NULL);
    pthread_create (&threads[i], NULL, send_stream, &senders[i]);
  }
  while (frames < due && read_frame (peer, next, &answers))
    frames++;
  CHECK_INT (frames, due);
  close (peer); // so that no thread waits for ever if the test fails
  for (int i = 0; i < N_SENDERS; i++) {
    pthread_join (threads[i], NULL);
    CHECK (senders[i].ok);
    CHECK_INT (next[i], N_PACKETS);
    pthread_mutex_destroy (&senders[i].lock);
    pthread_cond_destroy (&senders[i].room);
  }
  CHECK_INT (answers, N_SENDERS * N_PACKETS / 100);
  weir_conn_unref (conn);
}

static size_t
n_descriptors (void)
{
  DIR *dir = opendir ("/proc/self/fd");
  size_t n = 0;

  while (readdir (dir))
    n++;
  closedir (dir);
  return n;
}

static void
connections_come_and_go (void)
{
  struct iovec packet = { payload, 60000 };
  size_t before;

  for (int i = 0; i < 1000; i++) {
    int peer;
    WeirConn *conn = open_tcp (&peer);

    if (i == 0)
      before = n_descriptors ();
    while (weir_conn_send (conn, WEIR_FRAMING_INTERLEAVED, 0, &packet, 1) == 1)
      ;
    if (i % 2)
      close (peer);
    weir_conn_unref (conn);
    if (i % 2 == 0)
      close (peer);
  }
  CHECK (n_descriptors () <= before);
}

int
main (void)
{
  main_thread = pthread_self ();
  for (size_t i = 0; i < sizeof payload; i++)
    payload[i] = (uint8_t) (i * 31 + i / 256);
  RUN (writes_may_end_at_any_byte);
  RUN (packets_of_every_size_and_number_arrive);
  RUN (control_data_goes_between_packets);
  RUN (waiting_control_data_is_bounded);
  RUN (a_long_answer_is_kept_whole_if_no_other_waits);
  RUN (a_connection_breaks_once);
  RUN (watchers_are_told_that_the_peer_has_closed);
  RUN (unconnected_and_datagram_sockets_are_refused);
  RUN (a_watcher_may_unwatch_and_unref_while_it_is_called);
  RUN (unwatch_waits_for_a_running_call);
  RUN (watchers_take_turns);
  RUN (many_senders_share_a_connection);
  RUN (connections_come_and_go);
  return tap_done ();
}
