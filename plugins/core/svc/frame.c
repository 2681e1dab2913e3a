// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/frame.h"

#include "bits/bits.h"
#include "bits/startcode.h"
#include "codec/layers_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNITS = 32768, RESTART = 3000 };

void
weir_frame_init (WeirFrame *self, WeirCodec codec, bool infer_temporal)
{
  *self = (WeirFrame) { .reader = { .codec = codec, .infer_temporal = infer_temporal } };
  self->last_seq = WEIR_UNWRAP_START;
}

void
weir_frame_free (WeirFrame *self)
{
  free (self->packets);
  free (self->units);
  self->packets = NULL;
  self->units = NULL;
}

void
weir_frame_clear (WeirFrame *self)
{
  if (self->n_packets > 0) {
    self->end_seq = self->packets[self->n_packets - 1].seq + 1;
    self->ssrc = self->packets[0].rtp.ssrc;
    self->started = true;
  }
  self->n_packets = 0;
  self->n_units = 0;
  self->picture = (WeirPicture) { 0 };
  self->marker = false;
}

// Doubles an array that is full, up to `max` elements. The arrays are kept for later frames.
static bool
array_make_room (void **array, size_t n, size_t *size, size_t max, size_t each)
{
  size_t wanted = *size ? *size * 2 : 8;
  void *grown;

  if (n < *size)
    return true;
  if (wanted > max)
    return false;
  grown = realloc (*array, wanted * each);
  if (!grown)
    return false;
  *array = grown;
  *size = wanted;
  return true;
}

// ---- packets ----

static bool
is_whole (const WeirFrame *self)
{
  const WeirFramePacket *first = &self->packets[0], *last = &self->packets[self->n_packets - 1];

  return self->marker && last->rtp.marker
         && (size_t) (last->seq - first->seq) == self->n_packets - 1
         && (!self->started || first->seq == self->end_seq);
}

// Reports whether a packet of another frame belongs to a frame before the current one.
static bool
is_before (const WeirFrame *self, const WeirFramePacket *fresh)
{
  const WeirFramePacket *first = &self->packets[0];

  return fresh->rtp.ssrc == first->rtp.ssrc && fresh->seq < first->seq
         && first->seq - fresh->seq < RESTART;
}

// Reports whether the packet's frame has passed. A sender that restarts its numbers is followed.
static bool
is_late (WeirFrame *self, const WeirFramePacket *fresh)
{
  if (!self->started || (fresh->seq >= self->end_seq && fresh->rtp.ssrc == self->ssrc))
    return false;
  if (fresh->rtp.ssrc == self->ssrc && self->end_seq - fresh->seq < RESTART)
    return true;
  self->ssrc = fresh->rtp.ssrc;
  self->end_seq = fresh->seq;
  return false;
}

WeirAdd
weir_frame_add (WeirFrame *self, const uint8_t *packet, size_t len, size_t owner)
{
  return weir_frame_add_layer (self, packet, len, owner, NULL);
}

WeirAdd
weir_frame_add_layer (
    WeirFrame *self, const uint8_t *packet, size_t len, size_t owner, const WeirLayer *layer)
{
  WeirFramePacket fresh = { .data = packet, .len = len, .owner = owner, .told = layer };
  int64_t last = self->last_seq;
  size_t at = self->n_packets;

  if (weir_rtp_parse (packet, len, &fresh.rtp) < 0)
    return WEIR_ADD_BAD;
  if (layer)
    fresh.layer = *layer;
  fresh.seq = weir_unwrap16 (&last, fresh.rtp.seq);
  if (at > 0
      && (self->packets[0].rtp.timestamp != fresh.rtp.timestamp
          || self->packets[0].rtp.ssrc != fresh.rtp.ssrc))
    return is_before (self, &fresh) ? WEIR_ADD_LATE : WEIR_ADD_NEXT;
  if (is_late (self, &fresh))
    return WEIR_ADD_LATE;
  while (at > 0 && self->packets[at - 1].seq >= fresh.seq) {
    if (self->packets[--at].seq == fresh.seq)
      return WEIR_ADD_LATE;
  }
  if (!array_make_room ((void **) &self->packets, self->n_packets, &self->packets_size,
          WEIR_FRAME_PACKETS, sizeof *self->packets))
    return self->n_packets > 0 ? WEIR_ADD_NEXT : WEIR_ADD_BAD;
  memmove (
      &self->packets[at + 1], &self->packets[at], (self->n_packets - at) * sizeof *self->packets);
  self->packets[at] = fresh;
  self->n_packets++;
  self->marker |= fresh.rtp.marker;
  self->last_seq = last;
  return is_whole (self) ? WEIR_ADD_COMPLETE : WEIR_ADD_OK;
}

// ---- units of H.264 ----

static void
read_ids (WeirUnit *unit)
{
  WeirBytes b = weir_bytes (unit->data, unit->len);
  WeirBits bits;
  uint32_t id = UINT32_MAX;

  weir_bytes_skip (&b, unit->nal.type == WEIR_H264_SLICE_EXT ? 4 : 1);
  bits = weir_bits (b);
  switch (unit->nal.type) {
    case WEIR_H264_SPS:
    case WEIR_H264_SUBSET_SPS:
      weir_bits_u (&bits, 24);
      id = weir_bits_ue (&bits);
      break;
    case WEIR_H264_PPS:
      id = weir_bits_ue (&bits);
      unit->sps = (int16_t) (weir_bits_ue (&bits) & 31);
      unit->cabac = weir_bit (&bits);
      break;
    case WEIR_H264_SLICE:
    case WEIR_H264_IDR:
    case WEIR_H264_SLICE_EXT:
      weir_bits_ue (&bits);
      weir_bits_ue (&bits);
      id = weir_bits_ue (&bits);
      break;
    default:
      break;
  }
  unit->id = id > 255 || bits.from.failed ? -1 : (int16_t) id;
}

static WeirUnit *
new_unit (WeirFrame *self, const uint8_t *data, size_t len)
{
  WeirUnit *unit;

  if (!array_make_room (
          (void **) &self->units, self->n_units, &self->units_size, MAX_UNITS, sizeof *self->units))
    return NULL;
  unit = &self->units[self->n_units++];
  *unit = (WeirUnit) { .data = data, .len = len, .id = -1, .sps = -1 };
  return unit;
}

bool
weir_unit_read (WeirUnit *out, const uint8_t *data, size_t len)
{
  WeirBytes b = weir_bytes (data, len);
  uint8_t header;

  *out = (WeirUnit) { .data = data, .len = len, .id = -1, .sps = -1 };
  if (!weir_bytes_u8 (&b, &header) || !weir_h264_nal_read (header, b, &out->nal))
    return false;
  read_ids (out);
  return true;
}

static bool
add_unit (WeirFrame *self, const uint8_t *data, size_t len)
{
  WeirUnit unit, *added;

  if (!weir_unit_read (&unit, data, len))
    return false;
  added = new_unit (self, data, len);
  if (added)
    *added = unit;
  return added;
}

// Adds the first fragment of a unit. `header` is the unit's own header byte, which the packet does
// not hold in front of `data`.
static bool
add_start (WeirFrame *self, const uint8_t *data, size_t len, uint8_t header)
{
  uint8_t start[24] = { header };
  WeirUnit unit, *added;
  size_t n = len < sizeof start - 1 ? len : sizeof start - 1;

  if (len > 0)
    memcpy (start + 1, data, n);
  if (!weir_unit_read (&unit, start, n + 1))
    return false;
  added = new_unit (self, data, len);
  if (!added)
    return false;
  *added = unit;
  added->data = data;
  added->len = len;
  added->part = true;
  return true;
}

static WeirForm
read_stap (WeirFrame *self, WeirBytes b)
{
  const uint8_t *unit;
  uint16_t size;

  while (weir_bytes_left (&b) > 0) {
    if (!weir_bytes_u16 (&b, &size) || !weir_bytes_take (&b, size, &unit)
        || !add_unit (self, unit, size))
      return WEIR_FORM_BAD;
  }
  return WEIR_FORM_AGGREGATE;
}

// The fragmented unit in progress, and the sequence number that its next fragment must have.
typedef struct {
  size_t index;
  int64_t next_seq;
  bool valid;
} Open;

static WeirForm
read_fu (WeirFrame *self, const WeirFramePacket *packet, uint8_t indicator, WeirBytes b, Open *open)
{
  uint8_t header;
  WeirUnit *unit;

  if (!weir_bytes_u8 (&b, &header))
    return WEIR_FORM_BAD;
  if (header & 0x80) {
    if (!add_start (self, b.at, weir_bytes_left (&b), (indicator & 0xe0) | (header & 31)))
      return WEIR_FORM_BAD;
  } else {
    if (!open->valid || open->next_seq != packet->seq
        || self->units[open->index].nal.type != (header & 31))
      return WEIR_FORM_BAD;
    unit = new_unit (self, b.at, weir_bytes_left (&b));
    if (!unit)
      return WEIR_FORM_BAD;
    unit->nal = self->units[open->index].nal;
    unit->part = true;
    unit->more = true;
  }
  open->valid = !(header & 0x40);
  open->index = self->n_units - 1;
  open->next_seq = packet->seq + 1;
  return WEIR_FORM_FRAGMENT;
}

static WeirForm
read_payload (WeirFrame *self, const WeirFramePacket *packet, Open *open)
{
  const uint8_t *payload = packet->data + packet->rtp.payload_offset;
  WeirBytes b = weir_bytes (payload, packet->rtp.payload_length);
  uint8_t header;

  if (!weir_bytes_u8 (&b, &header))
    return WEIR_FORM_OPAQUE; // an empty packet only keeps the path open
  if ((header & 31) == WEIR_H264_FU_A)
    return read_fu (self, packet, header, b, open);
  open->valid = false;
  switch (header & 31) {
    case WEIR_H264_STAP_A:
      return read_stap (self, b);
    case WEIR_H264_STAP_B:
    case WEIR_H264_MTAP16:
    case WEIR_H264_MTAP24:
    case WEIR_H264_FU_B:
      self->interleaved = true;
      return WEIR_FORM_OPAQUE;
    default:
      return add_unit (self, payload, packet->rtp.payload_length) ? WEIR_FORM_SINGLE
                                                                  : WEIR_FORM_BAD;
  }
}

// ---- the picture ----

// Gives base slices, which have no layer fields, the layer of their prefix, and adds all slices to
// the picture.
static void
add_slices (WeirFrame *self)
{
  const WeirH264Nal *prefix = NULL;

  for (size_t i = 0; i < self->n_units; i++) {
    WeirH264Nal *nal = &self->units[i].nal;

    if (nal->type == WEIR_H264_PREFIX)
      prefix = nal;
    self->picture.parameters |= weir_h264_is_parameters (nal->type);
    if (self->units[i].more) {
      nal->temporal = self->units[i - 1].nal.temporal;
      continue;
    }
    if (!weir_h264_is_slice (nal->type))
      continue;
    if (!nal->svc && prefix)
      nal->temporal = prefix->temporal;
    else if (!nal->svc && self->units[i].told)
      ; // the packet's layer was given
    else if (!nal->svc && self->reader.infer_temporal)
      nal->temporal = weir_h264_temporal_from_nri (&self->reader, nal->nri);
    weir_picture_add (&self->picture, &(WeirLayer) { .spatial = nal->spatial,
                                          .temporal = nal->temporal,
                                          .enter = nal->idr && nal->quality == 0,
                                          .switch_up = nal->temporal == 0 });
  }
}

static void
read_h264 (WeirFrame *self)
{
  Open open = { 0 };

  for (size_t i = 0; i < self->n_packets; i++) {
    WeirFramePacket *packet = &self->packets[i];

    packet->first_unit = (uint32_t) self->n_units;
    packet->form = read_payload (self, packet, &open);
    if (packet->form == WEIR_FORM_BAD)
      self->n_units = packet->first_unit;
    packet->n_units = (uint32_t) self->n_units - packet->first_unit;
    for (size_t k = packet->first_unit; packet->told && k < self->n_units; k++) {
      self->units[k].told = true;
      if (!self->units[k].nal.svc)
        self->units[k].nal.temporal = packet->layer.temporal;
    }
  }
  add_slices (self);
}

void
weir_frame_read_descriptor (
    WeirFrame *self, const uint8_t *packet, const WeirRtp *rtp, WeirLayer *layer)
{
  const uint8_t *descriptor;
  size_t len;

  if (!self->dependency_id || self->reader.codec == WEIR_CODEC_H264)
    return;
  descriptor = weir_rtp_extension (packet, rtp, self->dependency_id, &len);
  if (descriptor)
    weir_dependency_read (&self->dependency, descriptor, len, layer);
}

static WeirForm
read_layer (WeirFrame *self, WeirFramePacket *packet)
{
  const uint8_t *payload = packet->data + packet->rtp.payload_offset;

  if (packet->rtp.payload_length == 0)
    return WEIR_FORM_OPAQUE;
  if (packet->told)
    return WEIR_FORM_LAYER;
  if (!weir_layers_read (&self->reader, payload, packet->rtp.payload_length, &packet->layer))
    return WEIR_FORM_BAD;
  weir_frame_read_descriptor (self, packet->data, &packet->rtp, &packet->layer);
  return WEIR_FORM_LAYER;
}

void
weir_frame_read (WeirFrame *self)
{
  if (self->reader.codec == WEIR_CODEC_H264) {
    read_h264 (self);
    return;
  }
  for (size_t i = 0; i < self->n_packets; i++) {
    WeirFramePacket *packet = &self->packets[i];

    packet->form = read_layer (self, packet);
    if (packet->form == WEIR_FORM_LAYER)
      weir_picture_add (&self->picture, &packet->layer);
  }
  // Only the first packet of an AV1 key picture is marked, but all its layers can be entered.
  if (self->reader.codec == WEIR_CODEC_AV1 && self->picture.enter & 1)
    self->picture.enter = self->picture.present;
}

// ---- access units ----

int
weir_frame_read_au (WeirFrame *self, const uint8_t *data, size_t len, unsigned length_size)
{
  WeirBytes b = weir_bytes (data, len);
  const uint8_t *unit;
  uint64_t size;
  int r = 0;

  if (length_size == 0) {
    while (weir_start_code_next (&b, &unit, &size))
      add_unit (self, unit, size);
  } else {
    while (weir_bytes_left (&b) > 0) {
      if (!weir_bytes_number (&b, length_size, &size) || !weir_bytes_take (&b, size, &unit)) {
        r = -EBADMSG;
        break;
      }
      add_unit (self, unit, size);
    }
  }
  add_slices (self);
  return r;
}
