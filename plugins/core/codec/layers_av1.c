// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/bytes.h"
#include "bits/leb128.h"
#include "codec/layers_private.h"

// Bits of the aggregation header: Z and N (AV1 RTP specification 1.0, section 4.4).
enum { CONTINUES = 0x80, NEW_SEQUENCE = 0x08 };

enum { OBU_SEQUENCE_HEADER = 1, OBU_TEMPORAL_DELIMITER = 2 };

static bool
add_obu (WeirBytes b, WeirLayer *out, bool *any)
{
  WeirLayer layer = { 0 };
  uint8_t header, extension, type;

  if (!weir_bytes_u8 (&b, &header))
    return false;
  type = header >> 3 & 15;
  if (header & 4) {
    if (!weir_bytes_u8 (&b, &extension))
      return false;
    layer.temporal = extension >> 5;
    layer.spatial = extension >> 3 & 3;
  }
  if (type == OBU_SEQUENCE_HEADER)
    out->parameters = true;
  if (type == OBU_SEQUENCE_HEADER || type == OBU_TEMPORAL_DELIMITER)
    return true;
  weir_layer_merge (out, &layer, !*any);
  *any = true;
  return true;
}

bool
weir_layers_read_av1 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out)
{
  WeirBytes b = weir_bytes (payload, len);
  bool any = false, continues;
  uint8_t aggregation;
  unsigned count;

  if (!weir_bytes_u8 (&b, &aggregation) || weir_bytes_left (&b) == 0)
    return false;
  continues = aggregation & CONTINUES;
  count = aggregation >> 4 & 3; // W: number of elements; 0: any number, each with its length
  for (unsigned i = 0; weir_bytes_left (&b) > 0 && (count == 0 || i < count); i++) {
    uint64_t size = weir_bytes_left (&b);
    const uint8_t *obu;

    if (i + 1 != count && !weir_leb128 (&b, &size))
      return false;
    if (!weir_bytes_take (&b, size, &obu))
      return false;
    if (!(i == 0 && continues) && size > 0 && !add_obu (weir_bytes (obu, size), out, &any))
      return false;
  }
  if (!any && continues) {
    out->spatial = self->last.spatial;
    out->temporal = self->last.temporal;
  }
  out->keyframe = out->enter = aggregation & NEW_SEQUENCE && !continues;
  out->switch_up = out->temporal == 0 && !continues;
  return true;
}
