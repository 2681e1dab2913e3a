// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/paramids.h"

#include "bits/bits.h"
#include "codec/h264.h"

#include <errno.h>

// Counts the bits up to and including the last 1, which ends the data.
static size_t
count_bits (WeirBits b)
{
  size_t n = 0, last = 0;

  for (;;) {
    unsigned bit = weir_bit (&b);

    if (b.from.failed)
      return last;
    n++;
    if (bit)
      last = n;
  }
}

int
weir_h264_set_sps_id (const uint8_t *nal, size_t len, uint32_t id, uint8_t *out, size_t size)
{
  WeirBytes b = weir_bytes (nal, len);
  WeirBitWriter w = { .to = out, .size = size };
  WeirBits r;
  uint8_t header;

  if (!weir_bytes_u8 (&b, &header) || !weir_h264_is_parameters (header & 31))
    return -EBADMSG;
  r = weir_bits (b);
  weir_bits_put (&w, header, 8);
  if ((header & 31) == WEIR_H264_PPS)
    weir_bits_put_ue (&w, weir_bits_ue (&r)); // pic_parameter_set_id
  else
    weir_bits_put (&w, weir_bits_u (&r, 24), 24); // profile, constraints and level
  weir_bits_ue (&r);
  weir_bits_put_ue (&w, id);
  if (r.from.failed)
    return -EBADMSG;
  for (size_t left = count_bits (r); left > 0; left--)
    weir_bits_put (&w, weir_bit (&r), 1);
  while (w.used > 0)
    weir_bits_put (&w, 0, 1);
  return w.failed ? -ENOSPC : (int) w.len;
}
