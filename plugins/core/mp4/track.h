// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A track of a fragmented MP4, and its name in RFC 6381.

#include <stddef.h>
#include <stdint.h>

typedef enum {
  WEIR_MP4_H264,
  WEIR_MP4_H265,
  WEIR_MP4_VP9,
  WEIR_MP4_AV1,
  WEIR_MP4_AAC,
  WEIR_MP4_OPUS,
  WEIR_MP4_N_CODECS
} WeirMp4Codec;

typedef struct {
  WeirMp4Codec codec;
  uint32_t timescale;     // Hz; for audio the sample rate
  uint16_t width, height; // of video
  uint16_t channels;      // of audio
  const uint8_t *config;  // the codec's record, see below
  size_t config_len;
} WeirMp4Track;

// The records: for H.264 an AVCDecoderConfigurationRecord and for H.265 an
// HEVCDecoderConfigurationRecord (ISO/IEC 14496-15), for AV1 an AV1CodecConfigurationRecord, for
// AAC an AudioSpecificConfig (ISO/IEC 14496-3). weir_mp4_vp9_config() and weir_mp4_opus_config()
// make the two others, which streams do not carry.

#define WEIR_MP4_VP9_CONFIG 12
#define WEIR_MP4_OPUS_CONFIG 11

// Writes the content of a box vpcC ("VP Codec ISO Media File Format Binding", 1.0). `profile` is 0
// to 3, `depth` 8, 10 or 12 bits. `chroma` is the field chromaSubsampling: 1 for 4:2:0, 2 for
// 4:2:2, 3 for 4:4:4. The level is the lowest that allows pictures of this size at 60 a second.
void weir_mp4_vp9_config (uint8_t out[WEIR_MP4_VP9_CONFIG], unsigned profile, unsigned depth,
    unsigned chroma, unsigned width, unsigned height);

// Writes the content of a box dOps ("Encapsulation of Opus in ISO Base Media File Format", 4.3.2)
// for one or two channels that came by RTP, which has no pre-skip.
void weir_mp4_opus_config (uint8_t out[WEIR_MP4_OPUS_CONFIG], unsigned channels);

#define WEIR_MP4_CODEC_TEXT 64

// Writes the value of the attribute CODECS, such as "avc1.64001f", with its final zero. Returns 0,
// or -EINVAL if the record is too short for its codec: such a track cannot be written.
int weir_mp4_codec_text (const WeirMp4Track *track, char out[WEIR_MP4_CODEC_TEXT]);

static inline int
weir_mp4_is_video (WeirMp4Codec codec)
{
  return codec < WEIR_MP4_AAC;
}
