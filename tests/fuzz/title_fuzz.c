// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of a stored title's index. What it accepts is valid, and is written as the same
// bytes.

#include <errno.h>
#include <string.h>

#include "disks/index.h"
#include "fuzz.h"

static void
check_blocks (const WeirIndex *index)
{
  uint64_t bytes = 0;

  for (uint32_t i = 0; i < index->n_blocks; i++) {
    const WeirIndexBlock *block = &index->blocks[i];

    require (block->offset == bytes && block->length > 0);
    require (block->n_copies == 1 || block->disks[0] != block->disks[1]);
    require (weir_index_find_byte (index, bytes) == i);
    require (weir_index_find_byte (index, bytes + block->length - 1) == i);
    require (weir_index_find_time (index, block->time_ns) < index->n_blocks);
    bytes += block->length;
  }
  require (bytes == index->bytes && weir_index_find_byte (index, bytes) == -1);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  char problem[128] = "";
  WeirIndex index;
  uint8_t *bytes;
  size_t length;
  int result = weir_index_read (&index, data, size, problem);

  require ((result == 0) == (problem[0] == '\0'));
  if (result != 0) {
    require (result == -EINVAL || result == -EPROTO);
    require (!index.name && !index.caps && !index.blocks && index.n_blocks == 0);
    return 0;
  }
  require (weir_index_is_name (index.name));
  check_blocks (&index);
  require (weir_index_write (&index, &bytes, &length) == 0 && length == size);
  // All but the number of a second disk that is not there.
  if (index.blocks[0].n_copies == 2 && index.n_blocks == 1)
    require (memcmp (bytes, data, size) == 0);
  free (bytes);
  weir_index_clear (&index);
  return 0;
}
