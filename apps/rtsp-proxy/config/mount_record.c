// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_record.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "config/mount_values.h"
#include "config/web_url.h"
#include "text/config_error.h"

#define KEEP_DAYS 7
#define KEEP_DAYS_MAX 36500
#define DAY_S (24 * 60 * 60)
#define LIMIT_MIN (G_GUINT64_CONSTANT (16) << 20)

// ---- single keys ----

static gboolean
read_folder (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);

  if (!text)
    return schema_fail (reader, node, key, error, "expected a single value");
  if (!g_path_is_absolute (text))
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf ("the path of the folder %s must begin with a slash", text));
  if (!g_file_test (text, G_FILE_TEST_IS_DIR) || g_access (text, W_OK | X_OK) < 0)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_ABSENT, error,
        g_strdup_printf ("cannot write to the folder %s: it must exist and be writable", text));
  g_free (mount->record.folder);
  mount->record.folder = g_strdup (text);
  return TRUE;
}

// A time of days is written 7d.
static gboolean
parse_keep (const gchar *text, guint64 *keep_s)
{
  gsize digits = strspn (text, "0123456789");
  guint64 days;
  guint ms;

  if (digits > 0 && g_str_equal (text + digits, "d")) {
    days = g_ascii_strtoull (text, NULL, 10);
    *keep_s = days * DAY_S;
    return days >= 1 && days <= KEEP_DAYS_MAX;
  }
  if (!schema_parse_duration (text, &ms))
    return FALSE;
  *keep_s = (ms + 999) / 1000;
  return TRUE;
}

static gboolean
read_keep (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);

  if (text && parse_keep (text, &((MountConfig *) object)->record.keep_s))
    return TRUE;
  return schema_fail (reader, node, key, error,
      "expected a time such as 7d, 12h or 30m, at most 36500d; 0s: for ever");
}

static gboolean
read_limit (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint64 bytes;

  if (text && schema_parse_bytes (text, &bytes) && bytes >= LIMIT_MIN) {
    ((MountConfig *) object)->record.limit = bytes;
    return TRUE;
  }
  return schema_fail (reader, node, key, error, "expected a size of at least 16M, such as 100G");
}

// Returns what is wrong with a hook, or NULL. `*absent` says that its program is not there.
// (transfer full)
static gchar *
check_hook (const gchar *text, gboolean *absent)
{
  GError *error = NULL;
  GStrv words = NULL;
  gchar *wrong = NULL;

  if (web_url_is (text))
    return web_url_check (text);
  if (!g_shell_parse_argv (text, NULL, &words, &error)) {
    wrong = g_strdup_printf ("not a command: %s", error->message);
    g_error_free (error);
  } else if (!g_path_is_absolute (words[0]) || g_access (words[0], X_OK) < 0) {
    *absent = g_path_is_absolute (words[0]);
    wrong = g_strdup_printf (
        "expected a URL, or the path of a program from / on; %s is not one", words[0]);
  }
  g_strfreev (words);
  return wrong;
}

static gboolean
read_hook (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *text = yaml_text (reader, node);
  gboolean absent = FALSE;
  gchar *wrong = text ? check_hook (text, &absent) : g_strdup ("expected a single value");

  if (wrong)
    return yaml_fail_take (
        reader, node, key->name, absent ? CONFIG_ERROR_ABSENT : CONFIG_ERROR_VALUE, error, wrong);
  g_free (mount->record.hook);
  mount->record.hook = g_strdup (text);
  return TRUE;
}

static const SchemaValue folder_value = { .read = read_folder };
static const SchemaValue keep_value = { .read = read_keep };
static const SchemaValue limit_value = { .read = read_limit };
static const SchemaValue hook_value = { .read = read_hook };

#define AT(field) G_STRUCT_OFFSET (MountConfig, record.field)

static const SchemaKey record_keys[] = {
  { "folder", SCHEMA_OTHER, .form = "FOLDER", .value = &folder_value, .effect = MOUNT_EFFECT_NONE,
      .help = "where the files go, below a folder of the mount's path; required" },
  { "segment", SCHEMA_DURATION, AT (segment_ms), "1h", 1000, .effect = MOUNT_EFFECT_NONE,
      .help = "the duration of a file, which ends before the next keyframe" },
  { "part", SCHEMA_DURATION, AT (part_ms), "1s", 100, .effect = MOUNT_EFFECT_NONE,
      .help = "how much is written at a time: the most that a crash can cost" },
  { "keep", SCHEMA_OTHER, .preset = "7d", .form = "TIME", .value = &keep_value,
      .effect = MOUNT_EFFECT_NONE,
      .help = "files that are older are deleted; `7d` is seven days; `0s`: none for its age" },
  { "limit", SCHEMA_OTHER, .form = "SIZE", .value = &limit_value, .effect = MOUNT_EFFECT_NONE,
      .help = "the oldest files are deleted when those of the mount have more bytes, at least "
              "`16M`; K, M, G and T are powers of 1024; without it there is no limit" },
  { "hook", SCHEMA_OTHER, .form = "COMMAND or URL", .value = &hook_value,
      .effect = MOUNT_EFFECT_NONE,
      .help = "what runs when a file is complete: a program, by its whole path, with arguments, or "
              "a POST to an http or https URL" },
  { NULL },
};

#undef AT

const SchemaKey *
mount_record_keys (void)
{
  return record_keys;
}

// ---- the key ----

static void
clear_record (gpointer object)
{
  MountConfig *mount = object;

  g_clear_pointer (&mount->record.folder, g_free);
  g_clear_pointer (&mount->record.hook, g_free);
}

static void
reset_record (const SchemaKey *key, gpointer object)
{
  MountConfig *mount = object;

  clear_record (mount);
  memset (&mount->record, 0, sizeof mount->record);
  schema_init (record_keys, object);
  mount->record.keep_s = (guint64) KEEP_DAYS * DAY_S;
}

static gboolean
read_record (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  YamlNode *part;

  reset_record (key, mount);
  if (!yaml_is_mapping (node))
    return schema_fail (
        reader, node, key, error, "expected {KEY: VALUE, ...}, such as {folder: /srv/recordings}");
  if (!schema_read (record_keys, mount, reader, node, key->name, SCHEMA_WHOLE, error))
    return FALSE;
  if (!mount->record.folder)
    return schema_fail (reader, node, key, error, "the folder is missing; add folder: FOLDER");
  if (strstr (mount->path, "/."))
    return schema_fail (reader, node, key, error,
        "a mount whose path has a part that begins with a dot cannot be recorded");
  if (mount->record.part_ms <= mount->record.segment_ms)
    return TRUE;
  part = yaml_get (reader, node, "part");
  return yaml_fail (reader, part ? part : node, "part", CONFIG_ERROR_VALUE, error,
      "a part cannot be longer than a segment");
}

static gboolean
equal_records (gconstpointer a, gconstpointer b)
{
  const MountConfig *x = a, *y = b;

  return !g_strcmp0 (x->record.folder, y->record.folder)
         && !g_strcmp0 (x->record.hook, y->record.hook)
         && x->record.segment_ms == y->record.segment_ms && x->record.part_ms == y->record.part_ms
         && x->record.keep_s == y->record.keep_s && x->record.limit == y->record.limit;
}

// The hook may have secrets.
static void
write_record (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;
  gchar *keep, *limit;

  if (!mount->record.folder)
    return;
  json_builder_set_member_name (builder, "record");
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "folder");
  json_builder_add_string_value (builder, mount->record.folder);
  schema_write (record_keys, object, builder);
  keep = g_strdup_printf ("%" G_GUINT64_FORMAT "%s",
      mount->record.keep_s % DAY_S || !mount->record.keep_s ? mount->record.keep_s
                                                            : mount->record.keep_s / DAY_S,
      mount->record.keep_s % DAY_S || !mount->record.keep_s ? "s" : "d");
  json_builder_set_member_name (builder, "keep");
  json_builder_add_string_value (builder, keep);
  if (mount->record.limit > 0) {
    limit = g_strdup_printf ("%" G_GUINT64_FORMAT "K", mount->record.limit >> 10);
    json_builder_set_member_name (builder, "limit");
    json_builder_add_string_value (builder, limit);
    g_free (limit);
  }
  if (mount->record.hook) {
    json_builder_set_member_name (builder, "hook");
    json_builder_add_string_value (builder, web_url_is (mount->record.hook) ? "URL" : "command");
  }
  json_builder_end_object (builder);
  g_free (keep);
}

static void
copy_record (gpointer to, gconstpointer from)
{
  MountConfig *mount = to;

  clear_record (mount);
  mount->record = ((const MountConfig *) from)->record;
  mount->record.folder = g_strdup (mount->record.folder);
  mount->record.hook = g_strdup (mount->record.hook);
}

const SchemaValue mount_record_value = { read_record, reset_record, equal_records, write_record,
  copy_record, clear_record, NULL };
