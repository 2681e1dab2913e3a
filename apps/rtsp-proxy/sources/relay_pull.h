// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A run of an upstream whose media are the packets of another relay of this process.

#include "sources/pull.h"

typedef struct _RelayPull RelayPull;

// Begins the run. With `common`, the tracks begin at the time of `from`; without, as those of any
// upstream do. `context` must live until `closed` is called. Call from the main thread only.
RelayPull *relay_pull_new (const PullContext *context, Relay *from, gboolean common);

// Ends the run and frees it, as `close` of a PullLight.
void relay_pull_close (RelayPull *self, GDestroyNotify closed, gpointer data);
