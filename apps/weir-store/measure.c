// SPDX-License-Identifier: LGPL-2.1-or-later
#include "measure.h"

#include "interrupt.h"
#include "progress.h"
#include "store/storefile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPIES 24 // of each disk
#define SMALL 4096
#define ENOUGH (256 << 10) // bytes of a block, of which the rate can be told

typedef struct {
  GPtrArray *paths; // of copies on a disk, drawn at random
  guint n_seen;
} Drawn;

typedef struct {
  Drawn *disks; // by number
  GRand *random;
} Drawing;

// Keeps each copy that is seen with the same probability (reservoir sampling).
static void
draw (Drawing *self, WeirStoredTitle *title, guint32 block, guint16 disk)
{
  Drawn *drawn = &self->disks[disk];
  guint at = drawn->n_seen++;

  if (!drawn->paths)
    drawn->paths = g_ptr_array_new_with_free_func (g_free);
  if (at < COPIES) {
    g_ptr_array_add (drawn->paths, weir_stored_title_dup_block_path (title, block, disk));
    return;
  }
  at = (guint) g_rand_int_range (self->random, 0, (gint32) drawn->n_seen);
  if (at < COPIES) {
    g_free (drawn->paths->pdata[at]);
    drawn->paths->pdata[at] = weir_stored_title_dup_block_path (title, block, disk);
  }
}

static gboolean
draw_title (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  const WeirIndex *index = title ? weir_stored_title_get_index (title) : NULL;

  for (guint32 i = 0; index && i < index->n_blocks; i++) {
    for (guint j = 0; index->blocks[i].length >= ENOUGH && j < index->blocks[i].n_copies; j++)
      draw (data, title, i, index->blocks[i].disks[j]);
  }
  return !interrupted ();
}

typedef struct {
  gdouble small_s, rest_s;
  guint64 rest_bytes;
  guint n;
} Sums;

static gdouble
now_s (void)
{
  return (gdouble) g_get_monotonic_time () / 1e6;
}

static void
read_copy (const gchar *path, guint8 *bytes, gsize size, Sums *sums)
{
  int fd = path ? open (path, O_RDONLY | O_CLOEXEC) : -1;
  gdouble begin, middle;
  gssize n, rest = 0;

  if (fd < 0)
    return;
  posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
  posix_fadvise (fd, 0, 0, POSIX_FADV_RANDOM); // so that the small read stays small
  begin = now_s ();
  n = pread (fd, bytes, SMALL, 0);
  middle = now_s ();
  posix_fadvise (fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  while (n > 0 && (n = pread (fd, bytes, size, SMALL + rest)) > 0)
    rest += n;
  if (n == 0 && rest > 0) {
    sums->small_s += middle - begin;
    sums->rest_s += now_s () - middle;
    sums->rest_bytes += (guint64) rest;
    sums->n++;
  }
  posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
  close (fd);
}

static void
read_drawn (const Drawing *drawing, Sums *sums)
{
  gsize size = 4 << 20;
  g_autofree guint8 *bytes = g_malloc (size);
  guint n = 0, total = 0;

  for (guint i = 0; i <= G_MAXUINT16; i++)
    total += drawing->disks[i].paths ? drawing->disks[i].paths->len : 0;
  for (guint i = 0; i <= G_MAXUINT16; i++) {
    const GPtrArray *paths = drawing->disks[i].paths;

    for (guint j = 0; paths && j < paths->len && !interrupted (); j++) {
      read_copy (paths->pdata[j], bytes, size, sums);
      progress_show ("measuring", ++n, total);
    }
  }
  progress_clear ();
}

gboolean
measure_store (Measure *self, WeirBlockStore *store, GError **error)
{
  Drawing drawing = { g_new0 (Drawn, G_MAXUINT16 + 1), g_rand_new () };
  Sums sums = { 0 };
  gboolean ok = weir_block_store_list (store, draw_title, &drawing, error);

  if (ok)
    read_drawn (&drawing, &sums);
  if (ok && sums.n == 0 && !interrupted ()) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "%s has no blocks of 256 KiB or more by which its disks could be measured; add titles, or "
        "give --access and --rate",
        weir_block_store_get_path (store));
    ok = FALSE;
  }
  if (sums.n > 0) {
    self->access_s = sums.small_s / sums.n;
    self->rate = (gdouble) sums.rest_bytes * 8 / MAX (sums.rest_s, 1e-9);
  }
  for (guint i = 0; i <= G_MAXUINT16; i++)
    g_clear_pointer (&drawing.disks[i].paths, g_ptr_array_unref);
  g_free (drawing.disks);
  g_rand_free (drawing.random);
  return ok && sums.n > 0;
}
