// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the bodies of RTMP's audio and video messages, which are those of FLV tags ("Adobe Flash
// Video File Format Specification", 10.1, annex E.4; "Enhanced RTMP", 1.0, for H.265).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mp4/track.h"

typedef enum {
  WEIR_FLV_NOTHING, // no media: the end of a sequence, a seek, metadata of colours
  WEIR_FLV_CONFIG,  // the codec's record of mp4/track.h
  WEIR_FLV_FRAME,   // as in MP4: NAL units behind their length, or a raw AAC frame
} WeirFlvKind;

typedef struct {
  WeirFlvKind kind;
  WeirMp4Codec codec;
  bool key;       // a decoder can start here
  int32_t offset; // composition time minus decode time, ms; may be negative
  const uint8_t *data;
  size_t len;
} WeirFlv;

#define WEIR_FLV_CODEC_TEXT 24

// Read the body of a message; `out` points into it. Return 0, -EBADMSG if it is malformed, or
// -ENOTSUP if its codec is neither H.264, H.265 nor AAC: then `codec` names it, such as "MP3",
// "the codec 4" or "av01".
int weir_flv_read_video (
    const uint8_t *data, size_t len, WeirFlv *out, char codec[WEIR_FLV_CODEC_TEXT]);
int weir_flv_read_audio (
    const uint8_t *data, size_t len, WeirFlv *out, char codec[WEIR_FLV_CODEC_TEXT]);

// Reads the fields of an AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1) that containers repeat: the
// sample rate of the core in Hz, and the channels; 0 if only the stream says how many. Returns 0 or
// -EBADMSG.
int weir_flv_read_aac_config (const uint8_t *data, size_t len, uint32_t *rate, uint16_t *channels);
