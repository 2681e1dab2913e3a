// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs the main thread's events while something ends. Call from the main thread.

#include <glib.h>

typedef gboolean (*MainLoopDone) (gpointer data);

// Handles events until `done` is TRUE, which is asked at least every 20 ms. Returns FALSE if it is
// not after `timeout_ms`.
gboolean main_loop_wait (MainLoopDone done, gpointer data, guint timeout_ms);

// Handles the events that are there, and those that they cause, for a second at most: others may
// come without end.
void main_loop_drain (void);
