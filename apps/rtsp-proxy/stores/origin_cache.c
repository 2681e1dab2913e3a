// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/origin_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/log.h"
#include "window/policy.h"

#define NAME_DIGITS 16
#define PART ".part"

// Follows the bytes of a block in its file.
typedef struct {
  guint8 id[ORIGIN_ID_BYTES];
  guint64 number;
  guint64 hash; // of the bytes
} Trailer;

struct _OriginCache {
  gint refs; // atomic
  gchar *folder;
  int lock_fd; // -1: the folder is not ours; constant after the opening, like `opened`
  gboolean opened;
  GMutex opening; // for one opening at a time
  GMutex lock;    // for what follows
  WeirPolicy policy;
  GHashTable *unready; // keys of blocks that are being written
};

static guint64
make_key (const guint8 *id, guint32 number)
{
  return XXH3_64bits_withSeed (id, ORIGIN_ID_BYTES, number);
}

static gchar *
dup_path (OriginCache *self, guint64 key)
{
  return g_strdup_printf ("%s/%016" G_GINT64_MODIFIER "x", self->folder, key);
}

// ---- the folder ----

static gboolean
parse_name (const gchar *name, guint64 *key)
{
  gchar *rest;

  *key = g_ascii_strtoull (name, &rest, 16);
  return rest == name + NAME_DIGITS && !*rest;
}

// Removes blocks until the bound is kept.
static void
evict (OriginCache *self)
{
  guint64 key;
  gboolean more = TRUE;

  while (more) {
    g_autofree gchar *path = NULL;

    g_mutex_lock (&self->lock);
    more = weir_policy_evict (&self->policy, &key);
    g_mutex_unlock (&self->lock);
    if (!more)
      return;
    path = dup_path (self, key);
    g_unlink (path);
  }
}

static void
list_blocks (OriginCache *self)
{
  GDir *dir = g_dir_open (self->folder, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *path = g_build_filename (self->folder, name, NULL);
    guint64 key;
    GStatBuf st;

    if (g_str_has_suffix (name, PART)) {
      g_unlink (path); // the program was killed
    } else if (parse_name (name, &key) && g_stat (path, &st) == 0) {
      g_mutex_lock (&self->lock);
      weir_policy_add (&self->policy, key, (guint64) st.st_size);
      g_mutex_unlock (&self->lock);
    }
  }
  if (dir)
    g_dir_close (dir);
  evict (self);
}

void
origin_cache_open (OriginCache *self)
{
  static LogLimit limit = { .burst = 4, .interval_ms = 60000 };
  g_autofree gchar *path = g_build_filename (self->folder, "lock", NULL);
  int fd = -1;

  g_mutex_lock (&self->opening);
  if (!g_atomic_int_get (&self->opened)) {
    if (g_mkdir (self->folder, 0700) == 0 || errno == EEXIST)
      fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) == 0) {
      self->lock_fd = fd;
      list_blocks (self);
      g_atomic_int_set (&self->opened, TRUE);
    } else {
      log_event_limited (&limit, "%s: blocks are not kept in this folder: %s", self->folder,
          errno == EWOULDBLOCK ? "another mount or process uses it" : g_strerror (errno));
      if (fd >= 0)
        close (fd);
    }
  }
  g_mutex_unlock (&self->opening);
}

// ---- blocks ----

gboolean
origin_cache_ask (OriginCache *self, const guint8 *id, guint32 number)
{
  guint64 key = make_key (id, number);
  gboolean there;

  if (!g_atomic_int_get (&self->opened))
    return FALSE;
  g_mutex_lock (&self->lock);
  there = weir_policy_ask (&self->policy, key) == 1 && !g_hash_table_contains (self->unready, &key);
  g_mutex_unlock (&self->lock);
  return there;
}

static gboolean
read_all (int fd, void *bytes, gsize length, off_t offset)
{
  guint8 *at = bytes;

  while (length > 0) {
    const gssize n = pread (fd, at, length, offset);

    if (n <= 0 && !(n < 0 && errno == EINTR))
      return FALSE;
    at += MAX (n, 0);
    length -= (gsize) MAX (n, 0);
    offset += MAX (n, 0);
  }
  return TRUE;
}

gboolean
origin_cache_read (OriginCache *self, const guint8 *id, guint32 number, guint8 *bytes, gsize length)
{
  const guint64 key = make_key (id, number);
  g_autofree gchar *path = dup_path (self, key);
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  Trailer trailer;
  gboolean good = fd >= 0 && read_all (fd, bytes, length, 0)
                  && read_all (fd, &trailer, sizeof trailer, (off_t) length)
                  && memcmp (trailer.id, id, sizeof trailer.id) == 0 && trailer.number == number
                  && trailer.hash == XXH3_64bits (bytes, length);

  if (fd >= 0)
    close (fd);
  if (!good) {
    g_mutex_lock (&self->lock);
    weir_policy_remove (&self->policy, key);
    g_mutex_unlock (&self->lock);
    g_unlink (path);
  }
  return good;
}

static gboolean
write_all (int fd, const void *bytes, gsize length)
{
  const guint8 *at = bytes;

  while (length > 0) {
    const gssize n = write (fd, at, length);

    if (n < 0 && errno != EINTR)
      return FALSE;
    at += MAX (n, 0);
    length -= (gsize) MAX (n, 0);
  }
  return TRUE;
}

// Returns 0 or errno.
static gint
write_file (const gchar *path, const guint8 *bytes, gsize length, const Trailer *trailer)
{
  g_autofree gchar *part = g_strconcat (path, PART, NULL);
  int fd = open (part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  gint error = 0;

  if (fd < 0 || !write_all (fd, bytes, length) || !write_all (fd, trailer, sizeof *trailer)
      || g_rename (part, path) < 0) {
    error = errno;
    g_unlink (part);
  }
  if (fd >= 0)
    close (fd);
  return error;
}

// Gives a block its place. Returns FALSE if it has one already, or is not worth it.
static gboolean
reserve (OriginCache *self, guint64 key, guint64 bytes)
{
  gboolean added;

  g_mutex_lock (&self->lock);
  added = weir_policy_add (&self->policy, key, bytes) == 0;
  if (added)
    g_hash_table_add (self->unready, g_memdup2 (&key, sizeof key));
  g_mutex_unlock (&self->lock);
  if (!added)
    return FALSE;
  evict (self);
  g_mutex_lock (&self->lock);
  added = weir_policy_holds (&self->policy, key);
  if (!added)
    g_hash_table_remove (self->unready, &key);
  g_mutex_unlock (&self->lock);
  return added;
}

void
origin_cache_write (
    OriginCache *self, const guint8 *id, guint32 number, const guint8 *bytes, gsize length)
{
  static LogLimit limit = { .burst = 4, .interval_ms = 60000 };
  const guint64 key = make_key (id, number);
  Trailer trailer = { .number = number };
  gboolean kept;
  g_autofree gchar *path = NULL;
  gint error;

  if (!g_atomic_int_get (&self->opened) || !reserve (self, key, length + sizeof trailer))
    return;
  memcpy (trailer.id, id, sizeof trailer.id);
  trailer.hash = XXH3_64bits (bytes, length);
  path = dup_path (self, key);
  error = write_file (path, bytes, length, &trailer);
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->unready, &key);
  if (error)
    weir_policy_remove (&self->policy, key);
  kept = weir_policy_holds (&self->policy, key);
  g_mutex_unlock (&self->lock);
  if (!kept)
    g_unlink (path); // evicted while it was written
  if (error)
    log_event_limited (&limit, "%s: a block cannot be kept: %s", self->folder, g_strerror (error));
}

// ---- lifetime ----

OriginCache *
origin_cache_new (const gchar *folder, guint64 bytes)
{
  OriginCache *self = g_new0 (OriginCache, 1);

  self->refs = 1;
  self->folder = g_strdup (folder);
  self->lock_fd = -1;
  g_mutex_init (&self->opening);
  g_mutex_init (&self->lock);
  weir_policy_init (&self->policy, WEIR_POLICY_LFU, bytes);
  self->unready = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  return self;
}

OriginCache *
origin_cache_ref (OriginCache *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
origin_cache_unref (OriginCache *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  if (self->lock_fd >= 0)
    close (self->lock_fd);
  weir_policy_free (&self->policy);
  g_hash_table_unref (self->unready);
  g_mutex_clear (&self->opening);
  g_mutex_clear (&self->lock);
  g_free (self->folder);
  g_free (self);
}
