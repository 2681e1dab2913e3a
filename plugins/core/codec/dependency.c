// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/dependency.h"

#include "bits/plain.h"

enum { NOT_PRESENT, DISCARDABLE, SWITCH };
enum { SAME_LAYER, NEXT_TEMPORAL, NEXT_SPATIAL, NO_MORE };
enum { MANDATORY = 3, MAX_DIFFS = 64 };

// Reads ns(n) (AV1 bitstream specification, 4.10.7): a number below `n` in as few bits as possible.
static uint32_t
ns (WeirPlainBits *b, uint32_t n)
{
  unsigned width = 0;
  uint32_t few, value;

  for (uint32_t x = n; x != 0; x >>= 1)
    width++;
  few = (1u << width) - n;
  value = weir_plain_bits_u (b, width - 1);
  return value < few ? value : (value << 1) - few + weir_plain_bits_u (b, 1);
}

static void
read_layers (WeirDependency *d, WeirPlainBits *b)
{
  uint8_t spatial = 0, temporal = 0;
  uint32_t next;

  d->n = 0;
  do {
    if (d->n == WEIR_DEPENDENCY_TEMPLATES) {
      b->from.failed = true;
      return;
    }
    d->templates[d->n].spatial = spatial;
    d->templates[d->n].temporal = temporal;
    d->n++;
    next = weir_plain_bits_u (b, 2);
    if (next == NEXT_TEMPORAL) {
      temporal++;
    } else if (next == NEXT_SPATIAL) {
      temporal = 0;
      spatial++;
    }
  } while (next != NO_MORE && !b->from.failed);
  if (spatial > 3 || temporal > 7)
    b->from.failed = true;
}

// Reads a frame's decode target indications. `discardable`: no target that has the frame needs it.
// `switch_up`: a reader may switch up to some target at it.
static void
read_dtis (WeirPlainBits *b, unsigned n, bool *discardable, bool *switch_up)
{
  bool needed = false, present = false;

  *switch_up = false;
  for (unsigned i = 0; i < n; i++) {
    uint32_t dti = weir_plain_bits_u (b, 2);

    *switch_up |= dti == SWITCH;
    needed |= dti > DISCARDABLE;
    present |= dti != NOT_PRESENT;
  }
  *discardable = present && !needed;
}

static void
skip_diffs (const WeirDependency *d, WeirPlainBits *b)
{
  for (unsigned i = 0; i < d->n; i++) {
    for (unsigned j = 0; weir_plain_bits_u (b, 1) && !b->from.failed && j < MAX_DIFFS; j++)
      weir_plain_bits_u (b, 4);
  }
}

static void
skip_chains (const WeirDependency *d, WeirPlainBits *b)
{
  uint32_t chains = ns (b, d->n_targets + 1u);

  if (chains == 0)
    return;
  for (unsigned i = 0; i < d->n_targets; i++)
    ns (b, chains);
  for (unsigned i = 0; i < d->n * chains && !b->from.failed; i++)
    weir_plain_bits_u (b, 4);
}

static void
skip_resolutions (const WeirDependency *d, WeirPlainBits *b)
{
  if (!weir_plain_bits_u (b, 1))
    return;
  for (unsigned i = 0; i <= d->templates[d->n - 1].spatial; i++)
    weir_plain_bits_u (b, 32);
}

static bool
read_structure (WeirDependency *self, WeirPlainBits *b)
{
  WeirDependency d = { .offset = (uint8_t) weir_plain_bits_u (b, 6) };

  d.n_targets = (uint8_t) (weir_plain_bits_u (b, 5) + 1);
  read_layers (&d, b);
  for (unsigned i = 0; i < d.n; i++)
    read_dtis (b, d.n_targets, &d.templates[i].discardable, &d.templates[i].switch_up);
  skip_diffs (&d, b);
  skip_chains (&d, b);
  skip_resolutions (&d, b);
  if (b->from.failed)
    return false;
  *self = d;
  return true;
}

bool
weir_dependency_read (WeirDependency *self, const uint8_t *descriptor, size_t len, WeirLayer *out)
{
  WeirPlainBits b = weir_plain_bits (weir_bytes (descriptor, len));
  bool start = weir_plain_bits_u (&b, 1), structure = false, active = false, custom = false;
  WeirLayer layer;
  unsigned id, i;

  weir_plain_bits_u (&b, 1); // end of frame
  id = weir_plain_bits_u (&b, 6);
  weir_plain_bits_u (&b, 16); // frame number
  if (len > MANDATORY) {
    structure = weir_plain_bits_u (&b, 1);
    active = weir_plain_bits_u (&b, 1);
    custom = weir_plain_bits_u (&b, 1);
    weir_plain_bits_u (&b, 2);
    if (structure && !read_structure (self, &b))
      return false;
    if (active)
      weir_plain_bits_u (&b, self->n_targets);
  }
  i = (id - self->offset) & (WEIR_DEPENDENCY_TEMPLATES - 1);
  if (b.from.failed || i >= self->n)
    return false;
  layer = (WeirLayer) { .spatial = self->templates[i].spatial,
    .temporal = self->templates[i].temporal,
    .discardable = self->templates[i].discardable,
    .switch_up = self->templates[i].switch_up,
    .parameters = structure,
    .enter = structure && start };
  if (custom)
    read_dtis (&b, self->n_targets, &layer.discardable, &layer.switch_up);
  layer.keyframe = layer.enter && layer.spatial == 0;
  if (b.from.failed)
    return false;
  *out = layer;
  return true;
}

// ---- header extensions ----

static bool
read_one_byte_header (WeirBytes *b, uint8_t *id, uint8_t *size)
{
  uint8_t header;

  if (!weir_bytes_u8 (b, &header) || header >> 4 == 15)
    return false;
  *id = header >> 4;
  *size = header == 0 ? 0 : (uint8_t) ((header & 15) + 1); // 0 is padding
  return true;
}

static bool
read_two_byte_header (WeirBytes *b, uint8_t *id, uint8_t *size)
{
  *size = 0;
  return weir_bytes_u8 (b, id) && (*id == 0 || weir_bytes_u8 (b, size));
}

const uint8_t *
weir_rtp_extension (const uint8_t *packet, const WeirRtp *rtp, uint8_t id, size_t *len)
{
  WeirBytes b = weir_bytes (packet + rtp->extension_offset, rtp->extension_length);
  bool one_byte = rtp->extension_profile == 0xbede;
  uint8_t found, size;
  const uint8_t *data;

  if (!one_byte && rtp->extension_profile >> 4 != 0x100)
    return NULL;
  while (one_byte ? read_one_byte_header (&b, &found, &size)
                  : read_two_byte_header (&b, &found, &size)) {
    if (!weir_bytes_take (&b, size, &data))
      return NULL;
    if (found != id || id == 0)
      continue;
    *len = size;
    return data;
  }
  return NULL;
}
