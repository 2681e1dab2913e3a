// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sums for each mount of what was sent to its readers and of what they reported, including readers
// that have left.

#include <gst/gst.h>

#include "net/drops.h"

typedef struct {
  guint64 due, sent, bytes; // packets, packets, bytes; `due` is sent + dropped packets
  guint64 dropped[WEIR_N_DROPS];
  guint64 lost, reports; // packets lost as readers reported, and the number of their reports
} Totals;

// Adds a fanoutsink that serves readers of a mount. Its counts are kept when the sink is gone. Call
// from any thread.
void totals_watch_sink (const gchar *mount, GstElement *sink);

// Keeps the reports of a reader that has left. Call from any thread.
void totals_reader_left (const gchar *mount, guint64 lost, guint64 reports);

// Reads the sums of a mount; `lost` and `reports` are of readers that have left. Returns FALSE and
// zeros if the mount has had no readers. Call from the main thread only.
gboolean totals_get (const gchar *mount, Totals *totals);

// Call after the reports of present readers were added to `totals`: raises `lost` and `reports` to
// the values returned before, so that they never fall. They could fall because a reader that is
// leaving is counted nowhere for a moment, and because late packets are subtracted from the loss.
// Call from any thread.
void totals_settle_reports (const gchar *mount, Totals *totals);

// Releases sinks that are no longer used, and mounts for which `is_served` returns FALSE. Call from
// time to time, on the main thread.
typedef gboolean (*TotalsServedFunc) (const gchar *mount, gpointer data);
void totals_collect (TotalsServedFunc is_served, gpointer data);

// Frees everything. Call at the end of the process.
void totals_clear (void);
