// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/encoding.h"

#include <stddef.h>
#include <string.h>

static const WeirRtpEncoding encodings[] = {
  { "H264", "video", 90000, -1 },
  { "H265", "video", 90000, -1 },
  { "VP8", "video", 90000, -1 },
  { "VP9", "video", 90000, -1 },
  { "AV1", "video", 90000, -1 },
  { "JPEG", "video", 90000, 26 },
  { "MP2T", "video", 90000, 33 },
  { "MPV", "video", 90000, 32 },
  { "MP4V-ES", "video", 90000, -1 },
  { "OPUS", "audio", 48000, -1 },
  { "PCMU", "audio", 8000, 0 },
  { "PCMA", "audio", 8000, 8 },
  { "G722", "audio", 8000, 9 },
  { "MPA", "audio", 90000, 14 },
  { "L16", "audio", 0, -1 },
  { "MPEG4-GENERIC", "audio", 0, -1 },
  { "MP4A-LATM", "audio", 0, -1 },
};

const WeirRtpEncoding *
weir_rtp_encoding (const char *name)
{
  for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
    if (!strcmp (name, encodings[i].name))
      return &encodings[i];
  }
  return NULL;
}
