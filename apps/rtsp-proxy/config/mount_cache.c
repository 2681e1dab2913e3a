// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_cache.h"

#include "base/file_roots.h"
#include "text/config_error.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define CACHE_TIME_MAX_MS (23 * 60 * 60 * 1000) // less than a day, which is fanoutsink's limit
#define CACHE_BYTES (64 << 20)
#define CACHE_BYTES_MIN (1 << 20)
#define CACHE_BYTES_MAX (G_GUINT64_CONSTANT (1) << 40)

static gboolean
read_bytes (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint64 bytes;

  if (text && schema_parse_bytes (text, &bytes) && bytes >= CACHE_BYTES_MIN
      && bytes <= CACHE_BYTES_MAX) {
    ((MountConfig *) object)->cache.bytes = bytes;
    ((MountConfig *) object)->cache.has_bytes = TRUE;
    return TRUE;
  }
  return schema_fail (reader, node, key, error, "expected a size from 1M to 1T, such as 64M");
}

static gboolean
read_spill (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);
  gchar *wrong;

  if (!text)
    return schema_fail (reader, node, key, error, "expected a single value");
  wrong = mount->from_api ? file_roots_check (text) : NULL;
  if (wrong)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
  if (!g_file_test (text, G_FILE_TEST_IS_DIR) || g_access (text, W_OK | X_OK) < 0)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_ABSENT, error,
        g_strdup_printf (
            "cannot write to the folder %s: it does not exist or is not writable", text));
  g_free (mount->cache.spill);
  mount->cache.spill = g_strdup (text);
  mount->cache.is_spill_limited = mount->from_api;
  return TRUE;
}

static const SchemaValue bytes_value = { .read = read_bytes };
static const SchemaValue spill_value = { .read = read_spill };

static const SchemaKey cache_keys[] = {
  { "time", SCHEMA_DURATION, G_STRUCT_OFFSET (MountConfig, cache.time_ms), .min = 1000,
      .max = CACHE_TIME_MAX_MS, .effect = MOUNT_EFFECT_SERVING,
      .help = "how far back readers can go; required, unless the upstream is an HTTP server or a "
              "block store" },
  { "bytes", SCHEMA_OTHER, .preset = "64M", .form = "size from 1M to 2G; with `spill` to 1T",
      .value = &bytes_value, .effect = MOUNT_EFFECT_SERVING,
      .help =
          "limit for the packets of each track; K, M, G and T are powers of 1024. If the packets "
          "of `time` need more, the cache holds less than `time`. Of an HTTP server or a block "
          "store: limit for the blocks of all titles; of a block store `256M`, and up to 1T, in "
          "memory" },
  { "spill", SCHEMA_OTHER, .form = "FOLDER", .value = &spill_value, .effect = MOUNT_EFFECT_CLOSES,
      .help = "keeps the packets in a file in this folder, or the blocks of titles in files; "
              "without it "
              "they are kept in memory" },
  { NULL },
};

const SchemaKey *
mount_cache_keys (void)
{
  return cache_keys;
}

static void
clear_cache (gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->cache.spill, g_free);
  ((MountConfig *) object)->cache.is_spill_limited = FALSE;
}

static void
reset_cache (const SchemaKey *key, gpointer object)
{
  MountConfig *mount = object;

  clear_cache (mount);
  mount->cache.time_ms = 0;
  mount->cache.bytes = CACHE_BYTES;
  mount->cache.has_bytes = FALSE;
}

static gboolean
read_cache (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;

  reset_cache (key, mount);
  if (!yaml_is_mapping (node))
    return schema_fail (reader, node, key, error, MOUNT_CACHE_EXPECTED);
  return schema_read (cache_keys, mount, reader, node, key->name, SCHEMA_WHOLE, error);
}

static gboolean
equal_caches (gconstpointer a, gconstpointer b)
{
  const MountConfig *x = a, *y = b;

  return x->cache.time_ms == y->cache.time_ms && x->cache.bytes == y->cache.bytes
         && x->cache.has_bytes == y->cache.has_bytes && !g_strcmp0 (x->cache.spill, y->cache.spill);
}

static void
write_cache (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;
  gchar *bytes;

  if (mount->cache.time_ms == 0 && !mount->cache.has_bytes && !mount->cache.spill)
    return;
  json_builder_set_member_name (builder, "cache");
  json_builder_begin_object (builder);
  if (mount->cache.time_ms > 0)
    schema_write (cache_keys, object, builder);
  bytes = g_strdup_printf ("%" G_GUINT64_FORMAT "K", mount->cache.bytes >> 10);
  json_builder_set_member_name (builder, "bytes");
  json_builder_add_string_value (builder, bytes);
  if (mount->cache.spill) {
    json_builder_set_member_name (builder, "spill");
    json_builder_add_string_value (builder, mount->cache.spill);
  }
  json_builder_end_object (builder);
  g_free (bytes);
}

static void
copy_cache (gpointer to, gconstpointer from)
{
  MountConfig *mount = to;

  mount->cache = ((const MountConfig *) from)->cache;
  mount->cache.spill = g_strdup (mount->cache.spill);
}

// The window cannot move between memory and a disk, or to another disk.
static guint
get_effect (gconstpointer from, gconstpointer to)
{
  const MountConfig *x = from, *y = to;

  return g_strcmp0 (x->cache.spill, y->cache.spill) ? MOUNT_EFFECT_CLOSES : MOUNT_EFFECT_SERVING;
}

const SchemaValue mount_cache_value = { read_cache, reset_cache, equal_caches, write_cache,
  copy_cache, clear_cache, get_effect };
