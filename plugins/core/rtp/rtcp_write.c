// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp_write.h"

#include <string.h>

#define RR_HEADER 8
#define SR 28
#define BLOCK 24
#define BYE 8
#define PLI 12
#define FIR 20
#define SDES_HEADER 10 // header, SSRC, and the item's type and length
#define CNAME_MAX 255

static void
write_number (uint8_t *at, uint64_t value, int size)
{
  while (size-- > 0) {
    at[size] = (uint8_t) value;
    value >>= 8;
  }
}

static void
write_header (uint8_t *at, int count, uint8_t type, size_t size, uint32_t ssrc)
{
  at[0] = (uint8_t) (0x80 | count);
  at[1] = type;
  write_number (at + 2, size / 4 - 1, 2);
  write_number (at + 4, ssrc, 4);
}

static void
write_block (uint8_t *at, const WeirRtcpBlock *block)
{
  write_number (at, block->ssrc, 4);
  at[4] = block->fraction_lost;
  write_number (at + 5, (uint32_t) block->lost, 3);
  write_number (at + 8, block->highest_seq, 4);
  write_number (at + 12, block->jitter, 4);
  write_number (at + 16, block->last_sr, 4);
  write_number (at + 20, block->delay_sr, 4);
}

static size_t
sdes_size (const char *cname)
{
  return (SDES_HEADER + strnlen (cname, CNAME_MAX) + 1 + 3) / 4 * 4; // one zero ends the items
}

static void
write_sdes (uint8_t *at, uint32_t ssrc, const char *cname)
{
  size_t name = strnlen (cname, CNAME_MAX);

  memset (at, 0, sdes_size (cname));
  write_header (at, 1, 202, sdes_size (cname), ssrc);
  at[8] = 1; // CNAME
  at[9] = (uint8_t) name;
  memcpy (at + SDES_HEADER, cname, name);
}

size_t
weir_rtcp_write_rr (
    uint8_t *out, size_t room, uint32_t ssrc, const WeirRtcpBlock *block, const char *cname)
{
  size_t rr = RR_HEADER + (block ? BLOCK : 0);

  if (rr + sdes_size (cname) > room)
    return 0;
  write_header (out, block != NULL, 201, rr, ssrc);
  if (block)
    write_block (out + RR_HEADER, block);
  write_sdes (out + rr, ssrc, cname);
  return rr + sdes_size (cname);
}

size_t
weir_rtcp_write_sr (uint8_t *out, size_t room, const WeirNtpMap *at, uint32_t packets,
    uint32_t octets, const char *cname)
{
  if (SR + sdes_size (cname) > room)
    return 0;
  write_header (out, 0, 200, SR, at->ssrc);
  write_number (out + 8, at->ntp, 8);
  write_number (out + 16, at->timestamp, 4);
  write_number (out + 20, packets, 4);
  write_number (out + 24, octets, 4);
  write_sdes (out + SR, at->ssrc, cname);
  return SR + sdes_size (cname);
}

size_t
weir_rtcp_write_bye (uint8_t *out, size_t room, uint32_t ssrc)
{
  if (room < BYE)
    return 0;
  write_header (out, 1, 203, BYE, ssrc);
  return BYE;
}

size_t
weir_rtcp_write_pli (uint8_t *out, size_t room, uint32_t ssrc, uint32_t media)
{
  if (room < PLI)
    return 0;
  write_header (out, 1, 206, PLI, ssrc);
  write_number (out + 8, media, 4);
  return PLI;
}

size_t
weir_rtcp_write_fir (uint8_t *out, size_t room, uint32_t ssrc, uint32_t media, uint8_t seq)
{
  if (room < FIR)
    return 0;
  memset (out, 0, FIR);
  write_header (out, 4, 206, FIR, ssrc);
  write_number (out + 12, media, 4);
  out[16] = seq;
  return FIR;
}
