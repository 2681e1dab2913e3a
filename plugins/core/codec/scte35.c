// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/scte35.h"

#include <errno.h>

#include "bits/bytes.h"

#define COMMAND_INSERT 5
#define COMMAND_TIME 6
#define DESCRIPTOR_SEGMENTATION 2
#define CUEI 0x43554549
#define CHECKSUM 4 // bytes

// A checksum of a whole section gives 0 (ISO/IEC 13818-1, annex A).
static uint32_t
crc32 (const uint8_t *data, size_t len)
{
  uint32_t crc = UINT32_MAX;

  for (size_t i = 0; i < len; i++) {
    crc ^= (uint32_t) data[i] << 24;
    for (int bit = 0; bit < 8; bit++)
      crc = crc << 1 ^ (crc >> 31 ? UINT32_C (0x04c11db7) : 0);
  }
  return crc;
}

// splice_time()
static void
read_time (WeirBytes *b, bool *timed, uint64_t *time)
{
  uint64_t low;
  uint8_t first;

  weir_bytes_u8 (b, &first);
  *timed = first & 0x80;
  if (!*timed)
    return;
  weir_bytes_number (b, 4, &low);
  *time = (uint64_t) (first & 1) << 32 | low;
}

// break_duration(), or the duration of a segmentation_descriptor()
static uint64_t
read_duration (WeirBytes *b)
{
  uint64_t value;

  weir_bytes_number (b, 5, &value);
  return value & (WEIR_SCTE35_TIMES - 1);
}

// splice_insert()
static void
read_insert (WeirBytes *b, WeirScte35 *cue)
{
  uint8_t flags, n_components = 0;
  bool timed = false, immediate;
  uint64_t time = 0;

  weir_bytes_u32 (b, &cue->event);
  weir_bytes_u8 (b, &flags);
  cue->cancel = flags & 0x80;
  if (cue->cancel)
    return;
  weir_bytes_u8 (b, &flags);
  cue->out = flags & 0x80;
  immediate = flags & 0x10;
  if (flags & 0x40 && !immediate)
    read_time (b, &cue->timed, &cue->time);
  if (!(flags & 0x40))
    weir_bytes_u8 (b, &n_components);
  for (uint8_t i = 0; i < n_components && !b->failed; i++) {
    weir_bytes_skip (b, 1);
    if (!immediate)
      read_time (b, &timed, &time);
    if (timed && !cue->timed) {
      cue->timed = true;
      cue->time = time;
    }
  }
  if (flags & 0x20)
    cue->duration = read_duration (b);
}

// Returns 1 for what begins an advertisement or a break, -1 for what ends it, else 0.
static int
segment_kind (uint8_t type)
{
  static const uint8_t begins[] = { 0x22, 0x30, 0x32, 0x34, 0x36, 0x38, 0x3a };

  for (size_t i = 0; i < sizeof begins; i++) {
    if (type == begins[i] || type == begins[i] + 1)
      return type == begins[i] ? 1 : -1;
  }
  return 0;
}

// segmentation_descriptor(). Returns false if it neither begins nor ends anything.
static bool
read_segmentation (WeirBytes b, WeirScte35 *cue)
{
  uint8_t flags, n_components = 0, length, type;
  uint32_t identifier;

  weir_bytes_u32 (&b, &identifier);
  weir_bytes_u32 (&b, &cue->event);
  weir_bytes_u8 (&b, &flags);
  cue->cancel = flags & 0x80;
  if (b.failed || identifier != CUEI || cue->cancel)
    return !b.failed && identifier == CUEI;
  weir_bytes_u8 (&b, &flags);
  if (!(flags & 0x80))
    weir_bytes_u8 (&b, &n_components);
  weir_bytes_skip (&b, 6 * (size_t) n_components);
  cue->duration = flags & 0x40 ? read_duration (&b) : 0;
  weir_bytes_skip (&b, 1);
  weir_bytes_u8 (&b, &length);
  weir_bytes_skip (&b, length);
  weir_bytes_u8 (&b, &type);
  cue->out = segment_kind (type) > 0;
  return !b.failed && segment_kind (type) != 0;
}

// Finds the first segmentation_descriptor() that matters.
static bool
read_descriptors (WeirBytes b, WeirScte35 *cue)
{
  const uint8_t *data;
  uint8_t tag, length;

  while (weir_bytes_left (&b) > 0) {
    weir_bytes_u8 (&b, &tag);
    weir_bytes_u8 (&b, &length);
    if (!weir_bytes_take (&b, length, &data))
      return false;
    if (tag == DESCRIPTOR_SEGMENTATION && read_segmentation (weir_bytes (data, length), cue))
      return true;
  }
  return false;
}

int
weir_scte35_read (const uint8_t *section, size_t len, WeirScte35 *cue)
{
  WeirBytes b = weir_bytes (section, len), command;
  uint64_t adjustment, sizes;
  const uint8_t *data;
  uint8_t table, version, first, type;
  uint16_t length, n_descriptors;
  size_t n_command;

  *cue = (WeirScte35) { 0 };
  weir_bytes_u8 (&b, &table);
  weir_bytes_u16 (&b, &length);
  if (b.failed || table != WEIR_SCTE35_TABLE || len != 3 + (size_t) (length & 0xfff)
      || weir_bytes_left (&b) < CHECKSUM || crc32 (section, len) != 0)
    return -EINVAL;
  b = weir_bytes (b.at, weir_bytes_left (&b) - CHECKSUM);
  weir_bytes_u8 (&b, &version);
  weir_bytes_u8 (&b, &first);
  weir_bytes_number (&b, 4, &adjustment);
  adjustment |= (uint64_t) (first & 1) << 32;
  weir_bytes_skip (&b, 1);
  weir_bytes_number (&b, 3, &sizes);
  weir_bytes_u8 (&b, &type);
  if (!b.failed && first & 0x80)
    return -ENOTSUP;
  // Old encoders do not say how long the command is.
  n_command = sizes & 0xfff;
  command = b;
  if (n_command != 0xfff && weir_bytes_take (&b, n_command, &data))
    command = weir_bytes (data, n_command);
  if (type == COMMAND_INSERT)
    read_insert (&command, cue);
  else if (type == COMMAND_TIME)
    read_time (&command, &cue->timed, &cue->time);
  else
    return b.failed ? -EINVAL : -ENOTSUP;
  if (n_command == 0xfff)
    b = command;
  if (b.failed || command.failed)
    return -EINVAL;
  cue->time = (cue->time + adjustment) & (WEIR_SCTE35_TIMES - 1);
  if (type == COMMAND_INSERT)
    return 0;
  weir_bytes_u16 (&b, &n_descriptors);
  if (!weir_bytes_take (&b, n_descriptors, &data))
    return -EINVAL;
  return read_descriptors (weir_bytes (data, n_descriptors), cue) ? 0 : -ENOTSUP;
}
