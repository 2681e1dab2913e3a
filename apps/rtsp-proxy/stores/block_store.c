// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "stores/block_store.h"

#include <errno.h>
#include <gio/gio.h>

#include "base/file_roots.h"
#include "base/log.h"
#include "store/reading.h"
#include "store/upkeep.h"
#include "stores/block_bytes.h"
#include "stores/bytes_socket.h"

#define BALANCE_RATE (G_GUINT64_CONSTANT (8) << 20) // bytes a second, as for repairs

typedef struct {
  Store parent;
  gchar *path;
  gboolean is_limited; // see block_store_new()
  guint64 memory;      // for blocks, in bytes
  GMutex lock;         // protects the following
  // NULL before the first title.
  WeirBlockStore *store;
  WeirStoreBalancer *balancer;
} BlockStore;

// ---- titles ----

// An API client may have named another folder below `file-roots`, which has become a link since.
static WeirBlockStore *
open_folder (BlockStore *self, GError **error)
{
  g_autofree gchar *wrong = self->is_limited ? file_roots_check (self->path) : NULL;

  if (!wrong)
    return weir_block_store_open (self->path, error);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED, wrong);
  return NULL;
}

// Returns the store, which stays open, so that its blocks in memory and what is known of its disks
// outlive its readers.
static WeirBlockStore *
open_store (BlockStore *self, GError **error)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  GError *why = NULL;
  WeirBlockStore *store;

  g_mutex_lock (&self->lock);
  if (!self->store) {
    self->store = open_folder (self, &why);
    if (self->store) {
      weir_block_store_set_memory (self->store, self->memory);
      self->balancer = weir_store_balancer_new (self->store, BALANCE_RATE);
    }
  }
  store = self->store ? weir_block_store_ref (self->store) : NULL;
  g_mutex_unlock (&self->lock);
  if (store)
    return store;
  log_event_limited (&limit, "store %s: %s", self->path, why->message);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s", why->message);
  g_error_free (why);
  return NULL;
}

static StoreBytes *
block_store_open_bytes (Store *store, const gchar *name, GError **error)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  WeirBlockStore *from = open_store ((BlockStore *) store, error);
  gint code = G_IO_ERROR_INVALID_DATA;
  GError *why = NULL;
  WeirStoredTitle *title;

  if (!from)
    return NULL;
  title = weir_block_store_open_title (from, name, &why);
  weir_block_store_unref (from);
  if (title)
    return block_bytes_new (title);
  if (g_error_matches (why, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND)
      || g_error_matches (why, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NAME))
    code = G_IO_ERROR_NOT_FOUND;
  else
    log_event_limited (&limit, "a title cannot be opened: %s", why->message);
  g_set_error_literal (error, G_IO_ERROR, code, why->message);
  g_error_free (why);
  return NULL;
}

static int
block_store_open (Store *store, const gchar *name, guint64 *size, GError **error)
{
  return bytes_socket_open (block_store_open_bytes (store, name, error), size, error);
}

// ---- listing ----

typedef struct {
  StoreFoundFunc found;
  gpointer data;
} Listing;

static gboolean
list_title (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  const Listing *listing = data;

  return !title || listing->found (name, weir_stored_title_get_index (title)->bytes, listing->data);
}

static gboolean
block_store_list (Store *store, StoreFoundFunc found, gpointer data)
{
  WeirBlockStore *from = open_store ((BlockStore *) store, NULL);
  Listing listing = { found, data };
  gboolean ok = from && weir_block_store_list (from, list_title, &listing, NULL);

  g_clear_pointer (&from, weir_block_store_unref);
  if (!ok)
    errno = EIO;
  return ok;
}

// ---- disks ----

guint
block_store_fill_disks (WeirBlockStore *store, StoreDisk *disks, guint n_max)
{
  g_autofree WeirDiskStats *stats = g_new0 (WeirDiskStats, n_max);
  guint n = MIN (weir_block_store_get_stats (store, stats, n_max), n_max);

  for (guint i = 0; i < n; i++)
    disks[i] = (StoreDisk) { .number = stats[i].number,
      .queue = stats[i].queue,
      .reads = stats[i].reads,
      .errors = stats[i].errors,
      .second_choices = stats[i].second_choices,
      .bytes = stats[i].bytes,
      .moved_here = stats[i].moved_here,
      .moved_away = stats[i].moved_away,
      .service_us = (guint64) MAX (stats[i].service_ns, 0) / 1000,
      .access_us = (guint64) MAX (stats[i].access_ns, 0) / 1000,
      .rate = stats[i].rate,
      .failing = stats[i].failing };
  return n;
}

static guint
block_store_get_disks (Store *store, StoreDisk *disks, guint n_max)
{
  BlockStore *self = (BlockStore *) store;
  WeirBlockStore *from;
  guint n = 0;

  g_mutex_lock (&self->lock);
  from = self->store ? weir_block_store_ref (self->store) : NULL;
  g_mutex_unlock (&self->lock);
  if (from)
    n = block_store_fill_disks (from, disks, n_max);
  g_clear_pointer (&from, weir_block_store_unref);
  return n;
}

// ---- lifetime ----

static void
block_store_free (Store *store)
{
  BlockStore *self = (BlockStore *) store;

  g_clear_pointer (&self->balancer, weir_store_balancer_free);
  g_clear_pointer (&self->store, weir_block_store_unref);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self);
}

Store *
block_store_new (const gchar *path, gboolean is_limited, guint64 memory)
{
  static const StoreKind kind = { block_store_open, block_store_open_bytes, block_store_list,
    block_store_get_disks, block_store_free };
  BlockStore *self = g_new0 (BlockStore, 1);

  store_init (&self->parent, &kind);
  g_mutex_init (&self->lock);
  self->path = g_strdup (path);
  self->is_limited = is_limited;
  self->memory = memory;
  return &self->parent;
}
