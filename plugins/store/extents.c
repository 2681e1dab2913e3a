// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/extents.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEPS 8 // size classes between two powers of two, so at most an eighth is wasted

gboolean
weir_extents_init (WeirExtents *self)
{
  memset (self, 0, sizeof *self);
  self->fd = memfd_create ("weir-store", MFD_CLOEXEC);
  return self->fd >= 0;
}

void
weir_extents_clear (WeirExtents *self)
{
  weir_extents_drop (self, weir_extents_trim (self, 0));
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

// Returns the size class of `bytes`, and its size.
static guint
class_of (gsize bytes, gsize *size)
{
  const gsize pages = MAX ((bytes + WEIR_EXTENT_ALIGN - 1) / WEIR_EXTENT_ALIGN, 1);
  guint bits = g_bit_storage (pages - 1); // pages <= 1 << bits
  gsize step, n;

  if (bits <= 3) {
    *size = pages * WEIR_EXTENT_ALIGN;
    return (guint) pages - 1;
  }
  step = (gsize) 1 << (bits - 4);                            // an eighth of the lower power of two
  n = (pages - ((gsize) 1 << (bits - 1)) + step - 1) / step; // 1 to 8
  *size = (((gsize) 1 << (bits - 1)) + n * step) * WEIR_EXTENT_ALIGN;
  return STEPS + (bits - 4) * STEPS + (guint) n - 1;
}

WeirExtent *
weir_extents_take (WeirExtents *self, gsize bytes)
{
  gsize size;
  const guint class = class_of (bytes, &size);
  WeirExtent *extent = self->free[class];

  if (!extent)
    return NULL;
  self->free[class] = extent->next;
  extent->next = NULL;
  self->free_bytes -= size;
  self->used_bytes += size;
  return extent;
}

WeirExtent *
weir_extents_add (WeirExtents *self, gsize bytes, GMutex *lock)
{
  WeirExtent *extent = g_new0 (WeirExtent, 1);

  class_of (bytes, &extent->size);
  extent->offset = self->end;
  if (ftruncate (self->fd, self->end + (off_t) extent->size) == 0)
    extent->bytes =
        mmap (NULL, extent->size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, extent->offset);
  if (!extent->bytes || extent->bytes == MAP_FAILED) {
    g_free (extent);
    return NULL;
  }
  g_mutex_lock (lock);
  self->end += (off_t) extent->size;
  self->used_bytes += extent->size;
  g_mutex_unlock (lock);
  return extent;
}

WeirExtent *
weir_extents_put (WeirExtents *self, WeirExtent *extent, guint64 keep_bytes)
{
  gsize size;
  const guint class = class_of (extent->size, &size);

  self->used_bytes -= size;
  if (self->free_bytes + size > keep_bytes)
    return extent;
  extent->next = self->free[class];
  self->free[class] = extent;
  self->free_bytes += size;
  return NULL;
}

WeirExtent *
weir_extents_trim (WeirExtents *self, guint64 keep_bytes)
{
  WeirExtent *list = NULL;

  for (guint i = WEIR_EXTENT_CLASSES; i-- > 0;) {
    while (self->free[i] && self->free_bytes > keep_bytes) {
      WeirExtent *extent = self->free[i];

      self->free[i] = extent->next;
      self->free_bytes -= extent->size;
      extent->next = list;
      list = extent;
    }
  }
  return list;
}

void
weir_extents_drop (WeirExtents *self, WeirExtent *list)
{
  while (list) {
    WeirExtent *extent = list;

    list = extent->next;
    munmap (extent->bytes, extent->size);
    fallocate (
        self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, extent->offset, (off_t) extent->size);
    g_free (extent);
  }
}
