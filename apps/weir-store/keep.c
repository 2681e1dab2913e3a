// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands verify, repair, balance, replace-disk and remove.

#include "commands.h"
#include "interrupt.h"
#include "progress.h"
#include "store/upkeep.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum { VERIFY, REPAIR, BALANCE } Work;

static const gchar *const work_names[] = { "verify", "repair", "balance" };

typedef struct {
  gboolean json, forget;
  JsonBuilder *problems;
} Report;

static void
report (guint64 done, guint64 total, const gchar *title, const gchar *problem, gpointer data)
{
  Report *self = data;

  if (!problem) {
    progress_show (title, done, total);
    return;
  }
  progress_clear ();
  if (!self->json) {
    printf ("%s%s%s\n", title ? title : "", title ? ": " : "", problem);
    fflush (stdout);
    return;
  }
  json_builder_begin_object (self->problems);
  json_builder_set_member_name (self->problems, "title");
  if (title)
    json_builder_add_string_value (self->problems, title);
  else
    json_builder_add_null_value (self->problems);
  json_builder_set_member_name (self->problems, "problem");
  json_builder_add_string_value (self->problems, problem);
  json_builder_end_object (self->problems);
}

static void
begin_report (Report *self, const gchar *command)
{
  self->problems = json_builder_new ();
  json_builder_begin_object (self->problems);
  json_builder_set_member_name (self->problems, "command");
  json_builder_add_string_value (self->problems, command);
  json_builder_set_member_name (self->problems, "problems");
  json_builder_begin_array (self->problems);
}

static gboolean
do_work (WeirBlockStore *store, Work work, const gchar *name, guint64 rate, Report *self,
    WeirUpkeepResult *result, GError **error)
{
  if (work == VERIFY)
    return weir_block_store_verify (store, name, report, self, interrupt_get (), result, error);
  if (work == REPAIR)
    return weir_block_store_repair (
        store, name, rate, self->forget, report, self, interrupt_get (), result, error);
  return weir_block_store_balance (store, rate, report, self, interrupt_get (), result, error);
}

static void
add_result (WeirUpkeepResult *sum, const WeirUpkeepResult *result)
{
  sum->titles += result->titles;
  sum->blocks += result->blocks;
  sum->copies += result->copies;
  sum->missing_disks = result->missing_disks;
  sum->bad_indexes += result->bad_indexes;
  sum->restored += result->restored;
  sum->bad_index_copies += result->bad_index_copies;
  sum->unknown += result->unknown;
  sum->bad_copies += result->bad_copies;
  sum->lost_blocks += result->lost_blocks;
  sum->repaired += result->repaired;
  sum->moved += result->moved;
  sum->staying_disks = result->staying_disks;
  sum->leftovers += result->leftovers;
}

static void
print_json (Report *self, const WeirUpkeepResult *sum)
{
  const struct {
    const gchar *name;
    guint64 value;
  } members[] = { { "titles", sum->titles }, { "blocks", sum->blocks }, { "copies", sum->copies },
    { "missing-disks", sum->missing_disks }, { "bad-indexes", sum->bad_indexes },
    { "restored-indexes", sum->restored }, { "bad-index-copies", sum->bad_index_copies },
    { "files-without-index", sum->unknown }, { "bad-copies", sum->bad_copies },
    { "lost-blocks", sum->lost_blocks }, { "repaired", sum->repaired }, { "moved", sum->moved },
    { "staying-disks", sum->staying_disks }, { "leftovers", sum->leftovers } };

  json_builder_end_array (self->problems);
  for (guint i = 0; i < G_N_ELEMENTS (members); i++) {
    json_builder_set_member_name (self->problems, members[i].name);
    json_builder_add_int_value (self->problems, (gint64) members[i].value);
  }
  json_builder_end_object (self->problems);
  commands_print_json (g_steal_pointer (&self->problems));
}

static void
print_text (Work work, const WeirUpkeepResult *sum)
{
#define U "%" G_GUINT64_FORMAT
  if (work == BALANCE) {
    printf ("moved " U " copies\n", sum->moved);
    return;
  }
  printf (U " titles, " U " blocks, " U " copies: " U " bad copies, " U " lost blocks", sum->titles,
      sum->blocks, sum->copies, sum->bad_copies, sum->lost_blocks);
  if (sum->missing_disks)
    printf (", " U " missing disks", sum->missing_disks);
  if (sum->bad_indexes)
    printf (", " U " bad indexes", sum->bad_indexes);
  if (sum->restored)
    printf (", " U " indexes made anew", sum->restored);
  if (sum->bad_index_copies)
    printf (", " U " copies of indexes missing", sum->bad_index_copies);
  if (sum->unknown)
    printf (", " U " files without an index", sum->unknown);
  if (work == REPAIR)
    printf (
        "; " U " copies written anew, " U " leftover files removed", sum->repaired, sum->leftovers);
  else if (sum->leftovers)
    printf ("; " U " leftover files, which repair removes", sum->leftovers);
  printf ("\n");
#undef U
}

static gboolean
is_good (Work work, const WeirUpkeepResult *sum)
{
  return sum->bad_indexes + sum->bad_index_copies + sum->unknown + sum->lost_blocks
                 + sum->staying_disks
             == 0
         && (work == REPAIR ? sum->repaired == sum->bad_copies
                            : sum->bad_copies + sum->missing_disks == 0);
}

static int
run_work (const Args *args, Work work)
{
  Report self = { .json = args->json, .forget = args->forget };
  WeirUpkeepResult sum = { 0 }, result;
  WeirBlockStore *store;
  GError *error = NULL;
  guint64 rate = 0;

  if (args->rate && !units_parse_rate (args->rate, &rate))
    return commands_usage ("--rate must be a rate such as 200M, not '%s'", args->rate);
  store = commands_open (args);
  if (!store)
    return EXIT_FAILURE;
  begin_report (&self, work_names[work]);
  for (guint i = 1; !error && (i == 1 || args->words[i]); i++) {
    do_work (store, work, args->words[i], (rate + 7) / 8, &self, &result, &error);
    add_result (&sum, &result);
    if (!args->words[i])
      break;
  }
  progress_clear ();
  weir_block_store_unref (store);
  if (error && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_object_unref (self.problems);
    return commands_fail (error);
  }
  if (args->json)
    print_json (&self, &sum);
  else
    print_text (work, &sum);
  g_clear_object (&self.problems);
  if (error) {
    g_error_free (error);
    return EXIT_FAILURE;
  }
  return is_good (work, &sum) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
verify_run (const Args *args)
{
  return run_work (args, VERIFY);
}

int
repair_run (const Args *args)
{
  return run_work (args, REPAIR);
}

int
balance_run (const Args *args)
{
  return run_work (args, BALANCE);
}

int
replace_disk_run (const Args *args)
{
  Report self = { .json = args->json };
  WeirUpkeepResult result = { 0 };
  gchar *warning = NULL;
  WeirBlockStore *store;
  GError *error = NULL;
  guint64 rate = 0;

  if (args->rate && !units_parse_rate (args->rate, &rate))
    return commands_usage ("--rate must be a rate such as 200M, not '%s'", args->rate);
  store = commands_open (args);
  if (!store)
    return EXIT_FAILURE;
  begin_report (&self, "replace-disk");
  weir_block_store_replace_disk (store, args->words[1], args->words[2], (rate + 7) / 8, report,
      &self, interrupt_get (), &result, &warning, &error);
  progress_clear ();
  weir_block_store_unref (store);
  if (warning)
    fprintf (stderr, "weir-store: warning: %s\n", warning);
  g_free (warning);
  if (args->json)
    print_json (&self, &result);
  else if (!error)
    printf ("%s is in the place of %s: %" G_GUINT64_FORMAT
            " copies were written, %" G_GUINT64_FORMAT " lost blocks\n",
        args->words[2], args->words[1], result.moved, result.lost_blocks);
  g_clear_object (&self.problems);
  if (error)
    return commands_fail (error);
  return result.lost_blocks + result.bad_indexes == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
remove_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  int status = EXIT_SUCCESS;
  JsonBuilder *builder;

  if (!store)
    return EXIT_FAILURE;
  builder = commands_begin_done (args);
  for (guint i = 1; args->words[i] && !interrupted (); i++) {
    g_autofree gchar *text = g_strdup_printf ("removed %s", args->words[i]);
    GError *error = NULL;

    if (weir_block_store_remove_title (store, args->words[i], &error))
      commands_print_done (builder, "name", args->words[i], text);
    else
      status = commands_fail (error);
  }
  commands_end_done (builder);
  weir_block_store_unref (store);
  return interrupted () ? EXIT_FAILURE : status;
}
