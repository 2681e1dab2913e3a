// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/track.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bits/bytes.h"

// ---- records that streams do not carry ----

// "VP9 Bitstream & Decoding Process Specification", annex A: the luma samples a second and a
// picture that each level allows.
static const struct {
  uint8_t level;
  uint64_t rate;
  uint32_t picture;
} vp9_levels[] = {
  { 10, 829440, 36864 },
  { 11, 2764800, 73728 },
  { 20, 4608000, 122880 },
  { 21, 9216000, 245760 },
  { 30, 20736000, 552960 },
  { 31, 36864000, 983040 },
  { 40, 83558400, 2228224 },
  { 41, 160432128, 2228224 },
  { 50, 311951360, 8912896 },
  { 51, 588251136, 8912896 },
  { 52, 1176502272, 8912896 },
  { 60, 1176502272, 35651584 },
  { 61, 2353004544, 35651584 },
};

static uint8_t
get_vp9_level (uint64_t picture)
{
  const uint64_t frames = 60;

  for (size_t i = 0; i < sizeof vp9_levels / sizeof *vp9_levels; i++) {
    if (picture <= vp9_levels[i].picture && picture * frames <= vp9_levels[i].rate)
      return vp9_levels[i].level;
  }
  return 62;
}

void
weir_mp4_vp9_config (uint8_t out[WEIR_MP4_VP9_CONFIG], unsigned profile, unsigned depth,
    unsigned chroma, unsigned width, unsigned height)
{
  const uint8_t unspecified = 2; // colour, as in ISO/IEC 23091-2
  const uint8_t config[WEIR_MP4_VP9_CONFIG] = { 1, 0, 0, 0, (uint8_t) profile,
    get_vp9_level ((uint64_t) width * height), (uint8_t) (depth << 4 | chroma << 1), unspecified,
    unspecified, unspecified, 0, 0 };

  memcpy (out, config, sizeof config);
}

void
weir_mp4_opus_config (uint8_t out[WEIR_MP4_OPUS_CONFIG], unsigned channels)
{
  const uint8_t config[WEIR_MP4_OPUS_CONFIG] = { 0, (uint8_t) channels, 0, 0, 0, 0, 0xbb, 0x80 };

  memcpy (out, config, sizeof config);
}

// ---- names ----

static int
write_h264 (WeirBytes *record, char out[WEIR_MP4_CODEC_TEXT])
{
  uint8_t profile, constraints, level;

  weir_bytes_skip (record, 1);
  weir_bytes_u8 (record, &profile);
  weir_bytes_u8 (record, &constraints);
  if (!weir_bytes_u8 (record, &level))
    return -EINVAL;
  snprintf (out, WEIR_MP4_CODEC_TEXT, "avc1.%02x%02x%02x", profile, constraints, level);
  return 0;
}

static uint32_t
reverse_bits (uint32_t value)
{
  uint32_t reversed = 0;

  for (int i = 0; i < 32; i++)
    reversed |= (value >> i & 1) << (31 - i);
  return reversed;
}

// ISO/IEC 14496-15, annex E.3.
static int
write_h265 (WeirBytes *record, char out[WEIR_MP4_CODEC_TEXT])
{
  static const char *const spaces[] = { "", "A", "B", "C" };
  const uint8_t *constraints;
  uint32_t compatible;
  uint8_t first, level;
  size_t n = 6;
  int at;

  weir_bytes_skip (record, 1);
  weir_bytes_u8 (record, &first);
  weir_bytes_u32 (record, &compatible);
  weir_bytes_take (record, n, &constraints);
  if (!weir_bytes_u8 (record, &level))
    return -EINVAL;
  at = snprintf (out, WEIR_MP4_CODEC_TEXT, "hvc1.%s%u.%x.%c%u", spaces[first >> 6], first & 0x1fu,
      reverse_bits (compatible), first & 0x20 ? 'H' : 'L', level);
  while (n > 0 && constraints[n - 1] == 0)
    n--;
  for (size_t i = 0; i < n; i++)
    at += snprintf (out + at, WEIR_MP4_CODEC_TEXT - (size_t) at, ".%x", constraints[i]);
  return 0;
}

static int
write_vp9 (WeirBytes *record, char out[WEIR_MP4_CODEC_TEXT])
{
  uint8_t profile, level, depth;

  weir_bytes_skip (record, 4);
  weir_bytes_u8 (record, &profile);
  weir_bytes_u8 (record, &level);
  if (!weir_bytes_u8 (record, &depth))
    return -EINVAL;
  snprintf (out, WEIR_MP4_CODEC_TEXT, "vp09.%02u.%02u.%02u", profile, level, depth >> 4);
  return 0;
}

// "AV1 Codec ISO Media File Format Binding", 5.
static int
write_av1 (WeirBytes *record, char out[WEIR_MP4_CODEC_TEXT])
{
  uint8_t profile, flags;

  weir_bytes_skip (record, 1);
  weir_bytes_u8 (record, &profile);
  if (!weir_bytes_u8 (record, &flags) || !weir_bytes_skip (record, 1))
    return -EINVAL;
  snprintf (out, WEIR_MP4_CODEC_TEXT, "av01.%u.%02u%c.%02u", profile >> 5, profile & 0x1fu,
      flags & 0x80 ? 'H' : 'M', flags & 0x40 ? (flags & 0x20 ? 12u : 10u) : 8u);
  return 0;
}

static int
write_aac (WeirBytes *record, char out[WEIR_MP4_CODEC_TEXT])
{
  uint16_t start;
  unsigned type;

  if (!weir_bytes_u16 (record, &start))
    return -EINVAL;
  type = start >> 11;
  if (type == 31) // the escape
    type = 32 + (start >> 5 & 0x3fu);
  snprintf (out, WEIR_MP4_CODEC_TEXT, "mp4a.40.%u", type);
  return 0;
}

static int
write_opus (WeirBytes *record, char out[WEIR_MP4_CODEC_TEXT])
{
  if (!weir_bytes_skip (record, WEIR_MP4_OPUS_CONFIG))
    return -EINVAL;
  snprintf (out, WEIR_MP4_CODEC_TEXT, "opus");
  return 0;
}

int
weir_mp4_codec_text (const WeirMp4Track *track, char out[WEIR_MP4_CODEC_TEXT])
{
  static int (*const writers[WEIR_MP4_N_CODECS]) (WeirBytes *record, char *out) = {
    [WEIR_MP4_H264] = write_h264,
    [WEIR_MP4_H265] = write_h265,
    [WEIR_MP4_VP9] = write_vp9,
    [WEIR_MP4_AV1] = write_av1,
    [WEIR_MP4_AAC] = write_aac,
    [WEIR_MP4_OPUS] = write_opus,
  };
  WeirBytes record = weir_bytes (track->config, track->config_len);

  return writers[track->codec](&record, out);
}
