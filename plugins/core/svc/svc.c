// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svc/svc.h"

#include "bits/bits.h"

#include <stdlib.h>
#include <string.h>

enum { SEI_SVC_FIRST = 24, SEI_SVC_LAST = 35, BASE = 1 };

void
weir_svc_init (WeirSvc *self)
{
  *self = (WeirSvc) { 0 };
}

static void
free_sets (WeirParameterSet *sets, size_t n)
{
  for (size_t i = 0; i < n; i++)
    free (sets[i].bytes);
}

void
weir_svc_free (WeirSvc *self)
{
  free_sets (self->sps, 32);
  free_sets (self->subset, 32);
  free_sets (self->pps, 256);
  weir_svc_init (self);
}

// ---- learning ----

static bool
replace (WeirSvc *self, WeirParameterSet *set, const uint8_t *nal, size_t len)
{
  uint8_t *bytes;

  if (set->len == len && memcmp (set->bytes, nal, len) == 0)
    return false;
  if (len > WEIR_SPS_MAX)
    return false;
  bytes = malloc (len);
  if (!bytes)
    return false;
  memcpy (bytes, nal, len);
  free (set->bytes);
  *set = (WeirParameterSet) { bytes, len };
  self->changes++;
  return true;
}

static void
note_pps (WeirSvc *self, const WeirUnit *unit)
{
  if (unit->id < 0 || unit->sps < 0 || !replace (self, &self->pps[unit->id], unit->data, unit->len))
    return;
  if (self->sps_of[unit->id] != unit->sps)
    self->users[unit->id] = 0;
  self->sps_of[unit->id] = (uint8_t) unit->sps;
  self->cabac[unit->id] = unit->cabac;
}

static void
note_sps (WeirSvc *self, const WeirUnit *unit)
{
  WeirSps sps;
  bool subset = unit->nal.type == WEIR_H264_SUBSET_SPS;
  WeirParameterSet *sets = subset ? self->subset : self->sps;

  if (weir_sps_read (unit->data, unit->len, &sps) == 0
      && replace (self, &sets[sps.id], unit->data, unit->len) && subset)
    self->dependent = 0;
}

static void
note_slice (WeirSvc *self, const WeirUnit *unit)
{
  uint8_t bit = (uint8_t) (BASE << unit->nal.spatial);

  if (unit->more)
    return;
  if (unit->id >= 0 && !(self->users[unit->id] & bit)) {
    self->users[unit->id] |= bit;
    self->changes++;
  }
  if (!unit->nal.svc || unit->nal.spatial == 0)
    return;
  if (!unit->nal.no_inter_layer_pred || unit->nal.quality > 0)
    self->dependent |= bit;
}

static void
note_unit (WeirSvc *self, const WeirUnit *unit)
{
  if (unit->part && !weir_h264_is_slice (unit->nal.type))
    return; // parameter sets are not fragmented
  switch (unit->nal.type) {
    case WEIR_H264_SPS:
    case WEIR_H264_SUBSET_SPS:
      note_sps (self, unit);
      break;
    case WEIR_H264_PPS:
      note_pps (self, unit);
      break;
    case WEIR_H264_SLICE:
    case WEIR_H264_IDR:
    case WEIR_H264_SLICE_EXT:
      note_slice (self, unit);
      break;
    default:
      break;
  }
}

void
weir_svc_note_frame (WeirSvc *self, const WeirFrame *frame)
{
  for (size_t i = 0; i < frame->n_units; i++)
    note_unit (self, &frame->units[i]);
}

void
weir_svc_note (WeirSvc *self, const uint8_t *nal, size_t len)
{
  WeirUnit unit;

  if (weir_unit_read (&unit, nal, len))
    note_unit (self, &unit);
}

// ---- deciding ----

// Returns the id of a PPS of the layer whose SPS is known, or -1.
static int
find_pps (const WeirSvc *self, int spatial)
{
  const WeirParameterSet *sets = spatial > 0 ? self->subset : self->sps;

  for (int i = 0; i < 256; i++) {
    if (self->users[i] >> spatial & 1 && sets[self->sps_of[i]].len > 0)
      return i;
  }
  return -1;
}

static bool
can_stand_alone (const WeirSvc *self, int spatial)
{
  const WeirParameterSet *subset;
  WeirSps sps;
  int pps;

  if (self->dependent >> spatial & 1)
    return false;
  pps = find_pps (self, spatial);
  subset = pps >= 0 ? &self->subset[self->sps_of[pps]] : NULL;
  return subset && weir_sps_read (subset->bytes, subset->len, &sps) == 0
         && sps.slice_header_restricted;
}

bool
weir_svc_can_be (const WeirSvc *self, int plain)
{
  return plain <= 0 || can_stand_alone (self, plain);
}

int
weir_svc_plain_layer (const WeirSvc *self, WeirOutput output, WeirLayerSet now)
{
  if (output == WEIR_OUTPUT_SVC)
    return -1;
  if (output == WEIR_OUTPUT_BASE || now.spatial <= 0)
    return 0;
  return can_stand_alone (self, now.spatial) ? now.spatial : 0;
}

unsigned
weir_svc_kept (WeirLayerSet now, int plain)
{
  if (plain >= 0)
    return 1u << plain;
  return now.spatial < 0 ? 255 : (2u << now.spatial) - 1;
}

bool
weir_svc_has_pps (const WeirSvc *self, int id, WeirLayerSet now, int plain)
{
  // The next slice may refer to a PPS that no slice has used yet.
  return id < 0 || self->users[id] == 0 || self->users[id] & weir_svc_kept (now, plain);
}

bool
weir_svc_has_subset (const WeirSvc *self, int id, WeirLayerSet now, int plain)
{
  bool used = false;

  if (plain == 0 || now.spatial == 0)
    return false;
  for (int i = 0; i < 256; i++) {
    unsigned users = self->users[i] & ~(unsigned) BASE;

    if (self->sps_of[i] != id || users == 0)
      continue;
    used = true;
    if (users & weir_svc_kept (now, plain))
      return true;
  }
  return !used && plain < 0;
}

// Scalability SEI messages describe the original stream.
static bool
is_svc_sei (const WeirUnit *unit)
{
  return !unit->part && unit->len >= 2 && unit->data[1] >= SEI_SVC_FIRST
         && unit->data[1] <= SEI_SVC_LAST;
}

static WeirUnitFate
keep_if (bool keep)
{
  return keep ? WEIR_UNIT_KEEP : WEIR_UNIT_DROP;
}

WeirUnitFate
weir_svc_fate (const WeirSvc *self, const WeirUnit *unit, WeirLayerSet now, int plain)
{
  const WeirH264Nal *nal = &unit->nal;

  switch (nal->type) {
    case WEIR_H264_SLICE_EXT:
      if (plain >= 0)
        return nal->spatial == plain && nal->quality == 0 && plain > 0 ? WEIR_UNIT_REWRITE
                                                                       : WEIR_UNIT_DROP;
      return keep_if (weir_layer_set_has (now, nal->spatial, nal->quality, nal->temporal));
    case WEIR_H264_PREFIX:
      return keep_if (plain < 0);
    case WEIR_H264_SUBSET_SPS:
      if (!weir_svc_has_subset (self, unit->id, now, plain))
        return WEIR_UNIT_DROP;
      return plain > 0 ? WEIR_UNIT_REWRITE : WEIR_UNIT_KEEP;
    case WEIR_H264_SPS:
      return keep_if (plain <= 0);
    case WEIR_H264_PPS:
      return keep_if (weir_svc_has_pps (self, unit->id, now, plain));
    case WEIR_H264_SEI:
      return keep_if (plain < 0 || !is_svc_sei (unit));
    case WEIR_H264_PACSI:
    case WEIR_H264_NI_MTAP:
      return WEIR_UNIT_DROP; // describes the original packet
    case WEIR_H264_AUD:
      return WEIR_UNIT_KEEP;
    default:
      return keep_if (plain <= 0 || !weir_h264_is_slice (nal->type));
  }
}

// ---- writing ----

static bool
layer_is_cabac (const WeirSvc *self, int subset_id)
{
  for (int i = 0; i < 256; i++) {
    if (self->sps_of[i] == subset_id && self->users[i] & ~BASE && self->cabac[i])
      return true;
  }
  return false;
}

size_t
weir_svc_rewrite (const WeirSvc *self, const WeirUnit *unit, uint8_t *out)
{
  const size_t header = 4;
  int n;

  if (unit->nal.type == WEIR_H264_SUBSET_SPS) {
    n = weir_sps_to_avc (unit->data, unit->len, !layer_is_cabac (self, unit->id), out, unit->len);
    return n < 0 ? 0 : (size_t) n;
  }
  out[0] = weir_svc_slice_header (unit);
  memmove (out + 1, unit->data + header, unit->len - header);
  return unit->len - header + 1;
}

uint8_t
weir_svc_slice_header (const WeirUnit *unit)
{
  return (uint8_t) (unit->nal.nri << 5 | (unit->nal.idr ? WEIR_H264_IDR : WEIR_H264_SLICE));
}

bool
weir_svc_is_worth (const WeirUnit *unit, const WeirPicture *picture)
{
  return weir_h264_is_slice (unit->nal.type)
         || (!picture->any && weir_h264_is_parameters (unit->nal.type));
}

WeirRest
weir_svc_rest (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain)
{
  bool worth = false, all = true;

  for (size_t i = 0; i < frame->n_units; i++) {
    const WeirUnit *unit = &frame->units[i];
    WeirUnitFate fate = weir_svc_fate (self, unit, now, plain);

    all &= fate == WEIR_UNIT_KEEP;
    worth |= fate != WEIR_UNIT_DROP
             && (weir_h264_is_slice (unit->nal.type)
                 || (!frame->picture.any && weir_h264_is_parameters (unit->nal.type)));
  }
  return !worth ? WEIR_REST_NOTHING : all ? WEIR_REST_ALL : WEIR_REST_PART;
}

static size_t
write_unit (
    const WeirSvc *self, const WeirUnit *unit, WeirUnitFate fate, unsigned prefix, uint8_t *out)
{
  size_t len = unit->len;

  if (fate == WEIR_UNIT_REWRITE)
    len = weir_svc_rewrite (self, unit, out + prefix);
  else
    memcpy (out + prefix, unit->data, unit->len);
  return len;
}

// Writes the start code or length of a unit of `len` bytes. Returns the bytes written.
static unsigned
write_prefix (unsigned length_size, size_t len, uint8_t *out)
{
  const unsigned prefix = length_size ? length_size : 4;
  size_t number = length_size ? len : 1;

  for (unsigned j = prefix; j-- > 0; number >>= 8)
    out[j] = (uint8_t) number;
  return prefix;
}

static bool
brings (const WeirFrame *frame, uint8_t type, int id)
{
  for (size_t i = 0; i < frame->n_units; i++) {
    if (frame->units[i].nal.type == type && frame->units[i].id == id)
      return true;
  }
  return false;
}

typedef struct {
  const WeirSvc *svc;
  const WeirFrame *frame;
  WeirLayerSet now;
  int plain;
  unsigned length_size;
  uint8_t *out;
  size_t room, at;
} Missing;

static void
write_missing (Missing *m, const WeirParameterSet *set)
{
  const unsigned prefix = m->length_size ? m->length_size : 4;
  WeirUnit unit;
  WeirUnitFate fate;
  size_t len;

  if (set->len == 0 || !weir_unit_read (&unit, set->bytes, set->len)
      || brings (m->frame, unit.nal.type, unit.id))
    return;
  fate = weir_svc_fate (m->svc, &unit, m->now, m->plain);
  if (fate == WEIR_UNIT_DROP || m->room - m->at < prefix + set->len)
    return;
  len = write_unit (m->svc, &unit, fate, prefix, m->out + m->at);
  if (len > 0)
    m->at += write_prefix (m->length_size, len, m->out + m->at) + len;
}

size_t
weir_svc_write_missing (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain,
    unsigned length_size, uint8_t *out, size_t room)
{
  Missing m = { self, frame, now, plain, length_size, out, room, 0 };
  const unsigned kept = weir_svc_kept (now, plain);
  uint32_t sps = 0, subset = 0;

  for (int i = 0; i < 256; i++) {
    if (self->users[i] & kept & BASE)
      sps |= 1u << self->sps_of[i];
    if (self->users[i] & kept & ~(unsigned) BASE)
      subset |= 1u << self->sps_of[i];
  }
  for (int i = 0; i < 32; i++) {
    if (sps >> i & 1)
      write_missing (&m, &self->sps[i]);
  }
  for (int i = 0; i < 32; i++) {
    if (subset >> i & 1)
      write_missing (&m, &self->subset[i]);
  }
  for (int i = 0; i < 256; i++) {
    if (self->users[i] & kept)
      write_missing (&m, &self->pps[i]);
  }
  return m.at;
}

size_t
weir_svc_write (const WeirSvc *self, const WeirFrame *frame, WeirLayerSet now, int plain,
    bool renew, unsigned length_size, uint8_t *out)
{
  const unsigned prefix = length_size ? length_size : 4;
  size_t at = 0;

  for (size_t i = 0; i < frame->n_units; i++) {
    const WeirUnit *unit = &frame->units[i];
    WeirUnitFate fate = weir_svc_fate (self, unit, now, plain);
    size_t len;

    if (renew && unit->nal.type != WEIR_H264_AUD) { // an access unit delimiter comes first
      at += weir_svc_write_missing (
          self, frame, now, plain, length_size, out + at, WEIR_SVC_SETS_MAX);
      renew = false;
    }
    if (fate == WEIR_UNIT_DROP)
      continue;
    len = write_unit (self, unit, fate, prefix, out + at);
    if (len > 0)
      at += write_prefix (length_size, len, out + at) + len;
  }
  return at;
}

bool
weir_svc_layer_sps (const WeirSvc *self, int spatial, uint8_t *bytes, size_t *len)
{
  int pps = find_pps (self, spatial);
  const WeirParameterSet *set;

  if (pps < 0)
    return false;
  set = spatial > 0 ? &self->subset[self->sps_of[pps]] : &self->sps[self->sps_of[pps]];
  memcpy (bytes, set->bytes, set->len);
  *len = set->len;
  return true;
}

bool
weir_svc_sps (
    const WeirSvc *self, WeirLayerSet now, int plain, WeirSps *sps, uint8_t *bytes, size_t *len)
{
  int spatial = plain >= 0 ? plain : now.spatial < 0 ? WEIR_SPATIAL_LAYERS - 1 : now.spatial;
  uint8_t subset[WEIR_SPS_MAX];
  int n, pps;

  while (spatial > 0 && plain < 0 && find_pps (self, spatial) < 0)
    spatial--;
  pps = find_pps (self, spatial);
  if (!weir_svc_layer_sps (self, spatial, plain > 0 ? subset : bytes, len))
    return false;
  if (plain > 0) {
    n = weir_sps_to_avc (subset, *len, !self->cabac[pps], bytes, WEIR_SPS_MAX);
    if (n < 0)
      return false;
    *len = (size_t) n;
  }
  return weir_sps_read (bytes, *len, sps) == 0;
}
