// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the readers of each mount have been sent and have reported, in all: of those that watch and
// of those that have left.

#include <gst/gst.h>

#include "net/drops.h"

typedef struct {
  guint64 due, sent, bytes; // packets, packets, bytes; due is sent and all that was dropped
  guint64 dropped[WEIR_N_DROPS];
  guint64 lost, reports; // packets that readers said they lost, and receiver reports that said so
} Totals;

// A sink serves readers of a mount: what it has counted outlives it. Any thread.
void totals_watch_sink (const gchar *mount, GstElement *sink);

// A reader has left: what it reported is kept. Any thread.
void totals_reader_left (const gchar *mount, guint64 lost, guint64 reports);

// `lost` and `reports` are of readers that have left. FALSE and zeros if the mount has had none.
// Main thread.
gboolean totals_get (const gchar *mount, Totals *totals);

// With the reports of readers that watch added: none of the two sums is told lower than before. A
// reader that is just leaving counts as neither there nor gone, and packets that come late are
// taken off what was lost. Any thread.
void totals_settle_reports (const gchar *mount, Totals *totals);

// Takes leave of sinks that are no longer used, and of mounts that `is_served` does not know. To be
// called now and then. Main thread.
typedef gboolean (*TotalsServedFunc) (const gchar *mount, gpointer data);
void totals_collect (TotalsServedFunc is_served, gpointer data);

// For the end of the process.
void totals_clear (void);
