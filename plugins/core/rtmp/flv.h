// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the bodies of RTMP's audio and video messages, which are those of FLV tags ("Adobe Flash
// Video File Format Specification", 10.1, annex E.4; "Enhanced RTMP", 1.0, for H.265).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits/bytes.h"
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

typedef struct {
  uint8_t type;       // that of an RTMP message: 8 audio, 9 video, 18 data
  uint32_t timestamp; // ms; wraps
  const uint8_t *data;
  size_t len;
} WeirFlvTag;

// Reads a tag, and its length behind it, which the last one may lack. `tag` points into the bytes.
// Returns false if it is cut short.
bool weir_flv_read_tag (WeirBytes *b, WeirFlvTag *tag);

#define WEIR_FLV_CODEC_TEXT 24

// Copies the NAL units of a frame of H.264 or H.265 to `out`, which has `len` bytes, without the
// empty ones and without one that is cut short. `config` is the record of the track, of which the
// lengths of the units depend. Returns the bytes copied. `*n_empty` is how many units are empty,
// `*cut` whether one is cut short.
size_t weir_flv_copy_units (WeirMp4Codec codec, const uint8_t *config, size_t config_len,
    const uint8_t *data, size_t len, uint8_t *out, size_t *n_empty, bool *cut);

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
