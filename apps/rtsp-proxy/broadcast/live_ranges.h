// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads what a client of a live stream asks for. The text comes from a stranger.

#include <glib.h>

#define LIVE_RANGES_MAX 256

// `n` packets from the RTP sequence number `from` on.
typedef struct {
  guint track;
  guint16 from;
  guint n; // from 1 to 65536
} LiveRange;

// Reads "live", or lines "TRACK FROM-TO" with numbers from 0 to 65535, the last of which may lack
// its end. `text` has `length` bytes; it may be NULL if that is 0. Returns the number of ranges, 0
// for "live", or -1 and sets `error` (G_IO_ERROR_INVALID_ARGUMENT).
gint live_ranges_parse (
    const gchar *text, gsize length, LiveRange ranges[LIVE_RANGES_MAX], GError **error);
