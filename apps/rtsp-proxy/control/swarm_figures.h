// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The figures of titles of swarms: of each title for the API, and of all of a mount for the
// metrics.

#include <json-glib/json-glib.h>

#include "mounts/mount.h"

typedef struct {
  const gchar *name;        // of the API: "peer-bytes"
  const gchar *metric;      // "swarm_peer_bytes_total"; NULL: there is none
  const gchar *type, *help; // of the metric
  gsize offset;             // of the number in a StoreSwarmTitle
} SwarmFigure;

extern const SwarmFigure swarm_figures[]; // a row without a name ends it

// Sets the sums of a mount's titles. Returns FALSE if the mount has no swarm.
gboolean swarm_figures_sum (Mount *mount, StoreSwarmTitle *sum);

guint64 swarm_figures_get (const SwarmFigure *figure, const StoreSwarmTitle *title);

// Writes the member `swarm` of a mount that has torrents: its titles in the swarm.
void swarm_figures_write (JsonBuilder *builder, Mount *mount);
