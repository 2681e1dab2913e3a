// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "stores/block_store.h"

#include <errno.h>
#include <gio/gio.h>

#include "base/log.h"
#include "stores/block_bytes.h"
#include "stores/bytes_socket.h"

typedef struct {
  Store parent;
  gchar *path;
} BlockStore;

// ---- titles ----

static WeirBlockStore *
open_store (BlockStore *self, GError **error)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  GError *why = NULL;
  WeirBlockStore *store = weir_block_store_open (self->path, &why);

  if (store)
    return store;
  log_event_limited (&limit, "store %s: %s", self->path, why->message);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s", why->message);
  g_error_free (why);
  return NULL;
}

static StoreBytes *
block_store_open_bytes (Store *store, const gchar *name, GError **error)
{
  WeirBlockStore *from = open_store ((BlockStore *) store, error);
  GError *why = NULL;
  WeirStoredTitle *title;

  if (!from)
    return NULL;
  title = weir_block_store_open_title (from, name, &why);
  weir_block_store_unref (from);
  if (title)
    return block_bytes_new (title);
  g_set_error (error, G_IO_ERROR,
      g_error_matches (why, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND) ? G_IO_ERROR_NOT_FOUND
                                                                          : G_IO_ERROR_FAILED,
      "%s", why->message);
  g_error_free (why);
  return NULL;
}

static int
block_store_open (Store *store, const gchar *name, guint64 *size)
{
  GError *error = NULL;
  StoreBytes *bytes = block_store_open_bytes (store, name, &error);
  int fd;

  if (!bytes) {
    errno = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ? ENOENT : EIO;
    g_error_free (error);
    return -1;
  }
  if (size)
    *size = bytes->size;
  fd = bytes_socket_new (bytes);
  store_bytes_unref (bytes);
  return fd;
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

// ---- lifetime ----

static void
block_store_free (Store *store)
{
  g_free (((BlockStore *) store)->path);
  g_free (store);
}

Store *
block_store_new (const gchar *path)
{
  static const StoreKind kind = { block_store_open, block_store_open_bytes, block_store_list,
    block_store_free };
  BlockStore *self = g_new0 (BlockStore, 1);

  store_init (&self->parent, &kind);
  self->path = g_strdup (path);
  return &self->parent;
}
