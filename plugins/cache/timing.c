// SPDX-License-Identifier: LGPL-2.1-or-later
#include "timing.h"

// Nobody hears or sees that two tracks are apart by less than this. Readers of tracks that need
// about the same lag do not move each other.
#define SLACK (2 * GST_MSECOND)

struct CacheTiming {
  guint n_live, n_delayed; // readers
  gconstpointer top;       // the pipeline: only compared
  gint n_changes;          // atomic
  guint32 seqnum;          // of the last restart
  gboolean is_set;         // a reader has told its need
  gint64 lag;
};

static GMutex lock; // protects `timings` and all in it
static GList *timings;

GstElement *
cache_timing_dup_pipeline (GstElement *element)
{
  GstObject *top = gst_object_ref (element), *parent;

  while ((parent = gst_object_get_parent (top))) {
    gst_object_unref (top);
    top = parent;
  }
  return GST_ELEMENT (top);
}

static CacheTiming *
find (gconstpointer top)
{
  for (GList *i = timings; i; i = i->next) {
    if (((CacheTiming *) i->data)->top == top)
      return i->data;
  }
  return NULL;
}

static guint *
count_of (CacheTiming *self, gboolean delayed)
{
  return delayed ? &self->n_delayed : &self->n_live;
}

CacheTiming *
cache_timing_join (GstElement *element, gboolean delayed)
{
  GstElement *top = cache_timing_dup_pipeline (element);
  CacheTiming *self;

  g_mutex_lock (&lock);
  self = find (top);
  if (!self) {
    self = g_new0 (CacheTiming, 1);
    self->top = top;
    timings = g_list_prepend (timings, self);
  }
  (*count_of (self, delayed))++;
  g_mutex_unlock (&lock);
  gst_object_unref (top);
  return self;
}

void
cache_timing_leave (CacheTiming *self, gboolean delayed)
{
  gboolean last;

  if (!self)
    return;
  g_mutex_lock (&lock);
  (*count_of (self, delayed))--;
  last = self->n_live + self->n_delayed == 0;
  if (last)
    timings = g_list_remove (timings, self);
  g_mutex_unlock (&lock);
  if (last)
    g_free (self);
}

void
cache_timing_change (CacheTiming *self, gboolean delayed)
{
  g_mutex_lock (&lock);
  (*count_of (self, !delayed))--;
  (*count_of (self, delayed))++;
  g_mutex_unlock (&lock);
}

gboolean
cache_timing_has_live (CacheTiming *self)
{
  gboolean has;

  g_mutex_lock (&lock);
  has = self->n_live > 0;
  g_mutex_unlock (&lock);
  return has;
}

void
cache_timing_restart (CacheTiming *self, guint32 seqnum)
{
  g_mutex_lock (&lock);
  if (self->seqnum != seqnum)
    self->is_set = FALSE;
  self->seqnum = seqnum;
  g_mutex_unlock (&lock);
}

gint64
cache_timing_need (CacheTiming *self, gint64 lag)
{
  g_mutex_lock (&lock);
  if (!self->is_set || lag > self->lag + SLACK) {
    self->lag = lag;
    self->is_set = TRUE;
    g_atomic_int_inc (&self->n_changes);
  }
  lag = self->lag;
  g_mutex_unlock (&lock);
  return lag;
}

guint
cache_timing_n_changes (CacheTiming *self)
{
  return (guint) g_atomic_int_get (&self->n_changes);
}

gint64
cache_timing_lag (CacheTiming *self)
{
  gint64 lag;

  g_mutex_lock (&lock);
  lag = self->lag;
  g_mutex_unlock (&lock);
  return lag;
}
