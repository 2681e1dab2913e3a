// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of the library share.

#include "store/blockstore.h"
#include "store/remote.h"
#include "store/storefile.h"

G_BEGIN_DECLS

typedef struct {
  guint16 number;
  gchar *path;
  gboolean removing;
  gboolean gone; // no longer in store.yaml
} StoreDisk;

// How a title of a remote store is read (remote.h).
typedef struct {
  gint refs; // atomic: of the title, and of each block that is being read
  const WeirRemoteKind *kind;
  gpointer data;
} WeirRemote;

struct _WeirBlockStore {
  gint refs; // changed under the lock of all stores
  gchar *path;
  gchar id[33];
  WeirPlacementPolicy policy;
  gint64 slice_ns;
  gboolean is_remote; // has no folder

  GMutex lock;          // for what follows
  GPtrArray *disks;     // of StoreDisk; grows only
  GPtrArray *old_paths; // of disks whose path was changed, as users may still have them
  GHashTable *titles;   // name: WeirStoredTitle, without references
  gint64 file_stamp[3]; // of store.yaml as it was read last
  gpointer reader;      // of reading.c, made at the first read
  GDestroyNotify free_reader;
};

struct _WeirStoredTitle {
  gint refs; // changed under the store's lock
  WeirBlockStore *store;
  WeirIndex index;
  gint64 stamp[3];    // of the index's file
  WeirRemote *remote; // NULL: the title lies on disks
};

// Makes a store of what its store.yaml says.
WeirBlockStore *store_new (const gchar *path, const WeirStoreFile *file);

// Returns the open title of the same name and stamp in place of this one, which is freed then, or
// this one, which is found from now on. (transfer full)
WeirStoredTitle *store_share_title (WeirStoredTitle *self);

// NULL is allowed.
WeirRemote *weir_remote_ref (WeirRemote *self);
void weir_remote_unref (WeirRemote *self);

// Reads store.yaml again if it has changed.
void store_refresh (WeirBlockStore *self);

// Locks the store against other processes and threads that change an index or store.yaml. Returns a
// descriptor, whose close() unlocks, or -1.
int store_lock (WeirBlockStore *self, GError **error);

// Stores what changes with a file; zeros if there is none.
void store_get_stamp (const gchar *path, gint64 stamp[3]);

// Reports whether the disk is being removed, or was. Does not block.
gboolean store_is_leaving (WeirBlockStore *self, guint16 number);

// Reports whether reads wait for the disk or are in progress there. Does not block.
gboolean store_reader_needs (WeirBlockStore *self, guint16 number);

// Counts a copy that was moved in the background.
void store_reader_count_move (WeirBlockStore *self, guint16 from, guint16 to);

// Reports whether the store's reader avoids a disk, because it fails or hangs. Does not block.
gboolean store_reader_avoids (WeirBlockStore *self, guint16 number);

// Writes the id as 32 hexadecimal digits.
void store_print_id (const guint8 id[16], gchar text[33]);

// Returns the path of a file of the store or of a disk. (transfer full)
gchar *store_index_path (WeirBlockStore *self, const gchar *name);
gchar *store_adding_path (WeirBlockStore *self, const gchar *id, const gchar *suffix);
gchar *store_blocks_path (const gchar *disk, const gchar *id);

// Reads the index of a title into `index`, which the caller clears, and stores the file's stamp.
gboolean store_read_index (
    WeirBlockStore *self, const gchar *name, WeirIndex *index, gint64 stamp[3], GError **error);

// Writes an index durably. The store is locked. The name's folders are made.
gboolean store_write_index (WeirBlockStore *self, const WeirIndex *index, GError **error);

// The same of one file, without regard to its name and place. The folder is not synchronised.
gboolean store_read_index_file (const gchar *path, WeirIndex *index, GError **error);
gboolean store_write_index_file (
    const gchar *path, const gchar *part, const WeirIndex *index, GError **error);

// Makes the folders of the store that are missing.
gboolean store_make_folders (WeirBlockStore *self, GError **error);

// Checks a name for a title.
gboolean store_check_name (const gchar *name, GError **error);

G_END_DECLS
