// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/layers.h"

#include "codec/layers_private.h"

#include <strings.h>

WeirCodec
weir_codec_from_sdp (const char *media, const char *encoding_name)
{
  static const struct {
    const char *name;
    WeirCodec codec;
  } names[] = {
    { "H264", WEIR_CODEC_H264 },
    { "H264-SVC", WEIR_CODEC_H264 },
    { "H265", WEIR_CODEC_H265 },
    { "VP8", WEIR_CODEC_VP8 },
    { "VP9", WEIR_CODEC_VP9 },
    { "AV1", WEIR_CODEC_AV1 },
    { "MPV", WEIR_CODEC_MPV },
  };

  if (media && strcasecmp (media, "audio") == 0)
    return WEIR_CODEC_AUDIO;
  for (size_t i = 0; encoding_name && i < sizeof names / sizeof *names; i++) {
    if (strcasecmp (encoding_name, names[i].name) == 0)
      return names[i].codec;
  }
  return WEIR_CODEC_OPAQUE;
}

static uint8_t
lower (uint8_t a, uint8_t b)
{
  return a < b ? a : b;
}

void
weir_layer_merge (WeirLayer *all, const WeirLayer *unit, bool first)
{
  all->spatial = first ? unit->spatial : lower (all->spatial, unit->spatial);
  all->quality = first ? unit->quality : lower (all->quality, unit->quality);
  all->temporal = first ? unit->temporal : lower (all->temporal, unit->temporal);
  all->discardable = unit->discardable && (first || all->discardable);
  all->keyframe |= unit->keyframe;
  all->switch_up |= unit->switch_up;
  all->enter |= unit->enter;
}

static bool
read_codec (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out)
{
  switch (self->codec) {
    case WEIR_CODEC_AUDIO:
      out->keyframe = true;
      out->switch_up = true;
      out->enter = true;
      return true;
    case WEIR_CODEC_H264:
      return weir_layers_read_h264 (self, payload, len, out);
    case WEIR_CODEC_H265:
      return weir_layers_read_h265 (self, payload, len, out);
    case WEIR_CODEC_VP8:
      return weir_layers_read_vp8 (payload, len, out);
    case WEIR_CODEC_VP9:
      return weir_layers_read_vp9 (payload, len, out);
    case WEIR_CODEC_AV1:
      return weir_layers_read_av1 (self, payload, len, out);
    case WEIR_CODEC_MPV:
      return weir_layers_read_mpv (payload, len, out);
    case WEIR_CODEC_OPAQUE:
    default:
      return true;
  }
}

bool
weir_layers_read (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out)
{
  bool ok;

  *out = (WeirLayer) { 0 };
  ok = read_codec (self, payload, len, out);
  if (!ok)
    *out = (WeirLayer) { 0 };
  self->last = *out;
  return ok;
}
