// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/index.h"

#include <errno.h>

#include "bits/bytes.h"
#include "mp4/box.h"

#define ENTRY 19 // bytes: two numbers of 8 bytes, three of 1

size_t
weir_mp4_write_index (
    uint8_t *out, size_t size, uint32_t track, const WeirMp4Entry *entries, size_t n)
{
  WeirBoxes w = { out, size, 0 };
  size_t mfra = weir_box_begin (&w, "mfra"), box;

  box = weir_box_begin_full (&w, "tfra", 1, 0);
  weir_boxes_u32 (&w, track);
  weir_boxes_u32 (&w, 0); // the three numbers below have a byte each
  weir_boxes_u32 (&w, (uint32_t) n);
  for (size_t i = 0; i < n; i++) {
    weir_boxes_u64 (&w, entries[i].time);
    weir_boxes_u64 (&w, entries[i].at);
    weir_boxes_put (&w, "\1\1\1", 3); // the first traf, trun and sample
  }
  weir_box_end (&w, box);
  box = weir_box_begin_full (&w, "mfro", 0, 0);
  weir_boxes_u32 (&w, (uint32_t) (w.at + 4 - mfra));
  weir_box_end (&w, box);
  weir_box_end (&w, mfra);
  return w.at;
}

size_t
weir_mp4_index_size (const uint8_t end[WEIR_MP4_INDEX_END])
{
  WeirBytes b = weir_bytes (end, WEIR_MP4_INDEX_END);
  uint64_t head;
  uint32_t flags, size;

  weir_bytes_u64 (&b, &head);
  weir_bytes_u32 (&b, &flags);
  weir_bytes_u32 (&b, &size);
  // The size and the name of the box.
  return head == ((uint64_t) WEIR_MP4_INDEX_END << 32 | 0x6d66726f) && flags == 0 ? size : 0;
}

int64_t
weir_mp4_read_index (const uint8_t *data, size_t size, WeirMp4Entry *entries, size_t max)
{
  WeirBytes b = weir_bytes (data, size);
  uint64_t mfra, tfra;
  uint32_t n;

  weir_bytes_u64 (&b, &mfra);
  weir_bytes_u64 (&b, &tfra);
  weir_bytes_skip (&b, 12);
  if (!weir_bytes_u32 (&b, &n) || (uint32_t) mfra != 0x6d667261 || (uint32_t) tfra != 0x74667261
      || weir_bytes_left (&b) != (uint64_t) n * ENTRY + WEIR_MP4_INDEX_END)
    return -EINVAL;
  for (size_t i = 0; i < n && i < max; i++) {
    weir_bytes_u64 (&b, &entries[i].time);
    weir_bytes_u64 (&b, &entries[i].at);
    weir_bytes_skip (&b, 3);
  }
  return n;
}
