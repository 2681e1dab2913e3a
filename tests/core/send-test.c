// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>

#include "tap.h"

// Fake system calls: they split segmented messages as the kernel does, record the bytes that each
// reader got, and fail for one reader as a case says.

#define N_READERS 5
#define VICTIM 2
#define FIRST_PORT 5000

static struct {
  int error;     // each call for the victim fails with this ...
  int times;     // ... this many times (-1: always)
  bool only_gso; // ... but only if the message is segmented
  size_t above;  // ... but only a datagram longer than this
  int after;     // ... but only after this many calls for the victim succeeded
  unsigned most; // sendmmsg sends no more than this at once (0: all)
} fault;

static uint8_t got[N_READERS][1 << 20];
static size_t got_bytes[N_READERS], got_packets[N_READERS];
static unsigned n_calls, n_messages;
static int victim_calls;

static uint16_t
segment_of (const struct msghdr *msg)
{
  struct cmsghdr *cmsg = msg->msg_controllen ? CMSG_FIRSTHDR (msg) : NULL;
  uint16_t size = 0;

  if (!cmsg)
    return 0;
  CHECK (cmsg->cmsg_level == SOL_UDP && cmsg->cmsg_type == UDP_SEGMENT);
  memcpy (&size, CMSG_DATA (cmsg), sizeof size);
  CHECK (size > 0 && msg->msg_iov->iov_len > size && msg->msg_iov->iov_len <= WEIR_PACKET_MAX);
  CHECK ((msg->msg_iov->iov_len + size - 1) / size <= 64);
  return size;
}

static int
fake_send_one (const struct msghdr *msg)
{
  const struct iovec *iov = msg->msg_iov;
  uint16_t segment = segment_of (msg);
  size_t datagram = segment ? segment : iov->iov_len;
  struct sockaddr_in address;
  int reader;

  memcpy (&address, msg->msg_name, sizeof address);
  CHECK_INT (msg->msg_namelen, sizeof address);
  reader = ntohs (address.sin_port) - FIRST_PORT;
  if (reader == VICTIM && fault.error && fault.times != 0 && (!fault.only_gso || segment)
      && datagram > fault.above && victim_calls++ >= fault.after) {
    if (fault.times > 0)
      fault.times--;
    errno = fault.error;
    return -1;
  }
  memcpy (got[reader] + got_bytes[reader], iov->iov_base, iov->iov_len);
  got_bytes[reader] += iov->iov_len;
  got_packets[reader] += (iov->iov_len + datagram - 1) / datagram;
  n_messages++;
  return 0;
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  CHECK ((flags & MSG_DONTWAIT) && (flags & MSG_NOSIGNAL));
  n_calls++;
  return fake_send_one (msg) < 0 ? -1 : (ssize_t) msg->msg_iov->iov_len;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  CHECK ((flags & MSG_DONTWAIT) && (flags & MSG_NOSIGNAL));
  n_calls++;
  if (fault.most && n > fault.most)
    n = fault.most;
  for (unsigned i = 0; i < n; i++) {
    if (fake_send_one (&msgs[i].msg_hdr) < 0)
      return i > 0 ? (int) i : -1;
  }
  return (int) n;
}

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg };

static uint8_t data[64 * WEIR_PACKET_MAX];
static WeirBurst burst;
static WeirSender sender;
static WeirSendResult results[N_READERS];

static void
reset (void)
{
  memset (&fault, 0, sizeof fault);
  memset (got_bytes, 0, sizeof got_bytes);
  memset (got_packets, 0, sizeof got_packets);
  memset (results, 0, sizeof results);
  n_calls = n_messages = 0;
  victim_calls = 0;
}

static void
load (const size_t *sizes, size_t n)
{
  burst = (WeirBurst) { .data = data, .n = n };
  for (size_t i = 0; i < n; i++) {
    burst.offset[i + 1] = burst.offset[i] + (uint32_t) sizes[i];
    for (size_t k = 0; k < sizes[i]; k++)
      data[burst.offset[i] + k] = (uint8_t) (i * 31 + k * 7);
  }
  weir_sender_init (&sender, &fake_ops);
  weir_sender_load (&sender, &burst);
}

static size_t
send_from (int reader, bool gso, size_t from)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t) (FIRST_PORT + reader)) } };

  return weir_sender_send (&sender, 3, &address, gso, from, &results[reader]);
}

static const size_t mixed[] = { 1200, 1200, 1200, 700, 60, 900, 900, 400, 1300, 1300 };
#define N_MIXED 10
#define MIXED_RUNS 4 // 1200 x3 + 700; 60; 900 x2 + 400; 1300 x2

static uint64_t
dropped (int reader)
{
  uint64_t sum = 0;

  for (int i = 0; i < WEIR_N_DROPS; i++)
    sum += results[reader].dropped[i];
  return sum;
}

// Checks that the counted packets are those the reader got, and that all settled packets are
// counted.
static void
check_sums (int reader, size_t settled)
{
  CHECK_INT (results[reader].packets + dropped (reader), settled);
  CHECK_INT (results[reader].packets, got_packets[reader]);
  CHECK_INT (results[reader].bytes, got_bytes[reader]);
}

static void
check_complete (int reader)
{
  CHECK_INT (got_packets[reader], burst.n);
  CHECK_INT (got_bytes[reader], burst.offset[burst.n]);
  CHECK (memcmp (got[reader], data, burst.offset[burst.n]) == 0);
}

static void
runs_go_in_one_message (void)
{
  reset ();
  load (mixed, N_MIXED);
  for (int r = 0; r < N_READERS; r++) {
    CHECK_INT (send_from (r, true, 0), N_MIXED);
    check_sums (r, N_MIXED);
    check_complete (r);
  }
  CHECK_INT (n_messages, N_READERS * MIXED_RUNS);
  CHECK_INT (n_calls, N_READERS);
  CHECK_INT (sender.counters.sends, N_READERS * MIXED_RUNS);
  CHECK_INT (sender.counters.gso_sends, N_READERS * (MIXED_RUNS - 1));
  CHECK_INT (sender.counters.segments[0], N_READERS);
  CHECK_INT (sender.counters.segments[1], N_READERS * 2);
  CHECK_INT (sender.counters.segments[2], N_READERS);

  reset ();
  load (mixed, N_MIXED);
  CHECK_INT (send_from (0, false, 0), N_MIXED);
  check_complete (0);
  CHECK_INT (n_messages, N_MIXED);
  CHECK_INT (n_calls, 1);
  CHECK_INT (sender.counters.gso_sends, 0);
  CHECK_INT (sender.counters.segments[0], N_MIXED);
}

static void
bursts_of_every_shape_are_sent (void)
{
  static const struct {
    size_t sizes[4];
    size_t n;
    unsigned messages;
  } cases[] = {
    { { 1 }, 1, 1 },
    { { 65507 }, 1, 1 },
    { { 20, 20 }, 2, 1 },
    { { 20, 21 }, 2, 2 },
    { { 20, 19, 20 }, 3, 2 },
    { { 30, 20, 10 }, 3, 2 },
    { { 10, 20, 30 }, 3, 3 },
    { { 20, 10, 10, 10 }, 4, 2 },
    { { 30000, 30000, 5507 }, 3, 1 },
  };
  size_t all[64];

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reset ();
    load (cases[i].sizes, cases[i].n);
    CHECK_INT (send_from (0, true, 0), cases[i].n);
    check_sums (0, cases[i].n);
    check_complete (0);
    CHECK_INT (n_messages, cases[i].messages);
  }
  for (int i = 0; i < 64; i++)
    all[i] = 1000;
  reset ();
  load (all, 64);
  CHECK_INT (send_from (0, true, 0), 64);
  check_complete (0);
  CHECK_INT (n_messages, 1);
  CHECK_INT (sender.counters.segments[WEIR_SEGMENT_CLASSES - 1], 1);
}

// Sends to all readers: one after the other, or together. Returns how many packets are settled.
static void
send_to_all (bool together, size_t *settled)
{
  WeirAddress addresses[N_READERS];
  WeirSendTarget targets[N_READERS];
  size_t at = 0;

  for (int r = 0; r < N_READERS; r++) {
    addresses[r] = (WeirAddress) { .v4 = { .sin_family = AF_INET,
                                       .sin_port = htons ((uint16_t) (FIRST_PORT + r)) } };
    targets[r] = (WeirSendTarget) { .address = &addresses[r] };
    if (!together)
      settled[r] = send_from (r, true, 0);
  }
  while (together && at < N_READERS) {
    size_t n = weir_sender_send_many (&sender, 3, targets + at, N_READERS - at);

    CHECK (n > 0 && n <= N_READERS - at);
    at += n;
    // A send stops early only if the socket is full.
    CHECK (at == N_READERS || targets[at - 1].settled < burst.n);
  }
  for (int r = 0; together && r < N_READERS; r++) {
    settled[r] = targets[r].settled;
    results[r] = targets[r].result;
  }
}

static void
readers_share_a_system_call (void)
{
  size_t settled[N_READERS];

  reset ();
  load (mixed, N_MIXED);
  send_to_all (true, settled);
  for (int r = 0; r < N_READERS; r++) {
    CHECK_INT (settled[r], N_MIXED);
    check_sums (r, N_MIXED);
    check_complete (r);
  }
  CHECK_INT (n_calls, 1);
  CHECK_INT (n_messages, N_READERS * MIXED_RUNS);
  CHECK_INT (sender.counters.sends, N_READERS * MIXED_RUNS);
}

// Checks the result of each error for the victim, and that the other readers get everything.
static void
check_failures (bool together)
{
  static const struct {
    const char *what;
    int error, times;
    bool only_gso;
    size_t above;
    int after;
    uint64_t settled, sent; // of the victim
    WeirDrop reason;
  } cases[] = {
    { "full", EAGAIN, -1, false, 0, 0, 0, 0, 0 },
    { "full after a run", EAGAIN, -1, false, 0, 1, 4, 4, 0 },
    { "full after three runs", EAGAIN, -1, false, 0, 3, 8, 8, 0 },
    { "no buffers once", ENOBUFS, 1, false, 0, 0, N_MIXED, 6, WEIR_DROP_NO_BUFFERS },
    { "no buffers", ENOBUFS, -1, false, 0, 0, N_MIXED, 0, WEIR_DROP_NO_BUFFERS },
    { "no memory, last run", ENOMEM, -1, false, 0, 3, N_MIXED, 8, WEIR_DROP_NO_BUFFERS },
    { "refused once", ECONNREFUSED, 1, false, 0, 0, N_MIXED, N_MIXED, 0 },
    { "refused once in the middle", ECONNREFUSED, 1, false, 0, 2, N_MIXED, N_MIXED, 0 },
    { "refused", ECONNREFUSED, -1, false, 0, 0, N_MIXED, 0, WEIR_DROP_ERROR },
    { "not permitted", EPERM, -1, false, 0, 0, N_MIXED, 0, WEIR_DROP_ERROR },
    { "unreachable after two runs", ENETUNREACH, -1, false, 0, 2, N_MIXED, 5, WEIR_DROP_ERROR },
    { "interrupted", EINTR, 7, false, 0, 0, N_MIXED, N_MIXED, 0 },
    { "too big", EMSGSIZE, -1, false, 1250, 0, N_MIXED, 8, WEIR_DROP_TOO_BIG },
    { "all too big", EMSGSIZE, -1, false, 0, 0, N_MIXED, 0, WEIR_DROP_TOO_BIG },
    { "no segmentation: EINVAL", EINVAL, -1, true, 0, 0, N_MIXED, N_MIXED, 0 },
    { "no segmentation: EIO", EIO, -1, true, 0, 0, N_MIXED, N_MIXED, 0 },
    { "no segmentation: EMSGSIZE", EMSGSIZE, -1, true, 0, 0, N_MIXED, N_MIXED, 0 },
    { "no segmentation: EOPNOTSUPP", EOPNOTSUPP, -1, true, 0, 0, N_MIXED, N_MIXED, 0 },
    { "no segmentation, second run", EIO, -1, true, 0, 1, N_MIXED, N_MIXED, 0 },
    { "no segmentation, last run", EINVAL, -1, true, 0, 2, N_MIXED, N_MIXED, 0 },
    { "EIO for everything", EIO, -1, false, 0, 0, N_MIXED, 0, WEIR_DROP_ERROR },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (unsigned most = 0; most < 4; most++) {
      size_t settled[N_READERS];

      reset ();
      load (mixed, N_MIXED);
      fault.error = cases[i].error;
      fault.times = cases[i].times;
      fault.only_gso = cases[i].only_gso;
      fault.above = cases[i].above;
      fault.after = cases[i].after;
      fault.most = most;
      send_to_all (together, settled);
      for (int r = 0; r < N_READERS; r++) {
        size_t expected = r == VICTIM ? cases[i].settled : N_MIXED;

        if (settled[r] != expected)
          printf ("# %s, %u at once\n", cases[i].what, most);
        CHECK_INT (settled[r], expected);
        check_sums (r, expected);
        CHECK (results[r].gso_error == (r == VICTIM && cases[i].only_gso ? cases[i].error : 0)
               || fault.error == EMSGSIZE || fault.error == EIO);
        if (r != VICTIM || cases[i].sent == N_MIXED)
          check_complete (r);
      }
      // sendmmsg does not say why it stopped, so a message that fails once among others is sent
      // again.
      if (!together || cases[i].times != 1) {
        CHECK_INT (results[VICTIM].packets, cases[i].sent);
        CHECK_INT (results[VICTIM].dropped[cases[i].reason], cases[i].settled - cases[i].sent);
        CHECK_INT (results[VICTIM].error, cases[i].sent < cases[i].settled ? cases[i].error : 0);
      }
      CHECK_INT (sender.counters.blocked, cases[i].error == EAGAIN);
    }
  }
}

static void
a_failing_reader_affects_no_other (void)
{
  check_failures (false);
}

static void
a_reader_that_fails_in_a_shared_call_affects_no_other (void)
{
  check_failures (true);
}

// After the refusal, the rest goes packet by packet.
static void
a_refusal_is_reported_once (void)
{
  reset ();
  load (mixed, N_MIXED);
  fault.error = EIO;
  fault.times = -1;
  fault.only_gso = true;
  fault.after = 1;
  CHECK_INT (send_from (VICTIM, true, 0), N_MIXED);
  check_complete (VICTIM);
  CHECK_INT (results[VICTIM].gso_error, EIO);
  CHECK_INT (sender.counters.fallbacks, 1);
  CHECK_INT (n_messages, 1 + 6);
  CHECK_INT (sender.counters.gso_sends, 1);
}

// The socket becomes full after each possible number of calls.
static void
a_blocked_send_continues_where_it_stopped (void)
{
  for (int gso = 0; gso < 2; gso++) {
    for (unsigned most = 0; most < 4; most++) {
      for (int after = 0; after < N_MIXED; after++) {
        size_t at = 0;
        int turns = 0;

        reset ();
        load (mixed, N_MIXED);
        fault.error = EAGAIN;
        fault.most = most;
        while (at < N_MIXED && turns++ < 20) {
          fault.times = 1;
          fault.after = after;
          victim_calls = 0;
          // Alternate between both forms, so that runs are entered in their middle.
          at = send_from (VICTIM, gso ^ (turns & 1), at);
          check_sums (VICTIM, at);
          if (after == 0)
            fault.error = 0;
        }
        CHECK_INT (at, N_MIXED);
        check_complete (VICTIM);
      }
    }
  }
}

static void
a_send_may_start_at_any_packet (void)
{
  for (size_t from = 0; from <= N_MIXED; from++) {
    reset ();
    load (mixed, N_MIXED);
    CHECK_INT (send_from (0, true, from), N_MIXED);
    CHECK_INT (results[0].packets, N_MIXED - from);
    check_sums (0, N_MIXED - from);
    CHECK (memcmp (got[0], data + burst.offset[from], got_bytes[0]) == 0);
  }
}

// A run entered in its middle goes packet by packet, so an error there is not a refusal.
static void
a_run_entered_in_its_middle_handles_errors (void)
{
  static const struct {
    int error, times;
    uint64_t sent;
    WeirDrop reason;
  } cases[] = {
    { EMSGSIZE, -1, 0, WEIR_DROP_TOO_BIG },
    { ENOBUFS, 1, 8, WEIR_DROP_NO_BUFFERS },
    { EPERM, -1, 0, WEIR_DROP_ERROR },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reset ();
    load (mixed, N_MIXED);
    fault.error = cases[i].error;
    fault.times = cases[i].times;
    CHECK_INT (send_from (VICTIM, true, 1), N_MIXED);
    check_sums (VICTIM, N_MIXED - 1);
    CHECK_INT (results[VICTIM].packets, cases[i].sent);
    CHECK_INT (results[VICTIM].dropped[cases[i].reason], N_MIXED - 1 - cases[i].sent);
  }
}

static void
a_reader_without_a_socket_drops_its_packets (void)
{
  WeirAddress address = { .v4 = { .sin_family = AF_INET } };

  reset ();
  load (mixed, N_MIXED);
  CHECK_INT (weir_sender_send (&sender, -1, &address, true, 3, &results[0]), N_MIXED);
  CHECK_INT (results[0].dropped[WEIR_DROP_ERROR], N_MIXED - 3);
  CHECK_INT (n_calls, 0);
}

// The bytes stay the caller's: changed between two sends, each reader gets its own.
static void
bytes_may_change_between_two_sends (void)
{
  reset ();
  load (mixed, N_MIXED);
  send_from (0, true, 0);
  memset (data, 0x55, 100);
  send_from (1, true, 0);
  check_complete (1);
  CHECK (memcmp (got[0], got[1], 100) != 0);
}

int
main (void)
{
  RUN (runs_go_in_one_message);
  RUN (bursts_of_every_shape_are_sent);
  RUN (readers_share_a_system_call);
  RUN (a_failing_reader_affects_no_other);
  RUN (a_reader_that_fails_in_a_shared_call_affects_no_other);
  RUN (a_refusal_is_reported_once);
  RUN (a_blocked_send_continues_where_it_stopped);
  RUN (a_send_may_start_at_any_packet);
  RUN (a_run_entered_in_its_middle_handles_errors);
  RUN (a_reader_without_a_socket_drops_its_packets);
  RUN (bytes_may_change_between_two_sends);
  return tap_done ();
}
