// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/block_admission.h"

#include "disks/diskload.h"
#include "disks/model.h"
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

// Averages what the disks do that have been read. The others count like them, or like a common hard
// disk if none has been read.
static WeirDiskModel
measure (WeirBlockStore *store)
{
  WeirDiskStats stats[DISKS_MAX];
  guint n = MIN (weir_block_store_get_stats (store, stats, DISKS_MAX), DISKS_MAX), failing = 0;
  guint present = count_present (store);
  WeirDiskModel model = { .n_stripes = 1,
    .slice_s = (gdouble) weir_block_store_get_slice (store) / 1e9 };
  gdouble access_ns = 0, rate = 0;
  WeirDiskLoad common;

  for (guint i = 0; i < n; i++) {
    failing += stats[i].failing;
    access_ns += stats[i].failing ? 0 : (gdouble) stats[i].access_ns;
    rate += stats[i].failing ? 0 : (gdouble) stats[i].rate;
  }
  weir_disk_load_init (&common);
  model.n_disks = present - MIN (present, failing);
  model.access_s = (n > failing ? access_ns / (n - failing) : common.access_ns) / 1e9;
  model.disk_rate = n > failing ? rate / (n - failing) : 8e9 / common.byte_ns;
  return model;
}

static gboolean
fits (const WeirDiskModel *model, const Streams *streams, guint64 rate)
{
  guint n = streams->n + 1;
  gdouble mean = (gdouble) (streams->rate + rate) / n;

  return model->n_disks > 0 && n * weir_disk_model_share (model, mean) <= 1 - MARGIN;
}

gboolean
block_admission_enter (WeirBlockStore *store, guint64 rate, GError **error)
{
  WeirDiskModel model;
  Streams *streams;
  gboolean may;
  guint n;

  // How many blocks come from a cache, and how many from elsewhere, is not known before.
  if (weir_block_store_is_remote (store))
    return TRUE;
  model = measure (store);
  g_mutex_lock (&lock);
  if (!stores)
    stores = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  streams = g_hash_table_lookup (stores, store);
  if (!streams) {
    streams = g_new0 (Streams, 1);
    g_hash_table_insert (stores, store, streams);
  }
  n = streams->n;
  // One stream is always admitted: the disks are measured by what they do.
  may = n == 0 || fits (&model, streams, rate);
  if (may) {
    streams->n++;
    streams->rate += rate;
  }
  g_mutex_unlock (&lock);
  if (!may)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE,
        "the disks of the store %s can give no more than %u streams now (%u disks, access time "
        "%.1f ms, %.0f Mb/s each)",
        weir_block_store_get_path (store), n, model.n_disks, model.access_s * 1e3,
        model.disk_rate / 1e6);
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
