// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/balancing.h"

#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define WAIT_MS 50

// Bytes of the file that are locked.
enum { TURN, WANTED };

// Returns 0 or an errno. The lock is that of the descriptor, so it also excludes other threads.
static int
lock_byte (int fd, off_t byte)
{
  struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

  return fcntl (fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

gboolean
balancing_is_wanted (int turn)
{
  struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = WANTED, .l_len = 1 };

  return fcntl (turn, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Waits as long as `cancellable` is not cancelled.
static gboolean
wait_a_little (GCancellable *cancellable, GError **error)
{
  GPollFD poll;
  gboolean can = g_cancellable_make_pollfd (cancellable, &poll);

  g_poll (&poll, can, WAIT_MS);
  if (can)
    g_cancellable_release_fd (cancellable);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static gboolean
set_balance_error (WeirBlockStore *store, int problem, GError **error)
{
  if (problem != EAGAIN && problem != EACCES)
    return weir_files_fail (error, problem, "lock the file balancing of", store->path);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "store %s is being balanced by another program",
      store->path);
  return FALSE;
}

static gboolean
take_turn (
    WeirBlockStore *store, int fd, gboolean background, GCancellable *cancellable, GError **error)
{
  int problem = background ? 0 : lock_byte (fd, WANTED);

  if (problem == 0 && background && balancing_is_wanted (fd))
    problem = EAGAIN;
  if (problem != 0)
    return set_balance_error (store, problem, error);
  while ((problem = lock_byte (fd, TURN)) != 0) {
    if (background || (problem != EAGAIN && problem != EACCES))
      return set_balance_error (store, problem, error);
    if (!wait_a_little (cancellable, error))
      return FALSE;
  }
  return TRUE;
}

int
balancing_begin (
    WeirBlockStore *store, gboolean background, GCancellable *cancellable, GError **error)
{
  g_autofree gchar *path = g_build_filename (store->path, "balancing", NULL);
  int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

  if (fd < 0) {
    weir_files_fail (error, errno, "open", path);
    return -1;
  }
  if (take_turn (store, fd, background, cancellable, error))
    return fd;
  close (fd);
  return -1;
}

// ---- what is due ----

static gchar *
due_path (WeirBlockStore *store)
{
  return g_build_filename (store->path, "unbalanced", NULL);
}

gboolean
balancing_set_due (WeirBlockStore *store, GError **error)
{
  g_autofree gchar *path = due_path (store), *part = g_strconcat (path, ".part", NULL);

  return weir_files_write (path, part, NULL, 0, error)
         && weir_files_sync_folder (store->path, error);
}

void
balancing_clear_due (WeirBlockStore *store)
{
  g_autofree gchar *path = due_path (store);

  unlink (path);
}

gboolean
balancing_is_due (WeirBlockStore *store, gint64 stamp[3])
{
  g_autofree gchar *path = due_path (store);

  store_get_stamp (path, stamp);
  return stamp[0] != 0;
}
