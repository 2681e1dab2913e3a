// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/block_admission.h"

#include "disks/diskload.h"
#include "store/reading.h"
#include "store/remote.h"

#define MARGIN 0.1 // of the disks' time, which stays free
#define DISKS_MAX 256

// The streams of one store that play now.
typedef struct {
  guint n;
  guint64 rate; // of all
} Streams;

static GMutex lock;
static GHashTable *stores; // WeirBlockStore -> Streams, without references; with `lock` held

static guint
count_present (WeirBlockStore *store)
{
  WeirStoreDisk disks[DISKS_MAX];
  guint n = MIN (weir_block_store_get_disks (store, disks, DISKS_MAX), DISKS_MAX), present = 0;

  for (guint i = 0; i < n; i++)
    present += disks[i].present;
  return present;
}

typedef struct {
  WeirDiskStats stats[DISKS_MAX]; // of disks that were read
  guint n;
  guint present;
} Disks;

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
  *n_disks = disks->present - MIN (disks->present, failing);
  return *n_disks * reads / n;
}

// Counts a stream if the disks can give it. Returns FALSE and describes the disks if not.
static gboolean
add_stream (Streams *streams, guint64 rate, const Disks *disks, gdouble slice_s, gchar **told)
{
  guint64 sum = streams->rate + rate;
  guint n = streams->n + 1, n_disks;
  guint64 bytes = (guint64) ((gdouble) sum / n / 8 * slice_s);
  gdouble reads = count_reads (disks, bytes, &n_disks);

  // One stream is always admitted: the disks are measured by what they do.
  if (n > 1 && n > (1 - MARGIN) * slice_s * reads) {
    *told =
        g_strdup_printf ("%u streams now (%u disks, which read %.1f blocks of %.2f MB a second)",
            streams->n, n_disks, reads, (gdouble) bytes / 1e6);
    return FALSE;
  }
  streams->n = n;
  streams->rate = sum;
  return TRUE;
}

gboolean
block_admission_enter (WeirBlockStore *store, guint64 rate, GError **error)
{
  Disks disks = { 0 };
  g_autofree gchar *told = NULL;
  Streams *streams;
  gboolean may;

  // How many blocks come from a cache, and how many from elsewhere, is not known before.
  if (weir_block_store_is_remote (store))
    return TRUE;
  disks.present = count_present (store);
  disks.n = MIN (weir_block_store_get_stats (store, disks.stats, DISKS_MAX), DISKS_MAX);
  g_mutex_lock (&lock);
  if (!stores)
    stores = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  streams = g_hash_table_lookup (stores, store);
  if (!streams) {
    streams = g_new0 (Streams, 1);
    g_hash_table_insert (stores, store, streams);
  }
  may =
      add_stream (streams, rate, &disks, (gdouble) weir_block_store_get_slice (store) / 1e9, &told);
  g_mutex_unlock (&lock);
  if (!may)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE,
        "the disks of the store %s can give no more than %s", weir_block_store_get_path (store),
        told);
  return may;
}

void
block_admission_leave (WeirBlockStore *store, guint64 rate)
{
  Streams *streams;

  if (weir_block_store_is_remote (store))
    return;
  g_mutex_lock (&lock);
  streams = g_hash_table_lookup (stores, store);
  streams->rate -= rate;
  if (--streams->n == 0)
    g_hash_table_remove (stores, store);
  g_mutex_unlock (&lock);
}
