// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_bytes.h"

#include <gio/gio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/threads.h"

#define REGION_BYTES (256 * 1024)
#define RATE_UNKNOWN 8000000 // bits a second

typedef struct {
  StoreBytes parent;
  SwarmTitle *title;
  SwarmReader *reader;
  GMutex lock;
  GQueue waiting;   // of SwarmRegion, in the order in which they were asked for; with `lock`
  gboolean working; // a thread reads them; with `lock`
} SwarmBytes;

typedef struct {
  StoreRegion parent;
  gatomicrefcount refs;
  SwarmBytes *bytes;
  GMutex lock; // protects the fields below; held while `done` runs
  int file;    // an anonymous file with the region; -1: not read yet
  GError *error;
  StoreRegionDone done; // NULL once it has run, or the region was freed
  gpointer data;
} SwarmRegion;

// ---- regions ----

static void
region_unref (SwarmRegion *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->file >= 0)
    close (self->file);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  store_bytes_unref (&self->bytes->parent);
  g_free (self);
}

static gboolean
is_wanted (SwarmRegion *self)
{
  gboolean wanted;

  g_mutex_lock (&self->lock);
  wanted = self->done != NULL;
  g_mutex_unlock (&self->lock);
  return wanted;
}

static int
make_file (SwarmRegion *self, GError **error)
{
  const gsize length = (gsize) (self->parent.end - self->parent.start);
  int file = memfd_create ("swarm-region", MFD_CLOEXEC);
  guint8 *to = MAP_FAILED;
  gboolean ok;

  if (file >= 0 && ftruncate (file, (off_t) length) == 0)
    to = mmap (NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (to == MAP_FAILED) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "no memory for a part of a title");
    ok = FALSE;
  } else {
    ok = swarm_reader_read (self->bytes->reader, self->parent.start, to, length, error) == length;
    munmap (to, length);
  }
  if (!ok && file >= 0)
    close (file);
  return ok ? file : -1;
}

static void
load (SwarmRegion *self)
{
  GError *error = NULL;
  StoreRegionDone done;
  int file;

  if (!is_wanted (self))
    return;
  file = make_file (self, &error);
  g_mutex_lock (&self->lock);
  self->file = file;
  self->error = error;
  done = g_steal_pointer (&self->done);
  if (done)
    done (self->data);
  g_mutex_unlock (&self->lock);
}

// ---- the thread that reads; a reader that waits for a piece has its own ----

static SwarmRegion *
take_next (SwarmBytes *self)
{
  SwarmRegion *next;

  g_mutex_lock (&self->lock);
  next = g_queue_pop_head (&self->waiting);
  if (!next)
    self->working = FALSE;
  g_mutex_unlock (&self->lock);
  return next;
}

static void
work (gpointer data)
{
  SwarmBytes *self = data;
  SwarmRegion *region;

  while ((region = take_next (self))) {
    load (region);
    region_unref (region);
  }
  store_bytes_unref (&self->parent);
}

static StoreRegion *
swarm_bytes_ask (
    StoreBytes *bytes, guint64 at, gint64 deadline_ns, StoreRegionDone done, gpointer data)
{
  SwarmBytes *from = (SwarmBytes *) bytes;
  SwarmRegion *self = g_new0 (SwarmRegion, 1);
  gboolean idle;

  self->parent = (StoreRegion) { bytes->kind, at, MIN (bytes->size, at + REGION_BYTES) };
  g_atomic_ref_count_init (&self->refs);
  g_atomic_ref_count_inc (&self->refs); // of the thread
  g_mutex_init (&self->lock);
  store_bytes_ref (bytes);
  self->bytes = from;
  self->file = -1;
  self->done = done;
  self->data = data;
  g_mutex_lock (&from->lock);
  g_queue_push_tail (&from->waiting, self);
  idle = !from->working;
  from->working = TRUE;
  g_mutex_unlock (&from->lock);
  if (idle)
    thread_run ("swarm-read", work, store_bytes_ref (bytes));
  return &self->parent;
}

static gboolean
swarm_region_is_ready (StoreRegion *region, GError **error)
{
  SwarmRegion *self = (SwarmRegion *) region;
  gboolean ready;

  g_mutex_lock (&self->lock);
  ready = self->file >= 0;
  if (self->error && error)
    *error = g_error_copy (self->error);
  g_mutex_unlock (&self->lock);
  return ready;
}

static void
swarm_region_get (StoreRegion *region, guint64 at, int *fd, off_t *offset, gsize *length)
{
  *fd = ((SwarmRegion *) region)->file;
  *offset = (off_t) (at - region->start);
  *length = (gsize) (region->end - at);
}

static void
swarm_region_free (StoreRegion *region)
{
  SwarmRegion *self = (SwarmRegion *) region;

  g_mutex_lock (&self->lock);
  self->done = NULL;
  g_mutex_unlock (&self->lock);
  region_unref (self);
}

// ---- lifetime ----

static void
swarm_bytes_free (StoreBytes *bytes)
{
  SwarmBytes *self = (SwarmBytes *) bytes;

  swarm_title_remove_reader (self->title, self->reader);
  swarm_title_unref (self->title);
  g_mutex_clear (&self->lock);
  g_free (self);
}

StoreBytes *
swarm_bytes_new (SwarmTitle *title, GError **error)
{
  static const StoreBytesKind kind = { swarm_bytes_ask, swarm_region_is_ready, swarm_region_get,
    swarm_region_free, NULL, NULL, swarm_bytes_free };
  SwarmReader *reader = swarm_title_add_reader (title, error);
  const guint64 rate = swarm_title_get_rate (title);
  SwarmBytes *self;

  if (!reader)
    return NULL;
  self = g_new0 (SwarmBytes, 1);
  store_bytes_init (&self->parent, &kind);
  self->title = swarm_title_ref (title);
  self->reader = reader;
  g_mutex_init (&self->lock);
  g_queue_init (&self->waiting);
  self->parent.size = swarm_reader_get_size (reader);
  self->parent.etag = g_strdup_printf ("\"%s\"", swarm_title_get_id (title));
  self->parent.rate = rate;
  self->parent.slice_ns = (gint64) (REGION_BYTES * 8e9 / (gdouble) (rate ? rate : RATE_UNKNOWN));
  return &self->parent;
}
