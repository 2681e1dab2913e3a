// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/feedback.h"

#include <errno.h>

#include "rtp/rtcp_header.h"

#define TWCC 15 // feedback message type of RTPFB
#define REMB 15 // of PSFB
#define REMB_NAME 0x52454d42

#define REFERENCE_TICKS 256 // 64 ms
#define BITS 14             // statuses in a chunk of one bit each
#define PAIRS 7             // and of two bits each
typedef enum { LOST, SMALL, LARGE, RESERVED } Status;

// ---- TWCC ----

static void
add_status (WeirFeedback *out, uint8_t *statuses, unsigned status)
{
  if (out->n < WEIR_FEEDBACK_MAX)
    statuses[out->n++] = (uint8_t) status;
  else
    out->left_out++;
}

// Reads a chunk that tells of at most `left` packets (3.1.3 and 3.1.4). Returns of how many, or 0
// if it tells of none.
static size_t
read_chunk (WeirBytes *body, size_t left, WeirFeedback *out, uint8_t *statuses)
{
  uint16_t chunk;
  size_t n;

  if (!weir_bytes_u16 (body, &chunk))
    return 0;
  if (!(chunk & 0x8000))
    n = chunk & 0x1fff;
  else
    n = chunk & 0x4000 ? PAIRS : BITS;
  n = n < left ? n : left;
  for (size_t i = 0; i < n; i++) {
    if (!(chunk & 0x8000))
      add_status (out, statuses, chunk >> 13 & 3);
    else if (chunk & 0x4000)
      add_status (out, statuses, chunk >> 2 * (PAIRS - 1 - i) & 3);
    else
      add_status (out, statuses, chunk >> (BITS - 1 - i) & 1);
  }
  return n;
}

static bool
read_deltas (WeirBytes *body, uint32_t ticks, WeirFeedback *out, const uint8_t *statuses)
{
  for (size_t i = 0; i < out->n; i++) {
    uint8_t small;
    uint16_t large;

    out->arrived[i] = statuses[i] != LOST;
    switch ((Status) statuses[i]) {
      case LOST:
        break;
      case SMALL:
        if (!weir_bytes_u8 (body, &small))
          return false;
        ticks += small;
        break;
      case LARGE:
        if (!weir_bytes_u16 (body, &large))
          return false;
        ticks += (uint32_t) (int16_t) large;
        break;
      case RESERVED:
        return false;
    }
    out->ticks[i] = ticks;
  }
  return true;
}

static bool
read_twcc (WeirBytes body, WeirFeedback *out)
{
  uint8_t statuses[WEIR_FEEDBACK_MAX];
  uint16_t count;
  uint32_t reference;

  weir_bytes_skip (&body, 8);
  weir_bytes_u16 (&body, &out->first);
  weir_bytes_u16 (&body, &count);
  weir_bytes_u24 (&body, &reference);
  if (!weir_bytes_skip (&body, 1))
    return false;
  out->n = out->left_out = 0;
  for (size_t left = count, n; left > 0; left -= n) {
    n = read_chunk (&body, left, out, statuses);
    if (n == 0)
      return false;
  }
  return read_deltas (&body, reference * REFERENCE_TICKS, out, statuses);
}

int
weir_feedback_next (WeirBytes *compound, WeirFeedback *out)
{
  while (weir_bytes_left (compound) > 0) {
    WeirRtcpHeader header;
    WeirBytes body;

    if (!weir_rtcp_packet_next (compound, &header, &body))
      return -EBADMSG;
    if (header.type == WEIR_RTCP_RTPFB && (header.flags & WEIR_RTCP_COUNT) == TWCC)
      return read_twcc (body, out) ? 1 : -EBADMSG;
  }
  return 0;
}

// ---- REMB ----

static bool
read_remb (WeirBytes body, uint64_t *bits)
{
  uint32_t name, rate;
  uint8_t n_ssrcs;

  weir_bytes_skip (&body, 8);
  weir_bytes_u32 (&body, &name);
  weir_bytes_u8 (&body, &n_ssrcs);
  if (!weir_bytes_u24 (&body, &rate) || name != REMB_NAME)
    return false;
  // 6 bits of exponent, 18 of mantissa; what does not fit into 64 bits is no limit.
  *bits = rate >> 18 > 45 ? UINT64_MAX : (uint64_t) (rate & 0x3ffff) << (rate >> 18);
  return true;
}

bool
weir_feedback_read_remb (const uint8_t *packet, size_t len, uint64_t *bits)
{
  WeirBytes compound = weir_bytes (packet, len), body;
  WeirRtcpHeader header;
  uint64_t lowest = UINT64_MAX, new;
  bool found = false;

  while (weir_rtcp_packet_next (&compound, &header, &body)) {
    if (header.type != WEIR_RTCP_PSFB || (header.flags & WEIR_RTCP_COUNT) != REMB
        || !read_remb (body, &new))
      continue;
    found = true;
    lowest = new < lowest ? new : lowest;
  }
  if (found)
    *bits = lowest;
  return found;
}
