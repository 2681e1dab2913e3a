// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes the RTP packets of a track fit for browsers (RFC 8834, RFC 7742). Each packet leaves with a
// plain 12-byte header and a payload of at most WEIR_FIT_PAYLOAD bytes, so that it fits a path of
// 1280 bytes with SRTP and header extensions around it.
//
// H.264 (RFC 6184, packetization-mode 1):
// - Units and fragments that are too long are fragmented anew, across the bounds of the fragments
//   that come, so that only the last packet of a unit is short.
// - The parameter sets, wherever they came (SDP included), stand before each IDR picture, once,
//   and before another picture only if they are new.
// - Pictures of B slices are left out, as no browser reorders pictures. The slice type tells them,
//   not nal_ref_idc: x264 gives a B picture that others refer to the nal_ref_idc of a P picture.
//   What is left decodes if no P picture refers to a B picture, which is so for x264.
// - Units that say nothing to such a decoder are left out: delimiters, filler, slices of SVC and
//   MVC.
// - A frame's last packet has the marker, and only that, also if the source marks each slice or
//   nothing; the mark of such a source's frame comes with the next frame.
// - Timestamps do not go back.
//
// Of the other codecs, packets that are too long are cut: H.265 (RFC 7798), VP8 (RFC 7741), VP9
// (RFC 9628) and AV1. Sound passes as it is, whatever its length.
//
// Sequence numbers are the object's own. Where packets were lost on the way here, one number is
// missing, so that receivers notice; none is if only a picture that is left out was hit.
//
// A packet that passes costs 0.15 to 0.25 us, one whose unit is fragmented anew 0.25 to 0.45 us, on
// a core of a busy virtual machine, once for all readers.
//
// Nothing waits for a later packet but the rest of a unit in fragments, which the unit's end
// flushes. One thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "rtp/rtp.h"

#define WEIR_FIT_PAYLOAD 1188

// Each packet taken is in one of these counts. A packet is sent if any part of it is.
typedef enum {
  WEIR_FIT_SENT,
  WEIR_FIT_B,         // of a picture of B slices
  WEIR_FIT_NEEDLESS,  // of units that no browser needs; parameter sets, which are sent when due
  WEIR_FIT_BROKEN,    // not valid, or the rest of a unit whose beginning was lost
  WEIR_FIT_LATE,      // out of order
  WEIR_FIT_TOO_LONG,  // and cannot be cut
  WEIR_FIT_NO_MEMORY, // no room was given
  WEIR_FIT_N_RESULTS
} WeirFitResult;

// Where packets go.
typedef struct {
  // Returns room for `size` bytes, or NULL.
  uint8_t *(*reserve) (void *data, size_t size);
  // The room that was given last holds a packet.
  void (*commit) (void *data, size_t size);
} WeirFitOut;

typedef struct _WeirFit WeirFit;

// Returns NULL if there is no memory. `data` is passed to the functions of `out`, which must stay
// valid.
WeirFit *weir_fit_new (WeirCodec codec, const WeirFitOut *out, void *data);
void weir_fit_free (WeirFit *self);

// Adds an H.264 parameter set from an SDP. It is sent unless the stream has its own.
void weir_fit_add_set (WeirFit *self, const uint8_t *nal, size_t len);

// Takes a packet, which need not be valid, and writes what it makes of it.
WeirFitResult weir_fit_take (WeirFit *self, const uint8_t *packet, size_t len);

// Returns how many packets had this result.
uint64_t weir_fit_count (const WeirFit *self, WeirFitResult result);
uint64_t weir_fit_written (const WeirFit *self); // packets
