// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/file_stamp.h"

#include <glib/gstdio.h>
#include <string.h>

FileStamp
file_stamp_take (const gchar *path)
{
  GStatBuf info;

  if (!path || g_stat (path, &info) < 0)
    return (FileStamp) { 0 };
  return (FileStamp) { (gint64) info.st_dev, (gint64) info.st_ino, info.st_size,
    info.st_mtim.tv_sec, info.st_mtim.tv_nsec };
}

gboolean
file_stamp_equal (const FileStamp *a, const FileStamp *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}
