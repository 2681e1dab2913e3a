// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_insert.h"

#include "config/mount_values.h"
#include "text/config_error.h"

static gchar *
check_folder (SchemaText *it)
{
  if (!g_path_is_absolute (it->text))
    return g_strdup_printf ("the path of the folder %s must begin with a slash", it->text);
  if (g_file_test (it->text, G_FILE_TEST_IS_DIR))
    return NULL;
  it->code = CONFIG_ERROR_ABSENT;
  return g_strdup_printf ("no such folder: %s", it->text);
}

// Whether the clip is there and fits is known when it is opened: it may be replaced each day.
static gchar *
check_clip (SchemaText *it)
{
  return mount_insert_check_clip (it->text);
}

gchar *
mount_insert_check_clip (const gchar *text)
{
  g_auto (GStrv) parts = g_strsplit (text, "/", 0);
  gboolean ok = text[0] && text[0] != '/' && !g_strv_contains ((const gchar *const *) parts, "..");

  return ok ? NULL
            : g_strdup_printf (
                  "\"%s\" is not a file in the mount's folder of clips; write it like ad.mp4",
                  text);
}

#define AT(field) G_STRUCT_OFFSET (MountConfig, insert.field)

static const SchemaKey insert_keys[] = {
  { "folder", SCHEMA_TEXT, AT (folder), .form = "FOLDER", .check = check_folder,
      .missing = "the folder of the clips is missing; add folder: FOLDER",
      .effect = MOUNT_EFFECT_UPSTREAM, .help = "the folder of the clips; required" },
  { "on-cue", SCHEMA_TEXT, AT (on_cue), .form = "FILE", .check = check_clip,
      .effect = MOUNT_EFFECT_UPSTREAM,
      .help = "the clip in the folder that a cue of SCTE 35 in the upstream's transport stream "
              "begins, and ends; without it, cues are ignored" },
  { NULL },
};

#undef AT

const SchemaObject mount_insert_object = { .keys = insert_keys,
  .expected = "expected {folder: FOLDER}, such as {folder: /srv/clips, on-cue: ad.mp4}" };
