// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which member this one reads a stream from: what the map says, as cluster/placement.h takes it.

#include "cluster/map.h"

// A member whose connection has failed counts as gone for a while, longer with each time.
typedef struct {
  gint64 until; // ns
  guint n;
} Suspicion;

typedef struct {
  ClusterMap *map;
  const gchar *path;
  const gchar *me;
  const gchar *present;  // whom this member reads, or NULL
  GHashTable *suspected; // name -> Suspicion
  gint64 now;            // ns
} ParentQuery;

// Notes in a table of suspicions, which owns names and values, that the connection to a member has
// failed. `now`: ns.
void parent_suspect (GHashTable *suspected, const gchar *name, gint64 now);

// Reports whether the stream of the member `name` comes from this one at the moment: who read that
// would get its own packets.
gboolean parent_is_fed_by_me (const ParentQuery *query, const gchar *name);

// Returns the member to read, or NULL if this one has to run the upstream. (transfer full)
gchar *parent_dup (const ParentQuery *query);
