// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/latm.h"

#include <errno.h>
#include <string.h>

#include "bits/plain.h"

#define SYNC 0x2b7 // of an AudioSyncStream (1.7.2)
#define SBR 5      // audio object types (1.5.1)
#define PS 29

// LatmGetValue()
static uint32_t
get_value (WeirPlainBits *b)
{
  unsigned bytes = weir_plain_bits_u (b, 2) + 1;

  return weir_plain_bits_u (b, 8 * bytes);
}

// ---- the configuration ----

static void
read_program (WeirPlainBits *b, size_t begin)
{
  uint32_t front, side, back, lfe, data, coupling;

  weir_plain_bits_u (b, 4 + 2 + 4);
  front = weir_plain_bits_u (b, 4);
  side = weir_plain_bits_u (b, 4);
  back = weir_plain_bits_u (b, 4);
  lfe = weir_plain_bits_u (b, 2);
  data = weir_plain_bits_u (b, 3);
  coupling = weir_plain_bits_u (b, 4);
  weir_plain_bits_u (b, weir_plain_bit (b) ? 4 : 0);
  weir_plain_bits_u (b, weir_plain_bit (b) ? 4 : 0);
  weir_plain_bits_u (b, weir_plain_bit (b) ? 3 : 0);
  weir_plain_bits_u (b, 5 * (front + side + back + coupling) + 4 * (lfe + data));
  weir_plain_bits_u (b, (uint32_t) ((8 - (b->n - begin) % 8) % 8));
  weir_plain_bits_u (b, 8 * weir_plain_bits_u (b, 8)); // a comment
}

// Returns a rate in Hz; 0 if it is reserved.
static uint32_t
read_rate (WeirPlainBits *b)
{
  static const uint32_t rates[] = { 96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000,
    12000, 11025, 8000, 7350, 0, 0 };
  const uint32_t index = weir_plain_bits_u (b, 4);

  return index == 15 ? weir_plain_bits_u (b, 24) : rates[index];
}

// Reads an AudioSpecificConfig (1.6.2.1) of AAC. Returns 0, -EINVAL, or -ENOTSUP if it is of
// another codec, or RTP has no form for it.
static int
read_config (WeirPlainBits *b, WeirLatm *latm)
{
  const size_t begin = b->n;
  uint32_t type = weir_plain_bits_u (b, 5), channels;
  bool extended;

  latm->rate = read_rate (b);
  channels = weir_plain_bits_u (b, 4);

  if (type == SBR || type == PS) {
    read_rate (b);
    type = weir_plain_bits_u (b, 5);
  }
  latm->n_samples = weir_plain_bit (b) ? 960 : 1024;
  weir_plain_bits_u (b, weir_plain_bit (b) ? 14 : 0);
  extended = weir_plain_bit (b);
  if (b->from.failed)
    return -EINVAL;
  if (type == 0 || (type > 4 && type != 6) || latm->rate == 0 || channels > 7)
    return -ENOTSUP;
  if (channels == 0)
    read_program (b, begin);
  weir_plain_bits_u (b, type == 6 ? 3 : 0);
  weir_plain_bits_u (b, extended ? 1 : 0);
  return b->from.failed ? -EINVAL : 0;
}

// Copies the bits from `from` to `to` of what `b` read.
static void
copy_bits (WeirPlainBits from, size_t n, uint8_t *to)
{
  for (size_t i = 0; i < n; i++) {
    to[i / 8] = (uint8_t) (i % 8 == 0 ? 0 : to[i / 8]);
    to[i / 8] = (uint8_t) (to[i / 8] | weir_plain_bit (&from) << (7 - i % 8));
  }
}

// Reads the configuration of the only layer.
static int
take_config (WeirPlainBits *b, bool has_length, WeirLatm *latm)
{
  uint32_t length = has_length ? get_value (b) : 0;
  const WeirPlainBits from = *b;
  int result = read_config (b, latm);
  size_t n = b->n - from.n;

  if (result < 0)
    return result;
  if (has_length && n > length)
    return -EINVAL;
  if (has_length)
    weir_plain_bits_u (b, length - (uint32_t) n);
  n = b->n - from.n;
  if (n > 8 * sizeof latm->config)
    return -ENOTSUP;
  memset (latm->config, 0, sizeof latm->config);
  copy_bits (from, n, latm->config);
  latm->n_config = (n + 7) / 8;
  return 0;
}

// Skips the number of bits behind the frames, which nobody needs.
static void
skip_others (WeirPlainBits *b, bool version)
{
  bool more = weir_plain_bit (b);

  if (more && version) {
    get_value (b);
    return;
  }
  while (more && !b->from.failed) {
    more = weir_plain_bit (b);
    weir_plain_bits_u (b, 8);
  }
}

// Reads a StreamMuxConfig (1.7.3.1).
static int
read_mux (WeirPlainBits *b, WeirLatm *latm)
{
  const bool version = weir_plain_bit (b);
  int result;

  if (version && weir_plain_bit (b))
    return -ENOTSUP;
  if (version)
    get_value (b);
  if (!weir_plain_bit (b)) // the streams do not share their times
    return -ENOTSUP;
  latm->n_frames = weir_plain_bits_u (b, 6) + 1;
  if (weir_plain_bits_u (b, 4) > 0 || weir_plain_bits_u (b, 3) > 0) // programs, layers
    return -ENOTSUP;
  result = take_config (b, version, latm);
  if (result < 0)
    return result;
  if (weir_plain_bits_u (b, 3) > 0) // frames have a fixed length, or are of another codec
    return -ENOTSUP;
  weir_plain_bits_u (b, 8);
  skip_others (b, version);
  weir_plain_bits_u (b, weir_plain_bit (b) ? 8 : 0); // a checksum
  return b->from.failed ? -EINVAL : 0;
}

// ---- frames ----

// Returns the size of a frame in bytes (PayloadLengthInfo).
static size_t
read_size (WeirPlainBits *b)
{
  size_t size = 0;
  uint32_t more;

  do {
    more = weir_plain_bits_u (b, 8);
    size += more;
  } while (more == 255 && !b->from.failed);
  return size;
}

// Reads an AudioMuxElement (1.7.3), which begins with whether there is no configuration in it.
static int
read_element (WeirPlainBits *b, WeirLatm *latm, uint8_t *out, size_t *sizes)
{
  int result = weir_plain_bit (b) ? 0 : read_mux (b, latm);

  if (result < 0)
    return result;
  if (latm->n_config == 0)
    return -EAGAIN;
  for (unsigned i = 0; i < latm->n_frames; i++) {
    sizes[i] = read_size (b);
    if (sizes[i] > weir_bytes_left (&b->from))
      return -EINVAL;
    for (size_t at = 0; at < sizes[i]; at++)
      *out++ = (uint8_t) weir_plain_bits_u (b, 8);
  }
  return (int) latm->n_frames;
}

int
weir_latm_read (WeirLatm *latm, const uint8_t *data, size_t len, uint8_t *out,
    size_t sizes[WEIR_LATM_FRAMES_MAX], bool *changed)
{
  WeirBytes all = weir_bytes (data, len);
  const WeirLatm before = *latm;
  const uint8_t *element;
  uint32_t head;
  int result;
  WeirPlainBits b;

  *changed = false;
  weir_bytes_u24 (&all, &head);
  if (head >> 13 != SYNC || !weir_bytes_take (&all, head & 0x1fff, &element))
    return -EINVAL;
  b = weir_plain_bits (weir_bytes (element, head & 0x1fff));
  result = read_element (&b, latm, out, sizes);
  if (b.from.failed)
    result = -EINVAL;
  if (result == -ENOTSUP)
    *latm = (WeirLatm) { 0 };
  else if (result < 0)
    *latm = before;
  *changed = result > 0
             && (latm->n_config != before.n_config
                 || memcmp (latm->config, before.config, latm->n_config) != 0);
  return result;
}
