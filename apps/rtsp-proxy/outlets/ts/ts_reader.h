// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A receiver of a transport stream, as the API and the metrics show it. Call from any thread.

#include "readers/readers.h"

typedef struct _TsReader TsReader;

// Closes the reader. Called with the reader's lock held; must not block.
typedef void (*TsReaderClose) (gpointer owner, const gchar *reason);

// Adds a reader of the mount, which the fanoutsink `sink` serves under the name of `host` and
// `port`; NULL: `sink` is an rtmp2sink. `left_out` is what of the stream it does not get, or NULL.
// `transport` must be in reader_transports.
TsReader *ts_reader_new (GstElement *sink, const gchar *host, gint port, const gchar *mount,
    const gchar *peer, const gchar *transport, const gchar *left_out, TsReaderClose close,
    gpointer owner);

// Removes the reader. After this has returned, `close` neither runs nor will run.
void ts_reader_end (TsReader *self);
