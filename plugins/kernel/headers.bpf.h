/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For BPF programs: the headers of a message of UDP over IPv4, and how they are written for a
 * reader.
 */

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

struct headers {
  struct ethhdr eth;
  struct iphdr ip;
  struct udphdr udp;
} __attribute__ ((packed, aligned (2)));

#define IP_AT sizeof (struct ethhdr)
#define UDP_CHECK_AT (IP_AT + sizeof (struct iphdr) + __builtin_offsetof (struct udphdr, check))
#define PAYLOAD_AT (UDP_CHECK_AT + sizeof (__u16))

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
adjust_checksum (struct __sk_buff *skb, __u64 diff, __u32 ports, __u32 new_ports)
{
  long r =
      bpf_l4_csum_replace (skb, UDP_CHECK_AT, 0, diff, BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0);

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

// Writes what the packets of all readers have alike. Returns 0 or a negative errno.
static __always_inline int
set_service (struct __sk_buff *skb, __u8 tos, __u8 ttl)
{
  struct headers *headers = headers_of (skb);

  if (!has_headers (skb, headers))
    return -EINVAL;
  headers->ip.tos = tos;
  headers->ip.ttl = ttl;
  headers->ip.check = 0;
  headers->ip.check = ip_checksum (headers);
  return 0;
}

// Writes the reader's addresses and ports into the message, whose checksums hold before and after.
// Returns 0 or a negative errno.
static __always_inline int
address_to (struct __sk_buff *skb, const struct clone_reader *reader)
{
  struct headers *headers = headers_of (skb);
  __u64 diff;
  int r = 0;

  if (!has_headers (skb, headers))
    return -EINVAL;
  // RFC 1624. Additions cost less than a call of bpf_csum_diff().
  diff = (__u64) ~headers->ip.saddr + ~headers->ip.daddr + reader->source + reader->target;
  diff = (diff & 0xffffffff) + (diff >> 32);
  diff = (diff & 0xffffffff) + (diff >> 32);
  // A segmented message has the sum of the pseudo header only, whether the device completes
  // checksums or not.
  if (skb->gso_size > 0)
    headers->udp.check = fold (headers->udp.check + diff);
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
  headers->ip.saddr = reader->source;
  headers->ip.daddr = reader->target;
  headers->ip.check =
      (__u16) ~fold ((__u16) ~headers->ip.check + diff + (__u16) ~headers->ip.id + reader->id);
  headers->ip.id = reader->id;
  headers->udp.source = reader->source_port;
  headers->udp.dest = reader->target_port;
  return 0;
}

// Reports whether the message is UDP over IPv4 without options and no fragment. Makes its headers
// readable and writable.
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
