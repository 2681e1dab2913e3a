// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/threads.h"
#include "stores/duration.h"

#define SLICE_NS G_GINT64_CONSTANT (5000000000)
#define REGION_MIN (64 * 1024)
#define REGION_MAX (16 * 1024 * 1024)
#define REGION_UNPACED (4 * 1024 * 1024)
#define SAMPLE (128 * 1024) // one page in so many bytes tells whether the page cache has them
#define READ_BYTES (256 * 1024)
#define READERS 4 // threads that wait for disks

typedef struct {
  dev_t device;
  ino_t inode;
  off_t size;
  gint64 modified_ns;
} Identity;

typedef struct {
  StoreBytes parent;
  Identity identity;
  int fd;
  gsize region; // bytes
} FileBytes;

typedef struct {
  StoreRegion parent;
  gatomicrefcount refs;
  FileBytes *file;
  GMutex lock; // protects the fields below; held while `done` runs
  gboolean ready;
  StoreRegionDone done; // NULL once it has run, or the region was freed
  gpointer data;
} FileRegion;

// ---- open files ----

static GMutex files_lock;
static GHashTable *files; // of FileBytes by their Identity, without references; with `files_lock`

static guint
identity_hash (gconstpointer identity)
{
  const Identity *self = identity;

  return (guint) (self->inode * 31 + self->device);
}

static gboolean
identity_equal (gconstpointer a, gconstpointer b)
{
  const Identity *x = a, *y = b;

  return x->device == y->device && x->inode == y->inode && x->size == y->size
         && x->modified_ns == y->modified_ns;
}

// Returns the open file with this identity, or NULL. (transfer full)
static FileBytes *
find (const Identity *identity)
{
  FileBytes *self;

  g_mutex_lock (&files_lock);
  self = files ? g_hash_table_lookup (files, identity) : NULL;
  // The last reference may be gone: file_bytes_free() is about to remove the file then.
  if (self && !store_bytes_try_ref (&self->parent))
    self = NULL;
  g_mutex_unlock (&files_lock);
  return self;
}

static void
remember (FileBytes *self)
{
  g_mutex_lock (&files_lock);
  if (!files)
    files = g_hash_table_new (identity_hash, identity_equal);
  g_hash_table_replace (files, &self->identity, self);
  g_mutex_unlock (&files_lock);
}

static void
file_bytes_free (StoreBytes *bytes)
{
  FileBytes *self = (FileBytes *) bytes;

  g_mutex_lock (&files_lock);
  if (g_hash_table_lookup (files, &self->identity) == self)
    g_hash_table_remove (files, &self->identity);
  g_mutex_unlock (&files_lock);
  close (self->fd);
  g_free (self);
}

// ---- reading ----

// Reports whether the page cache has the region, by samples. A file system that cannot tell counts
// as having it.
static gboolean
is_cached (const FileRegion *region)
{
  for (guint64 at = region->parent.start; at < region->parent.end; at += SAMPLE) {
    gchar byte;
    struct iovec to = { &byte, 1 };

    if (preadv2 (region->file->fd, &to, 1, (off_t) at, RWF_NOWAIT) < 0 && errno == EAGAIN)
      return FALSE;
  }
  return TRUE;
}

static void
region_unref (FileRegion *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  store_bytes_unref (&self->file->parent);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
tell (FileRegion *self)
{
  StoreRegionDone done;

  g_mutex_lock (&self->lock);
  self->ready = TRUE;
  done = g_steal_pointer (&self->done);
  if (done)
    done (self->data);
  g_mutex_unlock (&self->lock);
}

// Reads the region into the page cache. Bytes that cannot be read are found missing when they are
// sent.
static void
load (gpointer data, gpointer unused)
{
  FileRegion *region = data;
  g_autofree guint8 *bytes = g_malloc (READ_BYTES);
  gssize n = 1;

  thread_set_name ("http-disk");
  for (guint64 at = region->parent.start; at < region->parent.end && n > 0; at += (guint64) n)
    n = pread (region->file->fd, bytes, MIN (READ_BYTES, region->parent.end - at), (off_t) at);
  tell (region);
  region_unref (region);
  thread_set_name (THREAD_IDLE);
}

static GThreadPool *
get_readers (void)
{
  static gsize readers;

  if (g_once_init_enter (&readers))
    g_once_init_leave (&readers, (gsize) g_thread_pool_new (load, NULL, READERS, FALSE, NULL));
  return (GThreadPool *) readers;
}

static StoreRegion *
file_bytes_ask (
    StoreBytes *bytes, guint64 at, gint64 deadline_ns, StoreRegionDone done, gpointer data)
{
  FileBytes *file = (FileBytes *) bytes;
  FileRegion *self = g_new0 (FileRegion, 1);

  self->parent.kind = bytes->kind;
  self->parent.start = at;
  self->parent.end = MIN (bytes->size, at + file->region);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->file = file;
  store_bytes_ref (bytes);
  self->done = done;
  self->data = data;
  if (is_cached (self)) {
    tell (self);
    return &self->parent;
  }
  posix_fadvise (file->fd, (off_t) at, (off_t) (self->parent.end - at), POSIX_FADV_WILLNEED);
  g_atomic_ref_count_inc (&self->refs);
  g_thread_pool_push (get_readers (), self, NULL);
  return &self->parent;
}

static gboolean
file_region_is_ready (StoreRegion *region, GError **error)
{
  FileRegion *self = (FileRegion *) region;
  gboolean ready;

  g_mutex_lock (&self->lock);
  ready = self->ready;
  g_mutex_unlock (&self->lock);
  return ready;
}

static void
file_region_get (StoreRegion *region, guint64 at, int *fd, off_t *offset, gsize *length)
{
  *fd = ((FileRegion *) region)->file->fd;
  *offset = (off_t) at;
  *length = region->end - at;
}

static void
file_region_free (StoreRegion *region)
{
  FileRegion *self = (FileRegion *) region;

  g_mutex_lock (&self->lock);
  self->done = NULL;
  g_mutex_unlock (&self->lock);
  region_unref (self);
}

// ---- construction ----

static const StoreBytesKind kind = { file_bytes_ask, file_region_is_ready, file_region_get,
  file_region_free, NULL, NULL, file_bytes_free };

static void
measure (FileBytes *self)
{
  gint64 duration = duration_of_file (self->fd, self->parent.size);
  gdouble region = REGION_UNPACED;

  self->parent.slice_ns = SLICE_NS;
  if (duration > 0) {
    self->parent.rate = (guint64) ((gdouble) self->parent.size * 8 * 1e9 / (gdouble) duration) + 1;
    region = (gdouble) self->parent.rate / 8 * SLICE_NS / 1e9;
  }
  self->region = (gsize) CLAMP (region, REGION_MIN, REGION_MAX);
}

StoreBytes *
file_bytes_new (int fd)
{
  Identity identity = { 0 };
  FileBytes *self;
  struct stat st;

  if (fstat (fd, &st) < 0) {
    close (fd);
    return NULL;
  }
  identity = (Identity) { st.st_dev, st.st_ino, st.st_size,
    st.st_mtim.tv_sec * G_GINT64_CONSTANT (1000000000) + st.st_mtim.tv_nsec };
  if ((self = find (&identity))) {
    close (fd);
    return &self->parent;
  }
  self = g_new0 (FileBytes, 1);
  store_bytes_init (&self->parent, &kind);
  self->identity = identity;
  self->fd = fd;
  self->parent.size = (guint64) st.st_size;
  self->parent.modified = st.st_mtim.tv_sec;
  self->parent.etag = g_strdup_printf ("\"%" G_GINT64_MODIFIER "x-%" G_GINT64_MODIFIER "x\"",
      (guint64) identity.modified_ns, (guint64) st.st_size);
  measure (self);
  remember (self);
  return &self->parent;
}
