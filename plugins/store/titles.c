// SPDX-License-Identifier: LGPL-2.1-or-later
// The files of the indexes.

#include "store/blockstore_private.h"
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "bits/bytes.h"
#include "disks/put.h"

#define SUFFIX ".index"
#define HASH_BYTES 8
#define HELP "repair makes it anew from a copy on the disks"
#define INDEX_BYTES_MAX (160 << 20) // more than the largest valid index
#define DEPTH_MAX 64                // of folders, so that a circle ends

void
store_print_id (const guint8 id[16], gchar text[33])
{
  for (guint i = 0; i < 16; i++)
    g_snprintf (text + 2 * i, 3, "%02x", id[i]);
}

int
store_lock (WeirBlockStore *self, GError **error)
{
  g_autofree gchar *path = g_build_filename (self->path, "lock", NULL);

  return weir_files_lock (path, TRUE, error);
}

gchar *
store_index_path (WeirBlockStore *self, const gchar *name)
{
  return g_strconcat (self->path, "/titles/", name, SUFFIX, NULL);
}

gchar *
store_adding_path (WeirBlockStore *self, const gchar *id, const gchar *suffix)
{
  return g_strconcat (self->path, "/adding/", id, suffix, NULL);
}

gchar *
store_blocks_path (const gchar *disk, const gchar *id)
{
  return g_strconcat (disk, "/blocks/", id, NULL);
}

gboolean
store_check_name (const gchar *name, GError **error)
{
  if (weir_index_is_name (name) && g_utf8_validate (name, -1, NULL))
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NAME,
      "'%s' is not a name for a title: a name is a relative path in UTF-8, such as films/one.mp4, "
      "whose parts have 1 to %d bytes and do not begin with a dot",
      name, WEIR_INDEX_NAME_PART_MAX);
  return FALSE;
}

// Reads the whole file into `bytes` (transfer full).
static gboolean
read_file (const gchar *path, guint8 **bytes, gsize *length, gint64 stamp[3], GError **error)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), problem = 0;
  struct stat st = { 0 };
  gsize at = 0;
  gssize n = 0;

  *bytes = NULL;
  if (fd < 0)
    return weir_files_fail (error, errno, "read", path);
  if (fstat (fd, &st) < 0)
    problem = errno;
  else if (st.st_size > INDEX_BYTES_MAX)
    problem = EFBIG;
  if (problem == 0 && !S_ISREG (st.st_mode)) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT,
        "the index %s is not valid: it is not a file; " HELP, path);
    close (fd);
    return FALSE;
  }
  *length = (gsize) st.st_size;
  if (problem == 0 && !(*bytes = g_try_malloc (*length + 1)))
    problem = ENOMEM;
  while (problem == 0 && at < *length && (n = read (fd, *bytes + at, *length - at)) > 0)
    at += (gsize) n;
  if (problem == 0 && n < 0)
    problem = errno;
  close (fd);
  *length = at;
  stamp[0] = (gint64) st.st_ino;
  stamp[1] = st.st_mtim.tv_sec * G_GINT64_CONSTANT (1000000000) + st.st_mtim.tv_nsec;
  stamp[2] = st.st_size;
  if (problem == 0)
    return TRUE;
  g_clear_pointer (bytes, g_free);
  return weir_files_fail (error, problem, "read", path);
}

static gboolean
parse_index (const gchar *path, const guint8 *bytes, gsize length, WeirIndex *index, GError **error)
{
  gsize body = length - MIN (length, HASH_BYTES);
  WeirBytes end = weir_bytes (bytes + body, length - body);
  gchar problem[128];
  guint64 hash;
  gint result = weir_index_read (index, bytes, body, problem);

  if (result == -EPROTO) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NEWER,
        "the index %s cannot be read: %s; update the program", path, problem);
    return FALSE;
  }
  if (result == 0 && (!weir_bytes_u64 (&end, &hash) || hash != XXH3_64bits (bytes, body))) {
    weir_index_clear (index);
    g_strlcpy (problem, "its hash is wrong", sizeof problem);
    result = -EINVAL;
  }
  if (result == 0)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT,
      "the index %s is not valid: %s; " HELP, path,
      result == -ENOMEM ? "not enough memory" : problem);
  return FALSE;
}

gboolean
store_read_index_file (const gchar *path, WeirIndex *index, GError **error)
{
  g_autofree guint8 *bytes = NULL;
  gsize length = 0;
  gint64 stamp[3];

  memset (index, 0, sizeof *index);
  return read_file (path, &bytes, &length, stamp, error)
         && parse_index (path, bytes, length, index, error);
}

gboolean
store_read_index (
    WeirBlockStore *self, const gchar *name, WeirIndex *index, gint64 stamp[3], GError **error)
{
  g_autofree gchar *path = store_index_path (self, name);
  g_autofree guint8 *bytes = NULL;
  g_autoptr (GError) problem = NULL;
  gsize length = 0;

  memset (index, 0, sizeof *index);
  if (!read_file (path, &bytes, &length, stamp, &problem)) {
    if (access (path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
      g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND,
          "store %s has no title '%s'", self->path, name);
    else
      g_propagate_error (error, g_steal_pointer (&problem));
    return FALSE;
  }
  if (!parse_index (path, bytes, length, index, error))
    return FALSE;
  if (g_str_equal (index->name, name))
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT,
      "the index %s is that of the title '%s': was the file moved?", path, index->name);
  weir_index_clear (index);
  return FALSE;
}

gboolean
store_write_index_file (
    const gchar *path, const gchar *part, const WeirIndex *index, GError **error)
{
  uint8_t *bytes, *grown = NULL;
  size_t length;
  gboolean ok;
  int result = weir_index_write (index, &bytes, &length);

  if (result == 0 && !(grown = realloc (bytes, length + HASH_BYTES))) {
    free (bytes);
    result = -ENOMEM;
  }
  if (result != 0)
    return weir_files_fail (error, -result, "write the index", path);
  weir_put (grown + length, HASH_BYTES, XXH3_64bits (grown, length));
  ok = weir_files_write (path, part, grown, length + HASH_BYTES, error);
  free (grown);
  return ok;
}

gboolean
store_write_index (WeirBlockStore *self, const WeirIndex *index, GError **error)
{
  g_autofree gchar *path = store_index_path (self, index->name), *part = NULL;
  g_autofree gchar *folder = g_path_get_dirname (path);
  gchar id[33];

  store_print_id (index->id, id);
  part = store_adding_path (self, id, SUFFIX);
  return weir_files_make_folders (self->path, folder, error)
         && store_write_index_file (path, part, index, error)
         && weir_files_sync_folder (folder, error);
}

gboolean
store_make_folders (WeirBlockStore *self, GError **error)
{
  g_autofree gchar *titles = g_build_filename (self->path, "titles", NULL);
  g_autofree gchar *adding = store_adding_path (self, "x", "");
  g_autofree gchar *folder = g_path_get_dirname (adding);

  return weir_files_make_folders (self->path, titles, error)
         && weir_files_make_folders (self->path, folder, error);
}

/* Listing */

typedef struct {
  WeirBlockStore *store;
  WeirTitleFunc found;
  gpointer data;
} Listing;

static gboolean
pass_title (Listing *listing, const gchar *name)
{
  g_autoptr (GError) error = NULL;
  WeirStoredTitle *title = weir_block_store_open_title (listing->store, name, &error);
  gboolean more = TRUE;

  // A title that was removed meanwhile is none.
  if (title || !g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND))
    more = listing->found (name, title, error, listing->data);
  if (title)
    weir_stored_title_unref (title);
  return more;
}

// Lists a folder below titles/. `prefix` is "" or ends with a slash. Returns FALSE at the end of
// the listing.
static gboolean
list_folder (Listing *listing, const gchar *prefix, guint depth, GError **error)
{
  g_autofree gchar *path = g_strconcat (listing->store->path, "/titles/", prefix, NULL);
  GDir *dir = g_dir_open (path, 0, error);
  const gchar *name;
  gboolean more = dir != NULL;

  while (more && (name = g_dir_read_name (dir))) {
    g_autofree gchar *file = g_strconcat (path, name, NULL);
    g_autofree gchar *title = g_strconcat (prefix, name, NULL);

    if (g_file_test (file, G_FILE_TEST_IS_DIR)) {
      g_autofree gchar *below = g_strconcat (title, "/", NULL);

      more = depth == DEPTH_MAX || list_folder (listing, below, depth + 1, error);
    } else if (g_str_has_suffix (title, SUFFIX)) {
      title[strlen (title) - strlen (SUFFIX)] = '\0';
      more = pass_title (listing, title);
    }
  }
  if (dir)
    g_dir_close (dir);
  return more;
}

gboolean
weir_block_store_list (WeirBlockStore *self, WeirTitleFunc found, gpointer data, GError **error)
{
  Listing listing = { self, found, data };
  GError *problem = NULL;

  list_folder (&listing, "", 0, &problem);
  if (problem)
    g_propagate_error (error, problem);
  return problem == NULL;
}
