// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/layerset.h"

void
weir_picture_add (WeirPicture *picture, const WeirLayer *layer)
{
  uint8_t bit = (uint8_t) (1u << (layer->spatial % WEIR_SPATIAL_LAYERS));

  picture->present |= bit;
  if (layer->enter)
    picture->enter |= bit;
  if (!picture->any || layer->temporal > picture->temporal)
    picture->temporal = layer->temporal;
  picture->switch_up |= layer->switch_up;
  picture->any = true;
}

void
weir_switch_init (WeirSwitch *self, WeirCodec codec, WeirLayerSet wanted)
{
  *self = (WeirSwitch) { .wanted = wanted, .now = wanted };
  self->down_is_free = codec == WEIR_CODEC_VP9 || codec == WEIR_CODEC_AV1;
  // Until a key picture only the base layer passes, or everything if all layers are wanted.
  if (wanted.spatial >= 0)
    self->now.spatial = 0;
}

static int
highest (unsigned layers)
{
  int i = -1;

  while (layers) {
    layers >>= 1;
    i++;
  }
  return i;
}

// Returns the layers of `set` that are not above `limit` (-1: all).
static unsigned
up_to (uint8_t set, int limit)
{
  return limit < 0 ? set : set & ((2u << limit) - 1);
}

static void
choose_spatial (WeirSwitch *self, const WeirPicture *picture)
{
  int now = self->now.spatial;
  int want = highest (up_to (picture->present, self->wanted.spatial));
  int enter = highest (up_to (picture->enter, self->wanted.spatial));
  bool here = now >= 0 && (picture->present >> now & 1 || self->down_is_free);

  if (want < 0)
    return;
  if (self->immediate) {
    self->now.spatial = (int8_t) want;
    self->now.quality = self->wanted.quality;
    self->settled = true;
  } else if (self->down_is_free && self->wanted.spatial >= 0 && now > self->wanted.spatial) {
    self->now.spatial = self->wanted.spatial;
  } else if (enter >= 0 && (enter == want || enter > now || !here)) {
    self->now.spatial = (int8_t) enter;
    self->now.quality = self->wanted.quality;
    self->settled = true;
  }
}

static void
choose_temporal (WeirSwitch *self, const WeirPicture *picture)
{
  int now = self->now.temporal, want = self->wanted.temporal;
  bool down = want >= 0 && (now < 0 || want < now);

  if (down || self->immediate || picture->temporal == 0 || picture->enter)
    self->now.temporal = (int8_t) want;
  else if (picture->switch_up && now >= 0 && picture->temporal == now + 1
           && (want < 0 || picture->temporal <= want))
    self->now.temporal = (int8_t) picture->temporal;
}

// Reports whether a key picture would bring the current layers closer to the wanted ones.
static bool
needs_key (const WeirSwitch *self, const WeirPicture *picture)
{
  int want = highest (up_to (picture->present, self->wanted.spatial));

  if (self->now.quality != self->wanted.quality)
    return true;
  if (!self->settled)
    return want > 0 || (self->now.spatial < 0 && want != highest (picture->present));
  return self->down_is_free ? want > self->now.spatial : want != self->now.spatial;
}

WeirPictureVerdict
weir_switch_picture (WeirSwitch *self, const WeirPicture *picture)
{
  if (!picture->any)
    return WEIR_PICTURE_KEEP;
  choose_spatial (self, picture);
  choose_temporal (self, picture);
  self->waiting = needs_key (self, picture);
  if (self->now.temporal >= 0 && picture->temporal > self->now.temporal)
    return WEIR_PICTURE_DROP;
  if (self->settled && !self->down_is_free && !(picture->present >> self->now.spatial & 1))
    return WEIR_PICTURE_BROKEN;
  return WEIR_PICTURE_KEEP;
}
