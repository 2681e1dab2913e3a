// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Logs the lines that a process writes to its standard error, each with the worker's number:
// a worker in the hands of a stream must not write lines that look like the proxy's. Call from the
// main thread only.

#include <glib.h>

typedef struct _Output Output;

// Makes the pipe of a process, which the log calls `name` (static). `*theirs` is the worker's end,
// which the caller closes. Returns NULL with errno set if there is none.
Output *output_new (const gchar *name, gint *theirs);

// Begins to read. `pid` is the worker.
void output_start (Output *self, gint pid);

// Logs what the worker wrote last, and closes the pipe.
void output_free (Output *self);
