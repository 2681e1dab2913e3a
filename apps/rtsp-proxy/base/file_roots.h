// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The folders below which API clients may name files and folders: `file-roots` of the
// configuration. Whoever may use the API could otherwise read every file that the proxy can. Call
// from any thread.

#include <glib.h>

// Sets the folders, which are copied; NULL: none. A file that was named below a former folder
// cannot be opened any more.
void file_roots_set (gchar *const *roots);

// Opens a file or folder that an API client has named, as open() with O_CLOEXEC does. Symbolic
// links on the way stay below the folder. Returns a file descriptor that the caller owns, or -1
// with errno: EPERM, it is not below one of the folders; EXDEV, it or a link leads out.
int file_roots_open (const gchar *path, int flags);

// Checks a path that an API client names, before anything else is done with it. Returns NULL, or an
// error message that the caller owns.
gchar *file_roots_check (const gchar *path);

// Returns what file_roots_open() means by this errno. (transfer full)
gchar *file_roots_dup_error (const gchar *path, int error);

// Returns a path that means the open file or folder, as long as it is open, for code that takes
// paths only. If `fd` is -1, no file has that path. (transfer full)
gchar *file_roots_dup_name (int fd);
