// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts for each mount the packets sent to its readers and the losses that readers reported,
// including readers that have left.

#include <gst/gst.h>

#include "net/drops.h"

typedef struct {
  guint64 due, sent;              // packets; due is sent + dropped
  guint64 bytes;                  // sent
  guint64 dropped[WEIR_N_DROPS];  // packets, for each drop reason
  guint64 clones, clones_dropped; // made by the kernel, each of one message
  guint64 lost, reports;          // packets that readers reported as lost; number of reports
} Totals;

// Adds a fanoutsink that serves readers of a mount. Its counts are kept after it stops. Call from
// any thread.
void totals_watch_sink (const gchar *mount, GstElement *sink);

// Adds bytes that were sent to readers without a fanoutsink. Call from any thread.
void totals_add_bytes (const gchar *mount, guint64 bytes);

// Keeps the reports of a reader that has left. Call from any thread.
void totals_reader_left (const gchar *mount, guint64 lost, guint64 reports);

// Reads the sums of a mount; `lost` and `reports` are of readers that have left. Returns FALSE and
// zeros if the mount has had no readers. Call from the main thread only.
gboolean totals_get (const gchar *mount, Totals *totals);

// Raises `lost` and `reports` to the values returned before, so that they never fall. Call after
// the reports of present readers were added to `totals`, from any thread. Without this function
// they could fall, because a reader that is leaving is counted nowhere for a moment, and because a
// late packet reduces the loss.
void totals_settle_reports (const gchar *mount, Totals *totals);

// Releases sinks that have stopped, and mounts for which `is_served` returns FALSE. Call from time
// to time, from the main thread only.
typedef gboolean (*TotalsServedFunc) (const gchar *mount, gpointer data);
void totals_collect (TotalsServedFunc is_served, gpointer data);

// Frees everything. Call at the end of the process.
void totals_clear (void);
