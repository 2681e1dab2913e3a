// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTP header that the packets of a stream have for one reader: SSRC, payload type and header
// extension (RFC 8285, one-byte form) of its own, and the form of a retransmission (RFC 4588). The
// extension may have the transport-wide number of each packet
// (draft-holmer-rmcat-transport-wide-cc-extensions-01).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_LOOK_EXTENSIONS 24                       // bytes of elements, at most
#define WEIR_LOOK_ROOM (4 + WEIR_LOOK_EXTENSIONS + 2) // bytes by which packets grow, at most

typedef struct {
  uint32_t ssrc;     // 0: packets keep their own, their payload type and their extension
  uint32_t rtx_ssrc; // of retransmissions; 0: there are none
  uint8_t pt, rtx_pt;
  uint8_t extensions_len; // in words of 4 bytes; 0: packets have no extension
  uint8_t transport_at;   // of the transport-wide number in `extensions`; 0: packets have none
  uint8_t extensions[WEIR_LOOK_EXTENSIONS];
} WeirLook;

// Sets the elements that each packet has, of `len` bytes, and behind them, unless `transport_id` is
// 0, that of the transport-wide number; zeros fill the last word. Returns 0, or -EINVAL if they are
// too long or not elements of the one-byte form; then `look` is unchanged.
int weir_look_set_extensions (
    WeirLook *look, const uint8_t *elements, size_t len, unsigned transport_id);

// Writes the header that a packet of `len` bytes has for the reader, to `out` with room for `len` +
// WEIR_LOOK_ROOM bytes, with the transport-wide number `transport` if the look has any. The
// sequence number, the timestamp, the marker, CSRCs and padding are those of the packet. Its own
// extension is left out, unless the packet keeps its SSRC: then it follows the look's elements if
// it has the one-byte form, and else the packet stays as it is. Returns the length of the header,
// behind which the bytes of the packet from `*payload` on have to follow; 0 if the packet is not
// RTP.
size_t weir_look_write (const WeirLook *look, uint16_t transport, const uint8_t *packet, size_t len,
    uint8_t *out, size_t *payload);

// Writes the retransmission of the packet, with the sequence number `seq`, to `out` with the same
// room. Returns its length, and that of its header in `*header`; 0 if the packet is not RTP.
size_t weir_look_write_again (const WeirLook *look, uint16_t transport, const uint8_t *packet,
    size_t len, uint16_t seq, uint8_t *out, size_t *header);

// Reads the transport-wide number of a packet that has this look, protected or not. Returns false
// if it has none.
bool weir_look_read_transport (
    const WeirLook *look, const uint8_t *packet, size_t len, uint16_t *transport);
