// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtmp/flv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FRAME_KEY = 1, FRAME_COMMAND = 5 };
enum { VIDEO_AVC = 7 };
enum { AUDIO_AAC = 10, AUDIO_ENHANCED = 9 };
enum { PACKET_CONFIG = 0, PACKET_FRAME = 1 };

// Of enhanced RTMP, with a FourCC in place of the codec's number.
enum { ENHANCED = 0x80 };
enum { ENHANCED_CONFIG = 0, ENHANCED_FRAME = 1, ENHANCED_FRAME_AT_ONCE = 3, ENHANCED_LAST = 5 };

#define FOURCC(a, b, c, d)                                                                         \
  ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

static int
end (WeirBytes *b, WeirFlv *out)
{
  out->len = weir_bytes_left (b);
  weir_bytes_take (b, out->len, &out->data);
  return b->failed ? -EBADMSG : 0;
}

static void
read_offset (WeirBytes *b, WeirFlv *out)
{
  uint32_t value;

  weir_bytes_u24 (b, &value);
  out->offset = (int32_t) (value ^ 0x800000u) - 0x800000; // its sign is the highest of 24 bits
}

bool
weir_flv_read_tag (WeirBytes *b, WeirFlvTag *tag)
{
  uint32_t len, low;
  uint8_t high;

  weir_bytes_u8 (b, &tag->type);
  weir_bytes_u24 (b, &len);
  weir_bytes_u24 (b, &low);
  weir_bytes_u8 (b, &high);
  weir_bytes_skip (b, 3); // the number of its stream, which is 0
  weir_bytes_take (b, len, &tag->data);
  tag->type &= 0x1f; // below two reserved bits, and one of encryption
  tag->timestamp = (uint32_t) high << 24 | low;
  tag->len = len;
  if (!b->failed)
    weir_bytes_skip (b, weir_bytes_left (b) < 4 ? weir_bytes_left (b) : 4);
  return !b->failed;
}

// ---- video ----

static int
read_avc (WeirBytes *b, WeirFlv *out)
{
  uint8_t packet;

  weir_bytes_u8 (b, &packet);
  read_offset (b, out);
  out->codec = WEIR_MP4_H264;
  out->kind = packet == PACKET_CONFIG  ? WEIR_FLV_CONFIG
              : packet == PACKET_FRAME ? WEIR_FLV_FRAME
                                       : WEIR_FLV_NOTHING;
  return end (b, out);
}

static int
name_fourcc (uint32_t fourcc, char codec[WEIR_FLV_CODEC_TEXT])
{
  char text[5] = "";

  for (int i = 0; i < 4; i++) {
    uint8_t c = (uint8_t) (fourcc >> (24 - 8 * i));

    text[i] = c > ' ' && c < 0x7f ? (char) c : '?';
  }
  snprintf (codec, WEIR_FLV_CODEC_TEXT, "%s", text);
  return -ENOTSUP;
}

static int
read_enhanced (WeirBytes *b, unsigned packet, WeirFlv *out, char codec[WEIR_FLV_CODEC_TEXT])
{
  uint32_t fourcc;

  // Later packets are of several tracks, or have fields before their FourCC.
  if (packet > ENHANCED_LAST)
    return name_fourcc (0, codec);
  if (!weir_bytes_u32 (b, &fourcc))
    return -EBADMSG;
  if (fourcc == FOURCC ('h', 'v', 'c', '1'))
    out->codec = WEIR_MP4_H265;
  else if (fourcc == FOURCC ('a', 'v', 'c', '1'))
    out->codec = WEIR_MP4_H264;
  else
    return name_fourcc (fourcc, codec);
  if (packet == ENHANCED_FRAME)
    read_offset (b, out);
  out->kind = packet == ENHANCED_CONFIG                                      ? WEIR_FLV_CONFIG
              : packet == ENHANCED_FRAME || packet == ENHANCED_FRAME_AT_ONCE ? WEIR_FLV_FRAME
                                                                             : WEIR_FLV_NOTHING;
  return end (b, out);
}

static int
name_number (unsigned number, char codec[WEIR_FLV_CODEC_TEXT])
{
  snprintf (codec, WEIR_FLV_CODEC_TEXT, "the codec %u", number);
  return -ENOTSUP;
}

int
weir_flv_read_video (const uint8_t *data, size_t len, WeirFlv *out, char codec[WEIR_FLV_CODEC_TEXT])
{
  WeirBytes b = weir_bytes (data, len);
  uint8_t first;
  unsigned frame;

  *out = (WeirFlv) { 0 };
  if (!weir_bytes_u8 (&b, &first))
    return -EBADMSG;
  frame = first >> 4 & 7;
  out->key = frame == FRAME_KEY;
  if (frame == FRAME_COMMAND)
    return 0;
  if (first & ENHANCED)
    return read_enhanced (&b, first & 0xf, out, codec);
  return (first & 0xf) == VIDEO_AVC ? read_avc (&b, out) : name_number (first & 0xf, codec);
}

// ---- NAL units ----

// Returns how many bytes the length of a NAL unit has.
static size_t
length_size (WeirMp4Codec codec, const uint8_t *config, size_t config_len)
{
  size_t at = codec == WEIR_MP4_H264 ? 4 : 21;

  return at < config_len ? (config[at] & 3u) + 1 : 4;
}

size_t
weir_flv_copy_units (WeirMp4Codec codec, const uint8_t *config, size_t config_len,
    const uint8_t *data, size_t len, uint8_t *out, size_t *n_empty, bool *cut)
{
  size_t size = length_size (codec, config, config_len), n = 0;
  WeirBytes b = weir_bytes (data, len);
  const uint8_t *unit;
  uint64_t unit_len;

  *n_empty = 0;
  while (weir_bytes_left (&b) > 0) {
    const uint8_t *start = b.at;

    if (!weir_bytes_number (&b, size, &unit_len) || !weir_bytes_take (&b, unit_len, &unit))
      break;
    if (unit_len == 0) {
      ++*n_empty;
      continue;
    }
    memcpy (out + n, start, size + unit_len);
    n += size + unit_len;
  }
  *cut = b.failed;
  return n;
}

// ---- audio ----

static int
name_audio (WeirBytes *b, unsigned format, char codec[WEIR_FLV_CODEC_TEXT])
{
  static const char *const names[16] = { "PCM", "ADPCM", "MP3",
    "PCM", [7] = "A-law", [8] = "mu-law", [11] = "Speex", [14] = "MP3" };
  uint32_t fourcc;

  if (format == AUDIO_ENHANCED) {
    weir_bytes_u32 (b, &fourcc);
    return name_fourcc (fourcc, codec);
  }
  if (!names[format])
    return name_number (format, codec);
  snprintf (codec, WEIR_FLV_CODEC_TEXT, "%s", names[format]);
  return -ENOTSUP;
}

int
weir_flv_read_audio (const uint8_t *data, size_t len, WeirFlv *out, char codec[WEIR_FLV_CODEC_TEXT])
{
  WeirBytes b = weir_bytes (data, len);
  uint8_t first, packet;

  *out = (WeirFlv) { .codec = WEIR_MP4_AAC, .key = true };
  if (len == 0)
    return 0; // some encoders send one to say that they have no sound
  weir_bytes_u8 (&b, &first);
  if (first >> 4 != AUDIO_AAC)
    return name_audio (&b, first >> 4, codec);
  weir_bytes_u8 (&b, &packet);
  out->kind = packet == PACKET_CONFIG ? WEIR_FLV_CONFIG : WEIR_FLV_FRAME;
  return end (&b, out);
}

// ---- the record of AAC ----

// Returns the bits of a number that has at most 56, from bit `at` on, or 0 beyond its end.
static uint32_t
bits (uint64_t from, unsigned at, unsigned n)
{
  return (uint32_t) (from >> (56 - at - n)) & ((1u << n) - 1);
}

int
weir_flv_read_aac_config (const uint8_t *data, size_t len, uint32_t *rate, uint16_t *channels)
{
  static const uint32_t rates[] = { 96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000,
    12000, 11025, 8000, 7350 };
  static const uint16_t layouts[] = { 0, 1, 2, 3, 4, 5, 6, 8 };
  WeirBytes b = weir_bytes (data, len);
  size_t n = len < 7 ? len : 7;
  unsigned at, index, layout;
  uint64_t head;

  weir_bytes_number (&b, n, &head);
  head <<= 8 * (7 - n);
  at = bits (head, 0, 5) == 31 ? 11 : 5; // behind the object type
  index = bits (head, at, 4);
  *rate = index == 15 ? bits (head, at + 4, 24) : index < 13 ? rates[index] : 0;
  at += index == 15 ? 28 : 4;
  layout = bits (head, at, 4);
  *channels = layout < 8 ? layouts[layout] : 0;
  return at + 4 <= 8 * n && *rate > 0 ? 0 : -EBADMSG;
}
