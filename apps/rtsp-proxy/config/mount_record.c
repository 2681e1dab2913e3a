// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_record.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "config/folder_check.h"
#include "config/mount_values.h"
#include "config/web_url.h"
#include "text/config_error.h"

#define KEEP_DAYS_MAX 36500
#define DAY_S (24 * 60 * 60)
#define LIMIT_MIN (G_GUINT64_CONSTANT (16) << 20)

// ---- single keys ----

static gchar *
check_folder (SchemaText *it)
{
  if (!g_path_is_absolute (it->text))
    return g_strdup_printf ("the path of the folder %s must begin with a slash", it->text);
  return folder_check_writable (it, "it must exist and be writable");
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

static void
reset_keep (const SchemaKey *key, gpointer object)
{
  parse_keep (key->preset, &((MountConfig *) object)->record.keep_s);
}

static gboolean
equal_keep (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  return ((const MountConfig *) a)->record.keep_s == ((const MountConfig *) b)->record.keep_s;
}

static void
write_keep (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  const guint64 s = ((const MountConfig *) object)->record.keep_s;
  g_autofree gchar *text = s % DAY_S || !s ? g_strdup_printf ("%" G_GUINT64_FORMAT "s", s)
                                           : g_strdup_printf ("%" G_GUINT64_FORMAT "d", s / DAY_S);

  json_builder_set_member_name (builder, key->name);
  json_builder_add_string_value (builder, text);
}

static void
copy_keep (const SchemaKey *key, gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->record.keep_s = ((const MountConfig *) from)->record.keep_s;
}

static const SchemaValue keep_value = { read_keep, reset_keep, equal_keep, write_keep, copy_keep,
  NULL };

static gchar *
check_hook (SchemaText *it)
{
  GError *error = NULL;
  g_auto (GStrv) words = NULL;
  gchar *wrong = NULL;

  if (web_url_is (it->text))
    return web_url_check (it->text);
  if (!g_shell_parse_argv (it->text, NULL, &words, &error)) {
    wrong = g_strdup_printf ("not a command: %s", error->message);
    g_error_free (error);
  } else if (!g_path_is_absolute (words[0]) || g_access (words[0], X_OK) < 0) {
    it->code = g_path_is_absolute (words[0]) ? CONFIG_ERROR_ABSENT : CONFIG_ERROR_VALUE;
    wrong = g_strdup_printf (
        "expected a URL, or the path of a program from / on; %s is not one", words[0]);
  }
  return wrong;
}

// The hook may have secrets.
static gchar *
dup_hook_shown (const gchar *hook)
{
  return g_strdup (web_url_is (hook) ? "URL" : "command");
}

#define AT(field) G_STRUCT_OFFSET (MountConfig, record.field)

static const SchemaKey record_keys[] = {
  { "folder", SCHEMA_TEXT, AT (folder), .form = "FOLDER", .check = check_folder,
      .missing = "the folder is missing; add folder: FOLDER", .effect = MOUNT_EFFECT_NONE,
      .help = "where the files go, below a folder of the mount's path; required" },
  { "segment", SCHEMA_DURATION, AT (segment_ms), "1h", 1000, .effect = MOUNT_EFFECT_NONE,
      .help = "the duration of a file, which ends before the next keyframe" },
  { "part", SCHEMA_DURATION, AT (part_ms), "1s", 100, .effect = MOUNT_EFFECT_NONE,
      .help = "how much is written at a time: the most that a crash can cost" },
  { "keep", SCHEMA_OTHER, .preset = "7d", .form = "TIME", .value = &keep_value,
      .effect = MOUNT_EFFECT_NONE,
      .help = "files that are older are deleted; `7d` is seven days; `0s`: none for its age" },
  { "limit", SCHEMA_SIZE, AT (limit), .min = LIMIT_MIN, .form = "SIZE", .effect = MOUNT_EFFECT_NONE,
      .help = "the oldest files are deleted when those of the mount have more bytes, at least "
              "`16M`; K, M, G and T are powers of 1024; without it there is no limit" },
  { "hook", SCHEMA_TEXT, AT (hook), .form = "COMMAND or URL", .check = check_hook,
      .show = dup_hook_shown, .effect = MOUNT_EFFECT_NONE,
      .help = "what runs when a file is complete: a program, by its whole path, with arguments, or "
              "a POST to an http or https URL" },
  { NULL },
};

#undef AT

// ---- the key ----

static gboolean
check_record (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const MountConfig *mount = object;
  YamlNode *part;

  if (strstr (mount->path, "/."))
    return schema_fail (reader, node, key, error,
        "a mount whose path has a part that begins with a dot cannot be recorded");
  if (mount->record.part_ms <= mount->record.segment_ms)
    return TRUE;
  part = yaml_get (reader, node, "part");
  return yaml_fail (reader, part ? part : node, "part", CONFIG_ERROR_VALUE, error,
      "a part cannot be longer than a segment");
}

const SchemaObject mount_record_object = { .keys = record_keys,
  .expected = "expected {KEY: VALUE, ...}, such as {folder: /srv/recordings}",
  .check = check_record };
