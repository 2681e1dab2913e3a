// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4/places.h"

#include <stdlib.h>
#include <string.h>

#include "bits/bytes.h"
#include "mp4/index.h"

#define BOXES_MAX 128 // looked at, of one level
#define HEAD_MAX 16   // bytes of a box's head
#define SIDX_MAX (64 * 1024)
#define TAIL (1024 * 1024)

bool
weir_mp4_look_at (const WeirMp4File *file, uint64_t at, uint64_t end, WeirMp4Place *box)
{
  uint8_t bytes[HEAD_MAX];
  size_t n = at < end ? file->read (file->file, at, bytes, sizeof bytes) : 0;
  WeirBytes head = weir_bytes (bytes, n < sizeof bytes ? n : sizeof bytes);
  uint64_t size, content = 8;
  uint32_t small;

  weir_bytes_u32 (&head, &small);
  if (!weir_bytes_u32 (&head, &box->type))
    return false;
  size = small;
  if (small == 1) {
    content = HEAD_MAX;
    if (!weir_bytes_u64 (&head, &size))
      return false;
  } else if (small == 0) {
    size = end - at;
  }
  if (size < content || size > end - at)
    return false;
  box->at = at + content;
  box->end = at + size;
  return true;
}

bool
weir_mp4_find_place (
    const WeirMp4File *file, uint32_t type, uint64_t at, uint64_t end, WeirMp4Place *box)
{
  for (unsigned i = 0; i < BOXES_MAX && weir_mp4_look_at (file, at, end, box); i++) {
    if (box->type == type)
      return true;
    at = box->end;
  }
  return false;
}

uint8_t *
weir_mp4_read_place (const WeirMp4File *file, const WeirMp4Place *box, size_t max)
{
  const size_t size = (size_t) (box->end - box->at);
  uint8_t *bytes = box->end - box->at <= max ? malloc (size + 1) : NULL;

  if (!bytes)
    return NULL;
  if (file->read (file->file, box->at, bytes, size) != size) {
    free (bytes);
    return NULL;
  }
  return bytes;
}

// ---- where the last fragments are ----

// Returns where the last fragment of a track begins by its index, a tfra; 0 if it does not tell.
static uint64_t
find_last_entry (const WeirMp4File *file, const WeirMp4Place *tfra)
{
  uint8_t bytes[32];
  size_t got = file->read (file->file, tfra->at, bytes, 16);
  WeirBytes b = weir_bytes (bytes, got < 16 ? got : 16);
  uint32_t form, id, sizes, n;
  uint64_t entry, at = 0;
  uint8_t version;

  weir_bytes_u32 (&b, &form);
  weir_bytes_u32 (&b, &id);
  weir_bytes_u32 (&b, &sizes);
  if (!weir_bytes_u32 (&b, &n) || n == 0)
    return 0;
  version = (uint8_t) (form >> 24);
  entry = (version == 1 ? 16 : 8) + 3 + (sizes >> 4 & 3) + (sizes >> 2 & 3) + (sizes & 3);
  if (16 + entry * n > tfra->end - tfra->at)
    return 0;
  got = file->read (file->file, tfra->at + 16 + entry * (n - 1), bytes, 16);
  b = weir_bytes (bytes, got < 16 ? got : 16);
  weir_bytes_number (&b, version == 1 ? 8 : 4, &at);
  weir_bytes_number (&b, version == 1 ? 8 : 4, &at);
  return b.failed ? 0 : at;
}

// By the index at the end of the file (mfra): the first of the last fragments of all tracks.
static uint64_t
find_by_index (const WeirMp4File *file)
{
  uint8_t bytes[WEIR_MP4_INDEX_END];
  uint64_t at = UINT64_MAX, last, from;
  size_t size;
  WeirMp4Place mfra, box;

  if (file->size < sizeof bytes
      || file->read (file->file, file->size - sizeof bytes, bytes, sizeof bytes) != sizeof bytes)
    return 0;
  size = weir_mp4_index_size (bytes);
  if (size == 0 || size > file->size
      || !weir_mp4_look_at (file, file->size - size, file->size, &mfra)
      || mfra.type != WEIR_MP4_TYPE ('m', 'f', 'r', 'a'))
    return 0;
  from = mfra.at;
  for (unsigned i = 0; i < BOXES_MAX && weir_mp4_look_at (file, from, mfra.end, &box); i++) {
    from = box.end;
    if (box.type == WEIR_MP4_TYPE ('t', 'f', 'r', 'a') && (last = find_last_entry (file, &box)) > 0)
      at = last < at ? last : at;
  }
  return at == UINT64_MAX ? 0 : at;
}

// By the index in front of the fragments (sidx): the last one that begins within the file.
static uint64_t
find_by_sidx (const WeirMp4File *file, uint64_t fragments)
{
  uint64_t at, offset, last = 0;
  uint32_t form, size;
  uint16_t n = 0;
  WeirBytes sidx;
  uint8_t *bytes;
  WeirMp4Place box;

  if (!weir_mp4_find_place (file, WEIR_MP4_TYPE ('s', 'i', 'd', 'x'), fragments, file->size, &box)
      || !(bytes = weir_mp4_read_place (file, &box, SIDX_MAX)))
    return 0;
  sidx = weir_bytes (bytes, (size_t) (box.end - box.at));
  weir_bytes_u32 (&sidx, &form);
  weir_bytes_skip (&sidx, 8);
  weir_bytes_number (&sidx, form >> 24 == 0 ? 4 : 8, &offset); // the first time
  weir_bytes_number (&sidx, form >> 24 == 0 ? 4 : 8, &offset);
  weir_bytes_skip (&sidx, 2);
  weir_bytes_u16 (&sidx, &n);
  at = box.end;
  for (unsigned i = 0; i < n && offset < file->size && at + offset < file->size; i++) {
    at += offset;
    last = at;
    if (!weir_bytes_u32 (&sidx, &size) || !weir_bytes_skip (&sidx, 8))
      break;
    offset = size & INT32_MAX;
  }
  free (bytes);
  return last;
}

// By the first moof in the last bytes of the file. Media may look like one by chance: it must begin
// with a mfhd.
static uint64_t
find_in_tail (const WeirMp4File *file, uint64_t fragments)
{
  static const uint8_t mark[] = { 0, 0, 0, 16, 'm', 'f', 'h', 'd' };
  const uint64_t from = file->size - fragments > TAIL ? file->size - TAIL : fragments;
  const size_t size = (size_t) (file->size - from);
  uint8_t *bytes = malloc (size + 1), *found = NULL;
  uint64_t at = 0;
  size_t n;

  if (!bytes)
    return 0;
  n = file->read (file->file, from, bytes, size);
  for (size_t i = 8; i < n && !at; i = (size_t) (found - bytes) + 1) {
    found = memmem (bytes + i, n - i, mark, sizeof mark);
    if (!found)
      break;
    if (memcmp (found - 4, "moof", 4) == 0)
      at = from + (uint64_t) (found - bytes) - 8;
  }
  free (bytes);
  return at;
}

// Whether a fragment begins there, perhaps with boxes that stand before its moof.
static bool
is_fragment (const WeirMp4File *file, uint64_t fragments, uint64_t at)
{
  WeirMp4Place box;

  return at >= fragments && weir_mp4_look_at (file, at, file->size, &box)
         && (box.type == WEIR_MP4_TYPE ('m', 'o', 'o', 'f')
             || box.type == WEIR_MP4_TYPE ('s', 't', 'y', 'p')
             || box.type == WEIR_MP4_TYPE ('s', 'i', 'd', 'x')
             || box.type == WEIR_MP4_TYPE ('e', 'm', 's', 'g'));
}

uint64_t
weir_mp4_find_last (const WeirMp4File *file, uint64_t fragments)
{
  uint64_t at = find_by_index (file);

  if (!is_fragment (file, fragments, at))
    at = find_in_tail (file, fragments);
  if (!is_fragment (file, fragments, at)) // by that of its first segment, if there are several
    at = find_by_sidx (file, fragments);
  return is_fragment (file, fragments, at) ? at : 0;
}
