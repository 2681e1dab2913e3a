// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Progress on standard error: a bar on a terminal, else a line every five seconds.

#include <glib.h>

// Shows that `done` of `total` bytes of the work called `label` are done.
void progress_show (const gchar *label, guint64 done, guint64 total);

// Removes the bar, and begins the next one anew. Call before printing anything.
void progress_clear (void);
