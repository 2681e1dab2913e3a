// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTP header of a buffer, which may lie in several pieces.

#include <gst/gst.h>

#include "core/rtp/rtp.h"

// FALSE for what is no RTP; then `rtp` is untouched.
static inline gboolean
weir_rtp_buffer_read (GstBuffer *buffer, WeirRtp *rtp)
{
  guint8 head[WEIR_RTP_HEADER_MAX];
  guint8 last = 0;
  gsize size = gst_buffer_get_size (buffer);
  gsize n = gst_buffer_extract (buffer, 0, head, sizeof head);

  // Reading it costs as much as the rest, and few packets are padded.
  if (weir_rtp_is_padded (head, n))
    gst_buffer_extract (buffer, size - 1, &last, 1);
  return weir_rtp_parse_head (head, n, size, last, rtp) == 0;
}
