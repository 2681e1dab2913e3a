// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the options of rtsp-proxy and the keys of its configuration, as JSON.
#include "option_table.h"

#include "cli/options.h"
#include "config/mount_keys.h"
#include "config/proxy_config.h"
#include "config/variables.h"
#include "sources/kinds.h"

static void
write_table (const SchemaKey *keys, const gchar *prefix, gpointer data)
{
  JsonBuilder *builder = data;

  json_builder_set_member_name (builder, prefix);
  json_builder_begin_array (builder);
  for (const SchemaKey *key = keys; key->name; key++) {
    gchar *form = schema_dup_form (key), *name = g_strconcat (prefix, key->name, NULL);

    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, "name");
    json_builder_add_string_value (builder, name);
    json_builder_set_member_name (builder, "form");
    json_builder_add_string_value (builder, form);
    json_builder_set_member_name (builder, "default");
    json_builder_add_string_value (builder, key->preset ? key->preset : "");
    json_builder_set_member_name (builder, "help");
    json_builder_add_string_value (builder, key->help);
    json_builder_end_object (builder);
    g_free (name);
    g_free (form);
  }
  json_builder_end_array (builder);
}

// Adds the keys and those of the objects in them, each table named by its prefix.
static void
write_keys (JsonBuilder *builder, const gchar *name, const SchemaKey *keys)
{
  json_builder_set_member_name (builder, name);
  json_builder_begin_object (builder);
  schema_each_table (keys, "", write_table, builder);
  json_builder_end_object (builder);
}

int
main (void)
{
  JsonBuilder *builder = json_builder_new ();
  gchar *kinds = kinds_to_help ();
  g_autofree gchar *variables = variables_to_help (proxy_config_keys ());
  gchar *text =
      g_strconcat (options_examples, "Upstreams:\n", kinds, variables, options_epilogue, NULL);

  json_builder_begin_object (builder);
  option_table_write (builder, options_entries, options_summary, text);
  write_keys (builder, "file", proxy_config_keys ());
  write_keys (builder, "mount", mount_config_keys ());
  json_builder_end_object (builder);
  option_table_print (builder);
  g_free (text);
  g_free (kinds);
}
