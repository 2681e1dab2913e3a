// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/block_admission.h"

#include <string.h>

#include "disks/diskload.h"
#include "store/reading.h"
#include "store/remote.h"

#define MARGIN 0.1 // of the disks' time, which stays free
#define DISKS_MAX 256
#define NEAR_BLOCKS 2 // of which a stream holds two, and has just left the third
#define FREE_BLOCKS 4 // in a row, after which a stream does not count

struct _BlockStream {
  WeirBlockStore *store;
  guint8 id[16]; // of the title
  gboolean has_disks;
  guint64 rate;
  gdouble block_s; // for which a block of the title lasts
  guint32 block;   // the last one that it has asked for
  gint64 asked_ns;
  guint n_free;    // blocks in a row for which no disk was read
  gboolean counts; // disks are read for it
};

static GMutex lock;
static GPtrArray *streams; // of BlockStream, of all stores; with `lock` held
static guint64 line_rate;  // with `lock` held

// ---- disks ----

typedef struct {
  WeirDiskStats stats[DISKS_MAX]; // of disks that were read
  guint n;
  guint all; // disks of the store
} Disks;

static void
measure (WeirBlockStore *store, Disks *disks)
{
  disks->n = MIN (weir_block_store_get_stats (store, disks->stats, DISKS_MAX), DISKS_MAX);
  disks->all = weir_block_store_count_disks (store);
}

// Returns how many reads of `bytes` bytes the disks can do in a second: for disks alike, the
// model's D / (t_a + bytes / r_d). Disks that were not read yet count like the mean of the others,
// or like a common hard disk if none was read. Stores the number of disks that can be read.
static gdouble
count_reads (const Disks *disks, guint64 bytes, guint *n_disks)
{
  guint failing = 0, n = 0;
  gdouble reads = 0;
  WeirDiskLoad common;

  for (guint i = 0; i < disks->n; i++) {
    gint64 ns = weir_disk_stats_get_time (&disks->stats[i], bytes);

    failing += disks->stats[i].failing;
    if (disks->stats[i].failing || ns == 0)
      continue;
    reads += 1e9 / (gdouble) ns;
    n++;
  }
  if (n == 0) {
    weir_disk_load_init (&common);
    reads = 1e9 / (gdouble) weir_disk_load_service (&common, bytes);
    n = 1;
  }
  *n_disks = disks->all - MIN (disks->all, failing);
  return *n_disks * reads / n;
}

// ---- streams ----

// The streams of a store that count, and the rate of all streams of all stores.
typedef struct {
  guint n;
  guint64 rate;  // of those that count
  gdouble reads; // of blocks a second that they need
  guint64 line;
} Sum;

static Sum
add_up (WeirBlockStore *store)
{
  Sum sum = { 0 };

  for (guint i = 0; i < streams->len; i++) {
    const BlockStream *stream = streams->pdata[i];

    sum.line += stream->rate;
    if (stream->store == store && stream->counts) {
      sum.n++;
      sum.rate += stream->rate;
      sum.reads += 1 / stream->block_s;
    }
  }
  return sum;
}

// Reports whether a stream of the same title has just asked for the blocks with which this one
// begins, and plays: then it also asks for each further block first.
static gboolean
follows_another (const BlockStream *self)
{
  const gint64 block_ns = (gint64) (self->block_s * 1e9);

  for (guint i = 0; i < streams->len; i++) {
    const BlockStream *other = streams->pdata[i];

    if (other->store == self->store && memcmp (other->id, self->id, sizeof self->id) == 0
        && other->block - self->block <= NEAR_BLOCKS
        && self->asked_ns - other->asked_ns <= block_ns)
      return TRUE;
  }
  return FALSE;
}

// Returns FALSE and sets `error` if the disks cannot give this stream, too.
static gboolean
fits (const Disks *disks, const Sum *sum, const BlockStream *stream, GError **error)
{
  const gdouble needed = sum->reads + 1 / stream->block_s;
  guint n_disks;
  guint64 bytes = (guint64) ((gdouble) (sum->rate + stream->rate) / 8 / needed);
  gdouble reads = count_reads (disks, bytes, &n_disks);

  // One stream is always admitted: the disks are measured by what they do.
  if (sum->n == 0 || needed <= (1 - MARGIN) * reads)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE,
      "the disks can give no more streams now (%u of them work, and %u streams use them: %.1f "
      "blocks of %.2f MB a second)",
      n_disks, sum->n, reads, (gdouble) bytes / 1e6);
  return FALSE;
}

static gboolean
may_enter (BlockStream *self, const Disks *disks, GError **error)
{
  const Sum sum = add_up (self->store);

  if (line_rate > 0 && sum.line + self->rate > line_rate) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE,
        "the line can carry no more streams now (limits.line-rate: %.1f of %.1f Mb/s are in use, "
        "and this one needs %.1f)",
        (gdouble) sum.line / 1e6, (gdouble) line_rate / 1e6, (gdouble) self->rate / 1e6);
    return FALSE;
  }
  self->counts = self->has_disks && !follows_another (self);
  return !self->counts || fits (disks, &sum, self, error);
}

// Returns for how long a block lasts. The smallest and the largest blocks last for longer and for
// less than a slice.
static gdouble
get_block_time (WeirBlockStore *store, guint64 rate, guint64 block_bytes)
{
  if (rate == 0 || block_bytes == 0)
    return (gdouble) weir_block_store_get_slice (store) / 1e9;
  return (gdouble) block_bytes * 8 / (gdouble) rate;
}

BlockStream *
block_admission_enter (WeirBlockStore *store, const guint8 id[16], guint64 rate,
    guint64 block_bytes, guint32 first, gint64 now_ns, GError **error)
{
  Disks disks;
  BlockStream *self = g_new0 (BlockStream, 1);

  self->store = store;
  // How many blocks come from a cache, and how many from elsewhere, is not known before.
  self->has_disks = !weir_block_store_is_remote (store);
  memcpy (self->id, id, sizeof self->id);
  self->rate = rate;
  self->block_s = get_block_time (store, rate, block_bytes);
  self->block = first;
  self->asked_ns = now_ns;
  measure (store, &disks);
  g_mutex_lock (&lock);
  if (!streams)
    streams = g_ptr_array_new ();
  if (may_enter (self, &disks, error))
    g_ptr_array_add (streams, self);
  else
    g_clear_pointer (&self, g_free);
  g_mutex_unlock (&lock);
  return self;
}

void
block_admission_note (BlockStream *self, guint32 block, gboolean read, gint64 now_ns)
{
  g_mutex_lock (&lock);
  // A block that was asked for before is in memory, which says nothing of those to come.
  self->n_free = read || block != self->block + 1 ? 0 : self->n_free + 1;
  self->counts = (read && self->has_disks) || (self->counts && self->n_free < FREE_BLOCKS);
  self->block = block;
  self->asked_ns = now_ns;
  g_mutex_unlock (&lock);
}

// Another stream of the title may have got its blocks by this one.
static void
pass_on (const BlockStream *self)
{
  for (guint i = 0; i < streams->len; i++) {
    BlockStream *other = streams->pdata[i];

    if (other->counts || !other->has_disks || other->store != self->store
        || memcmp (other->id, self->id, sizeof self->id) != 0)
      continue;
    other->counts = TRUE;
    other->n_free = 0;
    return;
  }
}

void
block_admission_leave (BlockStream *self)
{
  g_mutex_lock (&lock);
  g_ptr_array_remove_fast (streams, self);
  if (self->counts)
    pass_on (self);
  g_mutex_unlock (&lock);
  g_free (self);
}

void
block_admission_set_line (guint64 rate)
{
  g_mutex_lock (&lock);
  line_rate = rate;
  g_mutex_unlock (&lock);
}

guint64
block_admission_get_line (void)
{
  guint64 used;

  g_mutex_lock (&lock);
  used = streams ? add_up (NULL).line : 0;
  g_mutex_unlock (&lock);
  return used;
}
