// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/readers.h"

#include "events/events.h"

struct _Reader {
  gatomicrefcount refs;
  guint64 id;
  gchar *mount, *peer; // the mount's path; ADDR:PORT
  const gchar *transport;
  gint64 since;
  const ReaderOps *ops;
  gpointer served;

  GMutex lock; // protects the fields below
  gboolean paused, keeps_position;
  gint64 paused_at;
  ReaderSample before; // sample when it was last paused
};

const gchar *const reader_state_names[READER_STATES + 1] = { "ok", "no-upper-layers", "references",
  "keyframes", "closed", NULL };

const gchar *const reader_transports[] = { "UDP", "TCP", "HTTP", "HLS", "HTTP-TS", "UDP-TS", "SRT",
  "RTMP", "WebRTC", NULL };

static guint64 last_id; // atomic

static GMutex all_lock;
static GPtrArray *all; // of playing Readers; use with `all_lock` held

// ---- properties ----

Reader *
reader_new (const ReaderOps *ops, gpointer served, const gchar *mount, const gchar *peer,
    const gchar *transport)
{
  Reader *self = g_new0 (Reader, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->id = __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED);
  self->mount = g_strdup (mount);
  self->peer = g_strdup (peer);
  self->transport = transport;
  self->since = g_get_real_time ();
  self->ops = ops;
  self->served = served;
  return self;
}

Reader *
reader_ref (Reader *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
reader_unref (Reader *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  self->ops->free (self->served);
  g_mutex_clear (&self->lock);
  g_free (self->mount);
  g_free (self->peer);
  g_free (self);
}

guint64
reader_get_id (const Reader *self)
{
  return self->id;
}

const gchar *
reader_get_mount (const Reader *self)
{
  return self->mount;
}

const gchar *
reader_get_peer (const Reader *self)
{
  return self->peer;
}

const gchar *
reader_get_transport (const Reader *self)
{
  return self->transport;
}

gint64
reader_get_since (const Reader *self)
{
  return self->since;
}

gchar *
reader_dup_left_out (const Reader *self)
{
  return self->ops->dup_left_out ? self->ops->dup_left_out (self->served) : NULL;
}

// A paused reader is not in its sinks. After the pause, the sinks count it from zero.
void
reader_sample (Reader *self, ReaderSample *sample)
{
  ReaderSample before;
  gint64 behind_us;

  *sample = (ReaderSample) { 0 };
  g_mutex_lock (&self->lock);
  before = self->before;
  before.paused = self->paused;
  behind_us = self->keeps_position ? g_get_monotonic_time () - self->paused_at : 0;
  g_mutex_unlock (&self->lock);
  if (before.paused) {
    *sample = before;
    sample->delay_ns += (guint64) behind_us * 1000;
    return;
  }
  self->ops->sample (self->served, sample);
  sample->packets += before.packets;
  sample->bytes += before.bytes;
  sample->due += before.due;
  sample->dropped += before.dropped;
}

void
reader_pause (Reader *self, gboolean keeps_position)
{
  ReaderSample now;

  reader_sample (self, &now);
  if (now.paused)
    return;
  now.lag_ns = 0;
  now.catching_up = FALSE;
  g_mutex_lock (&self->lock);
  self->before = now;
  self->paused = TRUE;
  self->keeps_position = keeps_position;
  self->paused_at = g_get_monotonic_time ();
  g_mutex_unlock (&self->lock);
}

void
reader_resume (Reader *self)
{
  g_mutex_lock (&self->lock);
  self->paused = FALSE;
  g_mutex_unlock (&self->lock);
}

void
reader_sample_reports (Reader *self, ReaderSample *sample)
{
  *sample = (ReaderSample) { 0 };
  if (self->ops->sample_reports)
    self->ops->sample_reports (self->served, sample);
}

gboolean
reader_set_priority (Reader *self, guint priority)
{
  return self->ops->set_priority && self->ops->set_priority (self->served, priority);
}

void
reader_close (Reader *self, const gchar *reason)
{
  self->ops->close (self->served, reason);
}

// ---- video ----

gboolean
reader_set_layers (Reader *self, WeirLayerSet layers)
{
  return self->ops->set_layers && self->ops->set_layers (self->served, layers);
}

gboolean
reader_restrict (Reader *self, guint state)
{
  return self->ops->restrict_video && self->ops->restrict_video (self->served, state);
}

guint64 *
reader_ref_report_count (Reader *self)
{
  return self->ops->ref_report_count ? self->ops->ref_report_count (self->served) : NULL;
}

gboolean
reader_sample_video (Reader *self, ReaderVideo *sample)
{
  return self->ops->sample_video && self->ops->sample_video (self->served, sample);
}

GstElement *
reader_dup_video_sink (Reader *self)
{
  return self->ops->dup_video_sink ? self->ops->dup_video_sink (self->served) : NULL;
}

gboolean
reader_is_tcp (const Reader *self)
{
  return g_str_equal (self->transport, "TCP");
}

void
reader_read_rates (Reader *self, WeirRates *rates)
{
  *rates = (WeirRates) { 0 };
  if (self->ops->read_rates)
    self->ops->read_rates (self->served, rates);
}

gboolean
reader_read_estimate (Reader *self, gint64 now, WeirEstimateView *view)
{
  return self->ops->read_estimate && self->ops->read_estimate (self->served, now, view);
}

gboolean
reader_probe (Reader *self, guint64 bits, guint duration)
{
  return self->ops->probe && self->ops->probe (self->served, bits, duration);
}

ReaderSplice
reader_splice (Reader *self, Presentation *rendition, gint64 now)
{
  return self->ops->splice ? self->ops->splice (self->served, rendition, now) : READER_SPLICE_NEVER;
}

// ---- all readers ----

void
readers_add (Reader *reader)
{
  g_mutex_lock (&all_lock);
  if (!all)
    all = g_ptr_array_new_with_free_func ((GDestroyNotify) reader_unref);
  g_ptr_array_add (all, reader_ref (reader));
  g_mutex_unlock (&all_lock);
  events_add (
      EVENT_READER, reader->mount, "peer", reader->peer, "transport", reader->transport, NULL);
}

// Releases the reference without the lock, because it may be the last one.
void
readers_remove (Reader *reader)
{
  g_autoptr (Reader) found = NULL;
  guint i;

  g_mutex_lock (&all_lock);
  if (all && g_ptr_array_find (all, reader, &i))
    found = g_ptr_array_steal_index_fast (all, i);
  g_mutex_unlock (&all_lock);
  if (found)
    events_add (
        EVENT_READER_LEFT, found->mount, "peer", found->peer, "transport", found->transport, NULL);
}

static gint
compare_ids (gconstpointer a, gconstpointer b)
{
  guint64 x = (*(Reader **) a)->id, y = (*(Reader **) b)->id;

  return x < y ? -1 : x > y;
}

GPtrArray *
readers_dup_all (void)
{
  GPtrArray *copy = g_ptr_array_new_with_free_func ((GDestroyNotify) reader_unref);

  g_mutex_lock (&all_lock);
  for (guint i = 0; all && i < all->len; i++)
    g_ptr_array_add (copy, reader_ref (g_ptr_array_index (all, i)));
  g_mutex_unlock (&all_lock);
  g_ptr_array_sort (copy, compare_ids);
  return copy;
}
