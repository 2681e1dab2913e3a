// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The files that add is to add.

#include "store/blockstore.h"

typedef struct {
  gchar *path, *name;
  guint64 bytes, bytes_after; // of the file, and of all files after it
} AddFile;

// Returns the files (AddFile, transfer full) that the words name, with all files of folders, by
// name. Hidden files and folders in folders are left out, and symbolic links to folders not
// followed. `name` is NULL, or the name of the only file.
GArray *files_find (gchar **words, const gchar *name, GError **error);

// Checks before anything is written that no title has two files, and that all files together have
// room. Files that are empty, or whose name is taken or not valid, are reported, counted and taken
// out of the array.
gboolean files_check (WeirBlockStore *store, GArray *files, guint *n_refused, GError **error);
