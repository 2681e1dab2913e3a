// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A folder of torrents as a store: the title NAME is the file that NAME.torrent describes. If it
// describes several, each is a title NAME/FILE, with its path in the torrent. Peers and the origin
// have the bytes.

#include "stores/store.h"

typedef struct {
  const gchar *folder;
  const gchar *const *properties; // names and values of swarmsrc's properties in turn
  guint max_titles;               // that stay in the swarm without readers
  gboolean seeds;                 // titles stay there until others come; else for a minute
} SwarmConfig;

// Returns the store with this configuration (transfer full): one for all that use the same.
Store *swarm_store_new (const SwarmConfig *config);
