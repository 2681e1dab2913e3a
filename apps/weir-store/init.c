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
  ok = weir_block_store_init (args->words[0], (const gchar *const *) disks,
      (WeirPlacementPolicy) policy, slice_ns, &warning, &error);
  if (ok)
    printf ("made the store %s on %u disks\n", args->words[0], g_strv_length (disks));
  g_strfreev (disks);
  print_warning (warning);
  return ok ? EXIT_SUCCESS : commands_fail (error);
}

int
add_disk_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  GError *error = NULL;

  if (!store)
    return EXIT_FAILURE;
  for (guint i = 1; !error && args->words[i]; i++) {
    gchar *warning = NULL;

    if (weir_block_store_add_disk (store, args->words[i], &warning, &error))
      printf ("added the disk %s; balance moves blocks to it\n", args->words[i]);
    print_warning (warning);
  }
  weir_block_store_unref (store);
  return error ? commands_fail (error) : EXIT_SUCCESS;
}

int
remove_disk_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  GError *error = NULL;

  if (!store)
    return EXIT_FAILURE;
  if (weir_block_store_remove_disk (store, args->words[1], &error))
    printf ("%s gets no more blocks; balance moves its blocks and removes it\n", args->words[1]);
  weir_block_store_unref (store);
  return error ? commands_fail (error) : EXIT_SUCCESS;
}
