// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tells whether a file has been replaced or written.

#include <glib.h>

typedef struct {
  gint64 device, inode, size, seconds, nanoseconds; // all 0: there is no file
} FileStamp;

// `path` may be NULL.
FileStamp file_stamp_take (const gchar *path);
gboolean file_stamp_equal (const FileStamp *a, const FileStamp *b);
