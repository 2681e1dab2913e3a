// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/origin_store.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>

#include "base/log.h"
#include "run/clock.h"
#include "store/reading.h"
#include "stores/block_bytes.h"
#include "stores/block_store.h"
#include "stores/bytes_socket.h"
#include "stores/duration.h"

#define SLICE_NS G_GINT64_CONSTANT (2000000000) // half of it is long for a read
#define MEMORY_BYTES (64u << 20)                // for blocks, if there is a folder
#define KNOWN_MAX 4096                          // titles

// What stores with the same configuration share.
typedef struct {
  guint refs; // with `sites_lock`
  gchar *key;
  GStrv urls;
  guint connect_timeout_ms, read_timeout_ms;
  OriginHttp *http;   // NULL: see `wrong`
  gchar *wrong;       // why there is no client
  OriginCache *cache; // NULL: in memory only
  WeirBlockStore *store;
  GMutex lock;       // for `known`
  GHashTable *known; // name: OriginTitle, as it was found last
} Site;

typedef struct {
  Store parent;
  Site *site;
} OriginStore;

static GMutex sites_lock;
static GHashTable *sites; // key: Site, without references

// ---- sites ----

static gchar *
make_key (const OriginConfig *config)
{
  const OriginAccess *access = &config->access;
  g_autofree gchar *urls = g_strjoinv (" ", (gchar **) config->urls), *text = NULL;

  text = g_strdup_printf ("%s\n%s\n%s\n%s\n%s\n%s\n%d\n%s\n%s\n%u\n%u\n%" G_GUINT64_FORMAT "\n%s",
      urls, access->keys ? access->keys->access_key : "",
      access->keys ? access->keys->secret_key : "", access->keys ? access->keys->region : "",
      access->user ? access->user : "", access->password ? access->password : "",
      access->trust->any, access->trust->ca ? access->trust->ca : "",
      access->trust->fingerprint ? access->trust->fingerprint : "", config->connect_timeout_ms,
      config->read_timeout_ms, config->cache_bytes, config->folder ? config->folder : "");
  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
}

// The folder of a cache is the same for the same origins, whatever the other settings are.
static OriginCache *
make_cache (const OriginConfig *config)
{
  g_autofree gchar *urls = g_strjoinv (" ", (gchar **) config->urls);
  g_autofree gchar *hash = g_compute_checksum_for_string (G_CHECKSUM_SHA256, urls, -1);
  g_autofree gchar *folder = g_strdup_printf ("%s/origin-%.16s", config->folder, hash);

  return origin_cache_new (folder, config->cache_bytes);
}

static Site *
site_new (const OriginConfig *config, gchar *key)
{
  Site *self = g_new0 (Site, 1);
  g_autoptr (GError) error = NULL;

  self->refs = 1;
  self->key = key;
  self->urls = g_strdupv ((gchar **) config->urls);
  self->connect_timeout_ms = config->connect_timeout_ms;
  self->read_timeout_ms = config->read_timeout_ms;
  self->http = origin_http_new (&config->access, &error);
  if (error)
    self->wrong = g_strdup (error->message);
  self->cache = config->folder ? make_cache (config) : NULL;
  self->store = weir_block_store_new_remote (
      config->urls, config->folder ? config->folder : "memory", SLICE_NS);
  weir_block_store_set_memory (
      self->store, config->folder ? MIN (MEMORY_BYTES, config->cache_bytes) : config->cache_bytes);
  g_mutex_init (&self->lock);
  self->known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, origin_title_free);
  return self;
}

static Site *
get_site (const OriginConfig *config)
{
  gchar *key = make_key (config);
  Site *self;

  g_mutex_lock (&sites_lock);
  if (!sites)
    sites = g_hash_table_new (g_str_hash, g_str_equal);
  self = g_hash_table_lookup (sites, key);
  if (self) {
    self->refs++;
    g_free (key);
  } else {
    self = site_new (config, key);
    g_hash_table_insert (sites, self->key, self);
  }
  g_mutex_unlock (&sites_lock);
  return self;
}

static void
site_unref (Site *self)
{
  gboolean last;

  g_mutex_lock (&sites_lock);
  last = --self->refs == 0;
  if (last)
    g_hash_table_remove (sites, self->key);
  g_mutex_unlock (&sites_lock);
  if (!last)
    return;
  g_hash_table_unref (self->known);
  weir_block_store_unref (self->store);
  g_clear_pointer (&self->http, origin_http_unref);
  g_clear_pointer (&self->cache, origin_cache_unref);
  g_mutex_clear (&self->lock);
  g_strfreev (self->urls);
  g_free (self->wrong);
  g_free (self->key);
  g_free (self);
}

// ---- titles ----

static void
remember (Site *self, const gchar *name, OriginTitle *title)
{
  OriginTitle *copy = origin_title_copy (title);

  g_mutex_lock (&self->lock);
  if (g_hash_table_size (self->known) >= KNOWN_MAX)
    g_hash_table_remove_all (self->known);
  g_hash_table_replace (self->known, g_strdup (name), copy);
  g_mutex_unlock (&self->lock);
}

static WeirStoredTitle *
open_title (Site *self, const gchar *name, OriginTitle *title)
{
  WeirIndex index;

  origin_title_fill_index (title, name, &index);
  return weir_block_store_open_remote (self->store, &index, &origin_title_kind, title);
}

typedef struct {
  WeirStoredTitle *title;
  gboolean failed;
} Search;

// Reads from the blocks, which are of use to readers, too.
static gsize
read_for_duration (gpointer data, guint64 offset, guint8 *bytes, gsize length)
{
  Search *self = data;
  const WeirIndex *index = weir_stored_title_get_index (self->title);
  gsize got = 0;

  while (got < length && offset + got < index->bytes && !self->failed) {
    const guint64 at = offset + got;
    const guint32 number = (guint32) (at / ORIGIN_BLOCK_BYTES);
    const gsize within = (gsize) (at % ORIGIN_BLOCK_BYTES);
    WeirBlock *block = weir_block_read (self->title, number, weir_now_ns (), NULL, NULL);
    const guint8 *from;
    gsize there, n;

    if (!block) {
      self->failed = TRUE;
      break;
    }
    from = weir_block_get_bytes (block, &there);
    n = MIN (there - within, length - got);
    memcpy (bytes + got, from + within, n);
    got += n;
    weir_block_unref (block);
  }
  return got;
}

// Returns the duration in ns, or -1 if it is unknown. `*failed` tells whether the title cannot be
// read.
static gint64
find_duration (Site *self, const gchar *name, OriginTitle *title, gboolean *failed)
{
  Search search = { .title = open_title (self, name, origin_title_copy (title)) };
  gint64 duration = duration_find (read_for_duration, &search, title->size);

  weir_stored_title_unref (search.title);
  *failed = search.failed;
  return duration > 0 ? duration : -1;
}

static OriginTitle *
find_title (Site *self, const gchar *name, GError **error)
{
  OriginTitle *title, *known;
  gboolean failed = FALSE;

  if (!self->http) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_PROXY_FAILED, self->wrong);
    return NULL;
  }
  title = origin_title_find ((const gchar *const *) self->urls, name, self->http, self->cache,
      self->connect_timeout_ms, self->read_timeout_ms, error);
  if (!title)
    return NULL;
  g_mutex_lock (&self->lock);
  known = g_hash_table_lookup (self->known, name);
  origin_title_identify (title, name, known);
  g_mutex_unlock (&self->lock);
  if (title->duration_ns == WEIR_INDEX_NO_TIME)
    title->duration_ns = find_duration (self, name, title, &failed);
  if (!failed) {
    remember (self, name, title);
    return title;
  }
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_PROXY_FAILED, "title '%s' cannot be read", name);
  origin_title_free (title);
  return NULL;
}

static StoreBytes *
origin_store_open_bytes (Store *store, const gchar *name, GError **error)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  Site *self = ((OriginStore *) store)->site;
  GError *why = NULL;
  OriginTitle *title = NULL;
  StoreBytes *bytes;
  guint64 rate;

  if (!store_is_name (name)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "not a name for a title");
    return NULL;
  }
  if (self->cache)
    origin_cache_open (self->cache);
  title = find_title (self, name, &why);
  if (!title) {
    if (!g_error_matches (why, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
      log_event_limited (&limit, "a title cannot be opened: %s", why->message);
    g_propagate_error (error, why);
    return NULL;
  }
  rate = origin_title_get_rate (title);
  bytes = block_bytes_new (open_title (self, name, title));
  // The index of a title that somebody has open may be older than its rate.
  bytes->rate = rate;
  if (rate > 0)
    bytes->slice_ns = origin_title_get_slice (rate);
  return bytes;
}

static int
origin_store_open (Store *store, const gchar *name, guint64 *size, GError **error)
{
  return bytes_socket_open (origin_store_open_bytes (store, name, error), size, error);
}

// HTTP has no listing.
static gboolean
origin_store_list (Store *store, StoreFoundFunc found, gpointer data)
{
  errno = ENOTSUP;
  return FALSE;
}

static guint
origin_store_get_disks (Store *store, StoreDisk *disks, guint n_max)
{
  return block_store_fill_disks (((OriginStore *) store)->site->store, disks, n_max);
}

static void
origin_store_free (Store *store)
{
  site_unref (((OriginStore *) store)->site);
  g_free (store);
}

Store *
origin_store_new (const OriginConfig *config)
{
  static const StoreKind kind = { origin_store_open, origin_store_open_bytes, origin_store_list,
    origin_store_get_disks, origin_store_free };
  OriginStore *self = g_new0 (OriginStore, 1);

  store_init (&self->parent, &kind);
  self->site = get_site (config);
  return &self->parent;
}
