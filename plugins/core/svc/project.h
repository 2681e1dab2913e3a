// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTP stream of one layer set, out of the packets of all layers: which packets of a frame go
// on, and with what numbers. Sequence numbers go on without a gap where packets are left out, keep
// the gap where packets were lost before, and the marker stands on the last packet of a picture.
//
// One reading of a frame serves any number of sets. Deciding costs a few ns a packet; writing a
// packet patches its header, and for an aggregate (STAP-A) puts together what remains of it.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/frame.h"
#include "svc/layerset.h"
#include "svc/svc.h"

typedef struct {
  WeirSwitch layers;
  WeirOutput output;
  int64_t left_out;           // packets, so far
  uint16_t pictures_left_out; // for VP8, whose pictures are numbered
  bool settled;               // `plain` is of a picture
  // Of the frame that was decided on last.
  WeirLayerSet now;
  int plain;
  WeirPictureVerdict verdict;
  size_t last_kept; // its index, if any is
  unsigned kept;    // spatial layers that came out, a bit each
  bool renew;       // some come out that did not before: their parameter sets have to be there
  bool missed;      // parameter sets went with a picture that was left out
  // The payload of a packet that has to be put in, before packet `sets_before` and with the number
  // `sets_seq`; its length is 0 if there is none.
  uint8_t sets[WEIR_SVC_SETS_MAX];
  size_t sets_len;
  size_t sets_before;
  uint16_t sets_seq;
} WeirProjection;

void weir_projection_init (
    WeirProjection *self, WeirCodec codec, WeirLayerSet wanted, WeirOutput output);

typedef struct {
  bool keep;
  bool marker;
  uint16_t seq;
} WeirProjected;

// Decides on all packets of the frame; `out` has room for one line each. `svc` has been told of the
// frame (NULL for other codecs than H.264). Returns how many stay. Where parameter sets have to be
// put in, `sets_len` is more than 0: weir_project_write_sets() makes the packet.
size_t weir_project (
    WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame, WeirProjected *out);

// Writes the packet of parameter sets, at most WEIR_RTP_HEADER + WEIR_SVC_SETS_MAX bytes. Returns
// its length.
size_t weir_project_write_sets (
    const WeirProjection *self, const WeirFrame *frame, uint8_t *packet);

// True for a packet that would go out just as it came in: weir_project_write() may be left out.
bool weir_project_is_same (
    const WeirProjection *self, const WeirFramePacket *packet, const WeirProjected *how);

// Makes `packet`, a copy of packet `i` of the frame that was decided on last (or that packet
// itself), the one that goes out. Returns its length, which is never more than it was.
size_t weir_project_write (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    size_t i, const WeirProjected *how, uint8_t *packet);
