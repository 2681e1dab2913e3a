// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/ts_cues.h"

#include "codec/tscues.h"

typedef struct {
  const PullContext *context;
  WeirTsCues cues;
} Watch;

static void
found (gpointer data, const WeirCue *cue)
{
  const PullContext *context = ((Watch *) data)->context;

  context->callbacks->cue (context->owner, cue);
}

static GstPadProbeReturn
on_data (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Watch *self = data;
  GstMapInfo map;

  if (!gst_buffer_map (GST_PAD_PROBE_INFO_BUFFER (info), &map, GST_MAP_READ))
    return GST_PAD_PROBE_OK;
  weir_ts_cues_take (&self->cues, map.data, map.size, found, self);
  gst_buffer_unmap (GST_PAD_PROBE_INFO_BUFFER (info), &map);
  return GST_PAD_PROBE_OK;
}

void
ts_cues_add (GstElement *demux, const PullContext *context)
{
  GstPad *pad;
  Watch *self;

  if (!context->config->wants_cues)
    return;
  pad = gst_element_get_static_pad (demux, "sink");
  self = g_new0 (Watch, 1);
  self->context = context;
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_data, self, g_free);
  gst_object_unref (pad);
}
