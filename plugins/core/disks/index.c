// SPDX-License-Identifier: LGPL-2.1-or-later
// The bytes of an index, all numbers in big-endian order:
//
//   8  "WEIRIDX" and a newline       2  version
//   16 id                            8  rate
//   8  slice                         8  duration
//   2  length of the name            n  name
//   4  length of the caps            n  caps
//   4  number of blocks              30 for each block: 4 length, 4 length of its table, 8 time,
//                                       8 hash, 2 first disk, 2 second disk, 1 copies, 1 flags
//
// Offsets and the size of the title are sums of the blocks' lengths.

#include "disks/index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits/bytes.h"
#include "disks/put.h"
#include "disks/table.h"

#define MAGIC "WEIRIDX\n"
#define MAGIC_BYTES 8
#define BLOCK_BYTES 30
#define FIXED_BYTES (MAGIC_BYTES + 2 + 16 + 8 + 8 + 8 + 2 + 4 + 4)

static bool
is_name (const char *name, size_t length)
{
  const char *end = name + length;

  if (length == 0 || length > WEIR_INDEX_NAME_MAX)
    return false;
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char) name[i] < 0x20 || name[i] == 0x7f)
      return false;
  }
  for (const char *part = name; part <= end;) {
    const char *slash = memchr (part, '/', (size_t) (end - part));
    size_t n = (size_t) ((slash ? slash : end) - part);

    if (n == 0 || n > WEIR_INDEX_NAME_PART_MAX || part[0] == '.')
      return false;
    part += n + 1;
  }
  return true;
}

bool
weir_index_is_name (const char *name)
{
  return is_name (name, strlen (name));
}

// Returns NULL, or says what is wrong with a block.
static const char *
block_problem (const WeirIndexBlock *block)
{
  const char *problem = NULL;

  if (block->length == 0)
    problem = "no bytes";
  else if ((uint64_t) block->length + block->table_length > WEIR_INDEX_BLOCK_BYTES_MAX)
    problem = "too many bytes";
  else if (block->table_length % WEIR_TABLE_RECORD_BYTES != 0)
    problem = "a table with part of a record";
  else if (block->n_copies == 0 || block->n_copies > WEIR_INDEX_COPIES_MAX)
    problem = "neither one nor two copies";
  else if (block->n_copies == 2 && block->disks[0] == block->disks[1])
    problem = "two copies on one disk";
  else if (block->flags & ~WEIR_BLOCK_KEYFRAME)
    problem = "unknown flags";
  return problem;
}

static bool
is_valid (const WeirIndex *index)
{
  if (!index->name || !weir_index_is_name (index->name) || !index->caps
      || strlen (index->caps) > WEIR_INDEX_CAPS_MAX || index->n_blocks == 0
      || index->n_blocks > WEIR_INDEX_BLOCKS_MAX || index->slice_ns <= 0)
    return false;
  for (uint32_t i = 0; i < index->n_blocks; i++) {
    if (block_problem (&index->blocks[i]))
      return false;
  }
  return true;
}

static uint8_t *
put_text (uint8_t *at, const char *text, size_t length)
{
  memcpy (at, text, length);
  return at + length;
}

static uint8_t *
put_block (uint8_t *at, const WeirIndexBlock *block)
{
  at = weir_put (at, 4, block->length);
  at = weir_put (at, 4, block->table_length);
  at = weir_put (at, 8, (uint64_t) block->time_ns);
  at = weir_put (at, 8, block->hash);
  at = weir_put (at, 2, block->disks[0]);
  at = weir_put (at, 2, block->n_copies > 1 ? block->disks[1] : 0);
  at = weir_put (at, 1, block->n_copies);
  return weir_put (at, 1, block->flags);
}

int
weir_index_write (const WeirIndex *index, uint8_t **bytes, size_t *length)
{
  size_t name, caps;
  uint8_t *at;

  *bytes = NULL;
  *length = 0;
  if (!is_valid (index))
    return -EINVAL;
  name = strlen (index->name);
  caps = strlen (index->caps);
  *length = FIXED_BYTES + name + caps + (size_t) index->n_blocks * BLOCK_BYTES;
  *bytes = at = malloc (*length);
  if (!at)
    return -ENOMEM;
  at = put_text (at, MAGIC, MAGIC_BYTES);
  at = weir_put (at, 2, WEIR_INDEX_VERSION);
  at = put_text (at, (const char *) index->id, sizeof index->id);
  at = weir_put (at, 8, index->rate);
  at = weir_put (at, 8, (uint64_t) index->slice_ns);
  at = weir_put (at, 8, (uint64_t) index->duration_ns);
  at = weir_put (at, 2, name);
  at = put_text (at, index->name, name);
  at = weir_put (at, 4, caps);
  at = put_text (at, index->caps, caps);
  at = weir_put (at, 4, index->n_blocks);
  for (uint32_t i = 0; i < index->n_blocks; i++)
    at = put_block (at, &index->blocks[i]);
  return 0;
}

typedef struct {
  WeirBytes b;
  const uint8_t *begin;
  char *problem;
} Reader;

static int
fail_reading (Reader *reader, const char *text)
{
  snprintf (reader->problem, 128, "%s at byte %zu", text, (size_t) (reader->b.at - reader->begin));
  return -EINVAL;
}

// Reads a text of `length` bytes, without NUL, of at most `max` bytes.
static int
read_text (Reader *reader, size_t length, size_t max, const char *name, char **text)
{
  char problem[64];
  const uint8_t *bytes;

  if (length > max || !weir_bytes_take (&reader->b, length, &bytes)
      || (length > 0 && memchr (bytes, 0, length))) {
    snprintf (problem, sizeof problem, "%s is cut off or not valid", name);
    return fail_reading (reader, problem);
  }
  *text = malloc (length + 1);
  if (!*text)
    return -ENOMEM;
  if (length > 0)
    memcpy (*text, bytes, length);
  (*text)[length] = '\0';
  return 0;
}

static int
read_head (Reader *reader)
{
  const uint8_t *magic;
  uint16_t version;

  if (!weir_bytes_take (&reader->b, MAGIC_BYTES, &magic) || memcmp (magic, MAGIC, MAGIC_BYTES) != 0)
    return fail_reading (reader, "no index of a title");
  if (!weir_bytes_u16 (&reader->b, &version) || version == 0)
    return fail_reading (reader, "the version is cut off or 0");
  if (version > WEIR_INDEX_VERSION) {
    snprintf (reader->problem, 128, "version %u is newer than version %d, which this program reads",
        version, WEIR_INDEX_VERSION);
    return -EPROTO;
  }
  return 0;
}

static int
read_title (Reader *reader, WeirIndex *index)
{
  const uint8_t *id;
  uint64_t slice, duration;
  uint32_t caps;
  uint16_t name;
  int result;

  if (!weir_bytes_take (&reader->b, sizeof index->id, &id)
      || !weir_bytes_u64 (&reader->b, &index->rate) || !weir_bytes_u64 (&reader->b, &slice)
      || !weir_bytes_u64 (&reader->b, &duration) || !weir_bytes_u16 (&reader->b, &name))
    return fail_reading (reader, "the index is cut off");
  memcpy (index->id, id, sizeof index->id);
  index->slice_ns = (int64_t) slice;
  index->duration_ns = (int64_t) duration;
  if (index->slice_ns <= 0)
    return fail_reading (reader, "the time slice is not positive");
  result = read_text (reader, name, WEIR_INDEX_NAME_MAX, "the name", &index->name);
  if (result == 0 && !weir_index_is_name (index->name))
    return fail_reading (reader, "the name is not valid");
  if (result == 0 && !weir_bytes_u32 (&reader->b, &caps))
    return fail_reading (reader, "the index is cut off");
  if (result == 0)
    result = read_text (reader, caps, WEIR_INDEX_CAPS_MAX, "the caps", &index->caps);
  return result;
}

static void
read_block (WeirBytes *b, WeirIndexBlock *block)
{
  uint64_t time;

  weir_bytes_u32 (b, &block->length);
  weir_bytes_u32 (b, &block->table_length);
  weir_bytes_u64 (b, &time);
  block->time_ns = (int64_t) time;
  weir_bytes_u64 (b, &block->hash);
  weir_bytes_u16 (b, &block->disks[0]);
  weir_bytes_u16 (b, &block->disks[1]);
  weir_bytes_u8 (b, &block->n_copies);
  weir_bytes_u8 (b, &block->flags);
}

static int
read_blocks (Reader *reader, WeirIndex *index)
{
  uint32_t n;

  if (!weir_bytes_u32 (&reader->b, &n) || n == 0 || n > WEIR_INDEX_BLOCKS_MAX)
    return fail_reading (reader, "the number of blocks is cut off or not valid");
  // Before the memory is allocated, so that it is bounded by the file's size.
  if (weir_bytes_left (&reader->b) != (size_t) n * BLOCK_BYTES)
    return fail_reading (reader, "the table of blocks is cut off, or bytes follow it");
  index->blocks = calloc (n, sizeof *index->blocks);
  if (!index->blocks)
    return -ENOMEM;
  index->n_blocks = n;
  for (uint32_t i = 0; i < n; i++) {
    WeirIndexBlock *block = &index->blocks[i];
    const char *problem;
    char text[96];

    read_block (&reader->b, block);
    block->offset = index->bytes;
    index->bytes += block->length;
    problem = block_problem (block);
    if (problem) {
      snprintf (text, sizeof text, "block %" PRIu32 " has %s,", i, problem);
      return fail_reading (reader, text);
    }
  }
  return 0;
}

int
weir_index_read (WeirIndex *index, const uint8_t *bytes, size_t length, char problem[128])
{
  Reader reader = { weir_bytes (bytes, length), bytes, problem };
  int result;

  memset (index, 0, sizeof *index);
  problem[0] = '\0';
  result = read_head (&reader);
  if (result == 0)
    result = read_title (&reader, index);
  if (result == 0)
    result = read_blocks (&reader, index);
  if (result != 0)
    weir_index_clear (index);
  return result;
}

void
weir_index_clear (WeirIndex *index)
{
  free (index->name);
  free (index->caps);
  free (index->blocks);
  memset (index, 0, sizeof *index);
}

int64_t
weir_index_find_byte (const WeirIndex *index, uint64_t offset)
{
  uint32_t low = 0, high = index->n_blocks;

  if (offset >= index->bytes)
    return -1;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;

    if (index->blocks[middle].offset <= offset)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Returns the last block that begins at or before `time_ns`, or 0.
static uint32_t
find_last (const WeirIndex *index, int64_t time_ns)
{
  uint32_t low = 0, high = index->n_blocks;

  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;

    if (index->blocks[middle].time_ns <= time_ns)
      low = middle;
    else
      high = middle;
  }
  return low;
}

int64_t
weir_index_find_time (const WeirIndex *index, int64_t time_ns)
{
  int64_t at;

  if (index->n_blocks == 0 || index->blocks[0].time_ns == WEIR_INDEX_NO_TIME)
    return -1;
  for (at = find_last (index, time_ns); at > 0; at--) {
    const WeirIndexBlock *block = &index->blocks[at];

    if (block->flags & WEIR_BLOCK_KEYFRAME && block->time_ns != WEIR_INDEX_NO_TIME
        && block->time_ns <= time_ns)
      break;
  }
  return at;
}
