// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/simulcast.h"

#include <errno.h>

#include "codec/picture_size.h"

#define NS_PER_S INT64_C (1000000000)
// A report and the arrival differ by less. Some publishers stop the timestamps of a layer with it.
#define FAR_NS NS_PER_S
#define UNFINISHED_NS INT64_C (100000000) // after which the rest of a picture comes no more
#define STEPS_PER_S 1000                  // a picture that is late comes a step after the last one

void
weir_simulcast_init (WeirSimulcast *self, size_t n_layers, WeirCodec codec, uint32_t clock_rate)
{
  *self = (WeirSimulcast) { .n_layers = n_layers, .clock_rate = clock_rate };
  for (size_t i = 0; i < n_layers; i++) {
    self->layers[i].reader.codec = codec;
    self->order[i] = i;
  }
}

void
weir_simulcast_view_init (WeirSimulcastView *self, size_t rank, uint32_t ssrc)
{
  *self = (WeirSimulcastView) { .rank = rank, .ssrc = ssrc, .current = WEIR_SIMULCAST_NONE };
}

// ---- layers ----

static void
swap (size_t *a, size_t *b)
{
  size_t kept = *a;

  *a = *b;
  *b = kept;
}

// Puts the layers whose size is known in order, into the places that these have.
static void
sort (WeirSimulcast *self)
{
  for (size_t i = 0; i < self->n_layers; i++) {
    for (size_t j = i + 1; j < self->n_layers; j++) {
      uint64_t before = self->layers[self->order[i]].pixels;
      uint64_t after = self->layers[self->order[j]].pixels;

      if (before > 0 && after > before)
        swap (&self->order[i], &self->order[j]);
    }
  }
}

static void
note_size (WeirSimulcast *self, WeirSimulcastLayer *layer, const uint8_t *payload, size_t len)
{
  uint64_t pixels = weir_picture_pixels (layer->reader.codec, payload, len);

  if (pixels == 0 || pixels == layer->pixels)
    return;
  layer->pixels = pixels;
  sort (self);
}

static void
note_heard (WeirSimulcast *self, WeirSimulcastLayer *layer, const WeirRtp *rtp, int64_t now_ns)
{
  bool is_new = layer->heard_ns == 0 || rtp->timestamp != layer->timestamp;

  for (size_t i = 0; is_new && i < self->n_layers; i++)
    self->layers[i].others++;
  layer->others = 0;
  layer->timestamp = rtp->timestamp;
  layer->heard_ns = now_ns;
}

int
weir_simulcast_take (WeirSimulcast *self, size_t index, const uint8_t *data, size_t len,
    int64_t now_ns, WeirSimulcastPacket *out)
{
  WeirSimulcastLayer *layer = &self->layers[index];
  const uint8_t *payload;
  WeirLayer read;

  *out = (WeirSimulcastPacket) { .layer = index, .now_ns = now_ns };
  if (weir_rtp_parse (data, len, &out->rtp) < 0)
    return -EBADMSG;
  payload = data + out->rtp.payload_offset;
  note_heard (self, layer, &out->rtp, now_ns);
  if (weir_layers_read (&layer->reader, payload, out->rtp.payload_length, &read))
    out->begins = read.keyframe || read.parameters;
  if (out->begins)
    note_size (self, layer, payload, out->rtp.payload_length);
  return 0;
}

void
weir_simulcast_report (WeirSimulcast *self, size_t layer, const WeirNtpMap *map)
{
  self->layers[layer].report = *map;
}

static bool
flows (const WeirSimulcastLayer *layer, int64_t now_ns)
{
  return layer->heard_ns > 0
         && (layer->others < WEIR_SIMULCAST_FRAMES
             || now_ns - layer->heard_ns < WEIR_SIMULCAST_SILENCE_NS);
}

// Returns the layer that the view should have.
static int
find_layer (const WeirSimulcast *self, const WeirSimulcastView *view, int64_t now_ns)
{
  for (size_t i = view->rank; i < self->n_layers; i++) {
    if (flows (&self->layers[self->order[i]], now_ns))
      return (int) self->order[i];
  }
  for (size_t i = view->rank < self->n_layers ? view->rank : self->n_layers; i-- > 0;) {
    if (flows (&self->layers[self->order[i]], now_ns))
      return (int) self->order[i];
  }
  return WEIR_SIMULCAST_NONE;
}

static int64_t
find_now (const WeirSimulcast *self)
{
  int64_t now_ns = 0;

  for (size_t i = 0; i < self->n_layers; i++)
    now_ns = self->layers[i].heard_ns > now_ns ? self->layers[i].heard_ns : now_ns;
  return now_ns;
}

int
weir_simulcast_view_wanted (const WeirSimulcast *self, const WeirSimulcastView *view)
{
  int wanted = find_layer (self, view, find_now (self));

  return wanted == view->current ? WEIR_SIMULCAST_NONE : wanted;
}

// ---- numbers ----

// Returns the time from the view's last picture to the packet's.
static int64_t
find_distance (
    const WeirSimulcast *self, const WeirSimulcastView *view, const WeirSimulcastPacket *packet)
{
  const WeirNtpMap *before = &self->layers[view->current].report;
  const WeirNtpMap *after = &self->layers[packet->layer].report;
  int64_t arrived_ns = packet->now_ns - view->last_ns, ns;

  if (!before->known || !after->known)
    return arrived_ns;
  ns = weir_ntp_minus (weir_ntp_at (after, packet->rtp.timestamp, self->clock_rate),
      weir_ntp_at (before, view->last_in, self->clock_rate));
  return ns - arrived_ns < FAR_NS && arrived_ns - ns < FAR_NS ? ns : arrived_ns;
}

// Returns a time in ticks, to the nearest one.
static int64_t
count_ticks (const WeirSimulcast *self, int64_t ns)
{
  int64_t rest = ns % NS_PER_S * self->clock_rate;

  return ns / NS_PER_S * self->clock_rate
         + (rest + (rest < 0 ? -NS_PER_S / 2 : NS_PER_S / 2)) / NS_PER_S;
}

static void
change_layer (const WeirSimulcast *self, WeirSimulcastView *view, const WeirSimulcastPacket *packet)
{
  if (view->current == WEIR_SIMULCAST_NONE) { // its numbers are the layer's
    view->last_in = view->last_out = packet->rtp.timestamp;
  } else {
    int64_t ticks = count_ticks (self, find_distance (self, view, packet));

    view->seq_shift = (uint16_t) (view->last_seq + 1 - packet->rtp.seq);
    view->ts_shift += view->last_in + (uint32_t) ticks - packet->rtp.timestamp;
    view->last_in = packet->rtp.timestamp - 1; // none of the new layer's
    view->late = true;
  }
  view->current = (int) packet->layer;
}

static void
write_numbers (const WeirSimulcast *self, WeirSimulcastView *view,
    const WeirSimulcastPacket *packet, uint8_t *data)
{
  const WeirRtp *rtp = &packet->rtp;
  uint32_t timestamp = rtp->timestamp + view->ts_shift;

  if (view->late && rtp->timestamp == view->last_in)
    timestamp = view->last_out;
  else if (view->late && (int32_t) (timestamp - view->last_out) <= 0)
    timestamp = view->last_out + self->clock_rate / STEPS_PER_S;
  else
    view->late = false;
  view->last_in = rtp->timestamp;
  view->last_out = timestamp;
  view->last_ns = packet->now_ns;
  view->last_seq = (uint16_t) (rtp->seq + view->seq_shift);
  view->mid_frame = !rtp->marker;
  weir_rtp_set_seq (data, view->last_seq);
  weir_rtp_set_timestamp (data, timestamp);
  weir_rtp_set_ssrc (data, view->ssrc);
}

// A picture that has begun is not cut off, unless its rest does not come.
static bool
may_change (
    const WeirSimulcast *self, const WeirSimulcastView *view, const WeirSimulcastPacket *packet)
{
  return packet->begins && find_layer (self, view, packet->now_ns) == (int) packet->layer
         && (!view->mid_frame || packet->now_ns - view->last_ns > UNFINISHED_NS);
}

bool
weir_simulcast_view_take (const WeirSimulcast *self, WeirSimulcastView *view,
    const WeirSimulcastPacket *packet, uint8_t *data)
{
  if (view->current != (int) packet->layer) {
    if (!may_change (self, view, packet))
      return false;
    change_layer (self, view, packet);
  }
  write_numbers (self, view, packet, data);
  return true;
}

bool
weir_simulcast_view_report (
    const WeirSimulcast *self, const WeirSimulcastView *view, WeirNtpMap *out)
{
  if (view->current == WEIR_SIMULCAST_NONE || !self->layers[view->current].report.known)
    return false;
  *out = self->layers[view->current].report;
  out->timestamp += view->ts_shift;
  out->ssrc = view->ssrc;
  return true;
}
