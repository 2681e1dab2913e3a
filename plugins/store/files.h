// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Files that survive a crash of the program or of the system. Errors are WEIR_STORE_ERROR_FAILED,
// or WEIR_STORE_ERROR_NO_SPACE, and name the path.

#include <glib.h>

G_BEGIN_DECLS

// Sets an error with the system's reason, for errno `number`, and returns FALSE.
gboolean weir_files_fail (GError **error, int number, const gchar *what, const gchar *path);

// Makes the entries of a folder durable.
gboolean weir_files_sync_folder (const gchar *path, GError **error);

// Makes the folder `path` and its parents below `top`, durably.
gboolean weir_files_make_folders (const gchar *top, const gchar *path, GError **error);

// Writes a file under the name `temporary`, makes it durable, and renames it to `path`, whose
// folder must be of the same file system. The folder is not synchronised.
gboolean weir_files_write (
    const gchar *path, const gchar *temporary, const guint8 *bytes, gsize length, GError **error);

// Opens `path`, made if necessary, and locks it against other processes and threads. Waits, or
// returns -2 without an error if `wait` is FALSE and it is locked. Returns a descriptor, whose
// close() unlocks, or -1.
int weir_files_lock (const gchar *path, gboolean wait, GError **error);

// Removes a folder with its files, and returns the number of these. Folders in it stay.
guint weir_files_remove_folder (const gchar *path);

G_END_DECLS
