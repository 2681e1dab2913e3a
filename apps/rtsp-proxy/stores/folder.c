// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file_roots.h"
#include "base/log.h"
#include "stores/file_bytes.h"

typedef struct {
  Store parent;
  gchar *path;
  gboolean is_limited; // see folder_new()
} Folder;

// Sets an error of errno about a title. A refusal is logged.
static void
set_title_error (Folder *self, const gchar *name, GError **error)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };
  const int reason = errno;
  const gchar *refusal = reason == EXDEV ? "a link leads out of the folder in which it lies"
                         : reason == EPERM && self->is_limited
                             ? "the folder is not below `file-roots`"
                             : NULL;

  g_set_error (error, G_IO_ERROR, (gint) g_io_error_from_errno (reason), "%s: %s", name,
      refusal ? refusal : g_strerror (reason));
  if (refusal)
    log_event_limited (&limit, "title refused: %s in %s: %s", name, self->path, refusal);
}

static int
open_itself (Folder *self, int flags)
{
  return self->is_limited ? file_roots_open (self->path, flags | O_DIRECTORY)
                          : open (self->path, flags | O_DIRECTORY | O_CLOEXEC);
}

static int
open_title (Folder *self, const gchar *name)
{
  int folder = open_itself (self, O_PATH);
  int fd, error;

  if (folder < 0 && errno == EXDEV)
    errno = EPERM;
  if (folder < 0)
    return -1;
  fd = beneath_open_at (folder, name);
  error = errno;
  close (folder);
  errno = error;
  return fd;
}

static int
folder_open (Store *self, const gchar *name, guint64 *size, GError **error)
{
  Folder *folder = (Folder *) self;
  int fd = open_title (folder, name);
  struct stat st;

  if (fd < 0)
    set_title_error (folder, name, error);
  else if (size)
    *size = fstat (fd, &st) == 0 ? (guint64) st.st_size : 0;
  return fd;
}

static StoreBytes *
folder_open_bytes (Store *self, const gchar *name, GError **error)
{
  int fd = folder_open (self, name, NULL, error);
  StoreBytes *bytes = fd >= 0 ? file_bytes_new (fd) : NULL;

  if (fd >= 0 && !bytes)
    set_title_error ((Folder *) self, name, error);
  return bytes;
}

// ---- listing ----

typedef struct {
  StoreFoundFunc found;
  gpointer data;
  GString *name; // of the current entry, relative to the store
} Listing;

static gboolean list_folder (int fd, Listing *listing);

// Does not follow links: a target inside the folder is listed at its own place.
static gboolean
list_entry (int folder, const gchar *name, Listing *listing)
{
  gsize len = listing->name->len;
  gboolean more = TRUE;
  struct stat st;
  int fd;

  g_string_append_printf (listing->name, "%s%s", len > 0 ? "/" : "", name);
  if (store_is_name (listing->name->str) && fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISREG (st.st_mode)) {
      more = listing->found (listing->name->str, (guint64) st.st_size, listing->data);
    } else if (S_ISDIR (st.st_mode)) {
      fd = openat (folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      more = fd < 0 || list_folder (fd, listing);
    }
  }
  g_string_truncate (listing->name, len);
  return more;
}

// Lists the open folder `fd` and takes ownership of it. Returns FALSE if the callback ended the
// listing.
static gboolean
list_folder (int fd, Listing *listing)
{
  DIR *folder = fdopendir (fd);
  gboolean more = TRUE;
  struct dirent *entry;

  if (!folder) {
    close (fd);
    return TRUE;
  }
  while (more && (entry = readdir (folder)))
    more = list_entry (fd, entry->d_name, listing);
  closedir (folder);
  return more;
}

static gboolean
folder_list (Store *self, StoreFoundFunc found, gpointer data)
{
  int fd = open_itself ((Folder *) self, O_RDONLY);
  Listing listing = { .found = found, .data = data };

  if (fd < 0)
    return FALSE;
  listing.name = g_string_new (NULL);
  list_folder (fd, &listing);
  g_string_free (listing.name, TRUE);
  return TRUE;
}

// ---- lifetime ----

static void
folder_free (Store *self)
{
  g_free (((Folder *) self)->path);
  g_free (self);
}

Store *
folder_new (const gchar *path, gboolean is_limited)
{
  static const StoreKind kind = { folder_open, folder_open_bytes, folder_list, NULL, folder_free };
  Folder *self;

  if (!path)
    return NULL;
  self = g_new0 (Folder, 1);
  store_init (&self->parent, &kind);
  self->path = g_strdup (path);
  self->is_limited = is_limited;
  return &self->parent;
}
