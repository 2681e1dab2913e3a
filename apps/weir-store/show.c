// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands list and show.

#include "commands.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  gchar *name;
  gchar *problem; // NULL, or why the index cannot be read
  guint64 bytes, rate;
  gint64 duration_ns;
  guint32 n_blocks;
} Listed;

static void
clear_listed (gpointer listed)
{
  g_free (((Listed *) listed)->name);
  g_free (((Listed *) listed)->problem);
}

static gboolean
add_listed (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer titles)
{
  Listed listed = { .name = g_strdup (name) };

  if (title) {
    const WeirIndex *index = weir_stored_title_get_index (title);

    listed.bytes = index->bytes;
    listed.rate = index->rate;
    listed.duration_ns = index->duration_ns;
    listed.n_blocks = index->n_blocks;
  } else {
    listed.problem = g_strdup (error->message);
  }
  g_array_append_val ((GArray *) titles, listed);
  return TRUE;
}

static gint
compare_listed (gconstpointer a, gconstpointer b)
{
  return strcmp (((const Listed *) a)->name, ((const Listed *) b)->name);
}

// Returns the titles by name (transfer full), or NULL after printing an error.
static GArray *
list_titles (WeirBlockStore *store)
{
  GArray *titles = g_array_new (FALSE, TRUE, sizeof (Listed));
  GError *error = NULL;

  g_array_set_clear_func (titles, clear_listed);
  if (!weir_block_store_list (store, add_listed, titles, &error)) {
    commands_fail (error);
    g_clear_pointer (&titles, g_array_unref);
    return NULL;
  }
  g_array_sort (titles, compare_listed);
  return titles;
}

static void
add_int (JsonBuilder *builder, const gchar *name, guint64 value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, (gint64) value);
}

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, value);
}

static void
add_seconds (JsonBuilder *builder, const gchar *name, gint64 ns)
{
  json_builder_set_member_name (builder, name);
  if (ns == WEIR_INDEX_NO_TIME)
    json_builder_add_null_value (builder);
  else
    json_builder_add_double_value (builder, (gdouble) ns / 1e9);
}

static void
print_list_json (const GArray *titles)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_array (builder);
  for (guint i = 0; i < titles->len; i++) {
    const Listed *listed = &g_array_index (titles, Listed, i);

    json_builder_begin_object (builder);
    add_text (builder, "name", listed->name);
    if (listed->problem) {
      add_text (builder, "problem", listed->problem);
    } else {
      add_int (builder, "bytes", listed->bytes);
      add_int (builder, "rate", listed->rate);
      add_seconds (builder, "duration", listed->duration_ns);
      add_int (builder, "blocks", listed->n_blocks);
    }
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
  commands_print_json (builder);
}

static void
print_listed (const Listed *listed)
{
  g_autofree gchar *size = units_dup_size (listed->bytes);
  g_autofree gchar *rate = units_dup_rate (listed->rate);
  g_autofree gchar *duration = units_dup_time (listed->duration_ns);

  if (listed->problem)
    fprintf (stderr, "weir-store: %s: %s\n", listed->name, listed->problem);
  else
    printf ("%10s  %10s  %10s  %s\n", duration, size, rate, listed->name);
}

int
list_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  GArray *titles = store ? list_titles (store) : NULL;
  int status = EXIT_SUCCESS;

  if (titles && args->json)
    print_list_json (titles);
  for (guint i = 0; titles && i < titles->len; i++) {
    const Listed *listed = &g_array_index (titles, Listed, i);

    if (!args->json)
      print_listed (listed);
    if (listed->problem)
      status = EXIT_FAILURE;
  }
  if (store)
    weir_block_store_unref (store);
  if (!titles)
    return EXIT_FAILURE;
  g_array_unref (titles);
  return status;
}

/* The store */

static const gchar *
state_of (const WeirStoreDisk *disk)
{
  return disk->present && disk->removing ? "being removed" : weir_disk_state_name (disk->state);
}

static void
print_store_json (WeirBlockStore *store, const WeirStoreDisk *disks, guint n, guint n_titles)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  add_text (builder, "store", weir_block_store_get_path (store));
  add_text (builder, "id", weir_block_store_get_id (store));
  add_text (builder, "policy", weir_placement_name (weir_block_store_get_policy (store)));
  add_seconds (builder, "slice", weir_block_store_get_slice (store));
  add_int (builder, "titles", n_titles);
  json_builder_set_member_name (builder, "disks");
  json_builder_begin_array (builder);
  for (guint i = 0; i < n; i++) {
    json_builder_begin_object (builder);
    add_int (builder, "number", disks[i].number);
    add_text (builder, "path", disks[i].path);
    add_text (builder, "state", state_of (&disks[i]));
    add_int (builder, "bytes", disks[i].bytes);
    add_int (builder, "free-bytes", disks[i].free_bytes);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  commands_print_json (builder);
}

static void
print_store (WeirBlockStore *store, const WeirStoreDisk *disks, guint n, guint n_titles)
{
  printf ("%s: policy %s, slice %g s, %u titles\n", weir_block_store_get_path (store),
      weir_placement_name (weir_block_store_get_policy (store)),
      (gdouble) weir_block_store_get_slice (store) / 1e9, n_titles);
  for (guint i = 0; i < n; i++) {
    g_autofree gchar *size = units_dup_size (disks[i].bytes);
    g_autofree gchar *room = units_dup_size (disks[i].free_bytes);

    if (disks[i].present)
      printf ("disk %3u  %s of %s free  %s  %s\n", disks[i].number, room, size,
          state_of (&disks[i]), disks[i].path);
    else
      printf ("disk %3u  %s  %s\n", disks[i].number, state_of (&disks[i]), disks[i].path);
  }
}

static int
show_store (WeirBlockStore *store, gboolean json)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (store, disks, WEIR_STORE_DISKS_MAX);
  GArray *titles = list_titles (store);

  if (!titles)
    return EXIT_FAILURE;
  if (json)
    print_store_json (store, disks, n, titles->len);
  else
    print_store (store, disks, n, titles->len);
  g_array_unref (titles);
  return EXIT_SUCCESS;
}

/* A title */

static void
print_title_json (const WeirIndex *index)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  add_text (builder, "name", index->name);
  add_text (builder, "caps", index->caps);
  add_int (builder, "bytes", index->bytes);
  add_int (builder, "rate", index->rate);
  add_seconds (builder, "duration", index->duration_ns);
  add_seconds (builder, "slice", index->slice_ns);
  json_builder_set_member_name (builder, "blocks");
  json_builder_begin_array (builder);
  for (guint32 i = 0; i < index->n_blocks; i++) {
    const WeirIndexBlock *block = &index->blocks[i];

    json_builder_begin_object (builder);
    add_int (builder, "offset", block->offset);
    add_int (builder, "length", block->length);
    add_int (builder, "table-length", block->table_length);
    add_seconds (builder, "time", block->time_ns);
    json_builder_set_member_name (builder, "keyframe");
    json_builder_add_boolean_value (builder, (block->flags & WEIR_BLOCK_KEYFRAME) != 0);
    json_builder_set_member_name (builder, "disks");
    json_builder_begin_array (builder);
    for (guint j = 0; j < block->n_copies; j++)
      json_builder_add_int_value (builder, block->disks[j]);
    json_builder_end_array (builder);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  commands_print_json (builder);
}

static void
print_title (WeirBlockStore *store, const WeirIndex *index)
{
  g_autofree gchar *size = units_dup_size (index->bytes);
  g_autofree gchar *rate = units_dup_rate (index->rate);
  g_autofree gchar *duration = units_dup_time (index->duration_ns);
  g_autofree guint *copies = g_new0 (guint, G_MAXUINT16 + 1);
  guint n_keyframes = 0;

  for (guint32 i = 0; i < index->n_blocks; i++) {
    n_keyframes += index->blocks[i].flags & WEIR_BLOCK_KEYFRAME;
    for (guint j = 0; j < index->blocks[i].n_copies; j++)
      copies[index->blocks[i].disks[j]]++;
  }
  printf ("%s: %s, %s, %s\n", index->name, duration, size, rate);
  if (*index->caps)
    printf ("caps: %s\n", index->caps);
  printf ("%u blocks of about %g s, %u of them at keyframes\n", index->n_blocks,
      (gdouble) index->slice_ns / 1e9, n_keyframes);
  for (guint i = 0; i <= G_MAXUINT16; i++) {
    const gchar *path = copies[i] ? weir_block_store_get_disk_path (store, (guint16) i) : NULL;

    if (copies[i])
      printf ("disk %3u  %u copies  %s\n", i, copies[i], path ? path : "not in store.yaml");
  }
}

int
show_run (const Args *args)
{
  WeirBlockStore *store = commands_open (args);
  WeirStoredTitle *title;
  GError *error = NULL;
  int status = EXIT_SUCCESS;

  if (!store)
    return EXIT_FAILURE;
  if (!args->words[1]) {
    status = show_store (store, args->json);
  } else if ((title = weir_block_store_open_title (store, args->words[1], &error))) {
    if (args->json)
      print_title_json (weir_stored_title_get_index (title));
    else
      print_title (store, weir_stored_title_get_index (title));
    weir_stored_title_unref (title);
  } else {
    status = commands_fail (error);
  }
  weir_block_store_unref (store);
  return status;
}
