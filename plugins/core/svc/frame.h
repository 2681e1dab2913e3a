// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Holds one picture in all its layers: the RTP packets of one timestamp, or one access unit. A
// picture is read once; each stream made of it (project.h, svc.h) uses the result.
//
// A frame points into the packets; they must stay valid until it is cleared. A frame belongs to one
// thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/dependency.h"
#include "codec/h264.h"
#include "codec/layers.h"
#include "rtp/rtp.h"
#include "svc/layerset.h"

// A NAL unit of H.264, or the fragment of one that a packet holds.
typedef struct {
  const uint8_t *data; // the unit's header byte; in a fragment, the byte behind the FU header
  size_t len;
  WeirH264Nal nal; // in a later fragment: the header of the first fragment
  bool part;       // a fragment (FU-A)
  bool more;       // not the first fragment
  int16_t id;      // id of a parameter set, or of a slice's PPS; -1 if it was not read
  int16_t sps;     // in a PPS: id of its SPS; else -1
  bool cabac;      // in a PPS: entropy_coding_mode_flag
  bool told;       // the caller gave the temporal layer with the packet
} WeirUnit;

// Reads a whole unit of `len` bytes; `out` points into `data`. Returns false if the headers are cut
// short.
bool weir_unit_read (WeirUnit *out, const uint8_t *data, size_t len);

typedef enum {
  WEIR_FORM_OPAQUE,    // passes unchanged
  WEIR_FORM_SINGLE,    // one unit
  WEIR_FORM_FRAGMENT,  // FU-A
  WEIR_FORM_AGGREGATE, // STAP-A
  WEIR_FORM_LAYER,     // not H.264: kept or dropped as a whole
  WEIR_FORM_BAD        // broken, or a fragment whose start was lost
} WeirForm;

typedef struct {
  const uint8_t *data;
  size_t len;
  size_t owner; // the number that the caller gave
  WeirRtp rtp;
  int64_t seq; // unwrapped
  WeirForm form;
  bool told; // the caller gave `layer` with the packet
  WeirLayer layer;
  uint32_t first_unit, n_units;
} WeirFramePacket;

typedef struct {
  WeirLayers reader;
  uint8_t dependency_id; // id of the dependency descriptor header extension, 0 = none
  WeirDependency dependency;
  WeirFramePacket *packets;
  size_t n_packets, packets_size;
  WeirUnit *units;
  size_t n_units, units_size;
  WeirPicture picture;
  bool marker;      // a packet with the marker bit was added
  bool interleaved; // packets out of decoding order were seen; stays set

  // Kept from frame to frame.
  int64_t last_seq; // for unwrapping
  int64_t end_seq;  // sequence number after the last packet of the frame before
  uint32_t ssrc;    // SSRC of the frame before
  bool started;
} WeirFrame;

#define WEIR_FRAME_PACKETS 2048 // most packets in a frame

// Starts a stream. `infer_temporal` is for H.264 without prefix NAL units; see WeirLayers.
void weir_frame_init (WeirFrame *self, WeirCodec codec, bool infer_temporal);
void weir_frame_free (WeirFrame *self);

// Forgets the packets of this frame and starts the next one.
void weir_frame_clear (WeirFrame *self);

typedef enum {
  WEIR_ADD_OK,
  WEIR_ADD_COMPLETE, // added, and the frame is complete
  WEIR_ADD_NEXT,     // not added, it belongs to the next frame: use this frame, clear it, add again
  WEIR_ADD_LATE,     // not added: its frame has passed, or it is a duplicate
  WEIR_ADD_BAD       // not added: not RTP, or no memory
} WeirAdd;

// Adds a packet of `len` bytes, which must stay valid. Packets may come in any order within a
// frame. A frame is complete when the packet with the marker and all packets before it are there.
// `owner` is any number by which the caller finds the packet again.
WeirAdd weir_frame_add (WeirFrame *self, const uint8_t *packet, size_t len, size_t owner);

// Adds a packet whose layer is known; with `layer` NULL the layer is read from the packet. H.264
// units that have layer fields keep the layer that these fields say.
WeirAdd weir_frame_add_layer (
    WeirFrame *self, const uint8_t *packet, size_t len, size_t owner, const WeirLayer *layer);

// Reads the packets that were added: fills in `picture`, `units` and each packet's form.
void weir_frame_read (WeirFrame *self);

// Replaces `layer` by the layer in the packet's dependency descriptor, if the packet has a valid
// one and the codec is not H.264.
void weir_frame_read_descriptor (
    WeirFrame *self, const uint8_t *packet, const WeirRtp *rtp, WeirLayer *layer);

// Reads a whole access unit of H.264: with start codes if `length_size` is 0, else with a length of
// that many bytes (1, 2 or 4) before each unit. Returns 0, or -EBADMSG if a length is beyond the
// end; the units before it are then in the frame.
int weir_frame_read_au (WeirFrame *self, const uint8_t *data, size_t len, unsigned length_size);
