// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the chunk stream of RTMP ("Adobe's Real Time Messaging Protocol", 1.0, section 5.3): joins
// chunks to messages. What it stores grows with the bytes that arrive, not with the lengths that
// they announce.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits/bytes.h"

#define WEIR_RTMP_CHUNK_STREAMS 16  // of one peer, which chooses their numbers
#define WEIR_RTMP_CHUNK_DEFAULT 128 // bytes of a chunk before a peer sets another size

typedef struct {
  uint8_t type;       // section 5.4 and 7.1
  uint32_t stream;    // of messages, not of chunks
  uint32_t timestamp; // ms; wraps
  const uint8_t *data;
  size_t len;
} WeirRtmpMessage;

typedef struct _WeirRtmpChunks WeirRtmpChunks;

WeirRtmpChunks *weir_rtmp_chunks_new (void); // NULL: no memory
void weir_rtmp_chunks_free (WeirRtmpChunks *self);

// Bound the length of a message, and of all messages that are not complete together; and set how
// many bytes a chunk has from now on, 1 at least.
void weir_rtmp_chunks_set_limit (WeirRtmpChunks *self, size_t len);
void weir_rtmp_chunks_set_size (WeirRtmpChunks *self, uint32_t size);

// Drops what has come of the message that chunk stream `id` is in.
void weir_rtmp_chunks_abort (WeirRtmpChunks *self, uint32_t id);

// Reads on until a message is complete. Returns 1 with `message`, which is valid until the next
// call; 0 if the bytes end before that: what the cursor has left then is a part of a header, to
// come again with more bytes; -EBADMSG if the peer breaks the rules; -EMSGSIZE if a limit does not
// allow the message; -ENOMEM.
int weir_rtmp_chunks_read (WeirRtmpChunks *self, WeirBytes *b, WeirRtmpMessage *message);
