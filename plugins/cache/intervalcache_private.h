// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of intervalcache share: intervalcache.c (data, events, pads, states),
// intervalcache_properties.c.

#include "cachewindow.h"
#include "intervalcache.h"
#include "joins.h"

struct _WeirIntervalCache {
  GstElement parent;

  GstPad *sinkpad;

  // The streaming thread's.
  GstSegment segment;
  CacheJoins joins;
  guint64 told_capacity; // of the file

  // The object lock, all below.
  gchar *channel;
  CacheBounds bounds;
  gchar *spill_dir;
  guint64 spill_bytes;
  CachePolicy policy;
  guint next_pad;
  CacheWindow *window; // a reference, from PAUSED on; changes while nothing is active
};

// ---- intervalcache.c ----

// A reference; NULL: there is none below PAUSED.
CacheWindow *interval_cache_get_window (WeirIntervalCache *self);

// ---- intervalcache_properties.c ----

void interval_cache_properties_init (WeirIntervalCache *self);
void interval_cache_properties_install (GObjectClass *klass);
