// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses the layers that each reader gets: those that the mount allows and the reader has chosen,
// reduced to those that the mount's policy (adapt.h) estimates its line can carry.

#include "content/presentation.h"
#include "readers/readers.h"
#include "svc/layerset.h"

#define ADAPTATION_INTERVAL_MS 1000

// Returns the layers that a reader of the mount with this choice may get.
WeirLayerSet adaptation_limit (const MountConfig *config, WeirLayerSet chosen);

// Call when a reader begins, and when it leaves. Call from any thread.
void adaptation_watch (Reader *reader, Presentation *presentation, WeirLayerSet chosen);
void adaptation_forget (Reader *reader);

// Adapts all readers. Call every ADAPTATION_INTERVAL_MS, as a GSourceFunc, on the main thread.
gboolean adaptation_run (gpointer unused);

// Changes a reader's choice; the reader gets these layers if its line can carry them. Returns FALSE
// if it has left. Call from the main thread only.
gboolean adaptation_choose (Reader *reader, WeirLayerSet chosen);

typedef struct {
  const gchar *policy;
  gboolean may_choose;
  WeirLayerSet limit;
  gdouble estimate; // lower bound of the line's bit rate, bit/s; 0: not known
} AdaptationView;

// Returns FALSE if the reader has left. Call from the main thread only.
gboolean adaptation_view (Reader *reader, AdaptationView *view);
