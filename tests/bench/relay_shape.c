// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay_shape.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

// The sound of a camera: AAC, 48 kHz, 64 kb/s.
const RelayShape relay_sound = { "sound", 48000, 1024, 48000, 1, 0, 187, 1, 1, 187 };

static const RelayShape shapes[] = {
  // A camera of 1 Mb/s: two seconds have a keyframe of 25 kB and 49 frames of 4.6 kB.
  { "camera", 25, 1, 90000, 4, 1448, 248, 50, 18, 384 },
  // Table 1 of X. Zhang et al., "AMPS", UMass Computer Science Technical Report 2004-08. All frames
  // are alike; a keyframe comes every two seconds.
  { "V10", 10, 1, 90000, 1, 0, 160, 20, 1, 160 },
  { "V100", 10, 1, 90000, 1, 0, 1312, 20, 1, 1312 },
  { "V300", 15, 1, 90000, 2, 1448, 1208, 30, 2, 1208 },
  { "V1024", 30, 1, 90000, 4, 1448, 153, 60, 4, 153 },
};

// The beginnings of slices by x264, whose parameter sets are in the SDP: NAL header, then the slice
// header, which begins with the number of the first macroblock.
static const uint8_t key_slice[] = { 0x65, 0x88, 0x84, 0x0a, 0xf2, 0x62 };
static const uint8_t slice[] = { 0x41, 0x9a, 0x20, 0x2b, 0xc2, 0x7d };
// One access unit of 171 bytes: RFC 3640, AAC-hbr.
static const uint8_t sound_head[] = { 0x00, 0x10, 171 << 3 >> 8, (171 << 3) & 0xff, 0x21 };

const RelayShape *
relay_shape (const char *name)
{
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (strcmp (shapes[i].name, name) == 0)
      return &shapes[i];
  }
  return NULL;
}

// Writes the beginning of a frame's `index`-th slice. The first macroblock is 0, one bit, in the
// first slice, and 1, three bits, in the others: so that a parser takes them for one picture.
static void
write_slice_head (uint8_t *out, const uint8_t *head, size_t len, unsigned index)
{
  uint8_t before = 1; // 010, the code of 1, without its last bit

  memcpy (out, head, len);
  if (index == 0)
    return;
  for (size_t i = 1; i < len; i++) {
    uint8_t byte = i == 1 ? head[i] & 0x7f : head[i];

    out[i] = (uint8_t) (before << 6 | byte >> 2);
    before = byte & 3;
  }
}

void
relay_frame_make (RelayFrame *out, const RelayShape *shape, int key)
{
  *out = (RelayFrame) { .n = key ? shape->key_packets : shape->n_packets };
  for (unsigned i = 0; i < out->n; i++) {
    size_t last = key ? shape->key_last : shape->last;
    size_t len = i + 1 < out->n ? shape->full : last, payload = len - RELAY_RTP_HEADER;
    uint8_t *bytes = malloc (payload);

    if (!bytes)
      err (1, "memory");
    for (size_t at = 0; at < payload; at++)
      bytes[at] = (uint8_t) (0x80 | at * 37);
    if (shape == &relay_sound)
      memcpy (bytes, sound_head, sizeof sound_head);
    else
      write_slice_head (bytes, key ? key_slice : slice, sizeof slice, i);
    out->packets[i].len = len;
    out->packets[i].payload = bytes;
  }
}

#define VIDEO                                                                                      \
  "m=video 0 RTP/AVP 96\r\n"                                                                       \
  "a=rtpmap:96 H264/90000\r\n"                                                                     \
  "a=fmtp:96 packetization-mode=1;profile-level-id=42C01F;"                                        \
  "sprop-parameter-sets=Z0LAH9oBQBbsBEAAAAMAQAAADIPGDKg=,aM4PLIA=\r\n"                             \
  "a=control:track0\r\n"
#define SOUND                                                                                      \
  "m=audio 0 RTP/AVP 97\r\n"                                                                       \
  "a=rtpmap:97 MPEG4-GENERIC/48000/2\r\n"                                                          \
  "a=fmtp:97 streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;"            \
  "indexdeltalength=3;config=1190\r\n"                                                             \
  "a=control:track1\r\n"

const char *
relay_sdp (int sound)
{
  return sound ? VIDEO SOUND : VIDEO;
}
