/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The memory that the relay program (relay.bpf.c) and its user (relay.c) share. User space changes
 * the stream and the readers only while the program passes all packets to it: it clears
 * RELAY_ACTIVE, and waits until `running` is 0. Addresses and ports are in network byte order. */

#include "layout.h"

/* All clones of a packet are made in one run, with softirqs off. */
#define RELAY_READERS 1024

/* A bit of `state`: the program relays the packets of the stream itself. */
#define RELAY_ACTIVE 1ull

/* The bits of `state` above count the packets of the stream that the program has passed to user
 * space; this is one of them. Such a packet has the lower 32 bits of the count, itself included, as
 * its mark. So user space knows when it has handled all of them, and nothing is overtaken. */
#define RELAY_PASSED 2ull

struct relay_reader {
  struct clone_reader headers;
  __u32 device; /* interface index */
};

struct relay {
  __u64 state;
  __u64 running; /* runs of the program that may use the readers now */
  __u64 arrived; /* CLOCK_MONOTONIC in ns: when the last packet was relayed */
  __u64 longest; /* most ns that the clones of one message took */

  /* Packets of the stream that the program has relayed, and what became of their clones. */
  __u64 packets, due, sent, full, failed;

  __u32 address, source; /* where the stream comes to, and from; `source` 0: nowhere */
  __u16 port, source_port;
  __u32 largest; /* most bytes of a packet, from its IP header on; larger ones are passed */
  __u32 n;
  __u8 tos, ttl;
  __u16 pad;
  struct relay_reader readers[RELAY_READERS];
};
