// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs at the egress of a network device. Takes the messages of the slots' sockets (layout.h) and
// sends a clone of each to every reader of its slot. All other packets pass unchanged.
//
// A segmented message (GSO) is one packet here, and stays one through the clone, so a clone costs
// the same for one packet and for a frame, as long as the clones have the same numbers of RTP. The
// numbers of the others are written into the message before it is cloned, so the kernel copies the
// message up to there for each clone. A clone has no socket and no mark: this program, which
// sees it, too, lets it pass.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "headers.bpf.h"
#include "layout.h"

char program_license[] SEC ("license") = "LGPL-2.1-or-later";

struct {
  __uint (type, BPF_MAP_TYPE_ARRAY);
  __uint (map_flags, BPF_F_MMAPABLE);
  __uint (max_entries, CLONE_SLOTS);
  __type (key, __u32);
  __type (value, struct clone_slot);
} slots SEC (".maps");

struct job {
  struct __sk_buff *skb;
  struct clone_slot *slot;
  struct clone_numbers now; // what was added to the message's numbers
};

// A change of all numbers of the message.
struct change {
  struct __sk_buff *skb;
  struct clone_slot *slot;
  struct clone_numbers by;
  __u32 size; // of a packet
  __u32 n;    // packets that are done
};

// The beginning of an RTP packet.
struct rtp {
  __u8 bits[2];
  __u16 seq;
  __u32 time;
};

// Adjusts the checksum of a message that is one packet. Of a segmented message, the checksum is
// not there yet.
static __always_inline void
adjust_for (struct __sk_buff *skb, __u32 from, __u32 to, __u64 size)
{
  if (skb->gso_size == 0)
    bpf_l4_csum_replace (skb, UDP_CHECK_AT, from, to, BPF_F_MARK_MANGLED_0 | size);
}

// Writes the timestamp and the sequence number of packet `i`.
static long
change_one (__u32 i, struct change *change)
{
  __u32 at = PAYLOAD_AT + i * change->size;
  struct __sk_buff *skb = change->skb;
  struct rtp from, to;

  if (i >= CLONE_PACKETS)
    return 1;
  if (change->slot->rtp >> i & 1) {
    if (bpf_skb_load_bytes (skb, at, &from, sizeof from) < 0)
      return 1;
    to = from;
    to.seq = bpf_htons (bpf_ntohs (from.seq) + change->by.seq);
    to.time = bpf_htonl (bpf_ntohl (from.time) + change->by.time);
    adjust_for (skb, from.seq, to.seq, sizeof to.seq);
    adjust_for (skb, from.time, to.time, sizeof to.time);
    if (bpf_skb_store_bytes (skb, at, &to, sizeof to, 0) < 0)
      return 1;
  }
  change->n++;
  return 0;
}

// Writes the picture id of packet `i`, if it has one: 7 or 15 bits, at an even number of bytes.
static long
change_picture (__u32 i, struct change *change)
{
  __u32 at = PAYLOAD_AT + i * change->size, picture_at;
  struct __sk_buff *skb = change->skb;
  __u16 from = 0, to;
  long r;

  if (i >= CLONE_PACKETS)
    return 1;
  picture_at = change->slot->picture_at[i];
  if (picture_at & CLONE_WIDE_ID) {
    at += picture_at & ~CLONE_WIDE_ID;
    r = bpf_skb_load_bytes (skb, at, &from, sizeof from);
    to = bpf_htons ((bpf_ntohs (from) + change->by.picture) | 0x8000);
    adjust_for (skb, from, to, sizeof to);
    if (r < 0 || bpf_skb_store_bytes (skb, at, &to, sizeof to, 0) < 0)
      return 1;
  } else if (picture_at) {
    at += picture_at;
    r = bpf_skb_load_bytes (skb, at, &from, 1);
    to = bpf_htons ((bpf_ntohs (from) + (change->by.picture << 8)) & 0x7f00);
    adjust_for (skb, from, to, sizeof to);
    if (r < 0 || bpf_skb_store_bytes (skb, at, &to, 1, 0) < 0)
      return 1;
  }
  change->n++;
  return 0;
}

// Writes the numbers of reader `i` into the message. Returns 0 or a negative errno; then the
// message is good for no reader. Not inlined: otherwise later compilers keep a number on the stack
// where a pointer was, which the kernel refuses to programs without CAP_PERFMON.
static __noinline int
renumber (struct job *job, __u32 i)
{
  struct clone_slot *slot = job->slot;
  const struct clone_numbers *to = &slot->numbers[i];
  struct change change = { .skb = job->skb, .slot = slot, .size = job->skb->gso_size };

  change.by.time = to->time - job->now.time;
  change.by.seq = to->seq - job->now.seq;
  change.by.picture = to->picture - job->now.picture;
  if (!change.by.time && !change.by.seq && !change.by.picture)
    return 0;
  // Once for all numbers, as each of these calls may copy the message.
  if (i == slot->n_plain && bpf_skb_pull_data (job->skb, PAYLOAD_AT + slot->numbers_end) < 0)
    return -ENOMEM;
  bpf_loop (slot->n_packets, change_one, &change, 0);
  if (change.n == slot->n_packets && change.by.picture) {
    change.n = 0;
    bpf_loop (slot->n_packets, change_picture, &change, 0);
  }
  job->now = *to;
  return change.n == slot->n_packets ? 0 : -EINVAL;
}

// Sends the clone of reader `i`. A callback, as the verifier allows no loop with pointers here
// without the capability CAP_PERFMON.
static long
clone_one (__u32 i, struct job *job)
{
  struct clone_slot *slot = job->slot;
  int r;

  if (i >= CLONE_READERS || (i >= slot->n_plain && renumber (job, i) < 0))
    return 1;
  r = address_to (job->skb, &slot->readers[i]);
  if (r == 0)
    r = bpf_clone_redirect (job->skb, job->skb->ifindex, 0);
  if (r == -ENOMEM)
    return 1;
  slot->results[i] = r;
  slot->n_done = i + 1;
  return 0;
}

SEC ("tc")
int
clone_burst (struct __sk_buff *skb)
{
  __u32 number = skb->mark - CLONE_MARK;
  struct clone_slot *slot;
  struct job job;
  __u64 took;

  if (number >= CLONE_SLOTS || !(slot = bpf_map_lookup_elem (&slots, &number))
      || bpf_get_socket_cookie (skb) != slot->cookie)
    return TC_ACT_UNSPEC;
  // It is a message of a slot. It goes no further, also if it comes late, after the slot was
  // disarmed.
  if (__sync_val_compare_and_swap (&slot->state, CLONE_ARMED, CLONE_RUNNING) != CLONE_ARMED)
    return TC_ACT_SHOT;
  if (slot->device != skb->ifindex || !is_plain_udp (skb)
      || set_service (skb, slot->tos, slot->ttl) < 0) {
    __sync_lock_test_and_set (&slot->state, CLONE_REFUSED);
    return TC_ACT_SHOT;
  }
  skb->mark = 0;
  skb->priority = slot->priority;
  slot->n_done = 0;
  job = (struct job) { .skb = skb, .slot = slot };
  took = bpf_ktime_get_ns ();
  bpf_loop (slot->n, clone_one, &job, 0);
  took = bpf_ktime_get_ns () - took;
  if (took > slot->longest)
    slot->longest = took;
  __sync_lock_test_and_set (&slot->state, CLONE_DONE);
  return TC_ACT_SHOT;
}
