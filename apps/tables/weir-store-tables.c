// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the commands of weir-store with their options, as JSON.
#include "option_table.h"

#include "../weir-store/commands.h"

static void
write_command (JsonBuilder *builder, const Command *command)
{
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "name");
  json_builder_add_string_value (builder, command->name);
  json_builder_set_member_name (builder, "words");
  json_builder_add_string_value (builder, command->words);
  option_table_write (builder, command->entries, command->summary, command->text);
  json_builder_end_object (builder);
}

int
main (void)
{
  static const GOptionEntry no_entries[] = { { NULL } };
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  option_table_write (builder, no_entries, commands_summary, commands_description);
  json_builder_set_member_name (builder, "commands");
  json_builder_begin_array (builder);
  for (const Command *command = commands; command->name; command++)
    write_command (builder, command);
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  option_table_print (builder);
  return 0;
}
