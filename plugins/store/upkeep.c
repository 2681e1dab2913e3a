// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/upkeep.h"

#include "store/balancing.h"
#include "store/copies.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/looking.h"
#include "store/upkeep_private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define LAG_US (G_USEC_PER_SEC / 10) // that is made up for
#define GIVE_WAY_US (5 * 1000)

void
upkeep_report (Upkeep *self, const gchar *title, const gchar *problem)
{
  if (self->progress)
    self->progress (self->done, self->total, title, problem, self->data);
}

static gboolean
may_go_on (const Upkeep *self, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
    return FALSE;
  if (!self->background || !balancing_is_wanted (self->turn))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "another program goes on with balancing");
  return FALSE;
}

// Waits, unless the work is cancelled.
static void
pause_for (Upkeep *self, gint64 us)
{
  GPollFD poll;
  gboolean can = g_cancellable_make_pollfd (self->cancellable, &poll);

  g_poll (&poll, can, (gint) MIN (us / 1000 + 1, 1000));
  if (can)
    g_cancellable_release_fd (self->cancellable);
}

gboolean
upkeep_pace (Upkeep *self, guint64 bytes, GError **error)
{
  const gint64 now = g_get_monotonic_time ();
  gint64 wait;

  if (self->rate == 0)
    return may_go_on (self, error);
  self->due_us =
      MAX (self->due_us, now - LAG_US) + (gint64) ((gdouble) bytes / (gdouble) self->rate * 1e6);
  while ((wait = self->due_us - g_get_monotonic_time ()) > 0
         && !g_cancellable_is_cancelled (self->cancellable))
    pause_for (self, wait);
  return may_go_on (self, error);
}

gboolean
upkeep_give_way (Upkeep *self, guint16 from, guint16 to, GError **error)
{
  if (!self->background)
    return TRUE;
  while (may_go_on (self, error)) {
    if (!store_reader_needs (self->store, from) && !store_reader_needs (self->store, to))
      return TRUE;
    pause_for (self, GIVE_WAY_US);
  }
  return FALSE;
}

typedef struct {
  Upkeep *upkeep;
  GPtrArray *names;
} Listing;

static guint64
copies_of (const WeirIndexBlock *block)
{
  return ((guint64) block->length + block->table_length) * block->n_copies;
}

static gboolean
add_title (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  Listing *listing = data;

  if (!title) {
    listing->upkeep->result.bad_indexes++;
    upkeep_report (listing->upkeep, name, error->message);
    return TRUE;
  }
  for (guint32 i = 0; i < title->index.n_blocks; i++)
    listing->upkeep->total += copies_of (&title->index.blocks[i]);
  g_ptr_array_add (listing->names, g_strdup (name));
  return !g_cancellable_is_cancelled (listing->upkeep->cancellable);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

GPtrArray *
upkeep_list (Upkeep *self, const gchar *name, GError **error)
{
  Listing listing = { self, g_ptr_array_new_with_free_func (g_free) };
  gboolean ok = TRUE;

  if (name) {
    WeirStoredTitle *title = weir_block_store_open_title (self->store, name, error);

    ok = title != NULL;
    if (title) {
      add_title (name, title, NULL, &listing);
      weir_stored_title_unref (title);
    }
  } else {
    ok = weir_block_store_list (self->store, add_title, &listing, error);
  }
  if (!ok)
    g_clear_pointer (&listing.names, g_ptr_array_unref);
  else
    g_ptr_array_sort (listing.names, compare_names);
  return listing.names;
}

/* Verify and repair */

typedef struct {
  Upkeep up;
  gboolean repair, forget;
  WeirStoreDisk *disks;
  guint n_disks;
  GHashTable *missing; // numbers of disks that were reported
  GHashTable *failed;  // numbers of such disks of which a copy could not be written elsewhere
} Check;

// Reports each disk that is not there, whether or not a title needs it. One that is being removed
// counts only if a title needs it: a balance that was killed may have emptied it.
static void
report_disks (Check *self)
{
  for (guint i = 0; i < self->n_disks; i++) {
    const WeirStoreDisk *disk = &self->disks[i];
    g_autofree gchar *text = NULL;

    if (disk->present || disk->removing)
      continue;
    g_hash_table_add (self->missing, GUINT_TO_POINTER (disk->number));
    self->up.result.missing_disks++;
    text = g_strdup_printf ("disk %u (%s): %s; all copies on it count as bad", disk->number,
        disk->path, weir_disk_state_name (disk->state));
    upkeep_report (&self->up, NULL, text);
  }
}

// Reports a bad copy. Of a disk that is not there, this and that a copy cannot be written elsewhere
// are reported once. Takes ownership of `problem`.
static void
report_copy (Check *self, WeirStoredTitle *title, guint32 number, guint16 disk, GError *problem,
    const gchar *done, gboolean failed)
{
  const gchar *path = weir_block_store_get_disk_path (title->store, disk);
  gboolean is_there = path && weir_disk_is_there (path, title->store->id, disk);
  g_autofree gchar *text = NULL;

  if (is_there)
    text = g_strdup_printf ("block %u: %s%s", number, problem->message, done);
  else if (g_hash_table_add (self->missing, GUINT_TO_POINTER (disk))) {
    self->up.result.missing_disks++;
    text = g_strdup_printf ("disk %u (%s) is not there; all copies on it count as bad", disk,
        path ? path : "not in store.yaml");
  } else if (failed && g_hash_table_add (self->failed, GUINT_TO_POINTER (disk)))
    text = g_strdup_printf ("block %u on disk %u%s", number, disk, done);
  if (text)
    upkeep_report (&self->up, title->index.name, text);
  g_error_free (problem);
}

// Writes a bad copy anew, and reports it. Takes ownership of `problem`.
static void
repair_copy (Check *self, WeirStoredTitle *title, guint32 number, guint16 disk, const guint8 *bytes,
    GError *problem)
{
  g_autoptr (GError) failed = NULL;
  g_autofree gchar *done = NULL;

  if (!bytes) {
    done = g_strdup ("; no good copy is left");
  } else if (!self->repair) {
    done = g_strdup ("; the other copy is good");
  } else if (upkeep_rewrite (title, number, disk, bytes, &failed)) {
    self->up.result.repaired++;
    done = g_strdup ("; written anew");
  } else {
    done = g_strdup_printf (
        "; not repaired: %s", failed ? failed->message : "the title was changed meanwhile");
  }
  report_copy (self, title, number, disk, problem, done, failed != NULL);
}

// Reports whether a block still has a copy on the disk: a balance may have moved it.
static gboolean
is_there (WeirStoredTitle *title, guint32 number, guint16 disk)
{
  guint16 disks[WEIR_INDEX_COPIES_MAX];
  guint n = weir_stored_title_find_copies (title, number, disks, NULL);

  return (n > 0 && disks[0] == disk) || (n > 1 && disks[1] == disk);
}

// Reads all copies of a block where they are now. Returns FALSE if the title is gone or the work
// was cancelled.
static gboolean
check_block (Check *self, WeirStoredTitle *title, guint32 number, const gchar *id, GError **error)
{
  const WeirIndexBlock *block = &title->index.blocks[number];
  guint64 length = (guint64) block->length + block->table_length;
  guint16 disks[WEIR_INDEX_COPIES_MAX];
  GError *problems[WEIR_INDEX_COPIES_MAX] = { NULL };
  guint n = weir_stored_title_find_copies (title, number, disks, NULL), n_bad = 0;
  g_autofree guint8 *good = NULL;

  if (n == 0)
    return FALSE;
  for (guint i = 0; i < n; i++) {
    guint8 *bytes = copies_read (title->store, id, number, block, disks[i], &problems[i]);

    if (!bytes && !is_there (title, number, disks[i]))
      g_clear_error (&problems[i]);
    n_bad += problems[i] != NULL;
    self->up.result.copies++;
    self->up.done += length;
    if (!good)
      good = bytes;
    else
      g_free (bytes);
  }
  self->up.result.blocks++;
  self->up.result.bad_copies += n_bad;
  self->up.result.lost_blocks += n_bad == n;
  for (guint i = 0; i < n; i++) {
    if (problems[i])
      repair_copy (self, title, number, disks[i], good, problems[i]);
  }
  return upkeep_pace (&self->up, self->repair && good ? n_bad * length : 0, error);
}

// Looks at the copies of the title's index.
static void
check_indexes (Check *self, const gchar *name)
{
  guint n = upkeep_check_indexes (self->up.store, name, self->disks, self->n_disks, self->repair);

  // A balance may just have moved the last block from a disk.
  if (n > 0 && !self->repair)
    n = upkeep_check_indexes (self->up.store, name, self->disks, self->n_disks, FALSE);
  self->up.result.bad_index_copies += n;
  if (n > 0) {
    g_autofree gchar *text = g_strdup_printf ("%u disks have no good copy of its index%s", n,
        self->repair ? ", and none could be written" : "; repair writes it");

    upkeep_report (&self->up, name, text);
  }
}

static gboolean
check_title (Check *self, const gchar *name, GError **error)
{
  WeirStoredTitle *title = weir_block_store_open_title (self->up.store, name, NULL);
  GError *problem = NULL;
  gchar id[33];

  if (!title) // removed meanwhile
    return TRUE;
  store_print_id (title->index.id, id);
  self->up.result.titles++;
  for (guint32 i = 0; i < title->index.n_blocks; i++) {
    if (!check_block (self, title, i, id, &problem))
      break;
    upkeep_report (&self->up, name, NULL);
  }
  weir_stored_title_unref (title);
  if (problem)
    g_propagate_error (error, problem);
  else
    check_indexes (self, name);
  return problem == NULL;
}

static gboolean
check_all (Check *self, const gchar *name, GError **error)
{
  gboolean ok = name || !self->repair || upkeep_restore (&self->up, error);
  GPtrArray *names = ok ? upkeep_list (&self->up, name, error) : NULL;

  ok = names != NULL;
  self->disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  // Disks that hang are known afterwards, so that their copies are not read.
  self->n_disks =
      ok ? weir_block_store_get_disks (self->up.store, self->disks, WEIR_STORE_DISKS_MAX) : 0;
  self->missing = g_hash_table_new (NULL, NULL);
  self->failed = g_hash_table_new (NULL, NULL);
  report_disks (self);
  for (guint i = 0; ok && i < names->len; i++)
    ok = check_title (self, names->pdata[i], error);
  if (names)
    g_ptr_array_unref (names);
  g_free (self->disks);
  g_hash_table_unref (self->failed);
  g_hash_table_unref (self->missing);
  return ok && (name || upkeep_leftovers (&self->up, self->repair, self->forget, error));
}

gboolean
weir_block_store_verify (WeirBlockStore *self, const gchar *name, WeirUpkeepFunc progress,
    gpointer data, GCancellable *cancellable, WeirUpkeepResult *result, GError **error)
{
  Check check = { .up = { self, progress, data, cancellable } };
  gboolean ok = check_all (&check, name, error);

  if (result)
    *result = check.up.result;
  return ok;
}

gboolean
weir_block_store_repair (WeirBlockStore *self, const gchar *name, guint64 rate, gboolean forget,
    WeirUpkeepFunc progress, gpointer data, GCancellable *cancellable, WeirUpkeepResult *result,
    GError **error)
{
  Check check = { .up = { self, progress, data, cancellable, .rate = rate }, TRUE, forget };
  gboolean ok;

  check.up.due_us = g_get_monotonic_time ();
  ok = check_all (&check, name, error);
  if (result)
    *result = check.up.result;
  return ok;
}

/* Removing */

// Removes empty folders of titles. The store is locked.
static void
remove_folders (WeirBlockStore *self, const gchar *index)
{
  g_autofree gchar *top = g_build_filename (self->path, "titles", NULL);
  g_autofree gchar *folder = g_path_get_dirname (index);

  while (!g_str_equal (folder, top) && g_rmdir (folder) == 0) {
    gchar *parent = g_path_get_dirname (folder);

    g_free (folder);
    folder = parent;
  }
}

// The store is locked. Stores a descriptor for leftovers_end(), or -1 if the title's id is not
// known.
static gboolean
remove_index (WeirBlockStore *self, const gchar *name, gchar id[33], int *fd, GError **error)
{
  g_autofree gchar *path = store_index_path (self, name), *folder = g_path_get_dirname (path);
  GError *problem = NULL;
  gint64 stamp[3];
  WeirIndex index;
  gboolean ok;

  *fd = -1;
  if (store_read_index (self, name, &index, stamp, &problem)) {
    store_print_id (index.id, id);
    weir_index_clear (&index);
    *fd = leftovers_begin (self, id, name, error);
    if (*fd < 0)
      return FALSE;
  } else if (!g_error_matches (problem, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT)) {
    g_propagate_error (error, problem);
    return FALSE;
  } else if (upkeep_find_id (self, name, id)
             && (*fd = leftovers_begin (self, id, name, error)) < 0) {
    g_clear_error (&problem);
    return FALSE;
  }
  g_clear_error (&problem);
  if (unlink (path) < 0)
    ok = weir_files_fail (error, errno, "remove", path);
  else
    ok = weir_files_sync_folder (folder, error);
  if (ok)
    remove_folders (self, path);
  else if (*fd >= 0)
    leftovers_end (self, id, *fd);
  return ok;
}

gboolean
weir_block_store_remove_title (WeirBlockStore *self, const gchar *name, GError **error)
{
  guint64 n_removed = 0;
  gboolean ok;
  gchar id[33];
  int lock, fd;

  if (!store_check_name (name, error))
    return FALSE;
  lock = store_lock (self, error);
  if (lock < 0)
    return FALSE;
  leftovers_clean (self);
  ok = remove_index (self, name, id, &fd, error);
  close (lock);
  if (ok && fd >= 0) {
    if (leftovers_remove_blocks (self, id, &n_removed))
      leftovers_end (self, id, fd);
    else // the next writer removes the rest, once all disks are there
      close (fd);
  }
  return ok;
}
