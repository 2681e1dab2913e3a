// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of svclayerfilter: svclayerfilter.c (caps, data, events) and
// svclayerfilter_properties.c.

#include "layerstream.h"
#include "svclayerfilter.h"

struct _WeirSvcLayerFilter {
  GstElement parent;

  GstPad *sinkpad;
  GstPad *srcpad;

  // Streaming thread only.
  LayerStream stream;
  gboolean have_stream; // caps have arrived
  GstCaps *in_caps;
  GstCaps *out_caps;     // last caps pushed, NULL before
  GQueue held_events;    // held back until the caps
  unsigned caps_changes; // svc.changes, now and plain at the time of out_caps
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
  guint sizes[WEIR_SPATIAL_LAYERS][2]; // width and height of each spatial layer, 0 = unknown
};

// ---- svclayerfilter_properties.c ----

void svc_layer_filter_properties_install (GObjectClass *klass);
