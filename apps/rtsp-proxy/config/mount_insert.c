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

#define AT(field) G_STRUCT_OFFSET (MountConfig, insert.field)

static const SchemaKey insert_keys[] = {
  { "folder", SCHEMA_TEXT, AT (folder), .form = "FOLDER", .check = check_folder,
      .missing = "the folder of the clips is missing; add folder: FOLDER",
      .effect = MOUNT_EFFECT_UPSTREAM, .help = "the folder of the clips; required" },
  { NULL },
};

#undef AT

const SchemaObject mount_insert_object = { .keys = insert_keys,
  .expected = "expected {folder: FOLDER}, such as {folder: /srv/clips}" };
