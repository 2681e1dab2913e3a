// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One picture in all its layers, as it came: the RTP packets of one timestamp, or one access unit.
// It is read once; each stream that is made of it (project.h, svc.h) decides by what stands here.
//
// A frame points into the packets; they have to stay until it is cleared.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/dependency.h"
#include "codec/h264.h"
#include "codec/layers.h"
#include "rtp/rtp.h"
#include "svc/layerset.h"

// A NAL unit of H.264, or the part of one that a packet holds.
typedef struct {
  const uint8_t *data; // the unit's header byte; of a fragment, the byte behind the FU header
  size_t len;
  WeirH264Nal nal; // of a later fragment: its start's
  bool part;       // a fragment
  bool more;       // a later fragment
  int16_t id;      // of a parameter set, or the PPS of a slice; -1 where it was not read
  int16_t sps;     // of a PPS: the id of its SPS
  bool cabac;      // of a PPS
  bool told;       // its temporal layer came with the packet
} WeirUnit;

// Reads a unit in one piece. Returns false if it is cut short.
bool weir_unit_read (WeirUnit *out, const uint8_t *data, size_t len);

typedef enum {
  WEIR_FORM_OPAQUE,    // passes as it is
  WEIR_FORM_SINGLE,    // one unit
  WEIR_FORM_FRAGMENT,  // FU-A
  WEIR_FORM_AGGREGATE, // STAP-A
  WEIR_FORM_LAYER,     // not H.264: goes or stays as a whole
  WEIR_FORM_BAD        // broken, or a fragment whose start was lost
} WeirForm;

typedef struct {
  const uint8_t *data;
  size_t len;
  size_t owner; // as given
  WeirRtp rtp;
  int64_t seq; // unwrapped
  WeirForm form;
  bool told; // `layer` came with it
  WeirLayer layer;
  uint32_t first_unit, n_units;
} WeirFramePacket;

typedef struct {
  WeirLayers reader;
  uint8_t dependency_id; // of the dependency descriptor among header extensions, 0 = none
  WeirDependency dependency;
  WeirFramePacket *packets;
  size_t n_packets, packets_size;
  WeirUnit *units;
  size_t n_units, units_size;
  WeirPicture picture;
  bool marker;      // the frame ended with it
  bool interleaved; // packets out of decoding order were seen (stays set)

  // From frame to frame.
  int64_t last_seq; // for unwrapping
  int64_t end_seq;  // behind the last packet of the frame before
  uint32_t ssrc;    // of it
  bool started;
} WeirFrame;

#define WEIR_FRAME_PACKETS 2048 // the most that a frame takes

void weir_frame_init (WeirFrame *self, WeirCodec codec, bool infer_temporal);
void weir_frame_free (WeirFrame *self);

// For the packets of the next frame.
void weir_frame_clear (WeirFrame *self);

typedef enum {
  WEIR_ADD_OK,
  WEIR_ADD_COMPLETE, // taken, and with it the frame is whole
  WEIR_ADD_NEXT,     // belongs to the next frame: use this one, clear it, and give it again
  WEIR_ADD_LATE,     // its frame is gone, or it is there already
  WEIR_ADD_BAD       // not RTP, or no memory
} WeirAdd;

// Packets may come in any order within a frame. A frame is whole when the packet with the marker
// and all before it are there. `owner` is any number by which the caller finds the packet again.
WeirAdd weir_frame_add (WeirFrame *self, const uint8_t *packet, size_t len, size_t owner);

// The same with the layer that the packet was found to be of; NULL: it has to be read. Of H.264,
// what it says of units that tell their layer themselves does not count.
WeirAdd weir_frame_add_layer (
    WeirFrame *self, const uint8_t *packet, size_t len, size_t owner, const WeirLayer *layer);

// Reads what was added. Afterwards the packets are in order.
void weir_frame_read (WeirFrame *self);

// What a packet's dependency descriptor, if it has one, tells in the place of its payload.
void weir_frame_read_descriptor (
    WeirFrame *self, const uint8_t *packet, const WeirRtp *rtp, WeirLayer *layer);

// Reads an access unit in one piece: with start codes where `length_size` is 0, else with lengths
// of that many bytes before each unit (1, 2 or 4). Returns 0; -EBADMSG if a length is beyond the
// end (what came before it stands in the frame); -ENOMEM.
int weir_frame_read_au (WeirFrame *self, const uint8_t *data, size_t len, unsigned length_size);
