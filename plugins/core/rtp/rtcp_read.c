// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp_read.h"

#include <errno.h>

#include "rtp/rtcp_header.h"

#define SENDER_INFO_AND_SSRC 24
#define BLOCK 24
#define PLI 1 // feedback message types of PSFB
#define FIR 4
#define FIR_ENTRY 8
#define NACK 1 // feedback message type of RTPFB

static void
read_block (WeirBytes *body, WeirRtcpBlock *block)
{
  uint32_t lost;

  weir_bytes_u32 (body, &block->ssrc);
  weir_bytes_u8 (body, &block->fraction_lost);
  weir_bytes_u24 (body, &lost);
  block->lost = (int32_t) lost - (lost & 0x800000 ? 0x1000000 : 0);
  weir_bytes_u32 (body, &block->highest_seq);
  weir_bytes_u32 (body, &block->jitter);
  weir_bytes_u32 (body, &block->last_sr);
  weir_bytes_u32 (body, &block->delay_sr);
}

static bool
read_report (WeirBytes *body, const WeirRtcpHeader *header, bool first, WeirRtcpReport *out)
{
  size_t before = header->type == WEIR_RTCP_SR ? SENDER_INFO_AND_SSRC : 4;
  size_t n = header->flags & WEIR_RTCP_COUNT;
  uint32_t ssrc;

  if (weir_bytes_left (body) < before + n * BLOCK)
    return false;
  weir_bytes_u32 (body, &ssrc);
  weir_bytes_skip (body, before - 4);
  if (first)
    out->ssrc = ssrc;
  for (; n > 0 && out->n_blocks < WEIR_RTCP_BLOCKS_MAX; n--)
    read_block (body, &out->blocks[out->n_blocks++]);
  return true;
}

static bool
read_packet (WeirBytes body, const WeirRtcpHeader *header, bool first, WeirRtcpReport *out)
{
  switch (header->type) {
    case WEIR_RTCP_SR:
    case WEIR_RTCP_RR:
      return read_report (&body, header, first, out);
    case WEIR_RTCP_BYE:
      out->bye = true;
      return weir_bytes_left (&body) >= 4 * (size_t) (header->flags & WEIR_RTCP_COUNT);
    case WEIR_RTCP_SDES:
    case WEIR_RTCP_XR:
      return true;
    default:
      out->more = true;
      return true;
  }
}

int
weir_rtcp_read (const uint8_t *packet, size_t len, WeirRtcpReport *out)
{
  WeirBytes bytes = weir_bytes (packet, len);
  WeirRtcpReport report = { 0 };
  bool first = true, begins_well = false;

  if (len == 0)
    return -EBADMSG;
  for (; weir_bytes_left (&bytes) > 0; first = false) {
    WeirRtcpHeader header;
    WeirBytes body;

    if (!weir_rtcp_packet_next (&bytes, &header, &body))
      return -EBADMSG;
    // Only the last packet of a compound may have padding, and never the first; but feedback of
    // browsers has it anywhere.
    if (header.flags & WEIR_RTCP_PADDED && header.type != WEIR_RTCP_RTPFB
        && (first || weir_bytes_left (&bytes) > 0))
      return -EBADMSG;
    if (!read_packet (body, &header, first, &report))
      return -EBADMSG;
    if (first)
      begins_well = header.type == WEIR_RTCP_SR || header.type == WEIR_RTCP_RR;
  }
  if (!begins_well)
    return -ENOENT;
  *out = report;
  return 0;
}

static bool
feedback_asks_key (WeirBytes body, unsigned kind, uint32_t ssrc)
{
  uint32_t of;

  if (!weir_bytes_skip (&body, 4) || !weir_bytes_u32 (&body, &of))
    return false;
  if (kind == PLI)
    return of == ssrc;
  while (kind == FIR && weir_bytes_left (&body) >= FIR_ENTRY) {
    weir_bytes_u32 (&body, &of);
    weir_bytes_skip (&body, FIR_ENTRY - 4);
    if (of == ssrc)
      return true;
  }
  return false;
}

bool
weir_rtcp_asks_key (const uint8_t *packet, size_t len, uint32_t ssrc)
{
  WeirBytes bytes = weir_bytes (packet, len), body;
  WeirRtcpReport unused;
  WeirRtcpHeader header;

  if (weir_rtcp_read (packet, len, &unused) == -EBADMSG)
    return false;
  while (weir_rtcp_packet_next (&bytes, &header, &body)) {
    if (header.type == WEIR_RTCP_PSFB
        && feedback_asks_key (body, header.flags & WEIR_RTCP_COUNT, ssrc))
      return true;
  }
  return false;
}

// Adds the numbers of an entry: one, and those of the 16 after it whose bits are set.
static size_t
add_nacks (uint16_t first, uint16_t mask, uint16_t *seqs, size_t n, size_t max)
{
  if (n < max)
    seqs[n++] = first;
  for (unsigned i = 0; i < 16 && n < max; i++) {
    if (mask & 1u << i)
      seqs[n++] = (uint16_t) (first + i + 1);
  }
  return n;
}

size_t
weir_rtcp_read_nacks (const uint8_t *packet, size_t len, uint32_t ssrc, uint16_t *seqs, size_t max)
{
  WeirBytes bytes = weir_bytes (packet, len), body;
  WeirRtcpReport unused;
  WeirRtcpHeader header;
  size_t n = 0;

  if (weir_rtcp_read (packet, len, &unused) == -EBADMSG)
    return 0;
  while (weir_rtcp_packet_next (&bytes, &header, &body)) {
    uint16_t first, mask;
    uint32_t of;

    if (header.type != WEIR_RTCP_RTPFB || (header.flags & WEIR_RTCP_COUNT) != NACK
        || !weir_bytes_skip (&body, 4) || !weir_bytes_u32 (&body, &of) || of != ssrc)
      continue;
    while (weir_bytes_u16 (&body, &first) && weir_bytes_u16 (&body, &mask))
      n = add_nacks (first, mask, seqs, n, max);
  }
  return n;
}

// ---- contents ----

// Skips a chunk: an SSRC, and items that end with a zero and padding to a multiple of 4 bytes.
static bool
skip_chunk (WeirBytes *body)
{
  const uint8_t *start = body->at;
  uint8_t type = 1, len;

  weir_bytes_skip (body, 4);
  while (type != 0) {
    if (!weir_bytes_u8 (body, &type)
        || (type != 0 && (!weir_bytes_u8 (body, &len) || !weir_bytes_skip (body, len))))
      return false;
  }
  return weir_bytes_skip (body, (size_t) (start - body->at) & 3);
}

static bool
sdes_is_sound (WeirBytes body, unsigned n_chunks)
{
  while (n_chunks > 0 && skip_chunk (&body))
    n_chunks--;
  return n_chunks == 0;
}

// The reason after the SSRCs may be missing.
static bool
bye_is_sound (WeirBytes body, unsigned n_sources)
{
  uint8_t len = 0;

  if (!weir_bytes_skip (&body, 4 * (size_t) n_sources))
    return false;
  return weir_bytes_left (&body) == 0
         || (weir_bytes_u8 (&body, &len) && weir_bytes_skip (&body, len));
}

static bool
feedback_is_sound (WeirBytes body, uint8_t type, unsigned kind)
{
  size_t rest;

  if (!weir_bytes_skip (&body, 8))
    return false;
  rest = weir_bytes_left (&body);
  if (type == WEIR_RTCP_PSFB && kind == PLI)
    return rest == 0;
  if (type == WEIR_RTCP_PSFB && kind == FIR)
    return rest > 0 && rest % FIR_ENTRY == 0;
  return type == WEIR_RTCP_RTPFB && kind == NACK && rest > 0;
}

// The body is without padding.
static bool
is_sound (WeirBytes body, const WeirRtcpHeader *header)
{
  unsigned count = header->flags & WEIR_RTCP_COUNT;

  switch (header->type) {
    case WEIR_RTCP_SDES:
      return sdes_is_sound (body, count);
    case WEIR_RTCP_BYE:
      return bye_is_sound (body, count);
    case WEIR_RTCP_RTPFB:
    case WEIR_RTCP_PSFB:
      return feedback_is_sound (body, header->type, count);
    case WEIR_RTCP_APP:
      return weir_bytes_skip (&body, 8);
    default:
      return true;
  }
}

bool
weir_rtcp_is_sound (const uint8_t *packet, size_t len)
{
  WeirBytes bytes = weir_bytes (packet, len), body;
  WeirRtcpReport unused;
  WeirRtcpHeader header;

  if (weir_rtcp_read (packet, len, &unused) == -EBADMSG)
    return false;
  while (weir_rtcp_packet_next (&bytes, &header, &body)) {
    if (!is_sound (body, &header))
      return false;
  }
  return true;
}

// ---- sender reports ----

void
weir_sr_log_add (WeirSrLog *self, const WeirNtpMap *sr, int64_t now_ns)
{
  size_t i = self->n++ % WEIR_SR_LOG_SIZE;

  self->sent[i].ssrc = sr->ssrc;
  self->sent[i].ntp = (uint32_t) (sr->ntp >> 16);
  self->sent[i].sent_ns = now_ns;
}

static size_t
n_kept (const WeirSrLog *self)
{
  return self->n < WEIR_SR_LOG_SIZE ? (size_t) self->n : WEIR_SR_LOG_SIZE;
}

bool
weir_sr_log_has (const WeirSrLog *self, uint32_t ssrc)
{
  for (size_t i = 0; i < n_kept (self); i++) {
    if (self->sent[i].ssrc == ssrc)
      return true;
  }
  return false;
}

int64_t
weir_sr_log_round_trip (const WeirSrLog *self, const WeirRtcpBlock *block, int64_t now_ns)
{
  int64_t delay_ns = (int64_t) ((uint64_t) block->delay_sr * 1000000000 >> 16);

  if (block->last_sr == 0)
    return -1;
  for (size_t i = 0; i < n_kept (self); i++) {
    int64_t since = now_ns - self->sent[i].sent_ns;

    if (self->sent[i].ssrc == block->ssrc && self->sent[i].ntp == block->last_sr)
      return since >= delay_ns ? since - delay_ns : -1;
  }
  return -1;
}
