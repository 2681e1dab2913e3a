// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/index.h"

#include <errno.h>
#include <stdlib.h>

#include "disks/table.h"
#include "tap.h"

#define S INT64_C (1000000000)

static WeirIndexBlock blocks[] = {
  { .length = 1000,
      .table_length = 64,
      .time_ns = 0,
      .hash = UINT64_C (0x0123456789abcdef),
      .disks = { 3, 1 },
      .n_copies = 2,
      .flags = WEIR_BLOCK_KEYFRAME },
  { .length = 1, .time_ns = 5 * S, .hash = 7, .disks = { 65535, 0 }, .n_copies = 1 },
  { .length = 1u << 28,
      .time_ns = 10 * S,
      .disks = { 0, 2 },
      .n_copies = 2,
      .flags = WEIR_BLOCK_KEYFRAME },
};

static WeirIndex
example (void)
{
  return (WeirIndex) { .id = { 1, 2, 3, [15] = 255 },
    .name = (char *) "films/Big Buck Bunny.mp4",
    .caps = (char *) "video/quicktime",
    .rate = 6000000,
    .slice_ns = 5 * S,
    .duration_ns = 596 * S,
    .n_blocks = 3,
    .blocks = blocks };
}

static int
write_and_read (WeirIndex *index)
{
  char problem[128];
  size_t length;
  uint8_t *bytes;
  int result = weir_index_write (index, &bytes, &length);

  if (result == 0)
    result = weir_index_read (index, bytes, length, problem);
  free (bytes);
  return result;
}

static void
what_is_written_is_read (void)
{
  WeirIndex in = example (), out = in;

  CHECK_INT (write_and_read (&out), 0);
  CHECK (memcmp (out.id, in.id, 16) == 0);
  CHECK (strcmp (out.name, in.name) == 0 && strcmp (out.caps, in.caps) == 0);
  CHECK_INT (out.rate, in.rate);
  CHECK_INT (out.slice_ns, in.slice_ns);
  CHECK_INT (out.duration_ns, in.duration_ns);
  CHECK_INT (out.bytes, 1001 + (1 << 28));
  CHECK_INT (out.n_blocks, 3);
  for (uint32_t i = 0; i < out.n_blocks; i++) {
    WeirIndexBlock expected = in.blocks[i];

    expected.offset = i == 0 ? 0 : i == 1 ? 1000 : 1001;
    CHECK (memcmp (&out.blocks[i], &expected, sizeof expected) == 0);
  }
  weir_index_clear (&out);
  CHECK (!out.name && !out.blocks && out.n_blocks == 0);
}

static void
a_newer_version_is_told_apart (void)
{
  WeirIndex index = example ();
  char problem[128];
  size_t length;
  uint8_t *bytes;

  CHECK_INT (weir_index_write (&index, &bytes, &length), 0);
  bytes[9] = WEIR_INDEX_VERSION + 1;
  // A newer version may be of any length.
  CHECK_INT (weir_index_read (&index, bytes, 10, problem), -EPROTO);
  CHECK (strstr (problem, "version 2") != NULL);
  bytes[9] = 0;
  CHECK_INT (weir_index_read (&index, bytes, length, problem), -EINVAL);
  free (bytes);
}

static void
an_index_that_is_cut_off_anywhere_is_refused (void)
{
  WeirIndex index = example ();
  char problem[128];
  size_t length;
  uint8_t *bytes;

  CHECK_INT (weir_index_write (&index, &bytes, &length), 0);
  for (size_t n = 0; n < length; n++) {
    uint8_t *copy = malloc (n + 1);

    memcpy (copy, bytes, n);
    CHECK_INT (weir_index_read (&index, copy, n, problem), -EINVAL);
    CHECK (strlen (problem) > 10 && strstr (problem, "at byte"));
    CHECK (!index.name && !index.caps && !index.blocks);
    free (copy);
  }
  bytes = realloc (bytes, length + 1);
  bytes[length] = 0;
  CHECK_INT (weir_index_read (&index, bytes, length + 1, problem), -EINVAL);
  free (bytes);
}

typedef struct {
  size_t from_end; // of the byte that is changed
  uint8_t value;
  const char *problem;
} Change;

static void
blocks_that_cannot_be_are_refused (void)
{
  // Of the last block's 30 bytes.
  static const Change changes[] = {
    { 30, 0x20, "too many bytes" },
    { 30, 0x00, "no bytes" },
    { 23, 0x01, "too many bytes" },
    { 2, 0, "copies" },
    { 2, 3, "copies" },
    { 3, 0, "on one disk" },
    { 1, 2, "unknown flags" },
  };
  WeirIndex index = example (), read;
  char problem[128];
  size_t length;
  uint8_t *bytes;

  CHECK_INT (weir_index_write (&index, &bytes, &length), 0);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    uint8_t *at = bytes + length - changes[i].from_end, before = *at;

    *at = changes[i].value;
    CHECK_INT (weir_index_read (&read, bytes, length, problem), -EINVAL);
    CHECK (strstr (problem, changes[i].problem) && strstr (problem, "block 2"));
    *at = before;
  }
  CHECK_INT (weir_index_read (&read, bytes, length, problem), 0);
  weir_index_clear (&read);
  free (bytes);
}

static void
garbage_is_refused (void)
{
  uint8_t bytes[400];
  char problem[128];
  WeirIndex index;
  uint32_t state = 1;

  for (int n = 0; n < 2000; n++) {
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t) ((state = state * 1664525u + 1013904223u) >> 24);
    if (n % 2)
      memcpy (bytes, "WEIRIDX\n\0\1", 10);
    CHECK_INT (weir_index_read (&index, bytes, sizeof bytes, problem), -EINVAL);
  }
}

static void
an_index_that_is_not_valid_is_not_written (void)
{
  WeirIndexBlock bad = blocks[0];
  WeirIndex index = example ();
  size_t length;
  uint8_t *bytes;

  index.name = (char *) "../passwd";
  CHECK_INT (weir_index_write (&index, &bytes, &length), -EINVAL);
  CHECK (bytes == NULL);
  index = example ();
  index.n_blocks = 0;
  CHECK_INT (weir_index_write (&index, &bytes, &length), -EINVAL);
  index.n_blocks = 1;
  index.blocks = &bad;
  bad.disks[1] = bad.disks[0];
  CHECK_INT (weir_index_write (&index, &bytes, &length), -EINVAL);
}

static void
names_are_paths_below_the_store (void)
{
  static const char *const good[] = { "a", "a.mp4", "a/b/c d.mkv", "\xc3\xa4", "a..b" };
  static const char *const bad[] = { "", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..",
    ".a", "a/.b", "a\nb", "a\x7f" };
  char part[WEIR_INDEX_NAME_PART_MAX + 2];

  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    CHECK (weir_index_is_name (good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK (!weir_index_is_name (bad[i]));
  memset (part, 'a', sizeof part);
  part[sizeof part - 1] = '\0';
  CHECK (!weir_index_is_name (part));
  CHECK (weir_index_is_name (part + 1));
}

static void
a_byte_is_found_in_its_block (void)
{
  WeirIndex index = example ();

  CHECK_INT (write_and_read (&index), 0);
  CHECK_INT (weir_index_find_byte (&index, 0), 0);
  CHECK_INT (weir_index_find_byte (&index, 999), 0);
  CHECK_INT (weir_index_find_byte (&index, 1000), 1);
  CHECK_INT (weir_index_find_byte (&index, 1001), 2);
  CHECK_INT (weir_index_find_byte (&index, index.bytes - 1), 2);
  CHECK_INT (weir_index_find_byte (&index, index.bytes), -1);
  CHECK_INT (weir_index_find_byte (&index, UINT64_MAX), -1);
  weir_index_clear (&index);
}

static void
a_time_is_found_at_the_keyframe_before_it (void)
{
  WeirIndex index = example ();

  CHECK_INT (weir_index_find_time (&index, -1), 0);
  CHECK_INT (weir_index_find_time (&index, 0), 0);
  CHECK_INT (weir_index_find_time (&index, 5 * S), 0); // block 1 has no keyframe
  CHECK_INT (weir_index_find_time (&index, 10 * S - 1), 0);
  CHECK_INT (weir_index_find_time (&index, 10 * S), 2);
  CHECK_INT (weir_index_find_time (&index, INT64_MAX), 2);
  index.n_blocks = 0;
  CHECK_INT (weir_index_find_time (&index, 0), -1);
}

static void
blocks_without_times_are_not_found_by_time (void)
{
  WeirIndexBlock block = { .length = 1, .n_copies = 1, .time_ns = WEIR_INDEX_NO_TIME };
  WeirIndex index = { .n_blocks = 1, .blocks = &block };

  CHECK_INT (weir_index_find_time (&index, 5 * S), -1);
}

static void
records_of_a_table_are_read_as_written (void)
{
  const WeirTableRecord records[] = { { 1, 0x4000, 0, -40, 40 },
    { UINT32_MAX, UINT32_MAX, WEIR_INDEX_NO_TIME, INT64_MAX, WEIR_INDEX_NO_TIME } };
  uint8_t table[2 * WEIR_TABLE_RECORD_BYTES + 31] = { 0 };
  WeirTableRecord record;

  for (size_t i = 0; i < 2; i++)
    weir_table_write (table + i * WEIR_TABLE_RECORD_BYTES, &records[i]);
  for (size_t i = 0; i < 2; i++) {
    CHECK_INT (weir_table_read (table, sizeof table, i, &record), 0);
    CHECK (memcmp (&record, &records[i], sizeof record) == 0);
  }
  CHECK_INT (weir_table_read (table, sizeof table, 2, &record), -ENOENT);
  CHECK_INT (weir_table_read (table, sizeof table, SIZE_MAX, &record), -ENOENT);
  CHECK_INT (weir_table_read (NULL, 0, 0, &record), -ENOENT);
}

int
main (void)
{
  RUN (what_is_written_is_read);
  RUN (a_newer_version_is_told_apart);
  RUN (an_index_that_is_cut_off_anywhere_is_refused);
  RUN (blocks_that_cannot_be_are_refused);
  RUN (garbage_is_refused);
  RUN (an_index_that_is_not_valid_is_not_written);
  RUN (names_are_paths_below_the_store);
  RUN (a_byte_is_found_in_its_block);
  RUN (a_time_is_found_at_the_keyframe_before_it);
  RUN (blocks_without_times_are_not_found_by_time);
  RUN (records_of_a_table_are_read_as_written);
  return tap_done ();
}
