// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/rates.h"

#include <string.h>

static int
compare (const WeirLayerRate *layer, unsigned spatial, unsigned quality, unsigned temporal)
{
  int d = (int) layer->spatial - (int) spatial, t = (int) layer->temporal - (int) temporal;

  return d != 0 ? d : t != 0 ? t : (int) layer->quality - (int) quality;
}

// Returns the entry of a layer, adding it if needed; NULL if there are too many.
static WeirLayerRate *
find (WeirRates *self, unsigned spatial, unsigned quality, unsigned temporal)
{
  size_t i = 0;

  while (i < self->n && compare (&self->layers[i], spatial, quality, temporal) < 0)
    i++;
  if (i < self->n && compare (&self->layers[i], spatial, quality, temporal) == 0)
    return &self->layers[i];
  if (self->n == WEIR_RATES_LAYERS)
    return NULL;
  memmove (&self->layers[i + 1], &self->layers[i], (self->n - i) * sizeof *self->layers);
  self->n++;
  self->layers[i] = (WeirLayerRate) {
    .spatial = (uint8_t) spatial, .quality = (uint8_t) quality, .temporal = (uint8_t) temporal
  };
  return &self->layers[i];
}

static double
weight_of (unsigned periods, unsigned most)
{
  return 1.0 / (periods < most ? periods : most);
}

static void
end_period (WeirRates *self, double seconds)
{
  unsigned n = ++self->periods;
  double weight = weight_of (n, WEIR_RATES_WEIGHT), slow = weight_of (n, WEIR_RATES_KEY_WEIGHT);

  for (size_t i = 0; i < self->n; i++) {
    WeirLayerRate *layer = &self->layers[i];

    layer->bitrate += ((double) layer->bytes * 8 / seconds - layer->bitrate) * weight;
    layer->frame_rate += ((double) layer->frames / seconds - layer->frame_rate) * weight;
    layer->bytes = layer->frames = 0;
  }
  self->key_bitrate += ((double) self->key_bytes * 8 / seconds - self->key_bitrate) * slow;
  self->reference_bitrate +=
      ((double) self->reference_bytes * 8 / seconds - self->reference_bitrate) * slow;
  self->key_bytes = self->reference_bytes = 0;
}

static bool
pass_time (WeirRates *self, int64_t now)
{
  int64_t passed = now - self->period_start;

  if (!self->started || passed < -WEIR_RATES_PERIOD_NS * 5ll) {
    self->started = true;
    self->period_start = now;
    return false;
  }
  if (passed < WEIR_RATES_PERIOD_NS)
    return false;
  end_period (self, (double) passed / 1e9);
  self->period_start = now;
  return true;
}

// `counted` has a bit for each layer whose frame was already counted.
static void
add_bytes (WeirRates *self, const WeirLayerRate *key, size_t bytes, uint64_t counted[2])
{
  WeirLayerRate *layer = find (self, key->spatial, key->quality, key->temporal);
  unsigned bit = (unsigned) (key->spatial % 8) * 16 + key->quality % 16u;

  if (!layer)
    return;
  layer->bytes += bytes;
  layer->total_bytes += bytes;
  layer->frames += !(counted[bit / 64] >> bit % 64 & 1);
  counted[bit / 64] |= 1ull << bit % 64;
}

bool
weir_rates_add_packet (
    WeirRates *self, const WeirLayer *layer, size_t bytes, bool starts_frame, int64_t now)
{
  bool ended = pass_time (self, now);
  uint64_t counted[2] = { 0 };

  if (!starts_frame)
    memset (counted, 0xff, sizeof counted);
  add_bytes (
      self, &(WeirLayerRate) { layer->spatial, layer->quality, layer->temporal }, bytes, counted);
  return ended;
}

bool
weir_rates_add (WeirRates *self, const WeirFrame *frame, int64_t now)
{
  bool ended = pass_time (self, now);
  uint64_t counted[2] = { 0 };

  for (size_t i = 0; i < frame->n_units; i++) {
    const WeirUnit *unit = &frame->units[i];

    if (weir_h264_is_slice (unit->nal.type))
      add_bytes (self,
          &(WeirLayerRate) { unit->nal.spatial, unit->nal.quality, unit->nal.temporal }, unit->len,
          counted);
  }
  for (size_t i = 0; i < frame->n_packets; i++) {
    const WeirFramePacket *packet = &frame->packets[i];

    if (packet->form == WEIR_FORM_LAYER)
      add_bytes (self,
          &(WeirLayerRate) {
              packet->layer.spatial, packet->layer.quality, frame->picture.temporal },
          packet->rtp.payload_length, counted);
  }
  return ended;
}

double
weir_rates_of (const WeirRates *self, WeirLayerSet set, bool alone)
{
  double sum = 0;

  for (size_t i = 0; i < self->n; i++) {
    const WeirLayerRate *layer = &self->layers[i];

    if (weir_layer_set_has (set, layer->spatial, layer->quality, layer->temporal)
        && (!alone || (layer->spatial == set.spatial && layer->quality == 0)))
      sum += layer->bitrate;
  }
  return sum;
}

WeirLayerSet
weir_rates_choose (
    const WeirRates *self, WeirLayerSet limit, uint64_t bitrate, bool alone, bool *fits)
{
  WeirLayerSet best = { 0, 0, 0 };
  double best_rate = -1;

  for (size_t i = 0; i < self->n; i++) {
    const WeirLayerRate *layer = &self->layers[i];
    WeirLayerSet set = { (int8_t) layer->spatial, (int8_t) layer->temporal,
      (int8_t) layer->quality };
    double rate = weir_rates_of (self, set, alone);

    if (!weir_layer_set_has (limit, layer->spatial, layer->quality, layer->temporal)
        || rate > (double) bitrate || rate <= best_rate)
      continue;
    best = set;
    best_rate = rate;
  }
  *fits = best_rate >= 0;
  return best;
}
