// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/sink_sample.h"

guint64
sink_sample_get (const GstStructure *stats, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (stats, field, &value);
  return value;
}

guint
sink_sample_find_state (const gchar *name)
{
  for (guint i = 0; name && i < READER_STATES; i++) {
    if (g_str_equal (name, reader_state_names[i]))
      return i;
  }
  return READER_STATES - 1;
}

void
sink_sample_add (const GstStructure *stats, ReaderSample *sample)
{
  gboolean catching_up = FALSE;

  if (!stats || !gst_structure_has_field (stats, "state")) {
    sample->state = READER_STATES - 1;
    return;
  }
  sample->state =
      MAX (sample->state, sink_sample_find_state (gst_structure_get_string (stats, "state")));
  sample->lag_ns = MAX (sample->lag_ns, sink_sample_get (stats, "lag"));
  sample->delay_ns = MAX (sample->delay_ns, sink_sample_get (stats, "delay"));
  sample->packets += sink_sample_get (stats, "packets-sent");
  sample->bytes += sink_sample_get (stats, "bytes-sent");
  sample->due += sink_sample_get (stats, "packets-due");
  sample->dropped += sink_sample_get (stats, "dropped");
  gst_structure_get_uint (stats, "priority", &sample->priority);
  gst_structure_get_boolean (stats, "catching-up", &catching_up);
  sample->catching_up |= catching_up;
}
