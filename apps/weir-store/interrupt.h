// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// SIGINT and SIGTERM end the program at the next safe point, and when they come again, at once.

#include <gio/gio.h>

#define EXIT_INTERRUPTED 130

// Begins to catch the signals. Call before any thread is started.
void interrupt_init (void);

// Returns the object that a signal cancels.
GCancellable *interrupt_get (void);

static inline gboolean
interrupted (void)
{
  return g_cancellable_is_cancelled (interrupt_get ());
}
