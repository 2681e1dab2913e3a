// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_cache.h"

#include "text/config_error.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define CACHE_TIME_MAX_MS (23 * 60 * 60 * 1000) // of fanoutsink's day; it keeps some more
#define CACHE_BYTES (64 << 20)
#define CACHE_BYTES_MIN (1 << 20)
#define CACHE_MEMORY_MAX (G_GUINT64_CONSTANT (2) << 30)
#define CACHE_BYTES_MAX (G_GUINT64_CONSTANT (1) << 40)

// A number with K, M, G or T behind it.
static gboolean
parse_bytes (const gchar *text, guint64 *bytes)
{
  static const gchar units[] = "KMGT";
  gchar *unit = NULL;
  guint64 number = g_ascii_isdigit (*text) ? g_ascii_strtoull (text, &unit, 10) : 0;
  const gchar *found = unit && *unit ? strchr (units, *unit) : NULL;
  guint shift = found ? 10 * (guint) (found - units + 1) : 0;

  if (!unit || (*unit && (!found || unit[1])) || number > G_MAXUINT32)
    return FALSE;
  *bytes = number << shift;
  return *bytes >= CACHE_BYTES_MIN && *bytes <= CACHE_BYTES_MAX;
}

static gboolean
read_bytes (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);

  if (text && parse_bytes (text, &((MountConfig *) object)->cache.bytes))
    return TRUE;
  return schema_fail (reader, node, key, error, "a size from 1M to 1T belongs here, like 64M");
}

static gboolean
read_spill (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);

  if (!text)
    return schema_fail (reader, node, key, error, "a single value belongs here");
  if (!g_file_test (text, G_FILE_TEST_IS_DIR) || g_access (text, W_OK | X_OK) < 0)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf ("there is no folder %s to write to", text));
  g_free (mount->cache.spill);
  mount->cache.spill = g_strdup (text);
  return TRUE;
}

static const SchemaValue bytes_value = { .read = read_bytes };
static const SchemaValue spill_value = { .read = read_spill };

static const SchemaKey cache_keys[] = {
  { "time", SCHEMA_DURATION, G_STRUCT_OFFSET (MountConfig, cache.time_ms), .min = 1000 },
  { "bytes", SCHEMA_OTHER, .value = &bytes_value },
  { "spill", SCHEMA_OTHER, .value = &spill_value },
  { NULL },
};

static void
clear_cache (gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->cache.spill, g_free);
}

static void
reset_cache (const SchemaKey *key, gpointer object)
{
  MountConfig *mount = object;

  clear_cache (mount);
  mount->cache.time_ms = 0;
  mount->cache.bytes = CACHE_BYTES;
}

static gboolean
read_cache (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;

  reset_cache (key, mount);
  if (!yaml_is_mapping (node) || !yaml_get (reader, node, "time"))
    return schema_fail (reader, node, key, error, "{time: 60s, bytes: 64M} belongs here");
  if (!schema_read (cache_keys, mount, reader, node, key->name, SCHEMA_WHOLE, error))
    return FALSE;
  if (mount->cache.time_ms > CACHE_TIME_MAX_MS)
    return schema_fail (reader, node, key, error, "its time is 23h at most");
  if (mount->cache.bytes > CACHE_MEMORY_MAX && !mount->cache.spill)
    return schema_fail (
        reader, node, key, error, "more bytes than 2G belong in a file (spill: FOLDER)");
  return TRUE;
}

static gboolean
equal_caches (gconstpointer a, gconstpointer b)
{
  const MountConfig *x = a, *y = b;

  return x->cache.time_ms == y->cache.time_ms
         && (x->cache.time_ms == 0
             || (x->cache.bytes == y->cache.bytes && !g_strcmp0 (x->cache.spill, y->cache.spill)));
}

static void
write_cache (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;
  gchar *bytes;

  if (mount->cache.time_ms == 0)
    return;
  json_builder_set_member_name (builder, "cache");
  json_builder_begin_object (builder);
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

// What is kept for readers can't move to another disk, or from memory to one.
static guint
get_effect (gconstpointer from, gconstpointer to)
{
  const MountConfig *x = from, *y = to;

  return g_strcmp0 (x->cache.spill, y->cache.spill) ? MOUNT_EFFECT_CLOSES : MOUNT_EFFECT_SERVING;
}

const SchemaValue mount_cache_value = { read_cache, reset_cache, equal_caches, write_cache,
  copy_cache, clear_cache, get_effect };
