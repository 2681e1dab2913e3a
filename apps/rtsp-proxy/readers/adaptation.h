// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses the layers of each reader: those that the mount allows and the reader has chosen, reduced
// by the mount's policy to those that the reader's line can carry: by the estimate of the line
// (line_choice.h), or by the reader's reports (svc/adapt.h).

#include "mounts/mount.h"
#include "readers/readers.h"
#include "svc/layerset.h"

#define ADAPTATION_INTERVAL_MS 1000

// Returns the layers that a reader with the choice `chosen` may get from a mount.
WeirLayerSet adaptation_limit (const MountConfig *config, WeirLayerSet chosen);

// Starts and ends the adaptation of a reader. Call when it starts to play, and when it leaves, from
// any thread. `varies` is the mount whose renditions it may get, or NULL.
void adaptation_watch (
    Reader *reader, Presentation *presentation, Mount *varies, WeirLayerSet chosen);
void adaptation_forget (Reader *reader);

// Adapts all readers. Call every ADAPTATION_INTERVAL_MS, as a GSourceFunc, on the main thread.
gboolean adaptation_run (gpointer unused);

// Changes a reader's choice. Returns FALSE if the reader has left. Call from the main thread only.
gboolean adaptation_choose (Reader *reader, WeirLayerSet chosen);

typedef struct {
  const gchar *policy; // a word of the key `adapt`
  gboolean may_choose; // the mount lets its readers choose layers
  WeirLayerSet limit;  // see adaptation_limit()
  gdouble estimate; // of the line's bit rate, in bit/s; 0 if not known. A lower bound, unless the
                    // line is congested
  // By the estimate of the line; `line` is NULL if the reader's feedback allows none.
  const gchar *line;      // "clear", "warning" or "congested"
  gint64 queue_ns;        // queue delay
  const gchar *step;      // "layers", "rendition", "references" or "keyframes"
  const gchar *rendition; // that it has: a query of the key `renditions`; NULL: none
  const gchar *reason;    // for the step, in words
} AdaptationView;

// Returns FALSE if the reader has left. Call from the main thread only.
gboolean adaptation_view (Reader *reader, AdaptationView *view);
