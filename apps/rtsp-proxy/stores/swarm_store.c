// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_store.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/log.h"
#include "stores/bytes_socket.h"
#include "stores/swarm_bytes.h"

#define TORRENT_BYTES_MAX (16u << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
#define LINGER_US (60 * G_USEC_PER_SEC) // in the swarm after the last reader
#define SWEEP_S 5

// What stores with the same configuration share.
typedef struct {
  guint refs; // with `swarms_lock`
  gchar *key, *folder;
  GStrv properties;
  guint max_titles;
  gboolean seeds;
  guint sweep;          // source on the main context
  GMutex lock;          // protects `titles`
  GHashTable *titles;   // name: SwarmTitle, in the swarm
  StoreSwarmTitle gone; // what titles that have left did; with `lock`
} Swarm;

typedef struct {
  Store parent;
  Swarm *swarm;
} SwarmStore;

static GMutex swarms_lock;
static GHashTable *swarms; // key: Swarm, without references

// ---- titles that leave ----

// Drops the reference of the table to a title that is no longer in it.
static void
drop (Swarm *self, SwarmTitle *title)
{
  StoreSwarmTitle figures;

  swarm_title_get_figures (title, &figures);
  g_mutex_lock (&self->lock);
  store_swarm_add (&self->gone, &figures);
  g_mutex_unlock (&self->lock);
  swarm_title_unref (title);
}

// Returns the title without readers that was left first, at `until_us` or before, or NULL. Lock
// held. (transfer full)
static SwarmTitle *
take_idle (Swarm *self, gint64 until_us)
{
  SwarmTitle *oldest = NULL;
  const gchar *name = NULL;
  GHashTableIter iter;
  gpointer key, value;

  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, &key, &value)) {
    gint64 left_us;

    if (swarm_title_count_readers (value, &left_us) == 0 && left_us <= until_us) {
      oldest = value;
      name = key;
      until_us = left_us;
    }
  }
  if (!oldest)
    return NULL;
  swarm_title_ref (oldest);
  g_hash_table_remove (self->titles, name);
  return oldest;
}

// Lets titles leave: those without readers for a minute, if the store does not seed, and the
// oldest ones that are too many.
static void
sweep (Swarm *self)
{
  for (;;) {
    gint64 now_us = g_get_monotonic_time ();
    SwarmTitle *idle = NULL;

    g_mutex_lock (&self->lock);
    if (!self->seeds)
      idle = take_idle (self, now_us - LINGER_US);
    if (!idle && g_hash_table_size (self->titles) > self->max_titles)
      idle = take_idle (self, now_us);
    g_mutex_unlock (&self->lock);
    if (!idle)
      return;
    drop (self, idle);
  }
}

static gboolean
on_sweep (gpointer swarm)
{
  sweep (swarm);
  return G_SOURCE_CONTINUE;
}

// ---- what is shared ----

static Swarm *
swarm_new (const SwarmConfig *config, gchar *key)
{
  Swarm *self = g_new0 (Swarm, 1);

  self->refs = 1;
  self->key = key;
  self->folder = g_strdup (config->folder);
  self->properties = g_strdupv ((gchar **) config->properties);
  self->max_titles = config->max_titles;
  self->seeds = config->seeds;
  g_mutex_init (&self->lock);
  self->titles = g_hash_table_new_full (
      g_str_hash, g_str_equal, g_free, (GDestroyNotify) (void (*) (void)) swarm_title_unref);
  self->sweep = g_timeout_add_seconds (SWEEP_S, on_sweep, self);
  return self;
}

static gchar *
make_key (const SwarmConfig *config)
{
  g_autofree gchar *properties = g_strjoinv ("\n", (gchar **) config->properties);

  return g_strdup_printf (
      "%s\n%u\n%d\n%s", config->folder, config->max_titles, config->seeds, properties);
}

static Swarm *
get_swarm (const SwarmConfig *config)
{
  gchar *key = make_key (config);
  Swarm *self;

  g_mutex_lock (&swarms_lock);
  if (!swarms)
    swarms = g_hash_table_new (g_str_hash, g_str_equal);
  self = g_hash_table_lookup (swarms, key);
  if (self) {
    self->refs++;
    g_free (key);
  } else {
    self = swarm_new (config, key);
    g_hash_table_insert (swarms, self->key, self);
  }
  g_mutex_unlock (&swarms_lock);
  return self;
}

// On the main thread, so that no sweep runs.
static gboolean
swarm_free (gpointer data)
{
  Swarm *self = data;

  g_source_remove (self->sweep);
  g_hash_table_unref (self->titles);
  g_mutex_clear (&self->lock);
  g_strfreev (self->properties);
  g_free (self->folder);
  g_free (self->key);
  g_free (self);
  return G_SOURCE_REMOVE;
}

static void
swarm_unref (Swarm *self)
{
  gboolean last;

  g_mutex_lock (&swarms_lock);
  last = --self->refs == 0;
  if (last)
    g_hash_table_remove (swarms, self->key);
  g_mutex_unlock (&swarms_lock);
  if (last)
    g_main_context_invoke (NULL, swarm_free, self);
}

// ---- opening ----

// Opens the torrent of a title: NAME.torrent has the title NAME, or those below it. Of two, the one
// with the longer name counts. Sets `*file` to the rest of the name, or to NULL.
static void
find_torrent (Swarm *self, const gchar *name, SwarmTorrent *torrent, const gchar **file)
{
  const gchar *end = store_is_name (name) ? name + strlen (name) : NULL;

  while (end && torrent->fd < 0) {
    torrent->name = g_strdup_printf ("%.*s.torrent", (int) (end - name), name);
    torrent->fd = beneath_open (self->folder, torrent->name);
    *file = *end ? end + 1 : NULL;
    if (torrent->fd < 0)
      swarm_torrent_clear (torrent);
    end = g_strrstr_len (name, end - name, "/");
  }
}

// Puts a copy in memory in place of the file: a worker process may open that, and nobody changes
// it.
static gboolean
copy_to_memory (SwarmTorrent *torrent, const guint8 *bytes, gsize n)
{
  const int copy = memfd_create ("torrent", MFD_CLOEXEC | MFD_ALLOW_SEALING);

  if (copy < 0)
    return FALSE;
  close (torrent->fd);
  torrent->fd = copy;
  return write (copy, bytes, n) == (gssize) n && fcntl (copy, F_ADD_SEALS, SEALS) == 0;
}

// Computes what the content of a torrent is known by, and keeps that content.
static gboolean
identify (SwarmTorrent *torrent, GError **error)
{
  g_autofree guint8 *bytes = g_malloc (TORRENT_BYTES_MAX);
  const gssize n = pread (torrent->fd, bytes, TORRENT_BYTES_MAX, 0);

  if (n > 0 && n < TORRENT_BYTES_MAX && !copy_to_memory (torrent, bytes, (gsize) n))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", torrent->name, g_strerror (errno));
  else if (n > 0 && n < TORRENT_BYTES_MAX)
    torrent->id = g_compute_checksum_for_data (G_CHECKSUM_SHA1, bytes, (gsize) n);
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: %s", torrent->name,
        n < 0    ? g_strerror (errno)
        : n == 0 ? "the file is empty"
                 : "more than 16 MiB are no torrent");
  return torrent->id != NULL;
}

// Returns the title if this torrent of it is in the swarm. (transfer full)
static SwarmTitle *
find (Swarm *self, const gchar *name, const gchar *id)
{
  SwarmTitle *title;

  g_mutex_lock (&self->lock);
  title = g_hash_table_lookup (self->titles, name);
  title = title && g_str_equal (swarm_title_get_id (title), id) ? swarm_title_ref (title) : NULL;
  g_mutex_unlock (&self->lock);
  return title;
}

// Adds a title, and returns the one that was there (transfer full), of another torrent, or NULL.
static SwarmTitle *
replace (Swarm *self, const gchar *name, SwarmTitle *title)
{
  gpointer key = NULL, before = NULL;

  g_mutex_lock (&self->lock);
  g_hash_table_steal_extended (self->titles, name, &key, &before);
  g_hash_table_insert (self->titles, g_strdup (name), swarm_title_ref (title));
  g_mutex_unlock (&self->lock);
  g_free (key);
  return before;
}

// Joins the swarm of a title. Takes what `torrent` has.
static SwarmTitle *
join (Swarm *self, SwarmTorrent *torrent, const gchar *name, const gchar *file, GError **error)
{
  SwarmTitle *title =
      swarm_title_new (torrent, name, file, (const gchar *const *) self->properties, error);
  // Somebody may have been faster.
  SwarmTitle *other = title ? find (self, name, swarm_title_get_id (title)) : NULL;

  if (other) {
    swarm_title_unref (title);
    return other;
  }
  other = title ? replace (self, name, title) : NULL;
  if (other)
    drop (self, other);
  return title;
}

static SwarmTitle *
open_title (
    Swarm *self, SwarmTorrent *torrent, const gchar *name, const gchar *file, GError **error)
{
  SwarmTitle *title = NULL;

  if (identify (torrent, error)) {
    title = find (self, name, torrent->id);
    if (!title)
      title = join (self, torrent, name, file, error);
  }
  swarm_torrent_clear (torrent);
  return title;
}

static StoreBytes *
swarm_store_open_bytes (Store *store, const gchar *name, GError **error)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  Swarm *self = ((SwarmStore *) store)->swarm;
  SwarmTorrent torrent = { .fd = -1 };
  SwarmTitle *title;
  StoreBytes *bytes;
  const gchar *file = NULL;
  GError *why = NULL;

  find_torrent (self, name, &torrent, &file);
  if (torrent.fd < 0) {
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "there is no torrent for a title '%s'", name);
    return NULL;
  }
  title = open_title (self, &torrent, name, file, &why);
  bytes = title ? swarm_bytes_new (title, &why) : NULL;
  g_clear_pointer (&title, swarm_title_unref);
  if (bytes)
    return bytes;
  log_event_limited (&limit, "a title of the swarm cannot be opened: %s", why->message);
  g_propagate_error (error, why);
  return NULL;
}

static int
swarm_store_open (Store *store, const gchar *name, guint64 *size, GError **error)
{
  return bytes_socket_open (swarm_store_open_bytes (store, name, error), size, error);
}

// ---- listing ----

// What is in a torrent is known only when its title is opened.
static gboolean
swarm_store_list (Store *store, StoreFoundFunc found, gpointer data)
{
  errno = ENOTSUP;
  return FALSE;
}

static void
swarm_store_get_swarm (Store *store, StoreSwarmTitle *sum, StoreSwarmFunc found, gpointer data)
{
  Swarm *self = ((SwarmStore *) store)->swarm;
  g_autoptr (GPtrArray) all =
      g_ptr_array_new_with_free_func ((GDestroyNotify) (void (*) (void)) swarm_title_unref);
  GHashTableIter iter;
  gpointer title;

  g_mutex_lock (&self->lock);
  *sum = self->gone;
  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, NULL, &title))
    g_ptr_array_add (all, swarm_title_ref (title));
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < all->len; i++) {
    StoreSwarmTitle figures;

    swarm_title_get_figures (g_ptr_array_index (all, i), &figures);
    store_swarm_add (sum, &figures);
    sum->readers += figures.readers;
    sum->peers += figures.peers;
    sum->held_bytes += figures.held_bytes;
    if (found)
      found (data, swarm_title_get_name (g_ptr_array_index (all, i)), &figures);
  }
}

static void
swarm_store_free (Store *store)
{
  swarm_unref (((SwarmStore *) store)->swarm);
  g_free (store);
}

Store *
swarm_store_new (const SwarmConfig *config)
{
  static const StoreKind kind = { swarm_store_open, swarm_store_open_bytes, swarm_store_list, NULL,
    swarm_store_free, swarm_store_get_swarm };
  SwarmStore *self = g_new0 (SwarmStore, 1);

  swarm_reader_prepare ();
  store_init (&self->parent, &kind);
  self->swarm = get_swarm (config);
  return &self->parent;
}
