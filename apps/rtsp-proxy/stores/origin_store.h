// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A store whose titles are files of one or two HTTP servers with ranges, or of buckets of
// S3-compatible ones. A title is found by its name. Blocks that were fetched stay in memory or in a
// folder, the most frequently requested ones first. With two origins, which must hold the same
// files, each block comes from the one that is expected to send it first.

#include "stores/origin_title.h"
#include "stores/store.h"

typedef struct {
  const gchar *urls[ORIGINS_MAX + 1]; // with a slash at the end; NULL-terminated
  OriginAccess access;
  guint connect_timeout_ms; // for the first answer about a title
  guint read_timeout_ms;    // for a block
  guint64 cache_bytes;      // in memory; with a folder, in this
  const gchar *folder;      // NULL: in memory only
} OriginConfig;

// Makes a store (transfer full). Stores with the same configuration share their blocks.
Store *origin_store_new (const OriginConfig *config);
