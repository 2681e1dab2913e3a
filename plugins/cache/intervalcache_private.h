// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of intervalcache: intervalcache.c (data, events, pads, states) and
// intervalcache_properties.c.

#include "cachewindow.h"
#include "intervalcache.h"
#include "joins.h"

struct _WeirIntervalCache {
  GstElement parent;

  GstPad *sinkpad;

  // Streaming thread only.
  GstSegment segment;
  CacheJoins joins;
  guint64 told_capacity; // capacity of the file at the last warning, bytes

  // Under the object lock, all below.
  gchar *channel;
  CacheBounds bounds;
  gboolean fit_delay;
  gchar *spill_dir;
  guint64 spill_bytes;
  CachePolicy policy;
  guint next_pad;
  CacheWindow *window; // a reference, from PAUSED on; changes only while all pads are inactive
};

// ---- intervalcache.c ----

// Returns a reference to the window; NULL below PAUSED.
CacheWindow *interval_cache_get_window (WeirIntervalCache *self);

// ---- intervalcache_properties.c ----

void interval_cache_properties_init (WeirIntervalCache *self);
void interval_cache_properties_install (GObjectClass *klass);

// Returns the bounds of the window, by the properties and by the delays of the source pads.
CacheBounds interval_cache_find_bounds (WeirIntervalCache *self);

// Applies them, if there is a window. Call when a delay has changed.
void interval_cache_apply_bounds (WeirIntervalCache *self);
