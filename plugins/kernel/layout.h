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
#define CLONE_PACKETS 64 /* most packets of a message */

/* A slot's socket has the mark CLONE_MARK + the slot's number. */
#define CLONE_MARK 0x77650000u

/* In `picture_at`: the picture id has 15 bits, not 7. */
#define CLONE_WIDE_ID 0x8000

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

/* What is added to the numbers of one reader's packets: timestamp, sequence number, picture id of
 * VP8. In host byte order. */
struct clone_numbers {
  __u32 time;
  __u16 seq, picture;
};

struct clone_slot {
  __u64 state;
  __u64 cookie;  /* of the slot's socket */
  __u64 longest; /* most ns that the clones of one message took, for benches: softirqs are off */
  __u32 device;  /* interface index */
  __u32 n;
  __u32 n_done;  /* of these, readers whose results are there, from the first on. The others got
                    nothing, as there was no memory */
  __u32 n_plain; /* readers, from the first on, that get the numbers of the message. The next four
                    fields and `numbers` count only for the others */
  __u32 n_packets;
  __u32 numbers_end;               /* bytes of the message up to its last number */
  __u64 rtp;                       /* packets that have numbers, a bit each */
  __u16 picture_at[CLONE_PACKETS]; /* where the picture id is in each of these packets; 0: none */
  __u32 priority;                  /* of the packets, as SO_PRIORITY */
  __u8 tos, ttl;
  __u16 pad;
  __s32 results[CLONE_READERS]; /* 0, CLONE_CONGESTED: sent; else positive: dropped by a queue;
                                   negative: an errno */
  struct clone_reader readers[CLONE_READERS];
  struct clone_numbers numbers[CLONE_READERS];
};
