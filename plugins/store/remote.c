// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/remote.h"

#include "store/blockstore_private.h"

#include <string.h>

WeirRemote *
weir_remote_ref (WeirRemote *self)
{
  if (self)
    g_atomic_int_inc (&self->refs);
  return self;
}

void
weir_remote_unref (WeirRemote *self)
{
  if (!self || !g_atomic_int_dec_and_test (&self->refs))
    return;
  self->kind->free (self->data);
  g_free (self);
}

WeirBlockStore *
weir_block_store_new_remote (const gchar *const *places, const gchar *cache, gint64 slice_ns)
{
  WeirStoreFile file = { .policy = WEIR_PLACEMENT_RAID1, .slice_ns = slice_ns };
  WeirStoreFileDisk disk = { .number = WEIR_REMOTE_CACHE, .path = (gchar *) cache };
  WeirBlockStore *self;

  file.disks = g_array_new (FALSE, TRUE, sizeof disk);
  g_array_append_val (file.disks, disk);
  for (guint i = 0; places[i]; i++) {
    disk = (WeirStoreFileDisk) { .number = (guint16) (i + 1), .path = (gchar *) places[i] };
    g_array_append_val (file.disks, disk);
  }
  self = store_new (places[0], &file);
  self->is_remote = TRUE;
  g_array_unref (file.disks);
  return self;
}

gboolean
weir_block_store_is_remote (WeirBlockStore *self)
{
  return self->is_remote;
}

WeirStoredTitle *
weir_block_store_open_remote (
    WeirBlockStore *self, WeirIndex *index, const WeirRemoteKind *kind, gpointer data)
{
  WeirStoredTitle *title = g_new0 (WeirStoredTitle, 1);

  title->refs = 1;
  title->index = *index;
  memset (index, 0, sizeof *index);
  memcpy (title->stamp, title->index.id, sizeof title->index.id);
  title->remote = g_new (WeirRemote, 1);
  *title->remote = (WeirRemote) { 1, kind, data };
  title->store = weir_block_store_ref (self);
  return store_share_title (title);
}
