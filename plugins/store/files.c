// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/files.h"

#include "store/blockstore.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <unistd.h>

gboolean
weir_files_fail (GError **error, int number, const gchar *what, const gchar *path)
{
  gboolean full = number == ENOSPC || number == EDQUOT;

  g_set_error (error, WEIR_STORE_ERROR, full ? WEIR_STORE_ERROR_NO_SPACE : WEIR_STORE_ERROR_FAILED,
      "%s: cannot %s: %s", path, what, g_strerror (number));
  return FALSE;
}

gboolean
weir_files_sync_folder (const gchar *path, GError **error)
{
  int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), problem = 0;

  // A file system that cannot synchronise a folder says EINVAL.
  if (fd < 0 || (fsync (fd) < 0 && errno != EINVAL))
    problem = errno;
  if (fd >= 0)
    close (fd);
  return problem == 0 || weir_files_fail (error, problem, "synchronise the folder", path);
}

gboolean
weir_files_make_folders (const gchar *top, const gchar *path, GError **error)
{
  g_autofree gchar *parent = NULL;

  if (g_str_equal (top, path) || g_file_test (path, G_FILE_TEST_IS_DIR))
    return TRUE;
  parent = g_path_get_dirname (path);
  if (!weir_files_make_folders (top, parent, error))
    return FALSE;
  if (g_mkdir (path, 0777) < 0 && errno != EEXIST)
    return weir_files_fail (error, errno, "make the folder", path);
  return weir_files_sync_folder (parent, error);
}

// Returns 0 or an errno.
static int
write_all (int fd, const guint8 *bytes, gsize length)
{
  while (length > 0) {
    gssize n = write (fd, bytes, length);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? errno : EIO;
    bytes += n;
    length -= (gsize) n;
  }
  return 0;
}

gboolean
weir_files_write (
    const gchar *path, const gchar *temporary, const guint8 *bytes, gsize length, GError **error)
{
  int fd = open (temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), problem;

  if (fd < 0)
    return weir_files_fail (error, errno, "write", temporary);
  problem = write_all (fd, bytes, length);
  if (problem == 0 && fsync (fd) < 0)
    problem = errno;
  // What was written is not read soon.
  if (problem == 0)
    posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
  if (close (fd) < 0 && problem == 0)
    problem = errno;
  if (problem == 0 && rename (temporary, path) < 0)
    problem = errno;
  if (problem == 0)
    return TRUE;
  unlink (temporary);
  return weir_files_fail (error, problem, "write", path);
}

int
weir_files_lock (const gchar *path, gboolean wait, GError **error)
{
  int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), result;

  if (fd < 0) {
    weir_files_fail (error, errno, "open", path);
    return -1;
  }
  do
    result = flock (fd, LOCK_EX | (wait ? 0 : LOCK_NB));
  while (result < 0 && errno == EINTR);
  if (result == 0)
    return fd;
  result = errno;
  close (fd);
  if (!wait && result == EWOULDBLOCK)
    return -2;
  weir_files_fail (error, result, "lock", path);
  return -1;
}

guint
weir_files_remove_folder (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  const gchar *name;
  guint n = 0;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *file = g_build_filename (path, name, NULL);

    n += unlink (file) == 0;
  }
  if (dir)
    g_dir_close (dir);
  rmdir (path);
  return n;
}
