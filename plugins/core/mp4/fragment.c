// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/fragment.h"

#include "mp4/box.h"

// Flags of 8.8.7, 8.8.8 and 8.8.3.1.
#define TFHD_BASE_IS_MOOF 0x020000
#define TRUN_DATA_OFFSET 0x000001
#define TRUN_DURATION 0x000100
#define TRUN_SIZE 0x000200
#define TRUN_FLAGS 0x000400
#define TRUN_OFFSET 0x000800
#define SAMPLE_KEY 0x02000000   // depends on no other
#define SAMPLE_OTHER 0x01010000 // depends on others, is no sync sample

static uint64_t
count_bytes (const WeirMp4Run *run)
{
  uint64_t bytes = 0;

  for (size_t i = 0; i < run->n_samples; i++)
    bytes += run->samples[i].size;
  return bytes;
}

// Returns the size of the moof, from which on data offsets count.
static size_t
count_moof (const WeirMp4Run *runs, size_t n_runs)
{
  size_t size = 8 + 16; // with its mfhd

  for (size_t i = 0; i < n_runs; i++)
    size += runs[i].n_samples > 0 ? 8 + 16 + 20 + 20 + 16 * runs[i].n_samples : 0;
  return size;
}

static void
put_trun (WeirBoxes *w, const WeirMp4Run *run, uint64_t data_offset)
{
  size_t trun = weir_box_begin_full (
      w, "trun", 1, TRUN_DATA_OFFSET | TRUN_DURATION | TRUN_SIZE | TRUN_FLAGS | TRUN_OFFSET);

  weir_boxes_u32 (w, (uint32_t) run->n_samples);
  weir_boxes_u32 (w, (uint32_t) data_offset);
  for (size_t i = 0; i < run->n_samples; i++) {
    const WeirMp4Sample *sample = &run->samples[i];

    weir_boxes_u32 (w, sample->duration);
    weir_boxes_u32 (w, sample->size);
    weir_boxes_u32 (w, sample->key ? SAMPLE_KEY : SAMPLE_OTHER);
    weir_boxes_u32 (w, (uint32_t) sample->offset);
  }
  weir_box_end (w, trun);
}

static void
put_traf (WeirBoxes *w, const WeirMp4Run *run, uint32_t id, uint64_t data_offset)
{
  size_t traf = weir_box_begin (w, "traf"), box;

  box = weir_box_begin_full (w, "tfhd", 0, TFHD_BASE_IS_MOOF);
  weir_boxes_u32 (w, id);
  weir_box_end (w, box);
  box = weir_box_begin_full (w, "tfdt", 1, 0);
  weir_boxes_u64 (w, run->start);
  weir_box_end (w, box);
  put_trun (w, run, data_offset);
  weir_box_end (w, traf);
}

static void
put_styp (WeirBoxes *w)
{
  size_t styp = weir_box_begin (w, "styp");

  weir_boxes_put (w, "cmfs", 4);
  weir_boxes_u32 (w, 0);
  weir_boxes_put (w, "iso6cmfscmf2", 12);
  weir_box_end (w, styp);
}

size_t
weir_mp4_write_fragment (uint8_t *out, size_t size, uint32_t sequence, bool begins_segment,
    const WeirMp4Run *runs, size_t n_runs)
{
  WeirBoxes w = { out, size, 0 };
  size_t moof, mfhd, data = count_moof (runs, n_runs) + 8;
  uint64_t bytes = 0;

  if (begins_segment)
    put_styp (&w);
  moof = weir_box_begin (&w, "moof");
  mfhd = weir_box_begin_full (&w, "mfhd", 0, 0);
  weir_boxes_u32 (&w, sequence);
  weir_box_end (&w, mfhd);
  for (size_t i = 0; i < n_runs; i++) {
    if (runs[i].n_samples > 0)
      put_traf (&w, &runs[i], (uint32_t) i + 1, data + bytes);
    bytes += count_bytes (&runs[i]);
  }
  weir_box_end (&w, moof);
  weir_boxes_u32 (&w, (uint32_t) (8 + bytes));
  weir_boxes_put (&w, "mdat", 4);
  return w.at;
}
