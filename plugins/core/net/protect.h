// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Encrypts and authenticates the packets of one reader, for example with SRTP (RFC 3711).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PROTECT_ROOM 16 // bytes by which a packet may grow; SRTCP needs 14

// The operations of one reader. Each call gets `data`.
typedef struct {
  void *data;

  // Returns the sequence number of the next packet sent to the reader, which has the number `seq`
  // otherwise. Called before the reader's first packet, and again when it was removed and added.
  // Changes nothing.
  uint16_t (*next_seq) (void *data, uint16_t seq);

  // Protects an RTP packet, or with `rtp` false any other packet, in place. There is room for
  // WEIR_PROTECT_ROOM bytes after its `len` bytes. Returns its new length; 0 if the packet cannot
  // be protected: it is then not sent. A packet that found no room in the socket is protected
  // again.
  size_t (*protect) (void *data, uint8_t *packet, size_t len, bool rtp);

  // Called when the reader is freed.
  void (*release) (void *data);
} WeirProtect;
