// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs at the ingress of a network device. Relays the RTP packets of one stream to many readers,
// before any socket gets them (relaylayout.h). RTCP and all other packets pass to user space.
//
// Packets that were merged on their way (GSO) are one message here, and stay one through the clone.
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "headers.bpf.h"
#include "relaylayout.h"

#define HEADERS (sizeof (struct iphdr) + sizeof (struct udphdr))
#define RTP_HEADER 12
#define MOST_PACKETS 128 // in one message
#define ATTEMPTS 4

char program_license[] SEC ("license") = "LGPL-2.1-or-later";

struct {
  __uint (type, BPF_MAP_TYPE_ARRAY);
  __uint (map_flags, BPF_F_MMAPABLE);
  __uint (max_entries, 1);
  __type (key, __u32);
  __type (value, struct relay);
} relays SEC (".maps");

// Its packets, all of one size but the last, which may be shorter.
struct message {
  __u32 n, size, len;
};

struct check {
  struct __sk_buff *skb;
  struct message *message;
  __u32 n_rtp;
};

struct job {
  struct __sk_buff *skb;
  struct relay *relay;
  __u32 n;                  // packets of the message
  __u64 sent, full, failed; // clones
};

// Counts packet `i` if it is RTP: version 2, and no type of RTCP (RFC 5761).
static long
check_one (__u32 i, struct check *check)
{
  __u32 at = i * check->message->size;
  __u8 head[2];

  if (at + RTP_HEADER > check->message->len
      || bpf_skb_load_bytes (check->skb, PAYLOAD_AT + at, head, sizeof head) < 0
      || (head[0] & 0xc0) != 0x80 || (head[1] & 0x60) == 0x40)
    return 1;
  check->n_rtp++;
  return 0;
}

// Reports whether the message consists of RTP packets of the stream. Others cost one comparison.
static __always_inline int
is_of_stream (struct __sk_buff *skb, const struct relay *relay, struct message *message)
{
  struct {
    struct iphdr ip;
    struct udphdr udp;
  } head;
  struct check check = { skb, message, 0 };

  if (skb->protocol != bpf_htons (ETH_P_IP) || skb->pkt_type != PACKET_HOST || skb->vlan_present
      || bpf_skb_load_bytes (skb, IP_AT, &head, sizeof head) < 0 || head.ip.daddr != relay->address
      || head.ip.saddr != relay->source || head.ip.protocol != IPPROTO_UDP
      || head.udp.dest != relay->port || head.udp.source != relay->source_port
      || !is_plain_udp (skb)
      || bpf_ntohs (head.udp.len) + sizeof head.ip != bpf_ntohs (head.ip.tot_len)
      || bpf_ntohs (head.ip.tot_len) + IP_AT > skb->len
      || bpf_ntohs (head.udp.len) < sizeof head.udp + RTP_HEADER)
    return 0;
  message->len = bpf_ntohs (head.udp.len) - sizeof head.udp;
  message->n = skb->gso_size > 0 ? skb->gso_segs : 1;
  message->size = skb->gso_size > 0 ? skb->gso_size : message->len;
  if (message->n == 0 || message->n > MOST_PACKETS)
    return 0;
  bpf_loop (message->n, check_one, &check, 0);
  return check.n_rtp == message->n;
}

// Keeps what is before it before it, and what is after it after it. The compiler makes an addition
// that does not, if nobody looks at the result.
static __always_inline void
add_in_order (__u64 *to, __s64 n)
{
  volatile __u64 before = __sync_fetch_and_add (to, n);

  (void) before;
}

// Reports whether the program shall relay a message. If not, the message is marked for user space.
static __always_inline int
take (struct __sk_buff *skb, struct relay *relay, const struct message *message)
{
  int fits = message->size + HEADERS <= relay->largest;

#pragma unroll
  for (int i = 0; i < ATTEMPTS; i++) {
    __u64 state = __sync_fetch_and_add (&relay->state, 0);
    __u64 passed = state + message->n * RELAY_PASSED;

    if (state & RELAY_ACTIVE && fits)
      return 1;
    if (__sync_val_compare_and_swap (&relay->state, state, passed) == state) {
      skb->mark = (__u32) (passed / RELAY_PASSED);
      return 0;
    }
  }
  return 0;
}

static long
clone_one (__u32 i, struct job *job)
{
  struct relay *relay = job->relay;
  struct clone_reader *headers;
  int sent, full;
  long r;

  if (i >= RELAY_READERS)
    return 1;
  headers = &relay->readers[i].headers;
  headers->id = bpf_htons ((__u16) (bpf_ntohs (headers->id) + job->n));
  r = address_to (job->skb, headers);
  if (r == 0)
    r = bpf_clone_redirect (job->skb, relay->readers[i].device, 0);
  // Without branches: of these, later compilers make one counter at an address that depends on `r`,
  // which the kernel refuses to programs without CAP_PERFMON.
  sent = r == 0 || r == CLONE_CONGESTED;
  full = !sent && r > 0;
  job->sent += sent;
  job->full += full;
  job->failed += !sent && !full;
  return 0;
}

static __always_inline void
relay_to_all (struct __sk_buff *skb, struct relay *relay, const struct message *message)
{
  struct job job = { skb, relay, message->n, 0, 0, 0 };
  __u64 begin = bpf_ktime_get_ns (), took;

  set_service (skb, relay->tos, relay->ttl);
  bpf_loop (relay->n, clone_one, &job, 0);
  took = bpf_ktime_get_ns () - begin;
  if (took > relay->longest)
    relay->longest = took;
  relay->arrived = begin;
  __sync_fetch_and_add (&relay->packets, message->n);
  __sync_fetch_and_add (&relay->due, (__u64) message->n * relay->n);
  __sync_fetch_and_add (&relay->sent, job.sent * message->n);
  __sync_fetch_and_add (&relay->full, job.full * message->n);
  __sync_fetch_and_add (&relay->failed, job.failed * message->n);
}

SEC ("tc")
int
relay_stream (struct __sk_buff *skb)
{
  __u32 key = 0;
  struct relay *relay = bpf_map_lookup_elem (&relays, &key);
  struct message message;
  int taken;

  if (!relay || !is_of_stream (skb, relay, &message))
    return TC_ACT_UNSPEC;
  add_in_order (&relay->running, 1);
  taken = take (skb, relay, &message);
  if (taken)
    relay_to_all (skb, relay, &message);
  add_in_order (&relay->running, -1);
  return taken ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
