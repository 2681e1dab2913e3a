// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the RTP header of a GstBuffer, which may consist of several memories.

#include <gst/gst.h>

#include "core/rtp/rtp.h"

// Returns FALSE, and leaves `rtp` as it is, if the buffer is not RTP.
static inline gboolean
weir_rtp_buffer_read (GstBuffer *buffer, WeirRtp *rtp)
{
  guint8 head[WEIR_RTP_HEADER_MAX];
  guint8 last = 0;
  gsize size = gst_buffer_get_size (buffer);
  gsize n = gst_buffer_extract (buffer, 0, head, sizeof head);

  // Reading the last byte costs as much as the rest, and few packets are padded.
  if (weir_rtp_is_padded (head, n))
    gst_buffer_extract (buffer, size - 1, &last, 1);
  return weir_rtp_parse_head (head, n, size, last, rtp) == 0;
}
