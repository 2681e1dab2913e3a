// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/look.h"

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "rtp/rtp.h"

#define SEQ 2         // bytes of a sequence number
#define EXTENDED 0x10 // in the first byte of a header
#define ONE_BYTE_FORM 0xbede
#define RESERVED 15 // an id at which readers stop (RFC 8285, 4.2)
#define TRANSPORT 2 // bytes of a transport-wide number

static bool
are_elements (const uint8_t *data, size_t len)
{
  WeirBytes b = weir_bytes (data, len);
  uint8_t head;

  while (weir_bytes_left (&b) > 0) {
    weir_bytes_u8 (&b, &head);
    if (head == 0) // padding
      continue;
    if (head >> 4 == 0 || head >> 4 == RESERVED || !weir_bytes_skip (&b, (head & 0xf) + 1u))
      return false;
  }
  return true;
}

int
weir_look_set_extensions (
    WeirLook *look, const uint8_t *elements, size_t len, unsigned transport_id)
{
  size_t more = transport_id > 0 ? 1 + TRANSPORT : 0;

  if (len > WEIR_LOOK_EXTENSIONS - more || transport_id >= RESERVED
      || !are_elements (elements, len))
    return -EINVAL;
  memset (look->extensions, 0, sizeof look->extensions);
  if (len > 0)
    memcpy (look->extensions, elements, len);
  look->transport_at = 0;
  if (more > 0) {
    look->extensions[len] = (uint8_t) (transport_id << 4 | (TRANSPORT - 1));
    look->transport_at = (uint8_t) (len + 1);
    len += more;
  }
  look->extensions_len = (uint8_t) ((len + 3) / 4);
  return 0;
}

static void
put_u16 (uint8_t *at, uint16_t value)
{
  at[0] = (uint8_t) (value >> 8);
  at[1] = (uint8_t) value;
}

static uint16_t
get_u16 (const uint8_t *at)
{
  return (uint16_t) (at[0] << 8 | at[1]);
}

// Writes the look's elements, and behind them `own_len` words of the packet's. Returns the length.
static size_t
write_extension (
    const WeirLook *look, uint16_t transport, const uint8_t *own, uint16_t own_len, uint8_t *out)
{
  size_t len = 4u * look->extensions_len;

  put_u16 (out, ONE_BYTE_FORM);
  put_u16 (out + 2, (uint16_t) (look->extensions_len + own_len));
  memcpy (out + 4, look->extensions, len);
  if (look->transport_at > 0)
    put_u16 (out + 4 + look->transport_at, transport);
  if (own_len > 0)
    memcpy (out + 4 + len, own, 4u * own_len);
  return 4 + len + 4u * own_len;
}

// Writes the header of a packet that keeps its own but for the look's elements.
static size_t
write_kept (const WeirLook *look, uint16_t transport, const uint8_t *packet, const WeirRtp *rtp,
    uint8_t *out)
{
  size_t header = WEIR_RTP_HEADER + 4u * rtp->n_csrc;
  const uint8_t *own = packet + header;
  uint16_t own_len = 0;

  if (packet[0] & EXTENDED) {
    own_len = get_u16 (own + 2);
    if (get_u16 (own) != ONE_BYTE_FORM || own_len > UINT16_MAX - look->extensions_len) {
      memcpy (out, packet, rtp->payload_offset);
      return rtp->payload_offset;
    }
  }
  memcpy (out, packet, header);
  out[0] |= EXTENDED;
  return header + write_extension (look, transport, own + 4, own_len, out + header);
}

size_t
weir_look_write (const WeirLook *look, uint16_t transport, const uint8_t *packet, size_t len,
    uint8_t *out, size_t *payload)
{
  size_t header;
  WeirRtp rtp;

  if (weir_rtp_parse (packet, len, &rtp) < 0)
    return 0;
  *payload = rtp.payload_offset;
  if (look->ssrc == 0)
    return write_kept (look, transport, packet, &rtp, out);
  header = WEIR_RTP_HEADER + 4u * rtp.n_csrc;
  memcpy (out, packet, header);
  out[0] = (uint8_t) (out[0] & ~EXTENDED);
  weir_rtp_set_ssrc (out, look->ssrc);
  weir_rtp_set_pt (out, look->pt);
  if (look->extensions_len > 0) {
    out[0] |= EXTENDED;
    header += write_extension (look, transport, NULL, 0, out + header);
  }
  return header;
}

size_t
weir_look_write_again (const WeirLook *look, uint16_t transport, const uint8_t *packet, size_t len,
    uint16_t seq, uint8_t *out, size_t *header)
{
  size_t payload, end = weir_look_write (look, transport, packet, len, out, &payload);

  if (end == 0)
    return 0;
  *header = end;
  memcpy (out + end, out + 2, SEQ); // the number that the packet had
  memcpy (out + end + SEQ, packet + payload, len - payload);
  weir_rtp_set_seq (out, seq);
  weir_rtp_set_ssrc (out, look->rtx_ssrc);
  weir_rtp_set_pt (out, look->rtx_pt);
  return end + SEQ + len - payload;
}

bool
weir_look_read_transport (
    const WeirLook *look, const uint8_t *packet, size_t len, uint16_t *transport)
{
  size_t at;

  if (look->transport_at == 0 || len < WEIR_RTP_HEADER || !(packet[0] & EXTENDED))
    return false;
  at = WEIR_RTP_HEADER + 4u * (packet[0] & 0xf);
  if (len < at + 4 + look->transport_at + TRANSPORT || get_u16 (packet + at) != ONE_BYTE_FORM)
    return false;
  at += 4u + look->transport_at;
  *transport = get_u16 (packet + at);
  return true;
}
