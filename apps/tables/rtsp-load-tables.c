// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the options of rtsp-load, as JSON.
#include "option_table.h"

#include "../rtsp-load/options.h"

static void
write_groups (JsonBuilder *builder)
{
  json_builder_set_member_name (builder, "groups");
  json_builder_begin_array (builder);
  for (const OptionGroup *group = options_groups; group->title; group++) {
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, "title");
    json_builder_add_string_value (builder, group->title);
    json_builder_set_member_name (builder, "example");
    json_builder_add_string_value (builder, group->example);
    json_builder_set_member_name (builder, "first");
    json_builder_add_string_value (builder, group->entries->long_name);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

int
main (void)
{
  JsonBuilder *builder = json_builder_new ();
  GArray *entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));

  for (const OptionGroup *group = options_groups; group->title; group++) {
    for (const GOptionEntry *entry = group->entries; entry->long_name; entry++)
      g_array_append_val (entries, *entry);
  }
  json_builder_begin_object (builder);
  option_table_write (
      builder, (const GOptionEntry *) entries->data, options_summary, options_description);
  write_groups (builder);
  json_builder_end_object (builder);
  option_table_print (builder);
  g_array_unref (entries);
}
