// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_handlers.h"

#include "readers/adaptation.h"
#include "text/layer_choice.h"

static void
add_layers (JsonBuilder *builder, const gchar *name, WeirLayerSet layers)
{
  g_autofree gchar *text = layer_choice_dup_text (layers);

  api_add_text (builder, name, text);
}

// What the estimate of the line says: null for readers whose feedback allows none.
static void
write_line (JsonBuilder *builder, const AdaptationView *view)
{
  json_builder_set_member_name (builder, "line");
  if (!view->line) {
    json_builder_add_null_value (builder);
    return;
  }
  json_builder_begin_object (builder);
  api_add_text (builder, "state", view->line);
  json_builder_set_member_name (builder, "queue-seconds");
  json_builder_add_double_value (
      builder, (gdouble) view->queue_ns / G_GINT64_CONSTANT (1000000000));
  api_add_text (builder, "gets", view->step);
  api_add_text (builder, "rendition", view->rendition);
  api_add_text (builder, "reason", view->reason);
  json_builder_end_object (builder);
}

static void
write_layers (JsonBuilder *builder, Reader *reader, const ReaderLayers *layers)
{
  AdaptationView view;

  json_builder_set_member_name (builder, "layers");
  if (!layers->has_layers || !adaptation_view (reader, &view)) {
    json_builder_add_null_value (builder);
    return;
  }
  json_builder_begin_object (builder);
  api_add_text (builder, "adapt", view.policy);
  add_layers (builder, "limit", view.limit);
  add_layers (builder, "wanted", layers->wanted);
  add_layers (builder, "now", layers->now);
  json_builder_set_member_name (builder, "estimate");
  if (view.estimate > 0)
    json_builder_add_int_value (builder, (gint64) view.estimate);
  else
    json_builder_add_null_value (builder);
  write_line (builder, &view);
  json_builder_end_object (builder);
}

static void
write_reader (JsonBuilder *builder, Reader *reader)
{
  g_autofree gchar *left_out = reader_dup_left_out (reader);
  ReaderSample sample;

  reader_sample (reader, &sample);
  json_builder_begin_object (builder);
  api_add_number (builder, "id", (gint64) reader_get_id (reader));
  api_add_text (builder, "mount", reader_get_mount (reader));
  api_add_text (builder, "peer", reader_get_peer (reader));
  api_add_text (builder, "transport", reader_get_transport (reader));
  api_add_text (builder, "left-out", left_out);
  api_add_time (builder, "since", reader_get_since (reader));
  api_add_text (builder, "state", reader_state_names[sample.state]);
  api_add_number (builder, "priority", sample.priority);
  json_builder_set_member_name (builder, "catching-up");
  json_builder_add_boolean_value (builder, sample.catching_up);
  json_builder_set_member_name (builder, "lag-seconds");
  json_builder_add_double_value (builder, (gdouble) sample.lag_ns / G_GINT64_CONSTANT (1000000000));
  json_builder_set_member_name (builder, "delay-seconds");
  json_builder_add_double_value (
      builder, (gdouble) sample.delay_ns / G_GINT64_CONSTANT (1000000000));
  json_builder_set_member_name (builder, "paused");
  json_builder_add_boolean_value (builder, sample.paused);
  api_add_number (builder, "packets", (gint64) sample.packets);
  api_add_number (builder, "bytes", (gint64) sample.bytes);
  api_add_number (builder, "dropped", (gint64) sample.dropped);
  json_builder_set_member_name (builder, "kernel");
  json_builder_add_string_value (builder, sample.kernel); // null without the kernel path
  json_builder_set_member_name (builder, "loss");
  if (sample.reports > 0) {
    json_builder_begin_object (builder);
    api_add_number (builder, "packets", (gint64) sample.lost);
    json_builder_set_member_name (builder, "fraction");
    json_builder_add_double_value (builder, sample.fraction_lost);
    json_builder_end_object (builder);
  } else {
    json_builder_add_null_value (builder);
  }
  write_layers (builder, reader, &sample.layers);
  json_builder_end_object (builder);
}

void
api_list_readers (ApiRequest *request)
{
  g_autoptr (GPtrArray) readers = NULL;
  g_autofree gchar *mount = NULL;
  JsonBuilder *builder;

  if (!api_check_query (request, "mount", NULL))
    return;
  mount = api_dup_query (request, "mount");
  readers = readers_dup_all ();
  builder = json_builder_new ();
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "readers");
  json_builder_begin_array (builder);
  for (guint i = 0; i < readers->len; i++) {
    Reader *reader = g_ptr_array_index (readers, i);

    if (!mount || g_str_equal (mount, reader_get_mount (reader)))
      write_reader (builder, reader);
  }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

// Returns the reader that the request names. If there is none, answers 404 and returns NULL.
// (transfer full)
static Reader *
find (ApiRequest *request)
{
  GPtrArray *readers = readers_dup_all ();
  Reader *found = NULL;
  guint64 id;

  if (g_ascii_string_to_unsigned (request->rest, 10, 1, G_MAXINT64, &id, NULL)) {
    for (guint i = 0; i < readers->len && !found; i++) {
      if (reader_get_id (g_ptr_array_index (readers, i)) == id)
        found = reader_ref (g_ptr_array_index (readers, i));
    }
  }
  g_ptr_array_unref (readers);
  if (!found)
    api_fail (
        request->message, SOUP_STATUS_NOT_FOUND, NULL, "there is no reader %s", request->rest);
  return found;
}

static void
answer_reader (ApiRequest *request, Reader *reader)
{
  JsonBuilder *builder = json_builder_new ();

  write_reader (builder, reader);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

void
api_get_reader (ApiRequest *request)
{
  g_autoptr (Reader) reader = find (request);

  if (!reader)
    return;
  answer_reader (request, reader);
}

typedef struct {
  guint priority;
  gchar *layers;
} ReaderChange;

static const SchemaKey change_keys[] = {
  { "priority", SCHEMA_NUMBER, G_STRUCT_OFFSET (ReaderChange, priority), NULL, 0,
      READER_PRIORITIES - 1, .was = "class" },
  { "layers", SCHEMA_TEXT, G_STRUCT_OFFSET (ReaderChange, layers) },
  { NULL },
};

static gboolean
read_change (ApiRequest *request, ReaderChange *change)
{
  gboolean ok;

  change->priority = READER_PRIORITIES;
  ok = api_read_keys (request, change_keys, change, SCHEMA_WHOLE);
  if (ok && change->priority == READER_PRIORITIES && !change->layers) {
    api_fail (
        request->message, SOUP_STATUS_BAD_REQUEST, "body", "set \"priority\", \"layers\" or both");
    ok = FALSE;
  }
  return ok;
}

static gboolean
read_layers (ApiRequest *request, const gchar *text, WeirLayerSet *layers)
{
  *layers = WEIR_LAYER_SET_ALL;
  if (g_str_equal (text, "auto") || layer_choice_parse (text, layers))
    return TRUE;
  api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "body",
      "layers: \"%.40s\" must be auto or SPATIAL.QUALITY.TEMPORAL, such as 1.0.2 (spatial and "
      "temporal 0 to 7, quality 0 to 15, * for all)",
      text);
  return FALSE;
}

// Answers and returns FALSE if the layers cannot be chosen.
static gboolean
choose_layers (ApiRequest *request, Reader *reader, const gchar *text)
{
  WeirLayerSet layers;
  AdaptationView view;

  if (!read_layers (request, text, &layers))
    return FALSE;
  if (adaptation_view (reader, &view) && !view.may_choose) {
    api_fail (request->message, SOUP_STATUS_CONFLICT, NULL,
        "layers: readers cannot choose layers, because the mount has adapt: off");
    return FALSE;
  }
  if (!adaptation_choose (reader, layers)) {
    api_fail (request->message, SOUP_STATUS_CONFLICT, NULL, "the reader has left");
    return FALSE;
  }
  return TRUE;
}

static gboolean
choose_priority (ApiRequest *request, Reader *reader, guint priority)
{
  if (reader_set_priority (reader, priority))
    return TRUE;
  api_fail (request->message, SOUP_STATUS_CONFLICT, NULL, "the reader has left");
  return FALSE;
}

static gboolean
apply_change (ApiRequest *request, Reader *reader, const ReaderChange *change)
{
  return (!change->layers || choose_layers (request, reader, change->layers))
         && (change->priority == READER_PRIORITIES
             || choose_priority (request, reader, change->priority));
}

void
api_patch_reader (ApiRequest *request)
{
  g_autoptr (Reader) reader = NULL;
  ReaderChange change = { 0 };

  if (!api_check_query (request, NULL))
    return;
  reader = find (request);
  if (!reader)
    return;
  if (read_change (request, &change) && apply_change (request, reader, &change))
    answer_reader (request, reader);
  schema_clear (change_keys, &change);
}

void
api_delete_reader (ApiRequest *request)
{
  g_autoptr (Reader) reader = NULL;
  g_autofree gchar *reason = NULL;

  if (!api_check_query (request, "reason", NULL))
    return;
  reader = find (request);
  if (!reader)
    return;
  answer_reader (request, reader);
  reason = api_dup_reason (request, "closed through the API");
  reader_close (reader, reason);
}
