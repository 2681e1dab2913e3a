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

size_t
weir_look_write (const WeirLook *look, uint16_t transport, const uint8_t *packet, size_t len,
    uint8_t *out, size_t *payload)
{
  size_t header, extensions = 4u * look->extensions_len;
  WeirRtp rtp;

  if (weir_rtp_parse (packet, len, &rtp) < 0)
    return 0;
  header = WEIR_RTP_HEADER + 4u * rtp.n_csrc;
  memcpy (out, packet, header);
  out[0] = (uint8_t) (out[0] & ~EXTENDED);
  weir_rtp_set_ssrc (out, look->ssrc);
  weir_rtp_set_pt (out, look->pt);
  if (extensions > 0) {
    out[0] |= EXTENDED;
    put_u16 (out + header, ONE_BYTE_FORM);
    put_u16 (out + header + 2, look->extensions_len);
    memcpy (out + header + 4, look->extensions, extensions);
    if (look->transport_at > 0)
      put_u16 (out + header + 4 + look->transport_at, transport);
    header += 4 + extensions;
  }
  *payload = rtp.payload_offset;
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

  if (look->transport_at == 0 || len < WEIR_RTP_HEADER)
    return false;
  at = WEIR_RTP_HEADER + 4u * (packet[0] & 0xf) + 4 + look->transport_at;
  if (len < at + TRANSPORT)
    return false;
  *transport = (uint16_t) (packet[at] << 8 | packet[at + 1]);
  return true;
}
