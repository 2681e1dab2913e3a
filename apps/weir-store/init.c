// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands init, add-disk and remove-disk.

#include "commands.h"
#include "store/upkeep.h"

#include <stdio.h>
#include <stdlib.h>

static void
print_warning (gchar *warning)
{
  if (warning)
    fprintf (stderr, "weir-store: warning: %s\n", warning);
  g_free (warning);
}

static void
print_made (const Args *args, gchar **disks)
{
  JsonBuilder *builder;

  if (!args->json) {
    printf ("made the store %s on %u disks\n", args->words[0], g_strv_length (disks));
    return;
  }
  builder = json_builder_begin_object (json_builder_new ());
  json_builder_set_member_name (builder, "store");
  json_builder_add_string_value (builder, args->words[0]);
  json_builder_set_member_name (builder, "disks");
  json_builder_begin_array (builder);
  for (guint i = 0; disks[i]; i++)
    json_builder_add_string_value (builder, disks[i]);
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  commands_print_json (builder);
}

int
init_run (const Args *args)
{
  gint policy = weir_placement_policy (args->policy ? args->policy : "rda");
  gint64 slice_ns = 5 * G_GINT64_CONSTANT (1000000000);
  gchar **disks, *warning = NULL;
  GError *error = NULL;
  gboolean ok;

  if (!args->disks || !*args->disks)
    return commands_usage ("init needs --disks with the paths of folders, such as /disk1,/disk2");
  if (policy < 0)
    return commands_usage (
        "--policy must be naive, raid0, raid1, random or rda, not '%s'", args->policy);
  if (args->slice && !weir_block_store_parse_slice (args->slice, &slice_ns))
    return commands_usage ("--slice must be a time from 100ms to 60s, not '%s'", args->slice);
  disks = g_strsplit (args->disks, ",", -1);
  if (g_strv_contains ((const gchar *const *) disks, "")) {
    g_strfreev (disks);
    return commands_usage ("--disks has an empty path: '%s'", args->disks);
  }
  ok = weir_block_store_init (args->words[0], (const gchar *const *) disks,
      (WeirPlacementPolicy) policy, slice_ns, &warning, &error);
  if (ok)
    print_made (args, disks);
  g_strfreev (disks);
  print_warning (warning);
  return ok ? EXIT_SUCCESS : commands_fail (error);
}

int
add_disk_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  JsonBuilder *builder;
  GError *error = NULL;

  if (!store)
    return EXIT_FAILURE;
  builder = commands_begin_done (args);
  for (guint i = 1; !error && args->words[i]; i++) {
    g_autofree gchar *text =
        g_strdup_printf ("added the disk %s; balance moves blocks to it", args->words[i]);
    gchar *warning = NULL;

    if (weir_block_store_add_disk (store, args->words[i], &warning, &error))
      commands_print_done (builder, "path", args->words[i], text);
    print_warning (warning);
  }
  commands_end_done (builder);
  weir_block_store_unref (store);
  return error ? commands_fail (error) : EXIT_SUCCESS;
}

int
remove_disk_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  g_autofree gchar *text = NULL;
  JsonBuilder *builder;
  GError *error = NULL;

  if (!store)
    return EXIT_FAILURE;
  builder = commands_begin_done (args);
  text = g_strdup_printf (
      "%s gets no more blocks; balance moves its blocks and removes it", args->words[1]);
  if (weir_block_store_remove_disk (store, args->words[1], &error))
    commands_print_done (builder, "path", args->words[1], text);
  commands_end_done (builder);
  weir_block_store_unref (store);
  return error ? commands_fail (error) : EXIT_SUCCESS;
}
