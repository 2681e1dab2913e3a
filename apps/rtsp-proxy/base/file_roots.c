// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/file_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"

static GMutex lock;
static GStrv current; // use with `lock` held; NULL: none

void
file_roots_set (gchar *const *roots)
{
  g_mutex_lock (&lock);
  g_strfreev (current);
  current = g_strdupv ((gchar **) roots);
  g_mutex_unlock (&lock);
}

// Returns the path below `root`, "" for the root itself, or NULL if it is not below. (transfer
// none)
static const gchar *
get_rest (const gchar *root, const gchar *path)
{
  gsize len = strlen (root);

  while (len > 0 && root[len - 1] == '/')
    len--;
  if (strncmp (root, path, len) != 0 || (path[len] && path[len] != '/'))
    return NULL;
  return path + len + strspn (path + len, "/");
}

// Returns the first folder that the path is below, and the rest of the path; NULL: none. (transfer
// full)
static gchar *
dup_root (const gchar *path, const gchar **rest)
{
  gchar *root = NULL;

  g_mutex_lock (&lock);
  for (gchar **each = current; each && *each && !root; each++) {
    *rest = get_rest (*each, path);
    if (*rest)
      root = g_strdup (*each);
  }
  g_mutex_unlock (&lock);
  return root;
}

// Opens `rest` below the folder `root`.
static int
open_below (const gchar *root, const gchar *rest, int flags)
{
  int folder = open (root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd, error;

  if (folder < 0)
    return -1;
  fd = beneath_open_any (folder, *rest ? rest : ".", flags);
  error = errno;
  close (folder);
  errno = error;
  return fd;
}

int
file_roots_open (const gchar *path, int flags)
{
  // Without "." and "..", and without slashes at the end.
  gchar *plain = g_path_is_absolute (path) ? g_canonicalize_filename (path, NULL) : NULL;
  const gchar *rest;
  gchar *root = plain ? dup_root (plain, &rest) : NULL;
  int fd = -1, error = EPERM;

  if (root) {
    fd = open_below (root, rest, flags);
    error = errno;
  }
  g_free (root);
  g_free (plain);
  errno = error;
  return fd;
}

static gboolean
has_roots (void)
{
  gboolean has;

  g_mutex_lock (&lock);
  has = current && *current;
  g_mutex_unlock (&lock);
  return has;
}

gchar *
file_roots_dup_error (const gchar *path, int error)
{
  if (error == EPERM && !has_roots ())
    return g_strdup ("API clients may not name files here; list the folders that they may use in "
                     "`file-roots` of the configuration");
  if (error == EPERM)
    return g_strdup_printf (
        "%s is below no folder of `file-roots` of the configuration, which lists "
        "the folders that API clients may use",
        path);
  if (error == EXDEV || error == ELOOP) // ELOOP: a link of /proc, too
    return g_strdup_printf ("%s leads out of its folder of `file-roots`, or in a circle", path);
  return g_strdup_printf ("cannot open %s: %s", path, g_strerror (error));
}

gchar *
file_roots_check (const gchar *path)
{
  int fd = file_roots_open (path, O_PATH);
  const int error = errno;

  if (fd < 0)
    return file_roots_dup_error (path, error);
  close (fd);
  return NULL;
}

gchar *
file_roots_dup_name (int fd)
{
  return g_strdup_printf ("/proc/self/fd/%d", fd);
}
