// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Encrypts and authenticates the packets of one reader, for example with SRTP (RFC 3711).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PROTECT_ROOM 48 // bytes by which a packet may grow

// The operations of one reader. Each call gets `data`.
typedef struct {
  void *data;

  // Returns the sequence number of the next packet sent to the reader, which has the number `seq`
  // otherwise. Changes nothing.
  uint16_t (*next_seq) (void *data, uint16_t seq);

  // Writes the protected form of a packet of `len` bytes, RTP or with `rtp` false any other, to
  // `out`, which has room for `len` + WEIR_PROTECT_ROOM bytes and does not overlap `in`. Returns
  // its length; 0 if the packet cannot be protected: it is then not sent. A packet that found no
  // room in the socket is protected again. One thread at a time calls it.
  size_t (*protect) (void *data, const uint8_t *in, size_t len, bool rtp, uint8_t *out);

  // Writes, as protect() does, the retransmission of an RTP packet that it has protected before,
  // with the same bytes in `in`. NULL: the reader gets none.
  size_t (*protect_again) (void *data, const uint8_t *in, size_t len, uint8_t *out);
  // Whether the reader takes each retransmission for a new packet, which it reports; otherwise it
  // drops those that it has.
  bool again_is_new;

  // Notes that a protected RTP packet was sent at `now_ns`, which may be some ms ago: what
  // protect() or protect_again() wrote last for it. Takes no lock. NULL: nobody needs to know.
  void (*sent) (void *data, const uint8_t *packet, size_t len, int64_t now_ns);

  // Returns the bit rate, bit/s, at which a large frame may be sent; 0: at any. Takes no lock.
  // NULL: at any.
  uint64_t (*pace) (void *data);

  // Called when the reader is freed.
  void (*release) (void *data);
} WeirProtect;
