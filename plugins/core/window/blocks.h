// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The memory of a window: blocks from the heap, or of one size from a mapped file. When its last
// reference is dropped, a block returns to the heap or to the file.
//
// The file has no name: it disappears with its last block, and no one can remove or truncate it
// meanwhile. The system writes out pages that do not fit into memory, so a writer may wait for the
// disk. Disk space is reserved before it is used, because a failed write to a map cannot be
// handled.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_BLOCK_BYTES_MIN (4 * 1024)
#define WEIR_BLOCK_BYTES (256 * 1024) // the largest block, and every block of a file

typedef struct weir_window_block WeirWindowBlock;
typedef struct weir_block_file WeirBlockFile;

struct weir_window_block {
  uint8_t *data;
  size_t size; // of `data` in bytes
  atomic_uint refs;
  WeirBlockFile *file;   // NULL: memory
  WeirWindowBlock *next; // next in the file's list of unused blocks
  bool is_last;          // the last block of its mapping
};

// Opens an unnamed file for reading and writing in the folder `dir`. Returns the file descriptor or
// a negative errno.
int weir_spill_open (const char *dir);

// Reserves `size` bytes of the file at `offset` and maps them. Returns NULL if the disk is full or
// the mapping fails.
uint8_t *weir_spill_map (int fd, int64_t offset, size_t size);

// Creates a file in the folder `dir`. Returns NULL with errno on error. The caller owns the result.
WeirBlockFile *weir_block_file_new (const char *dir);
void weir_block_file_unref (WeirBlockFile *file); // NULL is fine
WeirBlockFile *weir_block_file_ref (WeirBlockFile *file);

// Reports whether a block was refused since the last call, because the disk is full. For the thread
// that makes blocks.
bool weir_block_file_was_full (WeirBlockFile *file); // NULL is fine

// weir_window_block_new() returns a block of `size` bytes of memory, or NULL if there is no memory.
// weir_window_block_new_in() returns a block of `file`, or NULL if the file has no room; one thread
// at a time may make blocks of one file. References may be taken and dropped from any thread.
WeirWindowBlock *weir_window_block_new (size_t size);
WeirWindowBlock *weir_window_block_new_in (WeirBlockFile *file);
WeirWindowBlock *weir_window_block_ref (WeirWindowBlock *block);
void weir_window_block_unref (WeirWindowBlock *block); // NULL is fine

// Tells the kernel to read ahead in the file: the block that probably follows this one. Does
// nothing for a block in memory.
void weir_window_block_read_ahead (const WeirWindowBlock *block);
