// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/ts_reader.h"

#include "readers/sink_sample.h"

struct _TsReader {
  Reader *reader; // has a reference to `self`
  GstElement *sink;
  gchar *host, *left_out;
  gint port;
  GMutex lock;    // protects `owner`
  gpointer owner; // NULL: it has ended
  TsReaderClose close;
};

static void
sample (gpointer served, ReaderSample *sample)
{
  TsReader *self = served;
  g_autoptr (GstStructure) stats = NULL;

  if (self->host) {
    g_signal_emit_by_name (self->sink, "get-stats", self->host, self->port, &stats);
    sink_sample_add (stats, sample);
  } else {
    g_object_get (self->sink, "stats", &stats, NULL);
    sample->bytes = stats ? sink_sample_get (stats, "out-bytes-total") : 0;
  }
}

static gboolean
set_priority (gpointer served, guint priority)
{
  TsReader *self = served;
  gboolean set = FALSE;

  if (!self->host)
    return FALSE;
  g_signal_emit_by_name (self->sink, "set-priority", self->host, self->port, priority, &set);
  return set;
}

static gchar *
dup_left_out (gpointer served)
{
  return g_strdup (((TsReader *) served)->left_out);
}

static void
close_reader (gpointer served, const gchar *reason)
{
  TsReader *self = served;

  g_mutex_lock (&self->lock);
  if (self->owner)
    self->close (self->owner, reason);
  g_mutex_unlock (&self->lock);
}

static void
free_served (gpointer served)
{
  TsReader *self = served;

  gst_object_unref (self->sink);
  g_mutex_clear (&self->lock);
  g_free (self->host);
  g_free (self->left_out);
  g_free (self);
}

TsReader *
ts_reader_new (GstElement *sink, const gchar *host, gint port, const gchar *mount,
    const gchar *peer, const gchar *transport, const gchar *left_out, TsReaderClose close,
    gpointer owner)
{
  static const ReaderOps ops = { .sample = sample,
    .set_priority = set_priority,
    .dup_left_out = dup_left_out,
    .close = close_reader,
    .free = free_served };
  TsReader *self = g_new0 (TsReader, 1);

  g_mutex_init (&self->lock);
  self->sink = gst_object_ref (sink);
  self->host = g_strdup (host);
  self->left_out = g_strdup (left_out);
  self->port = port;
  self->owner = owner;
  self->close = close;
  self->reader = reader_new (&ops, self, mount, peer, transport);
  readers_add (self->reader);
  return self;
}

void
ts_reader_end (TsReader *self)
{
  g_mutex_lock (&self->lock);
  self->owner = NULL;
  g_mutex_unlock (&self->lock);
  readers_remove (self->reader);
  reader_unref (self->reader);
}
