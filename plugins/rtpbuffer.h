// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the RTP header of a GstBuffer, which may consist of several memories.

#include <gst/gst.h>

#include "core/rtp/rtp.h"

// Reads a packet of `size` bytes at the offset `at`. Returns FALSE, and leaves `rtp` as it is, if
// it is not RTP.
static inline gboolean
weir_rtp_buffer_read_part (GstBuffer *buffer, gsize at, gsize size, WeirRtp *rtp)
{
  guint8 head[WEIR_RTP_HEADER_MAX];
  guint8 last = 0;
  gsize n = gst_buffer_extract (buffer, at, head, MIN (size, sizeof head));

  // Reading the last byte costs as much as the rest, and few packets are padded.
  if (weir_rtp_is_padded (head, n))
    gst_buffer_extract (buffer, at + size - 1, &last, 1);
  return weir_rtp_parse_head (head, n, size, last, rtp) == 0;
}

// Reads a buffer that is one packet.
static inline gboolean
weir_rtp_buffer_read (GstBuffer *buffer, WeirRtp *rtp)
{
  return weir_rtp_buffer_read_part (buffer, 0, gst_buffer_get_size (buffer), rtp);
}
