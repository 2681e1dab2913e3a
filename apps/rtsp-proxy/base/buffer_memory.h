// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a packet or frame that waits takes. Queues with a limit of bytes count this: a peer may send
// millions of packets with a few bytes each.

#include <gst/gst.h>

// Memory of a GstBuffer with its GstMemory and its place in a queue, beside the data.
#define BUFFER_MEMORY_BESIDE 600

// Returns the memory that the buffer takes, in bytes.
static inline gsize
buffer_memory (GstBuffer *buffer)
{
  return gst_buffer_get_size (buffer) + BUFFER_MEMORY_BESIDE;
}
