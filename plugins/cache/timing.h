// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the readers of a pipeline share so that their tracks stay in step. A reader that begins at a
// keyframe of some time ago makes all of them later by as much.
//
// Thread-safe.

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct CacheTiming CacheTiming;

// Returns the pipeline that `element` is in, or the element itself outside of one. (transfer full)
GstElement *cache_timing_dup_pipeline (GstElement *element);

// Adds a reader to the timing of the pipeline that `element` is in. `delayed`: it has a delay.
// cache_timing_leave() ends this; `self` may be NULL.
CacheTiming *cache_timing_join (GstElement *element, gboolean delayed);
void cache_timing_leave (CacheTiming *self, gboolean delayed);

// A reader's delay has begun or ended.
void cache_timing_change (CacheTiming *self, gboolean delayed);

// Reports whether a reader of the pipeline has no delay.
gboolean cache_timing_has_live (CacheTiming *self);

// Begins anew, once for each `seqnum`: that of a seek, which reaches every reader.
void cache_timing_restart (CacheTiming *self, guint32 seqnum);

// Tells by how many ns a reader's data would come too late. Returns by how many all readers must be
// late.
gint64 cache_timing_need (CacheTiming *self, gint64 lag);

// Returns the number of changes so far, and the current lag in ns. 0 changes mean that no reader
// has told its need.
guint cache_timing_n_changes (CacheTiming *self);
gint64 cache_timing_lag (CacheTiming *self);

G_END_DECLS
