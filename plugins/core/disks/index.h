// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The index of a title in a block store: what the title is, and where each of its blocks lies.
//
// A title is a stream of bytes, such as an MP4 file or an H.264 elementary stream. It is cut into
// blocks of about one time slice (rate times slice). A block lies in a file of its own, in one or
// two copies on different disks (Y. R. Choe, "Design and Implementation of a Resource-Efficient
// Storage Server for VoD", PhD dissertation, Purdue University, 2007, chapter 4). That file holds
// the block's bytes of the title, and after them the table of the buffers that were written, if
// these had times or flags (disks/table.h).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_INDEX_VERSION 1
#define WEIR_INDEX_COPIES_MAX 2
#define WEIR_INDEX_BLOCKS_MAX (1u << 22)
#define WEIR_INDEX_BLOCK_BYTES_MAX (256u << 20) // of a block's file
#define WEIR_INDEX_NAME_MAX 1024                // bytes of a title's name
#define WEIR_INDEX_NAME_PART_MAX 200            // bytes between two slashes of it
#define WEIR_INDEX_CAPS_MAX (1u << 20)          // bytes of the caps
#define WEIR_INDEX_NO_TIME INT64_MIN

typedef enum {
  WEIR_BLOCK_KEYFRAME = 1 << 0, // begins with a keyframe, so a decoder can start here
} WeirIndexBlockFlags;

typedef struct {
  uint64_t offset;       // of the block's first byte in the title
  uint32_t length;       // bytes of the title in this block
  uint32_t table_length; // bytes of the table of buffers that follows them; 0: no table
  int64_t time_ns;       // stream time of the first buffer, or WEIR_INDEX_NO_TIME
  uint64_t hash;         // XXH3, 64 bits, of the block's file
  uint16_t disks[WEIR_INDEX_COPIES_MAX]; // numbers of the disks that hold the copies
  uint8_t n_copies;                      // 1 or 2
  uint8_t flags;                         // of WeirIndexBlockFlags
} WeirIndexBlock;

typedef struct {
  uint8_t id[16];      // random; names the folders of the blocks
  char *name;          // of the title: a relative path in UTF-8
  char *caps;          // of the stream as text, with its codec data; "" if unknown
  uint64_t rate;       // bits a second, on average
  int64_t slice_ns;    // time slice by which the title was cut
  int64_t duration_ns; // or WEIR_INDEX_NO_TIME
  uint64_t bytes;      // of the title, without tables
  uint32_t n_blocks;
  WeirIndexBlock *blocks;
} WeirIndex;

// Reports whether `name` is a name for a title: a relative path without "..", hidden files, empty
// parts or control characters. Whether it is UTF-8 is not checked.
bool weir_index_is_name (const char *name);

// Writes the index into a new buffer, which the caller frees with free(). Returns 0, or -ENOMEM, or
// -EINVAL if the index is not valid.
int weir_index_write (const WeirIndex *index, uint8_t **bytes, size_t *length);

// Reads an index. Returns 0, -ENOMEM, -EPROTO if its version is newer than WEIR_INDEX_VERSION, or
// -EINVAL. After the last two, `problem` says what is wrong and, if it is not the version, at which
// byte. After an error `index` is empty.
int weir_index_read (WeirIndex *index, const uint8_t *bytes, size_t length, char problem[128]);

// Frees the index's contents.
void weir_index_clear (WeirIndex *index);

// Returns the number of the block that holds byte `offset`, or -1 past the end. O(log n).
int64_t weir_index_find_byte (const WeirIndex *index, uint64_t offset);

// Returns the number of the last block with a keyframe whose time is at or before `time_ns`; the
// first block if there is none. Returns -1 if the title's blocks have no times. O(log n).
int64_t weir_index_find_time (const WeirIndex *index, int64_t time_ns);
