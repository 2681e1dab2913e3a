// SPDX-License-Identifier: LGPL-2.1-or-later
#include "send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include "tap.h"

// A system of our own: it takes segmented messages apart as the kernel does, writes down which
// bytes each reader got, and fails for one reader as a case tells.

#define N_READERS 5
#define VICTIM 2
#define FIRST_PORT 5000

static struct {
  int error;     // for the victim: each call fails with this ...
  int times;     // ... so often (-1: always)
  bool only_gso; // ... but only if the message is segmented
  size_t above;  // ... but only a datagram longer than this
  int after;     // ... but only after so many calls for the victim went well
  unsigned most; // sendmmsg sends no more than this at once (0: all)
  bool room_after_poll;
} fault;

static uint8_t got[N_READERS][1 << 20];
static size_t got_bytes[N_READERS], got_packets[N_READERS];
static unsigned n_calls, n_messages, n_polls;
static int victim_calls;
static size_t order[64], n_order;
static int64_t now;

static int
fake_send_one (const struct msghdr *msg)
{
  struct sockaddr_storage address;
  const struct iovec *iov = msg->msg_iov;
  size_t segment = iov->iov_len;
  int reader;
  struct cmsghdr *cmsg;

  memset (&address, 0, sizeof address);
  memcpy (&address, msg->msg_name, msg->msg_namelen);
  reader = ntohs (address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &address)->sin6_port
                                                : ((struct sockaddr_in *) &address)->sin_port)
           - FIRST_PORT;
  for (cmsg = msg->msg_controllen ? CMSG_FIRSTHDR (msg) : NULL; cmsg;) {
    uint16_t size;

    memcpy (&size, CMSG_DATA (cmsg), sizeof size);
    CHECK (cmsg->cmsg_level == SOL_UDP && cmsg->cmsg_type == UDP_SEGMENT);
    CHECK ((iov->iov_len + size - 1) / size <= 64 && iov->iov_len <= 65507);
    CHECK (iov->iov_len > size);
    segment = size;
    cmsg = NULL;
  }

  if (reader == VICTIM && fault.error && fault.times != 0
      && (!fault.only_gso || msg->msg_controllen > 0) && segment > fault.above
      && victim_calls++ >= fault.after) {
    if (fault.times > 0)
      fault.times--;
    errno = fault.error;
    return -1;
  }

  if (n_order < 64 && (n_order == 0 || order[n_order - 1] != (size_t) reader))
    order[n_order++] = (size_t) reader;
  memcpy (got[reader] + got_bytes[reader], iov->iov_base, iov->iov_len);
  got_bytes[reader] += iov->iov_len;
  got_packets[reader] += segment ? (iov->iov_len + segment - 1) / segment : 1;
  n_messages++;
  return 0;
}

static ssize_t
fake_sendmsg (int fd, const struct msghdr *msg, int flags)
{
  CHECK (flags & MSG_DONTWAIT);
  n_calls++;
  return fake_send_one (msg) < 0 ? -1 : (ssize_t) msg->msg_iov->iov_len;
}

static int
fake_sendmmsg (int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
  unsigned i;

  CHECK (flags & MSG_DONTWAIT);
  n_calls++;
  if (fault.most && n > fault.most)
    n = fault.most;
  for (i = 0; i < n; i++) {
    if (fake_send_one (&msgs[i].msg_hdr) < 0)
      return i > 0 ? (int) i : -1;
  }
  return (int) n;
}

static int
fake_poll (struct pollfd *fds, nfds_t n, int timeout_ms)
{
  n_polls++;
  if (fault.room_after_poll) {
    now += 1000000;
    return 1;
  }
  now += (int64_t) timeout_ms * 1000000;
  return 0;
}

static int64_t
fake_now_ns (void)
{
  return now;
}

static const WeirSendOps fake_ops = { fake_sendmsg, fake_sendmmsg, fake_poll, fake_now_ns };

static WeirBatch batch;
static WeirSender sender;
static WeirSendTarget targets[N_READERS];
static WeirSendResult results[N_READERS];

static void
reset (WeirGso gso)
{
  memset (&fault, 0, sizeof fault);
  memset (got_bytes, 0, sizeof got_bytes);
  memset (got_packets, 0, sizeof got_packets);
  memset (targets, 0, sizeof targets);
  n_calls = n_messages = n_polls = 0;
  victim_calls = 0;
  n_order = 0;
  now = 0;
  for (int i = 0; i < N_READERS; i++) {
    struct sockaddr_in a = { .sin_family = AF_INET,
      .sin_port = htons ((uint16_t) (FIRST_PORT + i)) };

    memcpy (&targets[i].address, &a, sizeof a);
    targets[i].address_len = sizeof a;
    targets[i].fd = 3;
    targets[i].times = 1;
  }
  weir_sender_init (&sender, gso, &fake_ops);
}

static void
fill (const size_t *sizes, size_t n)
{
  static uint8_t packet[65507];

  weir_batch_clear (&batch);
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < sizes[i]; k++)
      packet[k] = (uint8_t) (i * 31 + k * 7);
    packet[0] = 0x80;
    CHECK (weir_batch_add (&batch, packet, sizes[i], 1) >= 0);
  }
}

static const size_t mixed[] = { 1200, 1200, 1200, 700, 60, 900, 900, 400, 1300, 1300 };
#define N_MIXED 10
#define MIXED_RUNS 4 // 1200 x3 + 700; 60; 900 x2 + 400; 1300 x2

static uint64_t
dropped (const WeirSendResult *result)
{
  uint64_t sum = 0;

  for (int i = 0; i < WEIR_N_DROPS; i++)
    sum += result->dropped[i];
  return sum;
}

// What each reader was told to have got is what it got, and nothing is unaccounted.
static void
check_sums (void)
{
  for (int i = 0; i < N_READERS; i++) {
    CHECK_INT (results[i].packets + dropped (&results[i]), batch.n * targets[i].times);
    CHECK_INT (results[i].packets, got_packets[i]);
    CHECK_INT (results[i].bytes, got_bytes[i]);
  }
}

static void
check_complete (int reader)
{
  CHECK_INT (got_packets[reader], batch.n);
  CHECK_INT (got_bytes[reader], weir_batch_bytes (&batch));
  CHECK (memcmp (got[reader], batch.data, weir_batch_bytes (&batch)) == 0);
}

static void
sends_runs_in_one_message (void)
{
  reset (WEIR_GSO_AUTO);
  fill (mixed, N_MIXED);
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  check_sums ();
  for (int i = 0; i < N_READERS; i++)
    check_complete (i);
  CHECK_INT (n_messages, N_READERS * MIXED_RUNS);
  CHECK_INT (n_calls, N_READERS);
  CHECK_INT (sender.n_sends, N_READERS * MIXED_RUNS);
  CHECK_INT (sender.n_gso_sends, N_READERS * (MIXED_RUNS - 1));

  reset (WEIR_GSO_OFF);
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  check_sums ();
  CHECK_INT (n_messages, N_READERS * N_MIXED);
  CHECK_INT (sender.n_gso_sends, 0);
}

static void
sends_every_shape (void)
{
  static const struct {
    size_t sizes[64];
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
    reset (WEIR_GSO_AUTO);
    fill (cases[i].sizes, cases[i].n);
    weir_send_pass (&sender, &batch, targets, N_READERS, i, 0, results);
    check_sums ();
    check_complete (0);
    CHECK_INT (n_messages, N_READERS * cases[i].messages);
  }
  for (int i = 0; i < 64; i++)
    all[i] = 1000;
  reset (WEIR_GSO_AUTO);
  fill (all, 64);
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  check_sums ();
  CHECK_INT (n_messages, N_READERS);
}

static void
begins_at_another_reader (void)
{
  for (size_t start = 0; start < 12; start++) {
    reset (WEIR_GSO_AUTO);
    fill (mixed, N_MIXED);
    weir_send_pass (&sender, &batch, targets, N_READERS, start, 0, results);
    CHECK_INT (n_order, N_READERS);
    for (size_t i = 0; i < N_READERS; i++)
      CHECK_INT (order[i], (start + i) % N_READERS);
  }
  weir_send_pass (&sender, &batch, targets, 0, 3, 0, results);
}

// For each error, what becomes of the victim. The others always get everything.
static void
one_reader_fails_alone (void)
{
  static const struct {
    const char *what;
    int error, times;
    bool only_gso;
    size_t above;
    int after;
    bool room;
    uint64_t sent; // by the victim
    WeirDrop reason;
  } cases[] = {
    { "full, and stays full", EAGAIN, -1, false, 0, 0, false, 0, WEIR_DROP_WOULD_BLOCK },
    { "full after a run", EAGAIN, -1, false, 0, 1, false, 4, WEIR_DROP_WOULD_BLOCK },
    { "full, then room", EAGAIN, 1, false, 0, 0, true, N_MIXED, 0 },
    { "says room but has none", EAGAIN, -1, false, 0, 0, true, 0, WEIR_DROP_WOULD_BLOCK },
    { "no buffers once", ENOBUFS, 1, false, 0, 0, false, 6, WEIR_DROP_NO_BUFFERS },
    { "no buffers", ENOBUFS, -1, false, 0, 0, false, 0, WEIR_DROP_NO_BUFFERS },
    { "refused once", ECONNREFUSED, 1, false, 0, 0, false, N_MIXED, 0 },
    { "refused", ECONNREFUSED, -1, false, 0, 0, false, 0, WEIR_DROP_ERROR },
    { "not permitted", EPERM, -1, false, 0, 0, false, 0, WEIR_DROP_ERROR },
    { "unreachable after two runs", ENETUNREACH, -1, false, 0, 2, false, 5, WEIR_DROP_ERROR },
    { "interrupted", EINTR, 7, false, 0, 0, false, N_MIXED, 0 },
    { "too big", EMSGSIZE, -1, false, 1250, 0, false, 8, WEIR_DROP_TOO_BIG },
    { "all too big", EMSGSIZE, -1, false, 0, 0, false, 0, WEIR_DROP_TOO_BIG },
    { "no segmentation: EINVAL", EINVAL, -1, true, 0, 0, false, N_MIXED, 0 },
    { "no segmentation: EIO", EIO, -1, true, 0, 0, false, N_MIXED, 0 },
    { "no segmentation: EMSGSIZE", EMSGSIZE, -1, true, 0, 0, false, N_MIXED, 0 },
    { "no segmentation: EOPNOTSUPP", EOPNOTSUPP, -1, true, 0, 0, false, N_MIXED, 0 },
    { "no segmentation, second run", EIO, -1, true, 0, 1, false, N_MIXED, 0 },
    { "no segmentation, last run", EINVAL, -1, true, 0, 2, false, N_MIXED, 0 },
    { "EIO for everything", EIO, -1, false, 0, 0, false, 0, WEIR_DROP_ERROR },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (unsigned most = 0; most < 4; most++) {
      reset (WEIR_GSO_AUTO);
      fill (mixed, N_MIXED);
      fault.error = cases[i].error;
      fault.times = cases[i].times;
      fault.only_gso = cases[i].only_gso;
      fault.above = cases[i].above;
      fault.after = cases[i].after;
      fault.room_after_poll = cases[i].room;
      fault.most = most;
      weir_send_pass (&sender, &batch, targets, N_READERS, 1, 100 * 1000000, results);
      check_sums ();
      for (int r = 0; r < N_READERS; r++) {
        if (r != VICTIM || cases[i].sent == N_MIXED)
          check_complete (r);
      }
      if (results[VICTIM].packets != cases[i].sent)
        printf ("# %s, %u at once\n", cases[i].what, most);
      CHECK_INT (results[VICTIM].packets, cases[i].sent);
      CHECK_INT (results[VICTIM].dropped[cases[i].reason], N_MIXED - cases[i].sent);
      CHECK (now <= 100 * 1000000);
    }
  }
}

static void
falls_back_for_good (void)
{
  reset (WEIR_GSO_AUTO);
  fill (mixed, N_MIXED);
  fault.error = EIO;
  fault.times = 1;
  fault.only_gso = true;
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  check_sums ();
  CHECK_INT (sender.n_fallbacks, 1);
  CHECK (sender.no_gso[0] && !sender.no_gso[1]);
  n_messages = 0;
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  CHECK_INT (n_messages, N_READERS * N_MIXED);

  // "on" tries with every batch anew.
  reset (WEIR_GSO_ON);
  fault.error = EIO;
  fault.times = 1;
  fault.only_gso = true;
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  n_messages = 0;
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  CHECK_INT (n_messages, N_READERS * MIXED_RUNS);
}

static void
waits_within_one_budget (void)
{
  reset (WEIR_GSO_AUTO);
  fill (mixed, N_MIXED);
  fault.error = EAGAIN;
  fault.times = -1;
  targets[VICTIM].times = 4;
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 100 * 1000000, results);
  check_sums ();
  CHECK_INT (n_polls, 1);
  CHECK_INT (now, 100 * 1000000);
  CHECK_INT (results[VICTIM].dropped[WEIR_DROP_WOULD_BLOCK], 4 * N_MIXED);
}

static void
sends_as_often_as_due (void)
{
  reset (WEIR_GSO_AUTO);
  fill (mixed, N_MIXED);
  targets[1].times = 3;
  targets[3].fd = -1;
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  check_sums ();
  CHECK_INT (got_packets[1], 3 * N_MIXED);
  CHECK_INT (results[3].dropped[WEIR_DROP_ERROR], N_MIXED);
  check_complete (0);

  reset (WEIR_GSO_AUTO);
  atomic_store (&sender.cancelled, true);
  weir_send_pass (&sender, &batch, targets, N_READERS, 0, 0, results);
  check_sums ();
  CHECK_INT (n_calls, 0);
  CHECK_INT (results[0].dropped[WEIR_DROP_FLUSHED], N_MIXED);
}

int
main (void)
{
  RUN (sends_runs_in_one_message);
  RUN (sends_every_shape);
  RUN (begins_at_another_reader);
  RUN (one_reader_fails_alone);
  RUN (falls_back_for_good);
  RUN (waits_within_one_budget);
  RUN (sends_as_often_as_due);
  return tap_done ();
}
