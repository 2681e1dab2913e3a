// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/timer.h"

struct _Timer {
  GSequenceIter *at; // in `timers`; NULL while the function runs
  gint64 due;        // µs, monotonic
  gint64 interval;   // µs
  gboolean aligned;  // to multiples of the interval
  gboolean removed;  // in its function
  GSourceFunc function;
  gpointer data;
};

static GSequence *timers; // by `due`
static GSource *source;

static gint
compare (gconstpointer a, gconstpointer b, gpointer data)
{
  gint64 one = ((const Timer *) a)->due, other = ((const Timer *) b)->due;

  return one < other ? -1 : one > other;
}

static Timer *
get_first (void)
{
  GSequenceIter *at = g_sequence_get_begin_iter (timers);

  return g_sequence_iter_is_end (at) ? NULL : g_sequence_get (at);
}

static void
set_source (void)
{
  Timer *first = get_first ();

  g_source_set_ready_time (source, first ? first->due : -1);
}

static void
schedule (Timer *self, gint64 now)
{
  gint64 from = self->aligned ? now - now % self->interval : now;

  self->due = from + self->interval;
  self->at = g_sequence_insert_sorted (timers, self, compare, NULL);
}

static void
run_timer (Timer *self, gint64 now)
{
  gboolean continues;

  g_sequence_remove (self->at);
  self->at = NULL;
  continues = self->function (self->data);
  if (continues && !self->removed)
    schedule (self, now);
  else
    g_free (self);
}

static gboolean
dispatch (GSource *unused, GSourceFunc function, gpointer data)
{
  gint64 now = g_get_monotonic_time ();
  Timer *first;

  while ((first = get_first ()) && first->due <= now)
    run_timer (first, now);
  set_source ();
  return G_SOURCE_CONTINUE;
}

static Timer *
add (guint interval_ms, gboolean aligned, GSourceFunc function, gpointer data)
{
  static GSourceFuncs functions = { .dispatch = dispatch };
  Timer *self = g_new0 (Timer, 1);

  if (!timers) {
    timers = g_sequence_new (NULL);
    source = g_source_new (&functions, sizeof (GSource));
    g_source_attach (source, NULL);
  }
  self->interval = MAX (interval_ms, 1) * G_TIME_SPAN_MILLISECOND;
  self->aligned = aligned;
  self->function = function;
  self->data = data;
  schedule (self, g_get_monotonic_time ());
  set_source ();
  return self;
}

Timer *
timer_add (guint delay_ms, GSourceFunc function, gpointer data)
{
  return add (delay_ms, FALSE, function, data);
}

Timer *
timer_add_tick (guint interval_ms, GSourceFunc function, gpointer data)
{
  return add (interval_ms, TRUE, function, data);
}

void
timer_remove (Timer *self)
{
  if (!self->at) {
    self->removed = TRUE;
    return;
  }
  g_sequence_remove (self->at);
  g_free (self);
  set_source ();
}
