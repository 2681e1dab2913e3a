// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes the RTP stream of one layer set out of the packets of all layers: which packets of a frame
// pass, and with which numbers. Sequence numbers have no gap where packets are left out, keep the
// gap where packets were lost upstream, and the marker is on the last packet of a picture.
//
// One frame, read once, serves any number of layer sets. Deciding costs a few ns per packet.
// Writing a packet patches its header and, for an aggregate (STAP-A), removes units.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/frame.h"
#include "svc/layerset.h"
#include "svc/svc.h"

typedef struct {
  WeirSwitch layers;
  WeirOutput output;
  int64_t left_out;           // packets left out since the start
  uint16_t pictures_left_out; // for VP8, whose pictures are numbered
  bool settled;               // `plain` was chosen for a picture
  // For the frame that was decided on last.
  WeirLayerSet now;
  int plain; // see weir_svc_plain_layer()
  WeirPictureVerdict verdict;
  size_t last_kept; // index of the last packet that is kept, if any
  unsigned kept;    // spatial layers of the output, a bit each
  bool renew;       // the output has a new layer: its parameter sets must be sent
  bool missed;      // a dropped picture held parameter sets
  // Payload of a packet of parameter sets to insert before packet `sets_before`, with the sequence
  // number `sets_seq`; `sets_len` is 0 if there is none.
  uint8_t sets[WEIR_SVC_SETS_MAX];
  size_t sets_len;
  size_t sets_before;
  uint16_t sets_seq;
} WeirProjection;

// Starts a stream of the layers `wanted`. `output` is for H.264 only.
void weir_projection_init (
    WeirProjection *self, WeirCodec codec, WeirLayerSet wanted, WeirOutput output);

typedef struct {
  bool keep;
  bool marker;
  uint16_t seq;
} WeirProjected;

// Decides on every packet of the frame. `out` needs room for one element per packet. `svc` must
// have seen the frame (weir_svc_note_frame()); NULL for codecs other than H.264. Returns the number
// of packets that are kept. If `sets_len` is not 0 afterwards, weir_project_write_sets() makes a
// packet to insert.
size_t weir_project (
    WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame, WeirProjected *out);

// Writes the packet of parameter sets. `packet` needs room for WEIR_RTP_HEADER + WEIR_SVC_SETS_MAX
// bytes. Returns the length.
size_t weir_project_write_sets (
    const WeirProjection *self, const WeirFrame *frame, uint8_t *packet);

// Reports whether the outgoing packet equals the incoming one, so that weir_project_write() is not
// needed.
bool weir_project_is_same (
    const WeirProjection *self, const WeirFramePacket *packet, const WeirProjected *how);

// Turns `packet`, a copy of packet `i` of the frame decided on last (or that packet itself), into
// the outgoing packet. Returns its length, never more than before.
size_t weir_project_write (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    size_t i, const WeirProjected *how, uint8_t *packet);
