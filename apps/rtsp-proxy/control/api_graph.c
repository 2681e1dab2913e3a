// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Answers with the graph as JSON, as text for Graphviz, or as SVG. Graphviz draws the SVG in
// another process while this one continues.

#include "control/api_handlers.h"

#include "control/graph_view.h"

#define DRAWING_TIMEOUT_S 5
#define DRAWINGS_MAX 2

static void
write_node (JsonBuilder *builder, const GraphNode *node)
{
  json_builder_begin_object (builder);
  api_add_text (builder, "id", node->id);
  api_add_text (builder, "kind", node->kind);
  api_add_text (builder, "label", node->label);
  if (node->state)
    api_add_text (builder, "state", node->state);
  json_builder_set_member_name (builder, "params");
  json_builder_begin_object (builder);
  for (gchar **param = node->params; param[0]; param += 2)
    api_add_text (builder, param[0], param[1]);
  json_builder_end_object (builder);
  json_builder_set_member_name (builder, "from");
  json_builder_begin_array (builder);
  for (guint i = 0; i < node->from->len; i++)
    json_builder_add_string_value (builder, g_ptr_array_index (node->from, i));
  json_builder_end_array (builder);
  json_builder_end_object (builder);
}

static GPtrArray *
dup_nodes (Server *server)
{
  GPtrArray *mounts = mounts_dup_all (server_get_mounts (server));
  GPtrArray *nodes = graph_view_new (server_get_graph (server), mounts);

  g_ptr_array_unref (mounts);
  return nodes;
}

void
api_get_graph (ApiRequest *request)
{
  GPtrArray *nodes = dup_nodes (request->api->server);
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "nodes");
  json_builder_begin_array (builder);
  for (guint i = 0; i < nodes->len; i++)
    write_node (builder, g_ptr_array_index (nodes, i));
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
  g_ptr_array_unref (nodes);
}

static gchar *
dup_dot (Api *api)
{
  GPtrArray *nodes = dup_nodes (api->server);
  gchar *dot = graph_to_dot (nodes);

  g_ptr_array_unref (nodes);
  return dot;
}

void
api_get_graph_dot (ApiRequest *request)
{
  api_answer_text (
      request->message, SOUP_STATUS_OK, "text/vnd.graphviz; charset=utf-8", dup_dot (request->api));
}

// ---- the picture ----

typedef struct {
  Api *api;
  SoupServerMessage *message;
  GSubprocess *process;
  guint timeout;
  gulong on_finished;
  gboolean timed_out, left;
} Drawing;

static void
drawing_free (Drawing *drawing)
{
  g_clear_handle_id (&drawing->timeout, g_source_remove);
  g_signal_handler_disconnect (drawing->message, drawing->on_finished);
  drawing->api->n_drawing--;
  g_object_unref (drawing->message);
  g_object_unref (drawing->process);
  g_free (drawing);
}

static void
on_drawn (GObject *process, GAsyncResult *result, gpointer data)
{
  Drawing *drawing = data;
  gchar *svg = NULL;
  gboolean ok = g_subprocess_communicate_utf8_finish (drawing->process, result, &svg, NULL, NULL)
                && svg && *svg;

  if (!ok)
    g_subprocess_force_exit (drawing->process);
  if (!drawing->left) {
    if (ok)
      api_answer_text (drawing->message, SOUP_STATUS_OK, "image/svg+xml", g_steal_pointer (&svg));
    else
      api_fail (drawing->message,
          drawing->timed_out ? SOUP_STATUS_GATEWAY_TIMEOUT : SOUP_STATUS_INTERNAL_SERVER_ERROR,
          NULL, "the program dot %s", drawing->timed_out ? "did not finish within 5 s" : "failed");
    soup_server_message_unpause (drawing->message);
  }
  g_free (svg);
  drawing_free (drawing);
}

static gboolean
on_timeout (gpointer data)
{
  Drawing *drawing = data;

  drawing->timeout = 0;
  drawing->timed_out = TRUE;
  g_subprocess_force_exit (drawing->process);
  return G_SOURCE_REMOVE;
}

// Called after the answer was sent, or when the client leaves before.
static void
on_finished (SoupServerMessage *message, gpointer data)
{
  Drawing *drawing = data;

  drawing->left = TRUE;
  g_subprocess_force_exit (drawing->process);
}

static void
draw (ApiRequest *request, GSubprocess *process)
{
  Drawing *drawing = g_new0 (Drawing, 1);
  gchar *dot = dup_dot (request->api);

  drawing->api = request->api;
  drawing->message = g_object_ref (request->message);
  drawing->process = process;
  drawing->timeout = g_timeout_add_seconds (DRAWING_TIMEOUT_S, on_timeout, drawing);
  drawing->on_finished =
      g_signal_connect (request->message, "finished", G_CALLBACK (on_finished), drawing);
  drawing->api->n_drawing++;
  soup_server_message_pause (request->message);
  g_subprocess_communicate_utf8_async (process, dot, request->api->ending, on_drawn, drawing);
  g_free (dot);
}

void
api_get_graph_svg (ApiRequest *request)
{
  GError *error = NULL;
  GSubprocess *process;

  if (request->api->n_drawing >= DRAWINGS_MAX) {
    api_fail (request->message, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL,
        "%u graphs are being drawn already; try again later", DRAWINGS_MAX);
    return;
  }
  process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE
                                  | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
      &error, "dot", "-Tsvg", NULL);
  if (process) {
    draw (request, process);
    return;
  }
  if (g_error_matches (error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
    api_fail (request->message, SOUP_STATUS_NOT_IMPLEMENTED, NULL,
        "the program dot is not installed (Debian: graphviz); /v1/graph.dot returns its input");
  else
    api_fail (request->message, SOUP_STATUS_INTERNAL_SERVER_ERROR, NULL, "%s", error->message);
  g_error_free (error);
}
