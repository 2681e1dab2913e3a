// SPDX-License-Identifier: LGPL-2.1-or-later
// The command model.

#include "disks/model.h"

#include "commands.h"
#include "interrupt.h"
#include "measure.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>

static const guint stream_rates[] = { 1, 2, 4, 6, 8, 12, 18, 25 }; // Mb/s

typedef struct {
  WeirDiskModel model;
  guint disks[12]; // the columns
  guint n_disks;
} Table;

static gboolean
parse (const Args *args, WeirDiskModel *model)
{
  guint64 rate, number;

  if (args->access && !units_parse_time (args->access, &model->access_s)) {
    commands_usage ("--access must be a time such as 17ms, not '%s'", args->access);
    return FALSE;
  }
  if (args->slice && !units_parse_time (args->slice, &model->slice_s)) {
    commands_usage ("--slice must be a time such as 5s, not '%s'", args->slice);
    return FALSE;
  }
  if (args->rate && !units_parse_rate (args->rate, &rate)) {
    commands_usage ("--rate must be a rate such as 525M, not '%s'", args->rate);
    return FALSE;
  }
  if (args->rate)
    model->disk_rate = (gdouble) rate;
  if (args->line && !units_parse_rate (args->line, &rate)) {
    commands_usage ("--line must be a rate such as 10G, not '%s'", args->line);
    return FALSE;
  }
  if (args->line)
    model->line_rate = (gdouble) rate;
  if (args->disks
      && !g_ascii_string_to_unsigned (args->disks, 10, 1, WEIR_STORE_DISKS_MAX, &number, NULL)) {
    commands_usage (
        "--disks must be a number from 1 to %d, not '%s'", WEIR_STORE_DISKS_MAX, args->disks);
    return FALSE;
  }
  if (args->disks)
    model->n_disks = (uint32_t) number;
  return TRUE;
}

// Takes the number of disks and the slice from a store, and measures its disks.
static gboolean
take_store (const Args *args, WeirDiskModel *model)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  WeirBlockStore *store = commands_open (args);
  GError *error = NULL;
  Measure measure;
  gboolean ok;

  if (!store)
    return FALSE;
  model->n_disks = weir_block_store_get_disks (store, disks, WEIR_STORE_DISKS_MAX);
  model->slice_s = (gdouble) weir_block_store_get_slice (store) / 1e9;
  ok = (args->access && args->rate) || measure_store (&measure, store, &error);
  if (ok && !(args->access && args->rate)) {
    model->access_s = measure.access_s;
    model->disk_rate = measure.rate;
  }
  weir_block_store_unref (store);
  if (error)
    commands_fail (error);
  return ok;
}

static void
print_json (const Table *table)
{
  WeirDiskModel model = table->model;
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "access");
  json_builder_add_double_value (builder, model.access_s);
  json_builder_set_member_name (builder, "rate");
  json_builder_add_double_value (builder, model.disk_rate);
  json_builder_set_member_name (builder, "slice");
  json_builder_add_double_value (builder, model.slice_s);
  json_builder_set_member_name (builder, "streams");
  json_builder_begin_array (builder);
  for (guint i = 0; i < G_N_ELEMENTS (stream_rates); i++) {
    for (guint j = 0; j < table->n_disks; j++) {
      model.n_disks = table->disks[j];
      json_builder_begin_object (builder);
      json_builder_set_member_name (builder, "rate");
      json_builder_add_int_value (builder, stream_rates[i] * 1000000);
      json_builder_set_member_name (builder, "disks");
      json_builder_add_int_value (builder, model.n_disks);
      json_builder_set_member_name (builder, "streams");
      json_builder_add_int_value (
          builder, (gint64) weir_disk_model_streams (&model, stream_rates[i] * 1e6));
      json_builder_end_object (builder);
    }
  }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  commands_print_json (builder);
}

static void
print_table (const Table *table, gboolean measured)
{
  WeirDiskModel model = table->model;
  g_autofree gchar *rate = units_dup_rate ((guint64) model.disk_rate);

  printf ("Streams of disks with an access time of %.3g ms and a rate of %s%s, slices of %g s\n\n",
      model.access_s * 1e3, rate, measured ? ", as measured" : "", model.slice_s);
  printf ("%-12s", "disks");
  for (guint j = 0; j < table->n_disks; j++)
    printf ("%9u", table->disks[j]);
  for (guint i = 0; i < G_N_ELEMENTS (stream_rates); i++) {
    printf ("\n%2u Mb/s     ", stream_rates[i]);
    for (guint j = 0; j < table->n_disks; j++) {
      model.n_disks = table->disks[j];
      printf ("%9" G_GUINT64_FORMAT, weir_disk_model_streams (&model, stream_rates[i] * 1e6));
    }
  }
  printf ("\n");
}

int
model_run (const Args *args)
{
  Table table = {
    .model = { .n_disks = 8, .n_stripes = 1, .access_s = 0.017, .disk_rate = 525e6, .slice_s = 5 }
  };
  gboolean stored = args->words != NULL;

  // Wrong arguments are told before anything is measured.
  if (!parse (args, &table.model))
    return EXIT_USAGE;
  if (stored && (!take_store (args, &table.model) || interrupted ()))
    return EXIT_FAILURE;
  parse (args, &table.model);
  for (guint n = 1; n < table.model.n_disks; n *= 2)
    table.disks[table.n_disks++] = n;
  table.disks[table.n_disks++] = table.model.n_disks;
  if (args->json)
    print_json (&table);
  else
    print_table (&table, stored && !(args->access && args->rate));
  return EXIT_SUCCESS;
}
