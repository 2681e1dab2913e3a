// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which layers of its mount's stream each reader gets: what the mount allows and the reader has
// chosen, and of that what the mount's policy (adapt.h) finds its line to carry.

#include "content/presentation.h"
#include "readers/readers.h"
#include "svc/layerset.h"

#define ADAPTATION_INTERVAL_MS 1000

// What its readers may get of a mount, if they choose this.
WeirLayerSet adaptation_limit (const MountConfig *config, WeirLayerSet chosen);

// A reader came, a reader goes. Any thread.
void adaptation_watch (Reader *reader, Presentation *presentation, WeirLayerSet chosen);
void adaptation_forget (Reader *reader);

// Looks after all readers: to be called at each interval, as a GSourceFunc. Main thread.
gboolean adaptation_run (gpointer unused);

// Another choice, which the reader gets from now on if its line carries that. FALSE: it has left.
// Main thread.
gboolean adaptation_choose (Reader *reader, WeirLayerSet chosen);

typedef struct {
  const gchar *policy;
  gboolean may_choose;
  WeirLayerSet limit;
  gdouble estimate; // bits per second that its line carries at least; 0: not known
} AdaptationView;

// FALSE: it has left. Main thread.
gboolean adaptation_view (Reader *reader, AdaptationView *view);
