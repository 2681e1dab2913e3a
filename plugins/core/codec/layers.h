// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What one RTP payload says of the picture it carries: which layer, whether a decoder can start
// here, whether it can be left out. Read once per packet, upstream; readers decide by comparison.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  WEIR_CODEC_OPAQUE, // nothing is known: no packet is a join point, none can be left out
  WEIR_CODEC_AUDIO,  // every packet is a join point
  WEIR_CODEC_H264,   // RFC 6184, and RFC 6190 for SVC
  WEIR_CODEC_H265,   // RFC 7798
  WEIR_CODEC_VP8,    // RFC 7741
  WEIR_CODEC_VP9,    // RFC 9628
  WEIR_CODEC_AV1,    // AV1 RTP specification 1.0
  WEIR_CODEC_MPV,    // MPEG-1 and MPEG-2 video, RFC 2250
} WeirCodec;

typedef struct {
  uint8_t spatial; // dependency id in SVC
  uint8_t quality;
  uint8_t temporal;
  bool keyframe;    // (the first part of) a key picture of spatial layer 0 lies in this payload
  bool parameters;  // parameter sets lie in this payload: a key picture follows, at the same time
  bool discardable; // no other picture needs this one
  bool switch_up;   // a reader may go up to this temporal layer here
  bool enter;       // a reader may go to this spatial layer here: like keyframe, for each layer
} WeirLayer;

// What has to be remembered from one payload to the next. One for each track; zero it to begin.
typedef struct {
  WeirCodec codec;
  WeirLayer last; // of the packet before, for the later fragments of one unit
  // H.264 without prefix NAL units: tell the temporal layer from nal_ref_idc, as encoders give it
  // out: the less, the higher the layer. Right from the first whole group of pictures on.
  bool infer_temporal;
  uint8_t seen;     // H.264: nal_ref_idc values, a bit each. H.265: the highest temporal layer
  bool have_prefix; // H.264: `prefix` belongs to the slice that comes next
  WeirLayer prefix;
} WeirLayers;

// The codec by its name in SDP ("H264", "VP8", …; RFC 4855), whatever its case.
// `media` is the SDP's ("video", "audio", …).
WeirCodec weir_codec_from_sdp (const char *media, const char *encoding_name);

// Reads the RTP payload of one packet (no padding). Returns false, and what is known of an opaque
// packet, for a payload that breaks its format. A payload that holds several layers is told as the
// lowest of them.
bool weir_layers_read (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
