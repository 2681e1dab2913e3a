// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/send.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

static const WeirSendOps system_ops = { sendmsg, sendmmsg };

void
weir_sender_init (WeirSender *sender, const WeirSendOps *ops)
{
  memset (sender, 0, sizeof *sender);
  sender->ops = ops ? ops : &system_ops;
}

ssize_t
weir_send_one (const WeirSendOps *ops, int fd, const struct msghdr *msg)
{
  return (ops ? ops : &system_ops)->sendmsg (fd, msg, SEND_FLAGS);
}

const struct iovec *
weir_sender_packets (WeirSender *sender)
{
  const WeirBurst *burst = &sender->burst;

  for (size_t i = 0; i < burst->n && !sender->has_packets; i++) {
    sender->packets[i] = (struct iovec) {
      .iov_base = (void *) (burst->data + burst->offset[i]),
      .iov_len = weir_burst_len (burst, i),
    };
  }
  sender->has_packets = true;
  return sender->packets;
}

static void
lay_out_singles (WeirSender *sender)
{
  weir_sender_packets (sender);
  for (size_t i = 0; i < sender->burst.n && !sender->has_singles; i++) {
    sender->singles[i] = (struct mmsghdr) {
      .msg_hdr = { .msg_iov = &sender->packets[i], .msg_iovlen = 1 },
    };
  }
  sender->has_singles = true;
}

static void
set_segment (WeirSender *sender, size_t run, size_t size)
{
  struct msghdr *msg = &sender->runs[run].msg_hdr;
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

// Reports whether packets `first` to `last` fit into one message. Protected packets may not: the
// burst before their protection does.
static bool
fits (const WeirBurst *burst, size_t first, size_t last)
{
  return burst->offset[last + 1] - burst->offset[first] <= WEIR_PACKET_MAX;
}

static void
lay_out_runs (WeirSender *sender)
{
  const WeirBurst *burst = &sender->burst;
  size_t first = 0;

  for (sender->n_runs = 0; first < burst->n; sender->n_runs++) {
    size_t run = sender->n_runs;
    size_t size = weir_burst_len (burst, first);
    size_t end = first + 1;

    while (end < burst->n && weir_burst_len (burst, end) == size && fits (burst, first, end))
      end++;
    if (end < burst->n && weir_burst_len (burst, end) < size && fits (burst, first, end))
      end++;

    sender->run_first[run] = first;
    sender->run_iov[run] = (struct iovec) {
      .iov_base = (void *) (burst->data + burst->offset[first]),
      .iov_len = burst->offset[end] - burst->offset[first],
    };
    sender->runs[run] =
        (struct mmsghdr) { .msg_hdr = { .msg_iov = &sender->run_iov[run], .msg_iovlen = 1 } };
    if (end - first > 1)
      set_segment (sender, run, size);
    first = end;
  }
  sender->run_first[sender->n_runs] = burst->n;
}

void
weir_sender_load (WeirSender *sender, const WeirBurst *burst)
{
  sender->burst.data = burst->data;
  sender->burst.n = burst->n;
  memcpy (sender->burst.offset, burst->offset, (burst->n + 1) * sizeof burst->offset[0]);
  sender->has_packets = sender->has_singles = false;
  lay_out_runs (sender);
}

// Sends messages. Returns how many were sent, at least one, or a negative errno for the first of
// them.
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

static bool
refuses_gso (int error)
{
  return error == EINVAL || error == EIO || error == EMSGSIZE || error == EOPNOTSUPP;
}

static void
count_send (WeirSendCounters *counters, size_t packets)
{
  size_t doublings = 0;

  while (doublings < WEIR_SEGMENT_CLASSES - 1 && packets >> (doublings + 1))
    doublings++;
  counters->segments[doublings]++;
  counters->sends++;
  counters->gso_sends += packets > 1;
}

// Messages to send (runs or single packets), and the packets of each.
typedef struct {
  struct mmsghdr *msgs;
  const size_t *first; // first packet of each message; NULL: message i is packet i
} Messages;

static size_t
first_packet (const Messages *messages, size_t message)
{
  return messages->first ? messages->first[message] : message;
}

static void
count_sent (
    WeirSender *sender, const Messages *messages, size_t from, size_t end, WeirSendResult *result)
{
  for (size_t m = from; m < end; m++) {
    size_t first = first_packet (messages, m), next = first_packet (messages, m + 1);

    count_send (&sender->counters, next - first);
    result->packets += next - first;
    result->bytes += sender->burst.offset[next] - sender->burst.offset[first];
  }
}

typedef enum { GO_ON, SKIP, GIVE_UP, BLOCKED, REFUSED } Verdict;

// Decides how an error affects a message and the messages after it.
static Verdict
judge (int error, bool segmented, bool retried, WeirDrop *reason)
{
  if (segmented && refuses_gso (error))
    return REFUSED;
  *reason = WEIR_DROP_ERROR;
  switch (error) {
    case EAGAIN:
      return BLOCKED;
    case EMSGSIZE:
      *reason = WEIR_DROP_TOO_BIG;
      return SKIP;
    case ENOBUFS:
    case ENOMEM:
      *reason = WEIR_DROP_NO_BUFFERS;
      return SKIP;
    case ECONNREFUSED:
      // Caused by an earlier packet, maybe to another reader; the failed call has cleared it.
      return retried ? SKIP : GO_ON;
    default:
      return GIVE_UP; // the next packet would fail the same way
  }
}

// Sends messages `at` to `end` - 1. Returns the first packet that is not settled. Sets `refused`
// and stops if a segmented message is refused.
static size_t
send_messages (WeirSender *sender, int fd, const Messages *messages, size_t at, size_t end,
    bool *refused, WeirSendResult *result)
{
  bool retried = false;

  while (at < end) {
    int r = transmit (sender, fd, messages->msgs + at, end - at);
    size_t first = first_packet (messages, at), next = first_packet (messages, at + 1);
    WeirDrop reason = WEIR_DROP_ERROR;

    if (r > 0) {
      size_t sent = at + (size_t) r < end ? at + (size_t) r : end;

      count_sent (sender, messages, at, sent, result);
      at = sent;
      retried = false;
      continue;
    }
    switch (judge (-r, next - first > 1, retried, &reason)) {
      case GO_ON:
        retried = true;
        break;
      case SKIP:
        result->dropped[reason] += next - first;
        result->error = -r;
        at++;
        retried = false;
        break;
      case GIVE_UP:
        result->dropped[reason] += first_packet (messages, end) - first;
        result->error = -r;
        return first_packet (messages, end);
      case BLOCKED:
        sender->counters.blocked++;
        return first;
      case REFUSED:
        sender->counters.fallbacks++;
        result->gso_error = -r;
        *refused = true;
        return first;
    }
  }
  return first_packet (messages, end);
}

static void
set_address (struct mmsghdr *msgs, size_t from, size_t end, const WeirAddress *address)
{
  for (size_t i = from; i < end; i++) {
    msgs[i].msg_hdr.msg_name = (void *) address;
    msgs[i].msg_hdr.msg_namelen = weir_address_len (address);
  }
}

static size_t
send_singles (WeirSender *sender, int fd, const WeirAddress *address, size_t from, size_t end,
    WeirSendResult *result)
{
  const Messages messages = { sender->singles, NULL };
  bool refused = false;

  lay_out_singles (sender);
  set_address (sender->singles, from, end, address);
  return send_messages (sender, fd, &messages, from, end, &refused, result);
}

size_t
weir_sender_send (WeirSender *sender, int fd, const WeirAddress *address, bool gso, size_t from,
    WeirSendResult *result)
{
  const Messages runs = { sender->runs, sender->run_first };
  size_t n = sender->burst.n;
  size_t run = 0;
  bool refused = false;

  if (fd < 0) {
    result->dropped[WEIR_DROP_ERROR] += n - from;
    result->error = EAFNOSUPPORT;
    return n;
  }
  if (!gso)
    return send_singles (sender, fd, address, from, n, result);

  // The rest of a run that an earlier call began is sent packet by packet.
  while (sender->run_first[run] < from)
    run++;
  if (sender->run_first[run] > from) {
    size_t next = sender->run_first[run];

    from = send_singles (sender, fd, address, from, next, result);
    if (from < next)
      return from;
  }
  set_address (sender->runs, run, sender->n_runs, address);
  from = send_messages (sender, fd, &runs, run, sender->n_runs, &refused, result);
  return refused ? send_singles (sender, fd, address, from, n, result) : from;
}

// Lays out the messages for `n` readers one after the other. Returns how many there are.
static size_t
lay_out_many (WeirSender *sender, const WeirSendTarget *targets, size_t n)
{
  struct mmsghdr *msgs = sender->many;

  for (size_t t = 0; t < n; t++, msgs += sender->n_runs) {
    memcpy (msgs, sender->runs, sender->n_runs * sizeof *msgs);
    set_address (msgs, 0, sender->n_runs, targets[t].address);
  }
  return n * sender->n_runs;
}

size_t
weir_sender_send_many (WeirSender *sender, int fd, WeirSendTarget *targets, size_t n)
{
  const Messages runs = { sender->runs, sender->run_first };
  size_t n_runs = sender->n_runs, at_once = WEIR_SEND_MESSAGES / n_runs;
  size_t t = 0;

  while (t < n) {
    size_t end = n - t < at_once ? n : t + at_once, n_sent = 0;
    WeirSendTarget *stopped;

    if (end - t > 1 && fd >= 0) {
      int r = transmit (sender, fd, sender->many, lay_out_many (sender, targets + t, end - t));

      n_sent = r > 0 ? (size_t) r : 0;
    }
    for (; n_sent >= n_runs; n_sent -= n_runs, t++) {
      count_sent (sender, &runs, 0, n_runs, &targets[t].result);
      targets[t].settled = sender->burst.n;
    }
    if (t == end)
      continue;
    // Its message failed, or it is the only reader left. A send to it alone returns the error.
    stopped = &targets[t++];
    count_sent (sender, &runs, 0, n_sent, &stopped->result);
    stopped->settled = weir_sender_send (
        sender, fd, stopped->address, true, sender->run_first[n_sent], &stopped->result);
    if (stopped->settled < sender->burst.n)
      break;
  }
  return t;
}

static bool
has_errors (const WeirCloneTarget *clones, size_t n)
{
  for (size_t t = 0; t < n; t++) {
    if (clones[t].error)
      return true;
  }
  return false;
}

// Gives the targets the packets before `end`, which were sent to all of them.
static void
begin_targets (const WeirBurst *burst, size_t end, WeirSendTarget *targets, size_t n)
{
  for (size_t t = 0; t < n; t++)
    targets[t] = (WeirSendTarget) {
      .settled = burst->n,
      .result = { .packets = end, .bytes = burst->offset[end] },
    };
}

// Counts the clones of packets `first` to `next` - 1.
static void
count_clones (WeirSender *sender, size_t first, size_t next, const WeirCloneTarget *clones,
    WeirSendTarget *targets, size_t n)
{
  const uint32_t *offset = sender->burst.offset;

  for (size_t t = 0; t < n; t++) {
    WeirSendResult *result = &targets[t].result;
    int error = clones[t].error;

    if (error) {
      result->dropped[error == ENOBUFS ? WEIR_DROP_NO_BUFFERS : WEIR_DROP_ERROR] += next - first;
      result->error = error;
      sender->counters.clones_dropped++;
    } else {
      result->packets += next - first;
      result->bytes += offset[next] - offset[first];
      sender->counters.clones++;
    }
  }
}

// Returns the end of the part of a run that is cloned at once, from packet `first` on.
static size_t
end_of_part (const WeirSender *sender, size_t first, size_t next, bool own_numbers)
{
  const uint32_t *offset = sender->burst.offset;

  while (own_numbers && next > first + 1 && offset[next] - offset[first] > WEIR_CLONES_OWN_BYTES)
    next--;
  return next;
}

// Gives clones of packets `first` to `next` - 1, which belong to a run, to `n` readers. Returns how
// many got one.
static size_t
clone_part (const WeirSender *sender, const WeirCloner *cloner, int fd, size_t run, size_t first,
    size_t next, const WeirBurstNumbers *numbers, WeirCloneTarget *clones, size_t n)
{
  const WeirBurst *burst = &sender->burst;
  struct msghdr header = sender->runs[run].msg_hdr;
  struct iovec iov = {
    .iov_base = (void *) (burst->data + burst->offset[first]),
    .iov_len = burst->offset[next] - burst->offset[first],
  };
  const WeirCloneMessage message = {
    .header = &header,
    .n_packets = next - first,
    .rtp = numbers->rtp >> first,
    .picture_at = numbers->picture_at ? numbers->picture_at + first : NULL,
  };

  header.msg_iov = &iov;
  if (next - first == 1)
    header.msg_controllen = 0;
  return cloner->send (&message, fd, clones, n);
}

bool
weir_sender_clone (WeirSender *sender, const WeirCloner *cloner, int fd,
    const WeirBurstNumbers *numbers, WeirCloneTarget *clones, WeirSendTarget *targets, size_t n)
{
  size_t n_left = n, run = 0, next;
  bool all = true;

  for (size_t first = 0; first < sender->burst.n && n_left > 0; first = next) {
    size_t n_sent;

    if (first == sender->run_first[run + 1])
      run++;
    next = end_of_part (
        sender, first, sender->run_first[run + 1], !weir_clone_is_plain (&clones[n_left - 1]));
    n_sent = clone_part (sender, cloner, fd, run, first, next, numbers, clones, n_left);
    sender->counters.triggers += n_sent > 0;
    if (all && (n_sent < n || has_errors (clones, n))) {
      all = false;
      begin_targets (&sender->burst, first, targets, n);
    }
    for (size_t t = n_sent; t < n_left; t++)
      targets[t].settled = first;
    n_left = n_sent;
    if (all)
      sender->counters.clones += n;
    else
      count_clones (sender, first, next, clones, targets, n_left);
  }
  return all;
}
