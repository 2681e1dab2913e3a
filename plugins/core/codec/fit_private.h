// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of fit.h.

#include "codec/fit.h"
#include "codec/fit_sets.h"

#define WEIR_FIT_UNITS 64  // of an aggregation
#define WEIR_FIT_HELD 4096 // bytes of units that stand before a picture's first slice
#define WEIR_FIT_HELD_UNITS 16
#define WEIR_FIT_CARRY (WEIR_FIT_PAYLOAD - 2) // bytes of a fragment

typedef struct {
  const uint8_t *data;
  size_t len;
} WeirFitUnit;

// What happens with a picture of H.264.
typedef enum { WEIR_FIT_UNDECIDED, WEIR_FIT_KEPT, WEIR_FIT_LEFT_OUT } WeirFitPicture;

typedef struct {
  WeirFitSets sets;
  WeirFitPicture picture;
  bool has_idr;      // an IDR picture was written
  bool marked;       // the frame's last packet so far had the marker
  bool marks_slices; // the source sets the marker within frames
  bool has_loss;     // packets of this picture were lost
  // Units before the first slice.
  uint8_t held[WEIR_FIT_HELD];
  WeirFitUnit held_units[WEIR_FIT_HELD_UNITS];
  size_t n_held, held_bytes;
  // Units of the next packet.
  WeirFitUnit units[WEIR_FIT_UNITS];
  size_t n_units;
  // The unit that comes in fragments.
  bool in_unit, starts;      // `starts`: its first fragment is not written
  WeirFitResult unit_result; // what happens with it
  uint8_t unit_header;
  uint8_t carry[WEIR_FIT_CARRY];
  size_t n_carry;
} WeirFitH264;

struct _WeirFit {
  WeirCodec codec;
  const WeirFitOut *out;
  void *data;
  bool begun, has_time;
  bool lost;        // packets before the next one are missing
  uint16_t in_seq;  // of the last packet
  uint16_t seq;     // of the next packet out
  uint32_t in_time; // timestamp of the last packet with a payload
  uint32_t time;    // that of the packets out
  WeirRtp rtp;      // header of the packet in hand
  bool failed;      // there was no room
  uint64_t counts[WEIR_FIT_N_RESULTS], n_written;
  WeirFitH264 h264;
};

// Writes a packet with a payload of `head` and `rest`.
void weir_fit_write (
    WeirFit *self, bool marker, const uint8_t *head, size_t n_head, const uint8_t *rest, size_t n);

// Take the payload of a packet. `lost`: packets before it are missing. `next`: its timestamp is
// another than that of the packet before.
WeirFitResult weir_fit_h264_take (
    WeirFit *self, const uint8_t *payload, size_t len, bool lost, bool next);
WeirFitResult weir_fit_cut (WeirFit *self, const uint8_t *packet);
