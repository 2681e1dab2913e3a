// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_title.h"

#include <gio/gio.h>
#include <unistd.h>

#include "stores/duration.h"

#define OPEN_S 5 // for which nothing of a title that is opened may come
#define READ_S 15

struct _SwarmTitle {
  gatomicrefcount refs;
  SwarmTorrent torrent;
  gchar *name, *file;
  GStrv properties;
  SwarmReaderTitle title; // of the fields above
  guint64 rate;           // bits a second; 0: unknown
  SwarmReader *holder;    // keeps the title in the swarm
  GMutex lock;            // protects the fields below
  GPtrArray *readers;     // of SwarmReader, without references
  gint64 left_us;
  StoreSwarmTitle past; // what readers met that have left
};

// ---- figures ----

// Adds what only a reader knows.
static void
add_reader (StoreSwarmTitle *past, SwarmReader *reader)
{
  StoreSwarmTitle figures;

  swarm_reader_get_figures (reader, &figures);
  past->late_pieces += figures.late_pieces;
  past->stalls += figures.stalls;
  past->stalled_us += figures.stalled_us;
  past->starts += figures.starts;
  past->starts_us += figures.starts_us;
  if (figures.start_up_us > 0)
    past->start_up_us = figures.start_up_us;
}

void
swarm_title_get_figures (SwarmTitle *self, StoreSwarmTitle *figures)
{
  guint64 useful;
  StoreSwarmTitle past;

  swarm_reader_get_figures (self->holder, figures);
  g_mutex_lock (&self->lock);
  past = self->past;
  for (guint i = 0; i < self->readers->len; i++)
    add_reader (&past, g_ptr_array_index (self->readers, i));
  figures->readers = self->readers->len;
  g_mutex_unlock (&self->lock);
  useful = figures->peer_bytes
           - MIN (figures->peer_bytes, figures->duplicate_bytes + figures->wrong_bytes);
  figures->saved_permille =
      useful > 0 ? (guint64) (1000.0 * (gdouble) useful
                                  / ((gdouble) useful + (gdouble) figures->origin_bytes)
                              + 0.5)
                 : 0;
  figures->late_pieces = past.late_pieces;
  figures->stalls = past.stalls;
  figures->stalled_us = past.stalled_us;
  figures->start_up_us = past.start_up_us;
  figures->starts = past.starts;
  figures->starts_us = past.starts_us;
}

// ---- readers ----

SwarmReader *
swarm_title_add_reader (SwarmTitle *self, GError **error)
{
  SwarmReader *reader = swarm_reader_new (&self->title, self->rate, READ_S, error);

  if (!reader)
    return NULL;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->readers, reader);
  g_mutex_unlock (&self->lock);
  return reader;
}

void
swarm_title_remove_reader (SwarmTitle *self, SwarmReader *reader)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_remove_fast (self->readers, reader);
  add_reader (&self->past, reader);
  self->left_us = g_get_monotonic_time ();
  g_mutex_unlock (&self->lock);
  swarm_reader_free (reader);
}

guint
swarm_title_count_readers (SwarmTitle *self, gint64 *left_us)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->readers->len;
  *left_us = self->left_us;
  g_mutex_unlock (&self->lock);
  return n;
}

// ---- lifetime ----

typedef struct {
  SwarmReader *reader;
  GError *error;
} Search;

static gsize
read_for_duration (gpointer data, guint64 offset, guint8 *bytes, gsize length)
{
  Search *self = data;

  return self->error ? 0 : swarm_reader_read (self->reader, offset, bytes, length, &self->error);
}

// Finds the rate of the title, 0 if its format is not known. Returns FALSE with an error if it
// cannot be read.
static gboolean
find_rate (SwarmReader *reader, guint64 *rate, GError **error)
{
  const guint64 size = swarm_reader_get_size (reader);
  Search search = { .reader = reader };
  const gint64 duration = duration_find (read_for_duration, &search, size);

  *rate = duration > 0 ? (guint64) MIN ((gdouble) size * 8e9 / (gdouble) duration + 1, 1e12) : 0;
  if (!search.error)
    return TRUE;
  g_propagate_error (error, search.error);
  return FALSE;
}

void
swarm_torrent_clear (SwarmTorrent *self)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
  g_clear_pointer (&self->name, g_free);
  g_clear_pointer (&self->id, g_free);
}

SwarmTitle *
swarm_title_new (SwarmTorrent *torrent, const gchar *name, const gchar *file,
    const gchar *const *properties, GError **error)
{
  SwarmTitle *self = g_new0 (SwarmTitle, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->torrent = *torrent;
  *torrent = (SwarmTorrent) { .fd = -1 };
  self->name = g_strdup (name);
  self->file = g_strdup (file);
  self->properties = g_strdupv ((gchar **) properties);
  self->title = (SwarmReaderTitle) { self->torrent.fd, -1, self->torrent.name, self->file,
    self->name, (const gchar *const *) self->properties };
  self->readers = g_ptr_array_new ();
  self->holder = swarm_reader_new (&self->title, 0, OPEN_S, error);
  if (!self->holder || !find_rate (self->holder, &self->rate, error)) {
    swarm_title_unref (self);
    return NULL;
  }
  swarm_reader_rest (self->holder);
  self->left_us = g_get_monotonic_time ();
  return self;
}

SwarmTitle *
swarm_title_ref (SwarmTitle *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
swarm_title_unref (SwarmTitle *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->holder, swarm_reader_free);
  g_ptr_array_unref (self->readers);
  g_strfreev (self->properties);
  g_mutex_clear (&self->lock);
  swarm_torrent_clear (&self->torrent);
  g_free (self->name);
  g_free (self->file);
  g_free (self);
}

const gchar *
swarm_title_get_name (const SwarmTitle *self)
{
  return self->name;
}

guint64
swarm_title_get_rate (const SwarmTitle *self)
{
  return self->rate;
}

const gchar *
swarm_title_get_id (const SwarmTitle *self)
{
  return self->torrent.id;
}
