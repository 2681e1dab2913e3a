// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/sps.h"

#include "bits/bits.h"
#include "codec/h264.h"

#include <errno.h>

enum {
  PROFILE_BASELINE = 66,
  PROFILE_SCALABLE_BASELINE = 83,
  PROFILE_SCALABLE_HIGH = 86,
  PROFILE_HIGH = 100,
};

// Reads a parameter set and, if `w` is not NULL, writes the same fields to it.
typedef struct {
  WeirBits r;
  WeirBitWriter *w;
} Copy;

static uint32_t
u (Copy *c, unsigned n)
{
  uint32_t value = weir_bits_u (&c->r, n);

  if (c->w)
    weir_bits_put (c->w, value, n);
  return value;
}

static uint32_t
ue (Copy *c)
{
  uint32_t value = weir_bits_ue (&c->r);

  if (c->w)
    weir_bits_put_ue (c->w, value);
  return value;
}

static int32_t
se (Copy *c)
{
  int32_t value = weir_bits_se (&c->r);

  if (c->w)
    weir_bits_put_se (c->w, value);
  return value;
}

static bool
has_chroma_fields (uint8_t profile)
{
  switch (profile) {
    case 100:
    case 110:
    case 122:
    case 244:
    case 44:
    case 83:
    case 86:
    case 118:
    case 128:
    case 138:
    case 139:
    case 134:
    case 135:
      return true;
    default:
      return false;
  }
}

static void
copy_scaling_list (Copy *c, unsigned size)
{
  int32_t last = 8, next = 8;

  for (unsigned i = 0; i < size && next != 0; i++) {
    next = (last + se (c)) & 255;
    last = next ? next : last;
  }
}

// Returns whether the fields have the values that are implied where they are absent: 4:2:0, 8 bits,
// flat scaling.
static bool
copy_chroma_fields (Copy *c, uint32_t *chroma)
{
  bool plain;

  *chroma = ue (c);
  if (*chroma == 3)
    u (c, 1);
  plain = *chroma == 1;
  plain &= ue (c) == 0; // bit depths
  plain &= ue (c) == 0;
  plain &= u (c, 1) == 0; // transform bypass
  if (u (c, 1)) {
    plain = false;
    for (unsigned i = 0; i < (*chroma == 3 ? 12 : 8) && !c->r.from.failed; i++) {
      if (u (c, 1))
        copy_scaling_list (c, i < 6 ? 16 : 64);
    }
  }
  return plain;
}

static void
copy_picture_order (Copy *c)
{
  uint32_t type, n;

  ue (c); // log2_max_frame_num_minus4
  type = ue (c);
  if (type == 0) {
    ue (c);
  } else if (type == 1) {
    u (c, 1);
    se (c);
    se (c);
    n = ue (c);
    for (uint32_t i = 0; i < n && !c->r.from.failed; i++)
      se (c);
  }
}

static void
copy_size (Copy *c, uint32_t chroma, WeirSps *out)
{
  uint32_t width = ue (c) + 1, height = ue (c) + 1;
  bool frames_only = u (c, 1);
  uint32_t unit_x = chroma == 1 || chroma == 2 ? 2 : 1;
  uint32_t unit_y = (chroma == 1 ? 2 : 1) * (frames_only ? 1 : 2);
  uint64_t crop_x = 0, crop_y = 0;

  if (!frames_only)
    u (c, 1);
  u (c, 1); // direct_8x8_inference
  if (u (c, 1)) {
    crop_x = ue (c);
    crop_x = (crop_x + ue (c)) * unit_x;
    crop_y = ue (c);
    crop_y = (crop_y + ue (c)) * unit_y;
  }
  if (width > 4096 || height > 4096 || crop_x >= width * 16 || crop_y >= height * 32) {
    c->r.from.failed = true;
    return;
  }
  out->width = width * 16 - (uint32_t) crop_x;
  out->height = height * 16 * (frames_only ? 1 : 2) - (uint32_t) crop_y;
}

static void
copy_hrd (Copy *c)
{
  uint32_t n = ue (c) + 1;

  u (c, 8);
  for (uint32_t i = 0; i < n && !c->r.from.failed; i++) {
    ue (c);
    ue (c);
    u (c, 1);
  }
  u (c, 20);
}

static void
copy_vui (Copy *c)
{
  bool nal_hrd, vcl_hrd;

  if (u (c, 1) && u (c, 8) == 255) // aspect ratio
    u (c, 32);
  if (u (c, 1)) // overscan
    u (c, 1);
  if (u (c, 1)) { // video signal
    u (c, 4);
    if (u (c, 1))
      u (c, 24);
  }
  if (u (c, 1)) { // chroma location
    ue (c);
    ue (c);
  }
  if (u (c, 1)) { // timing
    u (c, 32);
    u (c, 32);
    u (c, 1);
  }
  nal_hrd = u (c, 1);
  if (nal_hrd)
    copy_hrd (c);
  vcl_hrd = u (c, 1);
  if (vcl_hrd)
    copy_hrd (c);
  if (nal_hrd || vcl_hrd)
    u (c, 1);
  u (c, 1);       // pic_struct_present
  if (u (c, 1)) { // bitstream restriction
    u (c, 1);
    for (int i = 0; i < 6; i++)
      ue (c);
  }
}

// Reads the subset SPS extension (G.7.3.2.1.4) up to slice_header_restriction_flag, and returns
// that flag.
static bool
read_header_restriction (WeirBits *r, uint32_t chroma)
{
  bool spatial;
  uint32_t extended;

  weir_bit (r); // inter_layer_deblocking_filter_control_present_flag
  extended = weir_bits_u (r, 2);
  spatial = chroma == 1 || chroma == 2;
  if (spatial)
    weir_bit (r);
  if (chroma == 1)
    weir_bits_u (r, 2);
  if (extended == 1) {
    if (chroma > 0)
      weir_bits_u (r, 3);
    for (int i = 0; i < 4; i++)
      weir_bits_se (r);
  }
  if (!weir_bit (r)) // seq_tcoeff_level_prediction_flag
    return weir_bit (r);
  weir_bit (r);
  return weir_bit (r);
}

// Reads a set. `c->w`, if not NULL, gets it in profile `as`.
static bool
copy_sps (Copy *c, uint8_t as, WeirSps *out)
{
  WeirBitWriter *w = c->w;
  uint32_t chroma = 1;

  c->w = NULL;
  out->profile = (uint8_t) u (c, 8);
  out->constraints = (uint8_t) u (c, 8);
  out->level = (uint8_t) u (c, 8);
  out->id = (uint8_t) ue (c);
  if (w) {
    weir_bits_put (w, as, 8);
    weir_bits_put (w, as == PROFILE_BASELINE ? 0xc0 : 0, 8);
    weir_bits_put (w, out->level, 8);
    weir_bits_put_ue (w, out->id);
  }
  if (as != PROFILE_BASELINE)
    c->w = w;
  if (has_chroma_fields (out->profile) && !copy_chroma_fields (c, &chroma)
      && as == PROFILE_BASELINE)
    return false;
  c->w = w;
  copy_picture_order (c);
  ue (c); // max_num_ref_frames
  u (c, 1);
  copy_size (c, chroma, out);
  if (u (c, 1))
    copy_vui (c);
  if (out->profile == PROFILE_SCALABLE_BASELINE || out->profile == PROFILE_SCALABLE_HIGH)
    out->slice_header_restricted = read_header_restriction (&c->r, chroma);
  return out->id < 32 && chroma <= 3 && !c->r.from.failed;
}

int
weir_sps_read (const uint8_t *nal, size_t len, WeirSps *out)
{
  WeirBytes b = weir_bytes (nal, len < WEIR_SPS_MAX ? len : WEIR_SPS_MAX);
  WeirSps sps = { 0 };
  Copy copy;

  weir_bytes_skip (&b, 1);
  copy = (Copy) { .r = weir_bits (b) };
  if (!copy_sps (&copy, PROFILE_HIGH, &sps))
    return -EBADMSG;
  *out = sps;
  return 0;
}

static int
write_sps (WeirBytes b, uint8_t header, uint8_t as, uint8_t *out, size_t size)
{
  WeirBitWriter w = { .to = out, .size = size };
  Copy copy = { weir_bits (b), &w };
  WeirSps sps = { 0 };

  weir_bits_put (&w, (header & 0x60u) | WEIR_H264_SPS, 8);
  if (!copy_sps (&copy, as, &sps))
    return -EBADMSG;
  if (sps.profile != PROFILE_SCALABLE_BASELINE && sps.profile != PROFILE_SCALABLE_HIGH)
    return -ENOTSUP;
  weir_bits_put_end (&w);
  return w.failed ? -ENOSPC : (int) w.len;
}

int
weir_sps_to_avc (const uint8_t *nal, size_t len, bool baseline, uint8_t *out, size_t size)
{
  WeirBytes b = weir_bytes (nal, len < WEIR_SPS_MAX ? len : WEIR_SPS_MAX);
  uint8_t header;
  int r = -EBADMSG;

  if (!weir_bytes_u8 (&b, &header))
    return -EBADMSG;
  if (baseline)
    r = write_sps (b, header, PROFILE_BASELINE, out, size);
  return r == -EBADMSG ? write_sps (b, header, PROFILE_HIGH, out, size) : r;
}
