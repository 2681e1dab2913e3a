// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader of a title over HTTP, as the API and the metrics show it: from the first to the last
// byte of an answer. Call from any thread.

#include "readers/readers.h"

typedef struct _HttpReader HttpReader;

// Closes the reader's connection. Called with the reader's lock held; must not block.
typedef void (*HttpReaderClose) (gpointer connection, const gchar *reason);

// Adds a reader of the mount.
HttpReader *http_reader_new (
    const gchar *mount, const gchar *peer, HttpReaderClose close, gpointer connection);

// Updates the figures: all bytes sent so far, and the current delay.
void http_reader_update (HttpReader *self, guint64 bytes, gint64 lag_ns);

// Removes the reader. After this has returned, `close` neither runs nor will run.
void http_reader_end (HttpReader *self);
