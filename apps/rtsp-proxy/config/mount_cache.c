// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_cache.h"

#include "config/folder_check.h"

#define CACHE_TIME_MAX_MS (23 * 60 * 60 * 1000) // less than a day, which is fanoutsink's limit
#define CACHE_BYTES_MIN (G_GUINT64_CONSTANT (1) << 20)
#define CACHE_BYTES_MAX (G_GUINT64_CONSTANT (1) << 40)

static gchar *
check_spill (SchemaText *it)
{
  return folder_check_writable (it, "it does not exist or is not writable");
}

#define AT(field) G_STRUCT_OFFSET (MountConfig, cache.field)

static const SchemaKey cache_keys[] = {
  { "time", SCHEMA_DURATION, AT (time_ms), .min = 1000, .max = CACHE_TIME_MAX_MS,
      .effect = MOUNT_EFFECT_SERVING,
      .help = "how far back readers can go; required, unless the upstream is an HTTP server or a "
              "block store" },
  { "bytes", SCHEMA_SIZE, AT (size), "64M", CACHE_BYTES_MIN, CACHE_BYTES_MAX,
      .form = "size from 1M to 2G; with `spill` to 1T", .effect = MOUNT_EFFECT_SERVING,
      .help =
          "limit for the packets of each track; K, M, G and T are powers of 1024. If the packets "
          "of `time` need more, the cache holds less than `time`. Of an HTTP server or a block "
          "store: limit for the blocks of all titles; of a block store `256M`, and up to 1T, in "
          "memory" },
  { "spill", SCHEMA_PATH, AT (spill), .form = "FOLDER", .check = check_spill,
      .effect = MOUNT_EFFECT_CLOSES,
      .help = "keeps the packets in a file in this folder, or the blocks of titles in files; "
              "without it "
              "they are kept in memory" },
  { NULL },
};

#undef AT

const SchemaObject mount_cache_object = { .keys = cache_keys, .expected = MOUNT_CACHE_EXPECTED };
