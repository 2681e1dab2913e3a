// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the options of rtsp-proxy and the keys of its configuration, as JSON.
#include "option_table.h"

#include "cli/options.h"
#include "config/auth_config.h"
#include "config/http_config.h"
#include "config/mount_broadcast.h"
#include "config/mount_cache.h"
#include "config/mount_insert.h"
#include "config/mount_record.h"
#include "config/mount_swarm.h"
#include "config/mount_keys.h"
#include "config/user_read.h"
#include "sources/kinds.h"

static void
write_keys (JsonBuilder *builder, const gchar *table, const gchar *prefix, const SchemaKey *keys)
{
  json_builder_set_member_name (builder, table);
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

int
main (void)
{
  JsonBuilder *builder = json_builder_new ();
  gchar *kinds = kinds_to_help ();
  gchar *text = g_strconcat (options_examples, "Upstreams:\n", kinds, options_epilogue, NULL);

  json_builder_begin_object (builder);
  option_table_write (builder, options_entries, options_summary, text);
  write_keys (builder, "file", "", proxy_config_keys ());
  write_keys (builder, "limits", "limits.", limits_object.keys);
  write_keys (builder, "mount", "", mount_config_keys ());
  write_keys (builder, "cache", "cache.", mount_cache_object.keys);
  write_keys (builder, "swarm", "swarm.", mount_swarm_object.keys);
  write_keys (builder, "broadcast", "broadcast.", mount_broadcast_object.keys);
  write_keys (builder, "record", "record.", mount_record_object.keys);
  write_keys (builder, "insert", "insert.", mount_insert_object.keys);
  write_keys (builder, "tls", "tls.", tls_config_object.keys);
  write_keys (builder, "http", "http.", http_config_object.keys);
  write_keys (builder, "hls", "hls.", hls_config_object.keys);
  write_keys (builder, "srt", "srt.", srt_config_object.keys);
  write_keys (builder, "rtmp", "rtmp.", rtmp_config_object.keys);
  write_keys (builder, "jwt", "jwt.", jwt_config_keys ());
  write_keys (builder, "external-auth", "external-auth.", external_auth_config_keys ());
  write_keys (builder, "users", "users.", user_keys ());
  write_keys (builder, "permissions", "users.permissions.", permission_keys ());
  json_builder_end_object (builder);
  option_table_print (builder);
  g_free (text);
  g_free (kinds);
}
