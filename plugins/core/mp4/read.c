// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/read.h"

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "mp4/box.h"

#define SAMPLE_IS_OTHER 0x00010000 // sample_is_non_sync_sample (8.8.3.1)
#define TRUN_FORM 0x01000f01 // version 1, with the fields that weir_mp4_write_fragment() writes

static bool
take_box (WeirBytes *b, WeirMp4Box *box, WeirBytes *inside)
{
  const uint8_t *content = NULL;
  const uint8_t *head;

  if (!weir_bytes_take (b, WEIR_MP4_BOX_HEAD, &head)
      || weir_mp4_read_box (head, WEIR_MP4_BOX_HEAD, box) < 0
      || !weir_bytes_take (b, box->size - WEIR_MP4_BOX_HEAD, &content))
    return false;
  *inside = weir_bytes (content, box->size - WEIR_MP4_BOX_HEAD);
  return true;
}

static bool
is (const WeirMp4Box *box, const char *type)
{
  return strcmp (box->type, type) == 0;
}

int
weir_mp4_read_box (const uint8_t *data, size_t len, WeirMp4Box *box)
{
  WeirBytes b = weir_bytes (data, len);
  const uint8_t *type;
  uint32_t size;

  weir_bytes_u32 (&b, &size);
  if (!weir_bytes_take (&b, 4, &type) || size < WEIR_MP4_BOX_HEAD)
    return -EINVAL;
  memcpy (box->type, type, 4);
  box->type[4] = '\0';
  box->size = size;
  return 0;
}

// ---- the beginning ----

static int
read_mdia (WeirBytes mdia, uint32_t *timescale, bool *video)
{
  WeirBytes inside;
  WeirMp4Box box;
  uint32_t handler = 0;

  *timescale = 0;
  while (take_box (&mdia, &box, &inside)) {
    if (is (&box, "mdhd")) {
      weir_bytes_skip (&inside, 12);
      weir_bytes_u32 (&inside, timescale);
    } else if (is (&box, "hdlr")) {
      weir_bytes_skip (&inside, 8);
      weir_bytes_u32 (&inside, &handler);
    }
  }
  *video = handler == 0x76696465; // "vide"
  return *timescale > 0 ? 0 : -EINVAL;
}

static int
read_trak (WeirBytes trak, WeirMp4Init *init, bool *has_video)
{
  WeirBytes inside;
  WeirMp4Box box;
  bool video;

  while (take_box (&trak, &box, &inside)) {
    if (!is (&box, "mdia"))
      continue;
    if (init->n_tracks == WEIR_MP4_TRACKS_MAX
        || read_mdia (inside, &init->timescales[init->n_tracks], &video) < 0)
      return -EINVAL;
    if (video && !*has_video)
      init->lead = init->n_tracks;
    *has_video |= video;
    init->n_tracks++;
    return 0;
  }
  return -EINVAL;
}

int
weir_mp4_read_init (const uint8_t *data, size_t len, WeirMp4Init *init)
{
  WeirBytes b = weir_bytes (data, len), inside;
  bool has_video = false;
  WeirMp4Box box;

  *init = (WeirMp4Init) { 0 };
  for (const char *const *type = (const char *const[]) { "ftyp", "moov", NULL }; *type; type++) {
    if (weir_bytes_left (&b) < WEIR_MP4_BOX_HEAD)
      return -EAGAIN;
    if (weir_mp4_read_box (b.at, WEIR_MP4_BOX_HEAD, &box) < 0 || !is (&box, *type))
      return -EINVAL;
    init->size += box.size;
    if (!take_box (&b, &box, &inside))
      return -EAGAIN;
  }
  for (WeirBytes moov = inside; take_box (&moov, &box, &inside);) {
    if (is (&box, "trak") && read_trak (inside, init, &has_video) < 0)
      return -EINVAL;
  }
  return init->n_tracks > 0 ? 0 : -EINVAL;
}

// ---- fragments ----

static int
read_trun (WeirBytes trun, WeirMp4Traf *traf)
{
  uint32_t form, n, duration, flags, offset;

  weir_bytes_u32 (&trun, &form);
  weir_bytes_u32 (&trun, &n);
  weir_bytes_skip (&trun, 4);
  if (form != TRUN_FORM || n == 0 || weir_bytes_left (&trun) != (uint64_t) n * 16)
    return -EINVAL;
  for (uint32_t i = 0; i < n; i++) {
    weir_bytes_u32 (&trun, &duration);
    weir_bytes_skip (&trun, 4);
    weir_bytes_u32 (&trun, &flags);
    weir_bytes_u32 (&trun, &offset);
    traf->duration += duration;
    if (i == 0) {
      traf->key = !(flags & SAMPLE_IS_OTHER);
      traf->offset = (int32_t) offset;
    }
  }
  traf->has = true;
  return 0;
}

static int
read_traf (const uint8_t *data, WeirBytes traf, WeirMp4Moof *moof)
{
  WeirBytes inside;
  WeirMp4Box box;
  WeirMp4Traf found = { 0 };
  uint32_t id = 0, form;

  while (take_box (&traf, &box, &inside)) {
    if (is (&box, "tfhd")) {
      weir_bytes_skip (&inside, 4);
      weir_bytes_u32 (&inside, &id);
    } else if (is (&box, "tfdt")) {
      weir_bytes_u32 (&inside, &form);
      found.start_at = (size_t) (inside.at - data);
      if (!weir_bytes_u64 (&inside, &found.start) || form != 0x01000000)
        return -EINVAL;
    } else if (is (&box, "trun") && (found.has || read_trun (inside, &found) < 0)) {
      return -EINVAL;
    }
  }
  if (id < 1 || id > WEIR_MP4_TRACKS_MAX || moof->trafs[id - 1].has || !found.has
      || found.start_at == 0 || found.start > INT64_MAX / 2)
    return -EINVAL;
  moof->trafs[id - 1] = found;
  return 0;
}

int
weir_mp4_read_moof (const uint8_t *data, size_t len, WeirMp4Moof *moof)
{
  WeirBytes b = weir_bytes (data, len), inside;
  WeirMp4Box box;

  *moof = (WeirMp4Moof) { 0 };
  if (!take_box (&b, &box, &inside) || !is (&box, "moof") || weir_bytes_left (&b) > 0)
    return -EINVAL;
  for (WeirBytes in = inside; take_box (&in, &box, &inside);) {
    if (is (&box, "mfhd")) {
      weir_bytes_skip (&inside, 4);
      moof->sequence_at = (size_t) (inside.at - data);
      if (!weir_bytes_skip (&inside, 4))
        return -EINVAL;
    } else if (is (&box, "traf") && read_traf (data, inside, moof) < 0) {
      return -EINVAL;
    }
  }
  return moof->sequence_at > 0 ? 0 : -EINVAL;
}

void
weir_mp4_move (uint8_t *data, const WeirMp4Moof *moof, uint32_t sequence,
    const int64_t earlier[WEIR_MP4_TRACKS_MAX])
{
  WeirBoxes number = { data + moof->sequence_at, 4, 0 };

  weir_boxes_u32 (&number, sequence);
  for (size_t i = 0; i < WEIR_MP4_TRACKS_MAX; i++) {
    const WeirMp4Traf *traf = &moof->trafs[i];
    int64_t start;

    if (!traf->has)
      continue;
    number = (WeirBoxes) { data + traf->start_at, 8, 0 };
    if (__builtin_sub_overflow ((int64_t) traf->start, earlier[i], &start) || start < 0)
      start = 0;
    weir_boxes_u64 (&number, (uint64_t) start);
  }
}
