// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs at the egress of a network device. Takes the messages of the slots' sockets (layout.h) and
// sends a clone of each to every reader of its slot. All other packets pass unchanged.
//
// A segmented message (GSO) is one packet here, and stays one through the clone, so a clone costs
// the same for one packet and for a frame. A clone has no socket and no mark: this program, which
// sees it, too, lets it pass.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

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
};

// Sends the clone of reader `i`. A callback, as the verifier allows no loop with pointers here
// without the capability CAP_PERFMON.
static long
clone_one (__u32 i, struct job *job)
{
  struct clone_slot *slot = job->slot;
  int r;

  if (i >= CLONE_READERS)
    return 1;
  r = address_to (job->skb, &slot->readers[i]);
  slot->results[i] = r < 0 ? r : bpf_clone_redirect (job->skb, job->skb->ifindex, 0);
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
  job = (struct job) { skb, slot };
  took = bpf_ktime_get_ns ();
  bpf_loop (slot->n, clone_one, &job, 0);
  took = bpf_ktime_get_ns () - took;
  if (took > slot->longest)
    slot->longest = took;
  __sync_lock_test_and_set (&slot->state, CLONE_DONE);
  return TC_ACT_SHOT;
}
