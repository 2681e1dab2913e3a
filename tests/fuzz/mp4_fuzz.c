// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of fragmented MP4 with the same bytes as a beginning, a fragment, an index and
// a file.

#include <string.h>

#include "fuzz.h"
#include "mp4/index.h"
#include "mp4/length.h"
#include "mp4/read.h"
#include "mp4/times.h"

static void
move (const uint8_t *data, size_t size, const WeirMp4Moof *moof)
{
  int64_t earlier[WEIR_MP4_TRACKS_MAX] = { 1, -1, INT64_MAX, INT64_MIN };
  uint8_t *copy = malloc (size);
  WeirMp4Moof again;

  memcpy (copy, data, size);
  weir_mp4_move (copy, moof, 1, earlier);
  require (
      weir_mp4_read_moof (copy, size, &again) == 0 || moof->trafs[3].has || moof->trafs[1].has);
  free (copy);
}

// What is set can be read again, and fits where it was.
static void
set_times (const uint8_t *data, size_t size)
{
  WeirMp4Times times = { 1, 2, { 3, 4, 5, 6, 7, 8, 9, 10 } };
  uint8_t *copy = malloc (size);

  memcpy (copy, data, size);
  weir_mp4_get_times (copy, size, &times);
  times.wall_us++;
  weir_mp4_set_times (copy, size, &times);
  weir_mp4_get_times (copy, size, &times);
  free (copy);
}

typedef struct {
  const uint8_t *data;
  size_t size;
} Input;

static size_t
read_input (void *input, uint64_t offset, uint8_t *bytes, size_t len)
{
  const Input *self = input;
  size_t left = offset < self->size ? self->size - (size_t) offset : 0;
  size_t n = left < len ? left : len;

  if (n > 0)
    memcpy (bytes, self->data + offset, n);
  return n;
}

static void
find_length (const uint8_t *data, size_t size)
{
  Input input = { data, size };
  const WeirMp4File file = { read_input, &input, size };
  WeirMp4Length length;

  if (!weir_mp4_find_length (&file, &length))
    return;
  require (length.timescale > 0 && length.end > length.start);
  for (unsigned i = 0; i < 2; i++)
    require (length.durations[i].at + length.durations[i].size <= size);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  WeirMp4Entry entries[4];
  WeirMp4Init init;
  WeirMp4Moof moof;

  if (weir_mp4_read_init (data, size, &init) == 0) {
    require (init.size <= size && init.n_tracks > 0 && init.n_tracks <= WEIR_MP4_TRACKS_MAX);
    require (init.lead < init.n_tracks && init.timescales[init.lead] > 0);
    set_times (data, size);
  }
  if (weir_mp4_read_moof (data, size, &moof) == 0)
    move (data, size, &moof);
  find_length (data, size);
  if (size >= WEIR_MP4_INDEX_END)
    weir_mp4_index_size (data + size - WEIR_MP4_INDEX_END);
  require (weir_mp4_read_index (data, size, entries, 4) <= (int64_t) size);
  return 0;
}
