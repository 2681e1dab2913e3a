// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/tick.h"

typedef struct {
  GSource source;
  gint64 interval; // µs
} Tick;

static void
set_next (Tick *self)
{
  gint64 now = g_get_monotonic_time ();

  g_source_set_ready_time (&self->source, (now / self->interval + 1) * self->interval);
}

static gboolean
tick_dispatch (GSource *source, GSourceFunc function, gpointer data)
{
  set_next ((Tick *) source);
  return function (data);
}

guint
tick_add (guint interval_ms, GSourceFunc function, gpointer data)
{
  static GSourceFuncs functions = { .dispatch = tick_dispatch };
  GSource *source = g_source_new (&functions, sizeof (Tick));
  guint id;

  ((Tick *) source)->interval = interval_ms * G_TIME_SPAN_MILLISECOND;
  set_next ((Tick *) source);
  g_source_set_callback (source, function, data, NULL);
  id = g_source_attach (source, NULL);
  g_source_unref (source);
  return id;
}
