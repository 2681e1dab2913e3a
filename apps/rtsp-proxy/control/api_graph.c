// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Answers with the graph as JSON, as text for Graphviz, or as SVG. Graphviz draws the SVG in
// another process while this one continues.

#include "control/api_handlers.h"

#include "control/graph_pick.h"

#define DRAWING_TIMEOUT_S 5
#define DRAWINGS_MAX 2
#define DRAWN_MAX 400 // nodes; Graphviz draws them in a fraction of a second

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

// Returns the mounts that the request asks for: one (`mount`), or all. If there is no such mount,
// answers 404 and returns NULL. (transfer full)
static GPtrArray *
dup_mounts (ApiRequest *request, const gchar *path)
{
  Mounts *all = proxy_get_mounts (request->api->proxy);
  GPtrArray *mounts;
  Mount *mount;

  if (!path)
    return mounts_dup_all (all);
  mount = mounts_get (all, path);
  if (!mount) {
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, "mount", "there is no mount %.255s", path);
    return NULL;
  }
  mounts = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_unref);
  g_ptr_array_add (mounts, mount);
  return mounts;
}

// Returns the nodes that the request asks for. If it is wrong, answers and returns NULL. (transfer
// full)
static GPtrArray *
dup_nodes (ApiRequest *request)
{
  GPtrArray *mounts, *nodes = NULL;
  g_autofree gchar *path = NULL;

  if (!api_check_query (request, "mount", NULL))
    return NULL;
  path = api_dup_query (request, "mount");
  mounts = dup_mounts (request, path);
  if (mounts)
    nodes = graph_view_new (proxy_get_graph (request->api->proxy), mounts);
  if (nodes && path)
    graph_pick_presentations (nodes);
  g_clear_pointer (&mounts, g_ptr_array_unref);
  return nodes;
}

void
api_get_graph (ApiRequest *request)
{
  g_autoptr (GPtrArray) nodes = dup_nodes (request);
  JsonBuilder *builder;

  if (!nodes)
    return;
  builder = json_builder_new ();
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "nodes");
  json_builder_begin_array (builder);
  for (guint i = 0; i < nodes->len; i++)
    write_node (builder, g_ptr_array_index (nodes, i));
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

void
api_get_graph_dot (ApiRequest *request)
{
  g_autoptr (GPtrArray) nodes = dup_nodes (request);

  if (!nodes)
    return;
  api_answer_text (request->message, SOUP_STATUS_OK, "text/vnd.graphviz; charset=utf-8",
      graph_to_dot (nodes, NULL));
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
  g_autofree gchar *svg = NULL;
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
          NULL, "the program dot %s",
          drawing->timed_out ? "did not finish within 5 s; ask for one mount: ?mount=/PATH"
                             : "failed");
    soup_server_message_unpause (drawing->message);
  }
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

// Returns the text of a picture, and says in it what is left out. (transfer full)
static gchar *
dup_dot (GPtrArray *nodes)
{
  GraphPick pick = graph_pick_some (nodes, DRAWN_MAX);
  g_autofree gchar *title =
      pick.drawn < pick.all
          ? g_strdup_printf ("%u of %u running presentations, those with readers first; "
                             "?mount=/PATH draws one mount",
                pick.drawn, pick.all)
          : NULL;

  return graph_to_dot (nodes, title);
}

static void
draw (ApiRequest *request, GSubprocess *process, GPtrArray *nodes)
{
  Drawing *drawing = g_new0 (Drawing, 1);
  g_autofree gchar *dot = dup_dot (nodes);

  drawing->api = request->api;
  drawing->message = g_object_ref (request->message);
  drawing->process = process;
  drawing->timeout = g_timeout_add_seconds (DRAWING_TIMEOUT_S, on_timeout, drawing);
  drawing->on_finished =
      g_signal_connect (request->message, "finished", G_CALLBACK (on_finished), drawing);
  drawing->api->n_drawing++;
  soup_server_message_pause (request->message);
  g_subprocess_communicate_utf8_async (process, dot, request->api->ending, on_drawn, drawing);
}

void
api_get_graph_svg (ApiRequest *request)
{
  GPtrArray *nodes = dup_nodes (request);
  GError *error = NULL;
  GSubprocess *process;

  if (!nodes)
    return;
  if (request->api->n_drawing >= DRAWINGS_MAX) {
    api_fail (request->message, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL,
        "%u graphs are being drawn already; try again later", DRAWINGS_MAX);
    g_ptr_array_unref (nodes);
    return;
  }
  process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE
                                  | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
      &error, "dot", "-Tsvg", NULL);
  if (process)
    draw (request, process, nodes);
  g_ptr_array_unref (nodes);
  if (process)
    return;
  if (g_error_matches (error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
    api_fail (request->message, SOUP_STATUS_NOT_IMPLEMENTED, NULL,
        "the program dot is not installed (Debian: graphviz); /v1/graph.dot returns its input");
  else
    api_fail (request->message, SOUP_STATUS_INTERNAL_SERVER_ERROR, NULL, "%s", error->message);
  g_error_free (error);
}
