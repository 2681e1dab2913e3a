// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/fit_sets.h"

#include <string.h>

#include "bits/bits.h"
#include "codec/h264.h"

#define SPS_HEAD 4 // bytes before the id: header, profile, constraints, level

// Reads the id of a set and, of a PPS, that of its SPS. Returns false if it is invalid.
static bool
read_ids (const uint8_t *nal, size_t len, WeirFitSet *out)
{
  const size_t head = out->type == WEIR_H264_SPS ? SPS_HEAD : 1;
  WeirBytes bytes = weir_bytes (nal, len);
  WeirBits bits;
  uint32_t id, sps;

  if (!weir_bytes_skip (&bytes, head))
    return false;
  bits = weir_bits (bytes);
  id = weir_bits_ue (&bits);
  sps = out->type == WEIR_H264_SPS ? id : weir_bits_ue (&bits);
  out->id = (uint8_t) id;
  out->sps = (uint8_t) sps;
  return !bits.from.failed && id < 256 && sps < 32;
}

static void
drop (WeirFitSets *self, size_t at)
{
  self->n--;
  memmove (&self->all[at], &self->all[at + 1], (self->n - at) * sizeof *self->all);
}

static void
drop_pps_of (WeirFitSets *self, uint8_t sps)
{
  for (size_t i = self->n; i-- > 0;) {
    if (self->all[i].type == WEIR_H264_PPS && self->all[i].sps == sps)
      drop (self, i);
  }
}

// Returns the place of a set with this id, or else where it belongs.
static size_t
find (const WeirFitSets *self, const WeirFitSet *set, bool *found)
{
  size_t at = 0;

  *found = false;
  while (at < self->n && (self->all[at].type != set->type || self->all[at].id != set->id))
    at++;
  *found = at < self->n;
  if (*found || set->type == WEIR_H264_PPS)
    return at;
  for (at = 0; at < self->n && self->all[at].type == WEIR_H264_SPS;)
    at++;
  return at;
}

bool
weir_fit_sets_note (WeirFitSets *self, const uint8_t *nal, size_t len)
{
  WeirFitSet set = { .due = true, .len = (uint16_t) len };
  bool found;
  size_t at;

  if (len == 0 || len > WEIR_FIT_SET_BYTES)
    return false;
  set.type = nal[0] & 31;
  if (!read_ids (nal, len, &set))
    return false;
  at = find (self, &set, &found);
  if (found && self->all[at].len == len && !memcmp (self->all[at].data, nal, len))
    return true;
  if (set.type == WEIR_H264_SPS)
    drop_pps_of (self, set.id);
  if (!found) {
    if (self->n == WEIR_FIT_SETS)
      return false;
    memmove (&self->all[at + 1], &self->all[at], (self->n - at) * sizeof *self->all);
    self->n++;
  }
  memcpy (set.data, nal, len);
  self->all[at] = set;
  return true;
}
