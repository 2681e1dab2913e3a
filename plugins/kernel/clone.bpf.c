// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs at the egress of a network device. Takes the messages of the slots' sockets (layout.h) and
// sends a clone of each to every reader of its slot. All other packets pass unchanged.
//
// A segmented message (GSO) is one packet here, and stays one through the clone, so a clone costs
// the same for one packet and for a frame. A clone has no socket and no mark: this program, which
// sees it, too, lets it pass.
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

char program_license[] SEC ("license") = "LGPL-2.1-or-later";

struct {
  __uint (type, BPF_MAP_TYPE_ARRAY);
  __uint (map_flags, BPF_F_MMAPABLE);
  __uint (max_entries, CLONE_SLOTS);
  __type (key, __u32);
  __type (value, struct clone_slot);
} slots SEC (".maps");

struct headers {
  struct ethhdr eth;
  struct iphdr ip;
  struct udphdr udp;
} __attribute__ ((packed, aligned (2)));

#define IP_AT sizeof (struct ethhdr)
#define UDP_CHECK_AT (IP_AT + sizeof (struct iphdr) + __builtin_offsetof (struct udphdr, check))

static __always_inline struct headers *
headers_of (struct __sk_buff *skb)
{
  return (void *) (long) skb->data;
}

// Reports whether the headers are there. Without the capability CAP_PERFMON, the verifier allows no
// other comparison of the pointer.
static __always_inline int
has_headers (struct __sk_buff *skb, struct headers *headers)
{
  return (void *) (headers + 1) <= (void *) (long) skb->data_end;
}

static __always_inline __u16
fold (__u64 sum)
{
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (__u16) ((sum & 0xffff) + (sum >> 16));
}

static __always_inline __u16
ip_checksum (const struct headers *headers)
{
  const __u16 *words = (const void *) ((const char *) headers + IP_AT);
  __u64 sum = 0;

#pragma unroll
  for (int i = 0; i < 10; i++)
    sum += words[i];
  return (__u16) ~fold (sum);
}

// Adjusts the UDP checksum of a message that is one packet, and may be complete or left to the
// device. Returns 0 or a negative errno.
static __always_inline int
adjust_checksum (struct __sk_buff *skb, __s64 diff, __u32 ports, __u32 new_ports)
{
  long r = bpf_l4_csum_replace (
      skb, UDP_CHECK_AT, 0, (__u64) diff, BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0);

  if (r < 0)
    return (int) r;
  // Changes nothing if the checksum is left to the device.
  return (int) bpf_l4_csum_replace (
      skb, UDP_CHECK_AT, ports, new_ports, BPF_F_MARK_MANGLED_0 | sizeof ports);
}

static __always_inline __u32
ports_of (__u16 source, __u16 target)
{
  return source | (__u32) target << 16;
}

// Writes the reader's addresses and ports into the message. Returns 0 or a negative errno.
static __always_inline int
address_to (struct __sk_buff *skb, const struct clone_slot *slot, const struct clone_reader *reader)
{
  __u32 before[2], after[2] = { reader->source, reader->target };
  struct headers *headers = headers_of (skb);
  __s64 diff;
  int r = 0;

  if (!has_headers (skb, headers))
    return -EINVAL;
  before[0] = headers->ip.saddr;
  before[1] = headers->ip.daddr;
  diff = bpf_csum_diff (before, sizeof before, after, sizeof after, 0);
  // A segmented message has the sum of the pseudo header only, whether the device completes
  // checksums or not.
  if (skb->gso_size > 0)
    headers->udp.check = fold (headers->udp.check + (__u64) (__u32) diff);
  else
    r = adjust_checksum (skb, diff, ports_of (headers->udp.source, headers->udp.dest),
        ports_of (reader->source_port, reader->target_port));
  if (r < 0)
    return r;
  headers = headers_of (skb);
  if (!has_headers (skb, headers))
    return -EINVAL;
  __builtin_memcpy (headers->eth.h_dest, reader->to, sizeof reader->to);
  __builtin_memcpy (headers->eth.h_source, reader->from, sizeof reader->from);
  headers->ip.tos = slot->tos;
  headers->ip.ttl = slot->ttl;
  headers->ip.saddr = reader->source;
  headers->ip.daddr = reader->target;
  headers->udp.source = reader->source_port;
  headers->udp.dest = reader->target_port;
  headers->ip.check = 0;
  headers->ip.check = ip_checksum (headers);
  return 0;
}

// Reports whether the message is as the loader makes it.
static __always_inline int
is_plain_udp (struct __sk_buff *skb)
{
  struct headers *headers;

  if (bpf_skb_pull_data (skb, sizeof *headers) < 0)
    return 0;
  headers = headers_of (skb);
  return has_headers (skb, headers) && headers->eth.h_proto == bpf_htons (ETH_P_IP)
         && headers->ip.version == 4 && headers->ip.ihl == 5 && headers->ip.protocol == IPPROTO_UDP
         && (headers->ip.frag_off & bpf_htons (0x3fff)) == 0;
}

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
  r = address_to (job->skb, slot, &slot->readers[i]);
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
  if (slot->device != skb->ifindex || !is_plain_udp (skb)) {
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
