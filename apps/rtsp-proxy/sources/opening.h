// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// Tracks whether rtspsrc is still opening. rtspsrc posts an error before it cleans up; stopping it
// in between is a use after free within rtspsrc. Its progress messages show when it is done.
typedef struct {
  GMutex lock;
  GCond ended;
  gboolean opens, failed;
} Opening;

void opening_init (Opening *self);
void opening_clear (Opening *self);

// Watches the bus until the pipeline is gone. The bus must emit synchronous messages.
void opening_watch (Opening *self, GstBus *bus);

// Waits until rtspsrc has cleaned up after an error, or for a second.
void opening_wait_for_clean_up (Opening *self);
