// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BLOCKS 16 // most blocks by which the file grows at once; else it doubles

typedef struct chunk Chunk;
struct chunk {
  Chunk *next;
  uint8_t *data;
  size_t n;
  WeirWindowBlock blocks[];
};

struct weir_block_file {
  atomic_uint refs; // each block in use holds one
  int fd;
  Chunk *chunks; // used only by the thread that makes blocks
  size_t n_blocks;
  bool was_full;

  pthread_mutex_t lock;
  WeirWindowBlock *first, *last; // unused blocks, in the order in which they became unused
};

// ---- the file ----

// Without O_TMPFILE in this file system, a named file is made and unlinked.
int
weir_spill_open (const char *dir)
{
  int fd = open (dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  char *name;

  if (fd >= 0)
    return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR)
    return -errno;
  if (asprintf (&name, "%s/weir-spill-XXXXXX", dir) < 0)
    return -ENOMEM;
  fd = mkostemp (name, O_CLOEXEC);
  if (fd < 0)
    fd = -errno;
  else
    unlink (name);
  free (name);
  return fd;
}

uint8_t *
weir_spill_map (int fd, int64_t offset, size_t size)
{
  void *data;

  if (posix_fallocate (fd, offset, (off_t) size) != 0)
    return NULL;
  data = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  return data == MAP_FAILED ? NULL : data;
}

WeirBlockFile *
weir_block_file_new (const char *dir)
{
  WeirBlockFile *file = calloc (1, sizeof *file);

  if (!file)
    return NULL;
  file->fd = weir_spill_open (dir);
  if (file->fd < 0) {
    errno = -file->fd;
    free (file);
    return NULL;
  }
  atomic_init (&file->refs, 1);
  pthread_mutex_init (&file->lock, NULL);
  return file;
}

WeirBlockFile *
weir_block_file_ref (WeirBlockFile *file)
{
  atomic_fetch_add_explicit (&file->refs, 1, memory_order_relaxed);
  return file;
}

void
weir_block_file_unref (WeirBlockFile *file)
{
  Chunk *chunk;

  if (!file || atomic_fetch_sub_explicit (&file->refs, 1, memory_order_acq_rel) != 1)
    return;
  while ((chunk = file->chunks)) {
    file->chunks = chunk->next;
    munmap (chunk->data, chunk->n * WEIR_BLOCK_BYTES);
    free (chunk);
  }
  close (file->fd);
  pthread_mutex_destroy (&file->lock);
  free (file);
}

bool
weir_block_file_was_full (WeirBlockFile *file)
{
  bool was_full = file && file->was_full;

  if (file)
    file->was_full = false;
  return was_full;
}

// ---- its blocks ----

static void
add_unused (WeirBlockFile *file, WeirWindowBlock *block)
{
  block->next = NULL;
  pthread_mutex_lock (&file->lock);
  if (file->last)
    file->last->next = block;
  else
    file->first = block;
  file->last = block;
  pthread_mutex_unlock (&file->lock);
}

static WeirWindowBlock *
take_unused (WeirBlockFile *file)
{
  WeirWindowBlock *block;

  pthread_mutex_lock (&file->lock);
  block = file->first;
  if (block)
    file->first = block->next;
  if (!file->first)
    file->last = NULL;
  pthread_mutex_unlock (&file->lock);
  return block;
}

static void
file_grow (WeirBlockFile *file)
{
  size_t n = file->n_blocks < 1 ? 1 : file->n_blocks < CHUNK_BLOCKS ? file->n_blocks : CHUNK_BLOCKS;
  Chunk *chunk = calloc (1, sizeof *chunk + n * sizeof *chunk->blocks);

  if (!chunk)
    return;
  chunk->data = weir_spill_map (
      file->fd, (int64_t) (file->n_blocks * WEIR_BLOCK_BYTES), n * WEIR_BLOCK_BYTES);
  if (!chunk->data) {
    free (chunk);
    return;
  }
  chunk->n = n;
  chunk->next = file->chunks;
  file->chunks = chunk;
  file->n_blocks += n;
  for (size_t i = 0; i < n; i++) {
    chunk->blocks[i] = (WeirWindowBlock) {
      .data = chunk->data + i * (size_t) WEIR_BLOCK_BYTES,
      .size = WEIR_BLOCK_BYTES,
      .file = file,
      .is_last = i == n - 1,
    };
    add_unused (file, &chunk->blocks[i]);
  }
}

WeirWindowBlock *
weir_window_block_new_in (WeirBlockFile *file)
{
  WeirWindowBlock *block = take_unused (file);

  if (!block) {
    file_grow (file);
    block = take_unused (file);
  }
  if (!block) {
    file->was_full = true;
    return NULL;
  }
  atomic_store_explicit (&block->refs, 1, memory_order_relaxed);
  weir_block_file_ref (file);
  return block;
}

WeirWindowBlock *
weir_window_block_new (size_t size)
{
  WeirWindowBlock *block = malloc (sizeof *block + size);

  if (!block)
    return NULL;
  *block = (WeirWindowBlock) { .data = (uint8_t *) (block + 1), .size = size };
  atomic_init (&block->refs, 1);
  return block;
}

WeirWindowBlock *
weir_window_block_ref (WeirWindowBlock *block)
{
  atomic_fetch_add_explicit (&block->refs, 1, memory_order_relaxed);
  return block;
}

void
weir_window_block_unref (WeirWindowBlock *block)
{
  WeirBlockFile *file;

  if (!block || atomic_fetch_sub_explicit (&block->refs, 1, memory_order_acq_rel) != 1)
    return;
  file = block->file;
  if (!file) {
    free (block);
    return;
  }
  add_unused (file, block);
  weir_block_file_unref (file);
}

void
weir_window_block_read_ahead (const WeirWindowBlock *block)
{
  if (block->file && !block->is_last)
    madvise (block->data + WEIR_BLOCK_BYTES, WEIR_BLOCK_BYTES, MADV_WILLNEED);
}
