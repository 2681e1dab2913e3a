/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The memory that the clone program (clone.bpf.c) and its loader (program.c) share: slots. A thread
 * that wants a message cloned takes a slot, writes the readers into it, arms it, and sends the
 * message from the slot's own socket. The program finds the slot by the socket's mark and cookie,
 * makes the clones before the send returns, and writes their results. Addresses, ports and hardware
 * addresses are in network byte order. */

#include <linux/types.h>

#define CLONE_SLOTS 32
#define CLONE_READERS 128

/* A slot's socket has the mark CLONE_MARK + the slot's number. */
#define CLONE_MARK 0x77650000u

enum clone_state {
  CLONE_IDLE,
  CLONE_ARMED,   /* the next message of the slot's socket is cloned */
  CLONE_RUNNING, /* the program is making the clones */
  CLONE_DONE,    /* `results` are there */
  CLONE_REFUSED, /* the message cannot be cloned: nothing was sent */
};

/* A positive result of a clone that was sent nevertheless: its queue is congested (NET_XMIT_CN). */
#define CLONE_CONGESTED 2

/* The headers of one reader's packets. */
struct clone_reader {
  __u8 to[6], from[6];
  __u32 source, target;
  __u16 source_port, target_port;
  __u16 id; /* of IP, of the first packet; the others have the next ones */
  __u16 pad[3];
};

struct clone_slot {
  __u64 state;
  __u64 cookie;  /* of the slot's socket */
  __u64 longest; /* most ns that the clones of one message took, for benches: softirqs are off */
  __u32 device;  /* interface index */
  __u32 n;
  __u32 priority; /* of the packets, as SO_PRIORITY */
  __u8 tos, ttl;
  __u16 pad;
  __s32 results[CLONE_READERS]; /* 0, CLONE_CONGESTED: sent; else positive: dropped by a queue;
                                   negative: an errno */
  struct clone_reader readers[CLONE_READERS];
};
