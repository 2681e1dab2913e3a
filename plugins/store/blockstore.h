// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A store of titles in blocks on several disks (core/disks/index.h). A store is a folder:
//
//   store.yaml          id, policy, slice, disks with their numbers
//   titles/NAME.index   the index of title NAME, followed by its XXH3 hash
//   adding/ID           a title that is being added or removed; locked by who does so
//   lock                locked by who changes an index or store.yaml
//   balancing           locked by who balances
//   unbalanced          a balance is due
//
// A disk is a folder, too:
//
//   weir-disk           the store's id and the disk's number
//   blocks/ID/NUMBER    the blocks of the title with that id
//   blocks/ID/index     a copy of its index; its blocks may have moved since
//
// This file opens stores and titles. reading.h reads blocks, writing.h adds titles, upkeep.h
// verifies, repairs, balances and removes.
//
// Call from any thread. Errors are of the domain WEIR_STORE_ERROR and name the file or disk. An
// argument may be NULL only if its comment says so, or if it is an `error`.

#include <glib.h>

#include "disks/index.h"
#include "disks/placement.h"

G_BEGIN_DECLS
#pragma GCC visibility push(default)

#define WEIR_STORE_FILE "store.yaml"
#define WEIR_STORE_DISKS_MAX 1024

#define WEIR_STORE_ERROR (weir_store_error_quark ())
GQuark weir_store_error_quark (void);

typedef enum {
  WEIR_STORE_ERROR_NO_STORE,  // the folder is not a store, or its store.yaml is not valid
  WEIR_STORE_ERROR_NEWER,     // written by a newer version
  WEIR_STORE_ERROR_DISK,      // a disk is missing, used twice, or of another store
  WEIR_STORE_ERROR_NOT_FOUND, // no such title
  WEIR_STORE_ERROR_EXISTS,    // there is a title of that name
  WEIR_STORE_ERROR_NAME,      // not a valid name for a title
  WEIR_STORE_ERROR_NO_SPACE,
  WEIR_STORE_ERROR_CORRUPT, // an index, or all copies of a block, are lost or wrong
  WEIR_STORE_ERROR_FAILED,  // the operating system's reason is in the message
} WeirStoreError;

typedef struct _WeirBlockStore WeirBlockStore;
typedef struct _WeirStoredTitle WeirStoredTitle;

typedef enum {
  WEIR_DISK_THERE,
  WEIR_DISK_MISSING,   // the folder is not there, or has no file weir-disk
  WEIR_DISK_FORBIDDEN, // this user may not read it
  WEIR_DISK_OTHER,     // it is another disk, or one of another store
  WEIR_DISK_FAILING,   // the system reports another error
  WEIR_DISK_SILENT,    // no answer within 10 s
} WeirDiskState;

// Returns a few words, such as "missing".
const gchar *weir_disk_state_name (WeirDiskState state);

typedef struct {
  guint16 number;
  const gchar *path;
  WeirDiskState state;
  gboolean present;                  // state is WEIR_DISK_THERE
  gboolean removing;                 // gets no new blocks; the next balance moves its blocks away
  guint64 bytes, free_bytes, device; // st_dev
} WeirStoreDisk;

// Makes a store in the folder `dir`, which may exist if it is empty. `disks` are paths of existing
// folders; two on one device are accepted with a warning in `*warning` (NULL: none).
gboolean weir_block_store_init (const gchar *dir, const gchar *const *disks,
    WeirPlacementPolicy policy, gint64 slice_ns, gchar **warning, GError **error);

// Parses a time such as "5s" or "500ms". Returns FALSE if it is not one, or out of the range of a
// slice, 100 ms to 60 s.
gboolean weir_block_store_parse_slice (const gchar *text, gint64 *ns);

// Opens the store in `dir`. All users of one store in a process share one object, so that they
// share its disk queues and cached blocks. Returns NULL with an error if it is no store. Missing
// disks are no error.
WeirBlockStore *weir_block_store_open (const gchar *dir, GError **error);
WeirBlockStore *weir_block_store_ref (WeirBlockStore *self);
void weir_block_store_unref (WeirBlockStore *self);

const gchar *weir_block_store_get_path (WeirBlockStore *self);
WeirPlacementPolicy weir_block_store_get_policy (WeirBlockStore *self);
gint64 weir_block_store_get_slice (WeirBlockStore *self);    // ns
const gchar *weir_block_store_get_id (WeirBlockStore *self); // 32 hexadecimal digits

// Returns the number of disks. Waits for none of them.
guint weir_block_store_count_disks (WeirBlockStore *self);

// Stores the disks, at most `n_max`, and returns their number. Looks at each disk, which may
// take 10 s if one hangs. The paths are the store's.
guint weir_block_store_get_disks (WeirBlockStore *self, WeirStoreDisk *disks, guint n_max);

// Returns the path of disk `number`, or NULL if the store has no such disk. Does not block. The
// path is the store's.
const gchar *weir_block_store_get_disk_path (WeirBlockStore *self, guint16 number);

// Calls `found` for each title, in no order, until it returns FALSE. An index that cannot be read
// is passed with an error.
typedef gboolean (*WeirTitleFunc) (
    const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data);
gboolean weir_block_store_list (
    WeirBlockStore *self, WeirTitleFunc found, gpointer data, GError **error);

// Opens a title. Reads its index, which may block on a disk. Users of an unchanged title share one
// object. Disks that were added meanwhile are known afterwards.
WeirStoredTitle *weir_block_store_open_title (
    WeirBlockStore *self, const gchar *name, GError **error);
WeirStoredTitle *weir_stored_title_ref (WeirStoredTitle *self);
void weir_stored_title_unref (WeirStoredTitle *self);
const WeirIndex *weir_stored_title_get_index (WeirStoredTitle *self); // constant
WeirBlockStore *weir_stored_title_get_store (WeirStoredTitle *self);  // no new reference

// Stores where a block lies now, which differs from the title's index if a copy was moved after the
// title was opened: a reader that does not find a copy asks so. Reads the index if it has changed,
// which may block. Returns the number of copies, 0 with an error if the title is gone.
guint weir_stored_title_find_copies (
    WeirStoredTitle *self, guint32 number, guint16 disks[WEIR_INDEX_COPIES_MAX], GError **error);

// Returns the path of a copy of a block. (transfer full) NULL if the store has no such disk.
gchar *weir_stored_title_dup_block_path (WeirStoredTitle *self, guint32 number, guint16 disk);

#pragma GCC visibility pop
G_END_DECLS
