// SPDX-License-Identifier: LGPL-2.1-or-later
#include "measure.h"

#include "interrupt.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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
  GArray *small_s; // of gdouble: the times of the small reads
  gdouble whole_s; // the sum of the times of the others
  guint64 whole_bytes;
  guint n_whole;
} Sums;

static gdouble
now_s (void)
{
  return (gdouble) g_get_monotonic_time () / 1e6;
}

// Reads up to `size` bytes as the store's reader does: past the page cache where the file system
// allows. Returns their number, and the time that it took without that of opening the file.
static gsize
read_copy (const gchar *path, guint8 *bytes, gsize size, gdouble *seconds)
{
  int fd = path ? open (path, O_RDONLY | O_CLOEXEC | O_DIRECT) : -1;
  gsize at = 0;
  gssize n = 1;
  gdouble begin;

  *seconds = 0;
  if (fd < 0 && path && errno == EINVAL) {
    fd = open (path, O_RDONLY | O_CLOEXEC);
    posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise (fd, 0, 0, size > SMALL ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
  }
  if (fd < 0)
    return 0;
  begin = now_s ();
  // With O_DIRECT, only the last read ends between two pages.
  while (at < size && at % SMALL == 0 && (n = pread (fd, bytes + at, size - at, (off_t) at)) > 0)
    at += (gsize) n;
  *seconds = now_s () - begin;
  close (fd);
  return at;
}

static void
read_drawn (const Drawing *drawing, gboolean whole, guint8 *bytes, Sums *sums)
{
  gsize size = whole ? WEIR_INDEX_BLOCK_BYTES_MAX : SMALL;

  for (guint i = 0; i <= G_MAXUINT16; i++) {
    const GPtrArray *paths = drawing->disks[i].paths;

    for (guint j = 0; paths && j < paths->len && !interrupted (); j++) {
      gdouble seconds;
      gsize n = read_copy (paths->pdata[j], bytes, size, &seconds);

      if (n > 0 && !whole)
        g_array_append_val (sums->small_s, seconds);
      sums->whole_s += whole ? seconds : 0;
      sums->whole_bytes += whole ? n : 0;
      sums->n_whole += whole && n > 0;
      progress_show (whole ? "measuring the rate" : "measuring the access time", j, paths->len);
    }
  }
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

static void
compute (Measure *self, const Sums *sums)
{
  gdouble bytes = (gdouble) sums->whole_bytes - (gdouble) sums->n_whole * SMALL, seconds;

  // The median, as a reader of the store may delay some reads.
  g_array_sort (sums->small_s, compare);
  self->access_s = g_array_index (sums->small_s, gdouble, sums->small_s->len / 2);
  // The time of the bytes alone, unless it is lost in the noise, as if all is in memory.
  seconds = sums->whole_s - self->access_s * sums->n_whole;
  if (seconds < sums->whole_s / 10)
    seconds = sums->whole_s;
  self->rate = bytes * 8 / MAX (seconds, 1e-9);
}

gboolean
measure_store (Measure *self, WeirBlockStore *store, GError **error)
{
  Drawing drawing = { g_new0 (Drawn, G_MAXUINT16 + 1), g_rand_new () };
  Sums sums = { .small_s = g_array_new (FALSE, FALSE, sizeof (gdouble)) };
  // Memory that is never touched costs none.
  guint8 *bytes = aligned_alloc (SMALL, WEIR_INDEX_BLOCK_BYTES_MAX);
  gboolean ok = bytes && weir_block_store_list (store, draw_title, &drawing, error);

  if (ok) {
    read_drawn (&drawing, FALSE, bytes, &sums);
    read_drawn (&drawing, TRUE, bytes, &sums);
    progress_clear ();
  }
  if (ok && sums.small_s->len > 0 && sums.n_whole > 0)
    compute (self, &sums);
  else if (ok && !interrupted ())
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "%s has no blocks of 256 KiB or more by which its disks could be measured; add titles, or "
        "give --access and --rate",
        weir_block_store_get_path (store));
  for (guint i = 0; i <= G_MAXUINT16; i++)
    g_clear_pointer (&drawing.disks[i].paths, g_ptr_array_unref);
  g_free (drawing.disks);
  g_rand_free (drawing.random);
  ok = sums.small_s->len > 0 && sums.n_whole > 0;
  g_array_unref (sums.small_s);
  free (bytes);
  return ok;
}
