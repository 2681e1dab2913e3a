// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of svclayerfilter share: svclayerfilter.c (caps, data, events),
// svclayerfilter_properties.c.

#include "layerstream.h"
#include "svclayerfilter.h"

struct _WeirSvcLayerFilter {
  GstElement parent;

  GstPad *sinkpad;
  GstPad *srcpad;

  // The streaming thread's.
  LayerStream stream;
  gboolean have_stream; // caps came
  GstCaps *in_caps;
  GstCaps *out_caps;     // as pushed, NULL before
  GQueue held_events;    // wait for the caps
  unsigned caps_changes; // svc.changes, now and plain when the caps were made
  WeirLayerSet caps_now;
  gint caps_plain;
  gboolean warned_interleaved;

  // Under the object lock.
  LayerSettings settings;
  LayerCounts counts;
  WeirRates rates;
  WeirLayerSet now;
  gint plain;
  gboolean fits;
  guint sizes[WEIR_SPATIAL_LAYERS][2]; // width and height of each spatial layer, 0 = not known
};

// ---- svclayerfilter_properties.c ----

void svc_layer_filter_properties_install (GObjectClass *klass);
