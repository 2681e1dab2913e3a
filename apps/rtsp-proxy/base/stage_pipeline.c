// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/stage_pipeline.h"

#include "base/faad_times.h"
#include "base/fades.h"
#include "base/input_times.h"

GstElement *
stage_pipeline_new (const gchar *text, const gchar *fades, GError **error)
{
  GstElement *pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);

  if (!pipeline)
    return NULL;
  faad_times_mend (pipeline);
  input_times_align (pipeline);
  if (fades && *fades && !fades_begin (pipeline, fades, error))
    gst_clear_object (&pipeline);
  return pipeline;
}
