// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/block_bytes.h"

#include <gio/gio.h>

#include "run/clock.h"
#include "store/reading.h"
#include "stores/block_admission.h"

typedef struct {
  StoreBytes parent;
  WeirStoredTitle *title;
  const WeirIndex *index; // of the title
  BlockStream *stream;    // NULL: not counted
} BlockBytes;

typedef struct {
  StoreRegion parent;
  BlockBytes *bytes;
  WeirBlockRequest *request;
  StoreRegionDone done;
  gpointer data;
  GMutex lock; // protects the fields below
  WeirBlock *block;
  GError *error;
} BlockRegion;

static void
on_block (WeirBlock *block, const GError *error, gpointer data)
{
  BlockRegion *self = data;

  g_mutex_lock (&self->lock);
  self->block = block;
  if (error)
    self->error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_FAILED, error->message);
  g_mutex_unlock (&self->lock);
  self->done (self->data);
}

static guint32
find_block (const BlockBytes *self, guint64 at)
{
  return (guint32) MAX (weir_index_find_byte (self->index, at), 0);
}

static StoreRegion *
block_bytes_ask (
    StoreBytes *bytes, guint64 at, gint64 deadline_ns, StoreRegionDone done, gpointer data)
{
  BlockBytes *from = (BlockBytes *) bytes;
  guint32 number = find_block (from, at);
  const WeirIndexBlock *block = &from->index->blocks[number];
  BlockRegion *self = g_new0 (BlockRegion, 1);

  self->parent = (StoreRegion) { bytes->kind, block->offset, block->offset + block->length };
  self->bytes = from;
  store_bytes_ref (bytes);
  self->done = done;
  self->data = data;
  g_mutex_init (&self->lock);
  self->request = weir_block_request (from->title, number, deadline_ns, on_block, self);
  if (from->stream)
    block_admission_note (
        from->stream, number, weir_block_request_began (self->request), weir_now_ns ());
  return &self->parent;
}

static gboolean
block_region_is_ready (StoreRegion *region, GError **error)
{
  BlockRegion *self = (BlockRegion *) region;
  gboolean ready;

  g_mutex_lock (&self->lock);
  ready = self->block != NULL;
  if (self->error && error)
    *error = g_error_copy (self->error);
  g_mutex_unlock (&self->lock);
  return ready;
}

static void
block_region_get (StoreRegion *region, guint64 at, int *fd, off_t *offset, gsize *length)
{
  *fd = weir_block_get_fd (((BlockRegion *) region)->block, offset);
  *offset += (off_t) (at - region->start);
  *length = region->end - at;
}

static void
block_region_free (StoreRegion *region)
{
  BlockRegion *self = (BlockRegion *) region;

  weir_block_request_free (self->request);
  g_clear_pointer (&self->block, weir_block_unref);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  store_bytes_unref (&self->bytes->parent);
  g_free (self);
}

static gboolean
block_bytes_enter (StoreBytes *bytes, guint64 at, GError **error)
{
  BlockBytes *self = (BlockBytes *) bytes;
  const WeirIndex *index = self->index;

  self->stream =
      block_admission_enter (weir_stored_title_get_store (self->title), index->id, bytes->rate,
          index->bytes / MAX (index->n_blocks, 1), find_block (self, at), weir_now_ns (), error);
  return self->stream != NULL;
}

static void
block_bytes_leave (StoreBytes *bytes)
{
  BlockBytes *self = (BlockBytes *) bytes;

  block_admission_leave (g_steal_pointer (&self->stream));
}

static void
block_bytes_free (StoreBytes *bytes)
{
  BlockBytes *self = (BlockBytes *) bytes;

  weir_stored_title_unref (self->title);
  g_free (self);
}

static gchar *
dup_etag (const WeirIndex *index)
{
  GString *tag = g_string_new ("\"");

  for (guint i = 0; i < sizeof index->id; i++)
    g_string_append_printf (tag, "%02x", index->id[i]);
  g_string_append_c (tag, '"');
  return g_string_free (tag, FALSE);
}

StoreBytes *
block_bytes_new (WeirStoredTitle *title)
{
  static const StoreBytesKind kind = { block_bytes_ask, block_region_is_ready, block_region_get,
    block_region_free, block_bytes_enter, block_bytes_leave, block_bytes_free };
  BlockBytes *self = g_new0 (BlockBytes, 1);

  store_bytes_init (&self->parent, &kind);
  self->title = title;
  self->index = weir_stored_title_get_index (title);
  self->parent.size = self->index->bytes;
  self->parent.etag = dup_etag (self->index); // a title never changes
  self->parent.rate = self->index->rate;
  self->parent.slice_ns = self->index->slice_ns;
  return &self->parent;
}
