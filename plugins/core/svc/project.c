// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/project.h"

#include "codec/layers_private.h"

#include <string.h>

void
weir_projection_init (WeirProjection *self, WeirCodec codec, WeirLayerSet wanted, WeirOutput output)
{
  *self = (WeirProjection) { .output = output, .plain = -1 };
  weir_switch_init (&self->layers, codec, wanted);
}

// ---- deciding ----

static bool
unit_stays (const WeirProjection *self, const WeirSvc *svc, const WeirUnit *unit)
{
  return weir_svc_fate (svc, unit, self->now, self->plain) != WEIR_UNIT_DROP;
}

static bool
packet_stays (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    const WeirFramePacket *packet)
{
  switch (packet->form) {
    case WEIR_FORM_OPAQUE:
      return true;
    case WEIR_FORM_BAD:
      return false;
    case WEIR_FORM_LAYER:
      return weir_layer_set_has (
          self->now, packet->layer.spatial, packet->layer.quality, packet->layer.temporal);
    default:
      break;
  }
  for (uint32_t i = 0; i < packet->n_units; i++) {
    if (unit_stays (self, svc, &frame->units[packet->first_unit + i]))
      return true;
  }
  return false;
}

// Reports whether the packet makes the picture worth sending. Delimiters and SEI alone would make a
// picture without content; parameter sets may have a timestamp of their own.
static bool
is_worth_a_frame (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    const WeirFramePacket *packet)
{
  if (packet->form == WEIR_FORM_OPAQUE || packet->form == WEIR_FORM_LAYER)
    return true;
  for (uint32_t i = 0; i < packet->n_units; i++) {
    const WeirUnit *unit = &frame->units[packet->first_unit + i];

    if (weir_svc_is_worth (unit, &frame->picture) && unit_stays (self, svc, unit))
      return true;
  }
  return false;
}

// Chooses which layer comes out as plain H.264. A change takes effect where the layer can be
// entered; until then the old choice stays, unless the stream has shown that it is impossible.
static void
choose_plain (WeirProjection *self, const WeirSvc *svc, const WeirPicture *picture)
{
  int plain = weir_svc_plain_layer (svc, self->output, self->now);
  int key = plain >= 0 ? plain : self->now.spatial < 0 ? 0 : self->now.spatial;

  if (plain == self->plain)
    return;
  if (!self->settled || self->layers.immediate || picture->enter >> key & 1) {
    self->plain = plain;
    return;
  }
  self->layers.waiting = true;
  if (!weir_svc_can_be (svc, self->plain))
    self->verdict = WEIR_PICTURE_BROKEN;
}

static void
choose (WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame)
{
  WeirLayerSet wanted = self->layers.wanted;
  unsigned kept;

  self->renew = false;
  if (self->output == WEIR_OUTPUT_BASE)
    self->layers.wanted.spatial = 0;
  self->verdict = weir_switch_picture (&self->layers, &frame->picture);
  self->layers.wanted = wanted;
  self->now = self->layers.now;
  if (!svc || !frame->picture.any)
    return;
  choose_plain (self, svc, &frame->picture);
  self->settled = true;
  if (self->verdict != WEIR_PICTURE_KEEP) {
    self->missed |= frame->picture.parameters;
    return;
  }
  kept = weir_svc_kept (self->now, self->plain);
  self->renew = self->missed || kept & ~self->kept;
  self->missed = false;
  self->kept = kept;
}

// Makes a packet of the parameter sets that the frame lacks. Its position is after the access unit
// delimiter.
static void
make_sets (
    WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame, const WeirProjected *out)
{
  const WeirFramePacket *packet;
  size_t i = 0;

  self->sets_len = 0;
  if (!self->renew)
    return;
  self->sets_len = weir_svc_write_missing (
      svc, frame, self->now, self->plain, 2, self->sets + 1, sizeof self->sets - 1);
  if (self->sets_len == 0)
    return;
  self->sets[0] = 0x60 | WEIR_H264_STAP_A;
  self->sets_len++;
  for (; i + 1 < frame->n_packets; i++) {
    packet = &frame->packets[i];
    if (out[i].keep
        && (packet->form != WEIR_FORM_SINGLE
            || frame->units[packet->first_unit].nal.type != WEIR_H264_AUD))
      break;
  }
  self->sets_before = i;
}

size_t
weir_project (WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame, WeirProjected *out)
{
  bool worth = false;
  size_t n = 0;

  choose (self, svc, frame);
  for (size_t i = 0; i < frame->n_packets; i++) {
    const WeirFramePacket *packet = &frame->packets[i];

    out[i] = (WeirProjected) { .keep = packet->form == WEIR_FORM_OPAQUE
                                       || (self->verdict == WEIR_PICTURE_KEEP
                                           && packet_stays (self, svc, frame, packet)) };
    worth |= out[i].keep && is_worth_a_frame (self, svc, frame, packet);
  }
  self->sets_len = 0;
  if (worth)
    make_sets (self, svc, frame, out);
  for (size_t i = 0; i < frame->n_packets; i++) {
    if (!out[i].keep || !worth) {
      out[i].keep = false;
      self->left_out++;
      continue;
    }
    if (self->sets_len > 0 && i == self->sets_before)
      self->sets_seq = (uint16_t) (frame->packets[i].seq - self->left_out--);
    out[i].seq = (uint16_t) (frame->packets[i].seq - self->left_out);
    self->last_kept = i;
    n++;
  }
  if (n > 0)
    out[self->last_kept].marker = frame->marker;
  else if (frame->picture.any)
    self->pictures_left_out++;
  return n;
}

// ---- writing ----

// The F bit and nal_ref_idc of an aggregate are the highest of its units' (RFC 6184, 5.7.1).
static uint8_t
stap_header (uint8_t so_far, uint8_t header)
{
  uint8_t nri = so_far & 0x60, other = header & 0x60;

  return (uint8_t) (((so_far | header) & 0x80) | (nri > other ? nri : other) | WEIR_H264_STAP_A);
}

// Overwrites the aggregate with its kept units, from the front. Writing never overtakes reading.
static size_t
write_aggregate (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    const WeirFramePacket *packet, uint8_t *payload)
{
  const uint8_t *was = packet->data + packet->rtp.payload_offset;
  size_t at = 1, kept = 0;
  uint8_t header = 0;

  for (uint32_t i = 0; i < packet->n_units; i++) {
    WeirUnit unit = frame->units[packet->first_unit + i];
    size_t len = unit.len;
    WeirUnitFate fate;

    unit.data = payload + (unit.data - was);
    fate = weir_svc_fate (svc, &unit, self->now, self->plain);
    if (fate == WEIR_UNIT_DROP)
      continue;
    if (fate == WEIR_UNIT_REWRITE)
      len = weir_svc_rewrite (svc, &unit, payload + at + 2);
    else
      memmove (payload + at + 2, unit.data, len);
    if (len == 0)
      continue;
    payload[at] = (uint8_t) (len >> 8);
    payload[at + 1] = (uint8_t) len;
    header = stap_header (header, payload[at + 2]);
    at += 2 + len;
    kept++;
  }
  payload[0] = header;
  if (kept != 1)
    return at;
  memmove (payload, payload + 3, at - 3); // a single unit needs no aggregate
  return at - 3;
}

static size_t
write_fragment (const WeirUnit *unit, WeirUnitFate fate, uint8_t *payload, size_t len)
{
  const size_t headers = 2, svc_header = 3;

  if (fate != WEIR_UNIT_REWRITE || len < headers)
    return len;
  payload[1] = (uint8_t) ((payload[1] & 0xe0) | (weir_svc_slice_header (unit) & 31));
  if (unit->more)
    return len;
  memmove (payload + headers, payload + headers + svc_header, len - headers - svc_header);
  return len - svc_header;
}

static size_t
write_payload (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    const WeirFramePacket *packet, uint8_t *payload)
{
  size_t len = packet->rtp.payload_length;
  WeirUnit unit;
  WeirUnitFate fate;

  if (frame->reader.codec == WEIR_CODEC_VP8)
    weir_vp8_shift_picture_id (payload, len, self->pictures_left_out);
  if (packet->form == WEIR_FORM_AGGREGATE)
    return write_aggregate (self, svc, frame, packet, payload);
  if (packet->form != WEIR_FORM_SINGLE && packet->form != WEIR_FORM_FRAGMENT)
    return len;
  unit = frame->units[packet->first_unit];
  unit.data = payload + (unit.data - (packet->data + packet->rtp.payload_offset));
  fate = weir_svc_fate (svc, &unit, self->now, self->plain);
  if (packet->form == WEIR_FORM_FRAGMENT)
    return write_fragment (&unit, fate, payload, len);
  if (fate != WEIR_UNIT_REWRITE)
    return len;
  return weir_svc_rewrite (svc, &unit, payload);
}

size_t
weir_project_write_sets (const WeirProjection *self, const WeirFrame *frame, uint8_t *packet)
{
  memcpy (packet, frame->packets[self->sets_before].data, WEIR_RTP_HEADER);
  packet[0] = 0x80; // no CSRC, extension or padding
  weir_rtp_set_marker (packet, false);
  weir_rtp_set_seq (packet, self->sets_seq);
  memcpy (packet + WEIR_RTP_HEADER, self->sets, self->sets_len);
  return WEIR_RTP_HEADER + self->sets_len;
}

bool
weir_project_is_same (
    const WeirProjection *self, const WeirFramePacket *packet, const WeirProjected *how)
{
  if (packet->form == WEIR_FORM_LAYER && self->pictures_left_out)
    return false;
  return how->seq == packet->rtp.seq && how->marker == packet->rtp.marker && self->plain <= 0
         && packet->form != WEIR_FORM_AGGREGATE;
}

size_t
weir_project_write (const WeirProjection *self, const WeirSvc *svc, const WeirFrame *frame,
    size_t i, const WeirProjected *how, uint8_t *packet)
{
  const WeirFramePacket *from = &frame->packets[i];
  size_t len = write_payload (self, svc, frame, from, packet + from->rtp.payload_offset);

  weir_rtp_set_seq (packet, how->seq);
  weir_rtp_set_marker (packet, how->marker);
  if (len == from->rtp.payload_length)
    return from->len;
  packet[0] &= (uint8_t) ~0x20; // the padding was cut off
  return from->rtp.payload_offset + len;
}
