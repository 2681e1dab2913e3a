// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads from one RTP payload which layer it carries, whether a decoder can start at it, and whether
// it can be left out. A payload is read once, when it comes in; readers only compare the result.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  WEIR_CODEC_OPAQUE, // unknown: no packet is a join point, none can be left out
  WEIR_CODEC_AUDIO,  // every packet is a join point
  WEIR_CODEC_H264,   // RFC 6184, and RFC 6190 for SVC
  WEIR_CODEC_H265,   // RFC 7798
  WEIR_CODEC_VP8,    // RFC 7741
  WEIR_CODEC_VP9,    // RFC 9628
  WEIR_CODEC_AV1,    // AV1 RTP specification 1.0
  WEIR_CODEC_MPV,    // MPEG-1 and MPEG-2 video, RFC 2250
} WeirCodec;

typedef struct {
  uint8_t spatial; // dependency_id in SVC
  uint8_t quality;
  uint8_t temporal;
  bool keyframe;    // holds the start of a key picture of spatial layer 0
  bool parameters;  // holds parameter sets: a key picture with the same timestamp follows
  bool discardable; // no other picture refers to it
  bool switch_up;   // a reader may switch up to this temporal layer here
  bool enter;       // a reader may enter this spatial layer here
} WeirLayer;

// State kept from one payload to the next, one for each track. Set to all zeros, then set `codec`.
typedef struct {
  WeirCodec codec;
  WeirLayer last; // layer of the packet before, for later fragments of a unit
  // For H.264 without prefix NAL units: infer the temporal layer from nal_ref_idc. Encoders give
  // lower values to higher layers. The result is right from the first whole group of pictures on.
  bool infer_temporal;
  uint8_t seen;     // H.264: a bit for each nal_ref_idc seen. H.265: highest temporal layer seen
  bool have_prefix; // H.264: `prefix` belongs to the next slice
  WeirLayer prefix;
} WeirLayers;

// Returns the codec for an encoding name in SDP ("H264", "VP8", ...; RFC 4855), in any case.
// `media` is the SDP's media type ("video", "audio", ...). Both may be NULL.
WeirCodec weir_codec_from_sdp (const char *media, const char *encoding_name);

// Reads the RTP payload of one packet, without padding. If the payload holds several layers, `out`
// is the lowest of them. Returns false for an invalid payload; `out` is then the same as for an
// opaque packet.
bool weir_layers_read (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
