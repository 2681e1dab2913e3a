// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/graph_view.h"

GraphNode *
graph_node_new (const gchar *kind, gchar *id, gchar *label)
{
  GraphNode *self = g_new0 (GraphNode, 1);

  self->kind = kind;
  self->id = id;
  self->label = label;
  self->params = g_new0 (gchar *, 1);
  self->notable = g_new0 (gchar *, 1);
  self->from = g_ptr_array_new_with_free_func (g_free);
  return self;
}

void
graph_node_free (gpointer data)
{
  GraphNode *self = data;

  g_free (self->id);
  g_free (self->label);
  g_free (self->state);
  g_strfreev (self->params);
  g_strfreev (self->notable);
  g_ptr_array_unref (self->from);
  g_free (self);
}

void
graph_node_take_from (GraphNode *self, const gchar *id)
{
  g_ptr_array_add (self->from, g_strdup (id));
}

static void
append_escaped (GString *out, const gchar *text)
{
  for (const gchar *c = text; *c; c++) {
    if (*c == '"' || *c == '\\')
      g_string_append_c (out, '\\');
    g_string_append_c (out, (guchar) *c < 0x20 || *c == 0x7f ? '?' : *c);
  }
}

static const gchar *
colour (const GraphNode *node)
{
  if (!node->state || g_str_equal (node->state, "up"))
    return "#e3f1ea";
  return g_str_equal (node->state, "down") ? "#f6d5cf" : "#f1f1f1";
}

// Writes a node. The state "up" is shown by colour only.
static void
append_node (GString *out, const GraphNode *node)
{
  g_string_append (out, "  \"");
  append_escaped (out, node->id);
  g_string_append (out, "\" [label=\"");
  append_escaped (out, node->label);
  if (node->state && !g_str_equal (node->state, "up"))
    g_string_append_printf (out, "\\n%s", node->state);
  for (gchar **text = node->notable; *text; text++) {
    g_string_append (out, "\\n");
    append_escaped (out, *text);
  }
  g_string_append_printf (out, "\", shape=%s, style=%s, fillcolor=\"%s\"];\n",
      g_str_equal (node->kind, "readers") ? "ellipse" : "box",
      g_str_equal (node->kind, "stage") ? "\"rounded,filled\"" : "filled", colour (node));
}

static gboolean
is_drawn (const GraphNode *node)
{
  return node->from->len > 0 || !g_str_equal (node->kind, "presentation");
}

gchar *
graph_to_dot (GPtrArray *nodes, const gchar *title)
{
  GString *out = g_string_new ("digraph weir {\n"
                               "  rankdir=LR; nodesep=0.15; ranksep=0.4;\n"
                               "  node [fontname=\"sans-serif\", fontsize=11, height=0.3];\n"
                               "  edge [arrowsize=0.6];\n");

  if (title) {
    g_string_append (out, "  fontname=\"sans-serif\"; fontsize=11; labelloc=t; label=\"");
    append_escaped (out, title);
    g_string_append (out, "\";\n");
  }

  for (guint i = 0; i < nodes->len; i++) {
    if (is_drawn (g_ptr_array_index (nodes, i)))
      append_node (out, g_ptr_array_index (nodes, i));
  }
  for (guint i = 0; i < nodes->len; i++) {
    const GraphNode *node = g_ptr_array_index (nodes, i);

    for (guint j = 0; j < node->from->len; j++) {
      g_string_append (out, "  \"");
      append_escaped (out, g_ptr_array_index (node->from, j));
      g_string_append (out, "\" -> \"");
      append_escaped (out, node->id);
      g_string_append (out, "\";\n");
    }
  }
  g_string_append (out, "}\n");
  return g_string_free (out, FALSE);
}

// ---- nodes ----

static void
take_from_node (GraphNode *self, Node *node)
{
  g_autofree gchar *id = g_strdup_printf ("stage:%u", node_get_id (node));

  graph_node_take_from (self, id);
}

static void
add_notable (GStrvBuilder *notable, const StageParam *param, const gchar *value)
{
  g_autofree gchar *shown = NULL, *text = NULL;

  if (stage_param_is_default (param, value))
    return;
  shown = stage_param_dup_shown (param, value);
  text = g_strdup_printf ("%s %s", param->name, shown);
  g_strv_builder_add (notable, text);
}

static void
set_params (GraphNode *self, const Stage *stage)
{
  const StageFile *file = stage_get_file (stage);
  g_autoptr (GStrvBuilder) params = g_strv_builder_new ();
  g_autoptr (GStrvBuilder) notable = g_strv_builder_new ();

  for (guint i = 0; i < file->params->len; i++) {
    const StageParam *param = g_ptr_array_index (file->params, i);
    const gchar *value = stage_get_value (stage, param->name);

    g_strv_builder_add (params, param->name);
    g_strv_builder_add (params, value);
    add_notable (notable, param, value);
  }
  g_strfreev (self->params);
  g_strfreev (self->notable);
  self->params = g_strv_builder_end (params);
  self->notable = g_strv_builder_end (notable);
}

// Adds the process that runs the node. 0: this one.
static void
add_worker (GraphNode *self, gint pid)
{
  g_autoptr (GStrvBuilder) params = NULL;
  g_autofree gchar *text = NULL;

  if (!pid)
    return;
  params = g_strv_builder_new ();
  text = g_strdup_printf ("%d", pid);
  g_strv_builder_addv (params, (const gchar **) self->params);
  g_strv_builder_add_many (params, "worker", text, NULL);
  g_strfreev (self->params);
  self->params = g_strv_builder_end (params);
}

static void
add_upstreams (GPtrArray *nodes, GraphNode *pull, Node *node)
{
  for (guint i = 0; i < node_n_inlets (node); i++) {
    NodeInlet inlet = node_get_inlet (node, i);
    GraphNode *upstream;
    gchar *id;

    if (node_get_source (node, i)) { // which reads the upstream
      take_from_node (pull, node_get_source (node, i));
      continue;
    }
    id = g_strdup_printf ("upstream:%u:%u", node_get_id (node), i);
    upstream = graph_node_new ("upstream", g_strdup (id), g_strdup (inlet.uri));
    upstream->state = g_strdup (node_inlet_state_name (&inlet));
    add_worker (upstream, inlet.worker);
    g_ptr_array_add (nodes, upstream);
    graph_node_take_from (pull, id);
    g_free (id);
  }
}

static void
add_node (GPtrArray *nodes, Node *node)
{
  Stage *stage = node_get_stage (node);
  GraphNode *self = graph_node_new ("stage", g_strdup_printf ("stage:%u", node_get_id (node)),
      g_strdup (stage ? stage_get_file (stage)->name : "pull"));

  self->state = g_strdup (node_state_name (node_get_state (node)));
  if (stage) {
    set_params (self, stage);
    add_worker (self, node_get_inlet (node, 0).worker);
    take_from_node (self, node_get_input (node));
    for (guint i = 0; i < node_n_sides (node); i++)
      take_from_node (self, node_get_side (node, i));
  } else {
    add_upstreams (nodes, self, node);
  }
  g_ptr_array_add (nodes, self);
}

static void
add_readers (GPtrArray *nodes, const GraphNode *presentation, guint n)
{
  GraphNode *self;

  if (n == 0)
    return;
  self = graph_node_new ("readers", g_strdup_printf ("readers:%s", presentation->label),
      g_strdup_printf ("%u reader%s", n, n == 1 ? "" : "s"));
  graph_node_take_from (self, presentation->id);
  g_ptr_array_add (nodes, self);
}

static void
add_presentation (GPtrArray *nodes, Presentation *presentation)
{
  const gchar *label = presentation_get_label (presentation);
  GraphNode *self =
      graph_node_new ("presentation", g_strdup_printf ("presentation:%s", label), g_strdup (label));
  Node *node = presentation_get_node (presentation);
  Node *next = presentation_get_next_node (presentation);

  self->state = g_strdup (next ? "switching" : presentation_get_state_name (presentation));
  if (node)
    take_from_node (self, node);
  if (next)
    take_from_node (self, next);
  g_ptr_array_add (nodes, self);
  add_readers (nodes, self, presentation_n_users (presentation));
}

GPtrArray *
graph_view_new (Graph *graph, GPtrArray *mounts)
{
  GPtrArray *view = g_ptr_array_new_with_free_func (graph_node_free);
  g_autoptr (GPtrArray) nodes = graph_dup_nodes (graph);

  for (guint i = 0; i < nodes->len; i++)
    add_node (view, g_ptr_array_index (nodes, i));
  for (guint i = 0; i < mounts->len; i++) {
    g_autoptr (GPtrArray) presentations = mount_dup_presentations (g_ptr_array_index (mounts, i));

    for (guint j = 0; j < presentations->len; j++) {
      if (!presentation_follows (g_ptr_array_index (presentations, j)))
        add_presentation (view, g_ptr_array_index (presentations, j));
    }
  }
  return view;
}
