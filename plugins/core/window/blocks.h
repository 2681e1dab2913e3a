// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where the packets of a window lie: blocks of one size, from memory or from a file. A block goes
// back to where it came from when nobody has it any more.
//
// The file has no name: it goes with its last block, and nobody can remove or cut it meanwhile. It
// is mapped, so what is read of it is in memory or comes there, and what does not fit into memory
// the system writes out. Who writes to it may wait for the disk, then. Its place on the disk is
// taken before it is used: writing to a map can't fail in a way to be survived.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_BLOCK_BYTES (256 * 1024)

typedef struct weir_block WeirBlock;
typedef struct weir_block_file WeirBlockFile;

struct weir_block {
  uint8_t *data; // WEIR_BLOCK_BYTES
  atomic_uint refs;
  WeirBlockFile *file; // NULL: memory
  WeirBlock *next;     // in the file's list
  bool is_last;        // in its piece of the file
};

// A file in this folder, open for reading and writing. -errno, if there can't be one.
int weir_spill_open (const char *dir);

// The bytes from `offset` on, which the file is to have from now on. NULL, if the disk is full.
uint8_t *weir_spill_map (int fd, int64_t offset, size_t size);

// NULL and errno, if there can't be one.
WeirBlockFile *weir_block_file_new (const char *dir);
void weir_block_file_unref (WeirBlockFile *file); // NULL is fine
WeirBlockFile *weir_block_file_ref (WeirBlockFile *file);

// A block of it was asked for and there was none, since this was asked last. For the thread that
// makes blocks.
bool weir_block_file_was_full (WeirBlockFile *file); // NULL is fine

// NULL: the disk is full, or there is no memory. One thread at a time may make blocks of one file;
// references are for all.
WeirBlock *weir_block_new (WeirBlockFile *file);
WeirBlock *weir_block_ref (WeirBlock *block);
void weir_block_unref (WeirBlock *block); // NULL is fine

// Has the block that probably follows this one read from the file. Nothing, if there is no file.
void weir_block_read_ahead (const WeirBlock *block);
