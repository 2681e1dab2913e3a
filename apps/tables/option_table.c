// SPDX-License-Identifier: LGPL-2.1-or-later
#include "option_table.h"

#include <stdio.h>

static void
write_text (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, text ? text : "");
}

static void
write_entry (JsonBuilder *builder, const GOptionEntry *entry)
{
  const gchar letter[] = { entry->short_name, '\0' };

  json_builder_begin_object (builder);
  write_text (builder, "name", entry->long_name); // "" stands for the other arguments
  write_text (builder, "letter", letter);
  write_text (builder, "value", entry->arg_description);
  write_text (builder, "help", entry->description);
  json_builder_set_member_name (builder, "is-file");
  json_builder_add_boolean_value (builder, entry->arg == G_OPTION_ARG_FILENAME);
  json_builder_end_object (builder);
}

void
option_table_write (
    JsonBuilder *builder, const GOptionEntry *entries, const gchar *summary, const gchar *text)
{
  write_text (builder, "summary", summary);
  write_text (builder, "text", text);
  json_builder_set_member_name (builder, "options");
  json_builder_begin_array (builder);
  for (; entries->long_name; entries++) {
    if (!(entries->flags & G_OPTION_FLAG_HIDDEN))
      write_entry (builder, entries);
  }
  json_builder_end_array (builder);
}

void
option_table_print (JsonBuilder *builder)
{
  JsonNode *root = json_builder_get_root (builder);
  gchar *text = json_to_string (root, TRUE);

  printf ("%s\n", text);
  g_free (text);
  json_node_unref (root);
  g_object_unref (builder);
}
