// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The thread of the process that decides for all swarms and talks to their origins.

#include <functional>

#include <glib.h>

// Returns the context of the thread, which runs from the first call on.
GMainContext *loop_context ();

// Runs `work` on the thread. Call from any thread.
void loop_invoke (std::function<void ()> work);
