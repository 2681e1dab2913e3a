// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs a main context on a loop, which may have other owners and other contexts: a turn in the
// loop's thread dispatches what is ready once.

#include "base/loop.h"

// The functions of its owner.
typedef struct {
  // Called in the thread after each turn. Returns whether there are others; if not, the context is
  // let go. NULL: there always are.
  gboolean (*goes_on) (gpointer owner);
  // The last call. NULL if the context runs for ever.
  GDestroyNotify left;
} LoopContextOps;

// Runs `context`, which must have been made with G_MAIN_CONTEXT_FLAGS_OWNERLESS_POLLING: a source
// that another context of the same thread attaches has to wake it, too. Takes a reference. Call
// from any thread.
void loop_run_context (
    Loop *loop, GMainContext *context, const LoopContextOps *ops, gpointer owner);
