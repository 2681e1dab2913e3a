// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Copies of blocks: reads, writes and removes single files of blocks, past the queues of reading.h.

#include "store/blockstore_private.h"

G_BEGIN_DECLS

// Writes a copy durably; the folder is synchronised if `sync_folder`.
gboolean copies_write (WeirBlockStore *store, const gchar *id, guint32 number, guint16 disk,
    const guint8 *bytes, gsize length, gboolean sync_folder, GError **error);

// Writes one durably to the disk at the path `disk`, of which it is not known whether it hangs. The
// folder of the title's blocks is not synchronised.
gboolean copies_write_to (const gchar *disk, const gchar *id, guint32 number, const guint8 *bytes,
    gsize length, GError **error);

// Reads a copy from the disk, not from the page cache, and checks its length and hash. Returns its
// bytes (transfer full), or NULL.
guint8 *copies_read (WeirBlockStore *store, const gchar *id, guint32 number,
    const WeirIndexBlock *block, guint16 disk, GError **error);

void copies_remove (WeirBlockStore *store, const gchar *id, guint32 number, guint16 disk);

// Returns the path of the copy of a title's index on a disk. (transfer full)
gchar *copies_index_path (const gchar *disk, const gchar *id);

// Writes a copy of the index beside the title's blocks. The folder is not synchronised.
gboolean copies_write_index (const gchar *disk, const WeirIndex *index, GError **error);

// Does so on a disk of the store that has none yet.
gboolean copies_add_index (
    WeirBlockStore *store, const WeirIndex *index, guint16 disk, GError **error);

// Removes it, and the folder of the title's blocks if that is empty then.
void copies_remove_index (WeirBlockStore *store, const gchar *id, guint16 disk);

// Makes the folders of a title's blocks durable on the disk.
gboolean copies_sync (WeirBlockStore *store, const gchar *id, guint16 disk, GError **error);

G_END_DECLS
