// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtcp_write.h"

#include <string.h>

#define RR_HEADER 8
#define SR 28
#define BLOCK 24
#define BYE 8
#define PLI 12
#define FIR 20
#define NACK_HEADER 12
#define NACK_SPAN 16 // numbers behind the first one that an entry can tell of
#define REMB_HEADER 20
#define REMB_MANTISSA 0x3ffff
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
weir_rtcp_write_rr (uint8_t *out, size_t room, uint32_t ssrc, const WeirRtcpBlock *blocks, size_t n,
    const char *cname)
{
  size_t rr = RR_HEADER + n * BLOCK;

  if (rr + sdes_size (cname) > room)
    return 0;
  write_header (out, (int) n, 201, rr, ssrc);
  for (size_t i = 0; i < n; i++)
    write_block (out + RR_HEADER + i * BLOCK, &blocks[i]);
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

// Writes entries for the numbers, each for one and those within NACK_SPAN of it. Returns the end;
// sets `*n` to the numbers written.
static uint8_t *
write_nack_entries (uint8_t *at, const uint8_t *end, const uint16_t *seqs, size_t *n)
{
  size_t done = 0;

  while (done < *n && end - at >= 4) {
    uint16_t first = seqs[done++], mask = 0;

    for (; done < *n && (uint16_t) (seqs[done] - first) <= NACK_SPAN; done++)
      mask |= (uint16_t) (1u << (uint16_t) (seqs[done] - first - 1));
    write_number (at, first, 2);
    write_number (at + 2, mask, 2);
    at += 4;
  }
  *n = done;
  return at;
}

size_t
weir_rtcp_write_nack (
    uint8_t *out, size_t room, uint32_t ssrc, uint32_t media, const uint16_t *seqs, size_t *n)
{
  size_t len;

  if (*n == 0 || room < NACK_HEADER + 4) {
    *n = 0;
    return 0;
  }
  len = (size_t) (write_nack_entries (out + NACK_HEADER, out + room, seqs, n) - out);
  write_header (out, 1, 205, len, ssrc);
  write_number (out + 8, media, 4);
  return len;
}

size_t
weir_rtcp_write_remb (
    uint8_t *out, size_t room, uint32_t ssrc, uint64_t rate, const uint32_t *medias, size_t n)
{
  size_t len = REMB_HEADER + 4 * n;
  int exponent = 0;

  if (room < len)
    return 0;
  for (; rate > REMB_MANTISSA; exponent++)
    rate >>= 1;
  write_header (out, 15, 206, len, ssrc);
  write_number (out + 8, 0, 4);
  memcpy (out + 12, "REMB", 4);
  out[16] = (uint8_t) n;
  write_number (out + 17, (uint64_t) exponent << 18 | rate, 3);
  for (size_t i = 0; i < n; i++)
    write_number (out + REMB_HEADER + 4 * i, medias[i], 4);
  return len;
}
