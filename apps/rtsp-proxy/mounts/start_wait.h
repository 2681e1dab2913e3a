// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An outlet's wait for the start of a presentation, which may end after the outlet has lost
// interest.

#include "mounts/presentation.h"

typedef struct _StartWait StartWait;

// Waits for the presentation (presentation_wait()). Then calls `over` once, from any thread, with a
// lock held that start_wait_free() takes: it must not block. Not after start_wait_free().
StartWait *start_wait_new (
    Presentation *presentation, void (*over) (gpointer owner), gpointer owner);

// Reports whether the presentation has started or failed. Call from any thread.
gboolean start_wait_is_over (StartWait *self);

// Call from any thread, but not from `over`.
void start_wait_free (StartWait *self);
