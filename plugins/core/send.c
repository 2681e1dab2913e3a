// SPDX-License-Identifier: LGPL-2.1-or-later
#include "send.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)
#define NS_PER_MS 1000000

static int64_t
system_now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

static const WeirSendOps system_ops = { sendmsg, sendmmsg, poll, system_now_ns };

void
weir_sender_init (WeirSender *sender, WeirGso gso, const WeirSendOps *ops)
{
  memset (sender, 0, sizeof *sender);
  atomic_init (&sender->cancelled, false);
  sender->ops = ops ? ops : &system_ops;
  sender->gso = gso;
}

void
weir_sender_set_gso (WeirSender *sender, WeirGso gso)
{
  if (sender->gso == gso)
    return;
  sender->gso = gso;
  sender->no_gso[0] = sender->no_gso[1] = false;
}

// Lays out the messages of a batch, once for all readers.
static void
lay_out (WeirSender *sender, const WeirBatch *batch)
{
  size_t first = 0;

  for (size_t i = 0; i < batch->n; i++) {
    sender->single_iov[i] = (struct iovec) {
      .iov_base = (void *) (batch->data + batch->offset[i]),
      .iov_len = weir_batch_len (batch, i),
    };
    sender->singles[i] = (struct mmsghdr) {
      .msg_hdr = { .msg_iov = &sender->single_iov[i], .msg_iovlen = 1 },
    };
  }

  for (sender->n_runs = 0; first < batch->n; sender->n_runs++) {
    size_t run = sender->n_runs;
    size_t size = weir_batch_len (batch, first);
    size_t end = first + 1;
    struct msghdr *msg = &sender->runs[run].msg_hdr;

    while (end < batch->n && weir_batch_len (batch, end) == size)
      end++;
    if (end < batch->n && weir_batch_len (batch, end) < size)
      end++;

    sender->run_first[run] = first;
    sender->run_iov[run] = (struct iovec) {
      .iov_base = (void *) (batch->data + batch->offset[first]),
      .iov_len = batch->offset[end] - batch->offset[first],
    };
    *msg = (struct msghdr) { .msg_iov = &sender->run_iov[run], .msg_iovlen = 1 };
    if (end - first > 1) {
      uint16_t segment = (uint16_t) size;
      struct cmsghdr *cmsg;

      msg->msg_control = sender->run_control[run].bytes;
      msg->msg_controllen = sizeof sender->run_control[run].bytes;
      cmsg = CMSG_FIRSTHDR (msg);
      cmsg->cmsg_level = SOL_UDP;
      cmsg->cmsg_type = UDP_SEGMENT;
      cmsg->cmsg_len = CMSG_LEN (sizeof segment);
      memcpy (CMSG_DATA (cmsg), &segment, sizeof segment);
    }
    first = end;
  }
  sender->run_first[sender->n_runs] = batch->n;
}

// Messages sent, at least one, or a negative errno which belongs to the first of them.
static int
transmit (WeirSender *sender, int fd, struct mmsghdr *msgs, size_t n)
{
  int r;

  do {
    if (n == 1)
      r = sender->ops->sendmsg (fd, &msgs->msg_hdr, SEND_FLAGS) < 0 ? -1 : 1;
    else
      r = sender->ops->sendmmsg (fd, msgs, (unsigned) n, SEND_FLAGS);
  } while (r < 0 && errno == EINTR);
  if (r < 0)
    return -errno;
  return r == 0 ? -EIO : r;
}

// Waits for room, and takes what it waited from the budget. False if there is none in time.
static bool
wait_for_room (WeirSender *sender, int fd, int64_t *budget_ns)
{
  struct pollfd pfd = { .fd = fd, .events = POLLOUT };

  sender->n_waits++;
  while (*budget_ns > 0 && !atomic_load_explicit (&sender->cancelled, memory_order_relaxed)) {
    int64_t before = sender->ops->now_ns ();
    int64_t ms = (*budget_ns + NS_PER_MS - 1) / NS_PER_MS;
    int r = sender->ops->poll (&pfd, 1, ms > 1000 ? 1000 : (int) ms);
    int error = errno;
    int64_t waited = sender->ops->now_ns () - before;

    // A socket that says it is writable and then is not must not keep the pass going for ever.
    *budget_ns -= waited > 0 ? waited : 1;
    if (r > 0)
      return true;
    if (r < 0 && error != EINTR)
      return false;
  }
  return false;
}

static bool
refuses_gso (int error)
{
  return error == EINVAL || error == EIO || error == EMSGSIZE || error == EOPNOTSUPP;
}

static void
count_sent (WeirSender *sender, const struct mmsghdr *msgs, const struct iovec *iov, size_t n,
    WeirSendResult *result)
{
  for (size_t i = 0; i < n; i++) {
    result->bytes += iov[i].iov_len;
    sender->n_gso_sends += msgs[i].msg_hdr.msg_controllen > 0;
  }
  sender->n_sends += n;
}

// Where an attempt ended: every packet before `packet` is accounted.
typedef struct {
  size_t packet;
  bool gso_failed;
} Attempt;

// Sends packets from `packet` on, as runs or as single packets; `packet` has to begin a run in the
// former case, which it does as only the first packet is asked for.
static Attempt
attempt (WeirSender *sender, const WeirBatch *batch, const WeirSendTarget *target, bool gso,
    size_t packet, int64_t *budget_ns, WeirSendResult *result)
{
  struct mmsghdr *msgs = gso ? sender->runs : sender->singles;
  const struct iovec *iov = gso ? sender->run_iov : sender->single_iov;
  size_t n = gso ? sender->n_runs : batch->n;
  size_t at = gso ? 0 : packet;
  bool retried = false;

  while (at < n) {
    size_t first = gso ? sender->run_first[at] : at;
    size_t next = gso ? sender->run_first[at + 1] : at + 1;
    int r = transmit (sender, target->fd, msgs + at, n - at);

    if (r > 0) {
      size_t end = at + (size_t) r < n ? at + (size_t) r : n;

      count_sent (sender, msgs + at, iov + at, end - at, result);
      result->packets += (gso ? sender->run_first[end] : end) - first;
      at = end;
      retried = false;
      continue;
    }

    if (msgs[at].msg_hdr.msg_controllen > 0 && refuses_gso (-r)) {
      sender->n_fallbacks++;
      return (Attempt) { first, true };
    }

    switch (-r) {
      case EAGAIN:
        if (wait_for_room (sender, target->fd, budget_ns))
          continue;
        result->dropped[WEIR_DROP_WOULD_BLOCK] += batch->n - first;
        return (Attempt) { batch->n, false };
      case EMSGSIZE:
        result->dropped[WEIR_DROP_TOO_BIG] += next - first;
        break;
      case ENOBUFS:
      case ENOMEM:
        result->dropped[WEIR_DROP_NO_BUFFERS] += next - first;
        break;
      case ECONNREFUSED:
        // What an earlier packet met, maybe of another reader: asking takes it off the socket.
        if (!retried) {
          retried = true;
          continue;
        }
        result->dropped[WEIR_DROP_ERROR] += next - first;
        break;
      default:
        // It would meet the next packet just so.
        result->dropped[WEIR_DROP_ERROR] += batch->n - first;
        return (Attempt) { batch->n, false };
    }
    at++;
    retried = false;
  }
  return (Attempt) { batch->n, false };
}

static void
send_once (WeirSender *sender, const WeirBatch *batch, const WeirSendTarget *target,
    int64_t *budget_ns, WeirSendResult *result)
{
  bool *no_gso = &sender->no_gso[target->address.ss_family == AF_INET6];
  bool gso = sender->gso == WEIR_GSO_ON || (sender->gso == WEIR_GSO_AUTO && !*no_gso);
  Attempt done = attempt (sender, batch, target, gso, 0, budget_ns, result);

  if (done.gso_failed) {
    *no_gso = true;
    attempt (sender, batch, target, false, done.packet, budget_ns, result);
  }
}

static void
set_address (struct mmsghdr *msgs, size_t n, const WeirSendTarget *target)
{
  for (size_t i = 0; i < n; i++) {
    msgs[i].msg_hdr.msg_name = (void *) &target->address;
    msgs[i].msg_hdr.msg_namelen = target->address_len;
  }
}

void
weir_send_pass (WeirSender *sender, const WeirBatch *batch, const WeirSendTarget *targets, size_t n,
    size_t start, int64_t budget_ns, WeirSendResult *results)
{
  lay_out (sender, batch);
  for (size_t k = 0; k < n; k++) {
    size_t i = (start % n + k) % n;
    const WeirSendTarget *target = &targets[i];
    WeirSendResult *result = &results[i];

    *result = (WeirSendResult) { 0 };
    set_address (sender->runs, sender->n_runs, target);
    set_address (sender->singles, batch->n, target);
    for (uint32_t t = 0; t < target->times; t++) {
      if (target->fd < 0)
        result->dropped[WEIR_DROP_ERROR] += batch->n;
      else if (atomic_load_explicit (&sender->cancelled, memory_order_relaxed))
        result->dropped[WEIR_DROP_FLUSHED] += batch->n;
      else
        send_once (sender, batch, target, &budget_ns, result);
    }
  }
}
