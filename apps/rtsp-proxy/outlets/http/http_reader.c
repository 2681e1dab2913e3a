// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_reader.h"

#include "readers/totals.h"

struct _HttpReader {
  Reader *reader;      // has a reference to `self`
  guint64 bytes;       // atomic
  gint64 lag_ns;       // atomic
  GMutex lock;         // protects `connection`
  gpointer connection; // NULL: it has ended
  HttpReaderClose close;
};

static void
sample (gpointer served, ReaderSample *sample)
{
  HttpReader *self = served;

  sample->bytes = __atomic_load_n (&self->bytes, __ATOMIC_RELAXED);
  sample->lag_ns = (guint64) __atomic_load_n (&self->lag_ns, __ATOMIC_RELAXED);
}

static void
close_reader (gpointer served, const gchar *reason)
{
  HttpReader *self = served;

  g_mutex_lock (&self->lock);
  if (self->connection)
    self->close (self->connection, reason);
  g_mutex_unlock (&self->lock);
}

static void
free_served (gpointer served)
{
  HttpReader *self = served;

  g_mutex_clear (&self->lock);
  g_free (self);
}

HttpReader *
http_reader_new (const gchar *mount, const gchar *peer, HttpReaderClose close, gpointer connection)
{
  static const ReaderOps ops = { .sample = sample, .close = close_reader, .free = free_served };
  HttpReader *self = g_new0 (HttpReader, 1);

  g_mutex_init (&self->lock);
  self->connection = connection;
  self->close = close;
  self->reader = reader_new (&ops, self, mount, peer, "HTTP");
  readers_add (self->reader);
  return self;
}

void
http_reader_update (HttpReader *self, guint64 bytes, gint64 lag_ns)
{
  guint64 before = self->bytes;

  __atomic_store_n (&self->bytes, bytes, __ATOMIC_RELAXED);
  __atomic_store_n (&self->lag_ns, lag_ns, __ATOMIC_RELAXED);
  if (bytes > before)
    totals_add_bytes (reader_get_mount (self->reader), bytes - before);
}

void
http_reader_end (HttpReader *self)
{
  g_mutex_lock (&self->lock);
  self->connection = NULL;
  g_mutex_unlock (&self->lock);
  readers_remove (self->reader);
  reader_unref (self->reader);
}
