// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of the broadcasts of mounts, for the metrics and for the API.

#include <json-glib/json-glib.h>

#include "mounts/mount.h"

typedef struct {
  const gchar *name;   // of the API: "sent-packets"
  const gchar *metric; // "broadcast_sent_packets_total"
  const gchar *type, *help;
  gsize offset; // of the number in a BroadcastStats
} BroadcastFigure;

extern const BroadcastFigure broadcast_figures[]; // a row without a name ends it

// Gets the figures of a mount. Returns FALSE if it has no broadcast.
gboolean broadcast_figures_sample (Mount *mount, BroadcastStats *stats);

guint64 broadcast_figures_get (const BroadcastFigure *figure, const BroadcastStats *stats);

// Writes the member `broadcast` of a mount that has one.
void broadcast_figures_write (JsonBuilder *builder, Mount *mount);
