// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/graph_pick.h"

typedef struct {
  GHashTable *nodes; // id -> GraphNode
  GHashTable *kept;  // of GraphNode
} Picking;

static void
begin_picking (Picking *self, GPtrArray *view)
{
  self->nodes = g_hash_table_new (g_str_hash, g_str_equal);
  self->kept = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < view->len; i++) {
    GraphNode *node = g_ptr_array_index (view, i);

    g_hash_table_insert (self->nodes, node->id, node);
  }
}

// Removes the nodes that are not kept.
static void
end (Picking *self, GPtrArray *view)
{
  guint n = 0;

  for (guint i = 0; i < view->len; i++) {
    GraphNode *node = g_ptr_array_index (view, i);

    if (g_hash_table_contains (self->kept, node))
      view->pdata[n++] = node;
    else
      graph_node_free (node);
  }
  // Not g_ptr_array_set_size(), which would free the nodes that have moved.
  view->len = n;
  g_hash_table_unref (self->kept);
  g_hash_table_unref (self->nodes);
}

// Adds a node, and all that it takes media from, to `found` if they are not kept yet.
static void
collect (Picking *self, GraphNode *node, GHashTable *found)
{
  if (!node || g_hash_table_contains (self->kept, node) || !g_hash_table_add (found, node))
    return;
  for (guint i = 0; i < node->from->len; i++)
    collect (self, g_hash_table_lookup (self->nodes, g_ptr_array_index (node->from, i)), found);
}

// Keeps a node with all that it takes media from, unless more than `max` nodes would be kept.
static gboolean
keep (Picking *self, GraphNode *node, guint max)
{
  g_autoptr (GHashTable) found = g_hash_table_new (NULL, NULL);
  guint n = g_hash_table_size (self->kept);
  gboolean fits;
  GHashTableIter iter;
  gpointer each;

  collect (self, node, found);
  fits = n == 0 || n + g_hash_table_size (found) <= max;
  g_hash_table_iter_init (&iter, found);
  while (fits && g_hash_table_iter_next (&iter, &each, NULL))
    g_hash_table_add (self->kept, each);
  return fits;
}

static gboolean
is_kind (const GraphNode *node, const gchar *kind)
{
  return g_str_equal (node->kind, kind);
}

void
graph_pick_presentations (GPtrArray *view)
{
  Picking self;

  begin_picking (&self, view);
  for (guint i = 0; i < view->len; i++) {
    GraphNode *node = g_ptr_array_index (view, i);

    if (is_kind (node, "presentation") || is_kind (node, "readers"))
      keep (&self, node, G_MAXUINT);
  }
  end (&self, view);
}

// Counts the presentations that are kept, and those that run.
static GraphPick
count (Picking *self, GPtrArray *view)
{
  GraphPick pick = { 0 };

  for (guint i = 0; i < view->len; i++) {
    GraphNode *node = g_ptr_array_index (view, i);

    if (!is_kind (node, "presentation") || node->from->len == 0)
      continue;
    pick.all++;
    pick.drawn += g_hash_table_contains (self->kept, node);
  }
  return pick;
}

GraphPick
graph_pick_some (GPtrArray *view, guint max)
{
  static const gchar *const kinds[] = { "readers", "presentation" };
  gboolean fits = TRUE;
  GraphPick pick;
  Picking self;

  begin_picking (&self, view);
  for (guint i = 0; view->len <= max && i < view->len; i++)
    g_hash_table_add (self.kept, g_ptr_array_index (view, i));
  for (guint k = 0; view->len > max && k < G_N_ELEMENTS (kinds); k++) {
    for (guint i = 0; fits && i < view->len; i++) {
      GraphNode *node = g_ptr_array_index (view, i);

      if (is_kind (node, kinds[k]) && node->from->len > 0)
        fits = keep (&self, node, max);
    }
  }
  pick = count (&self, view);
  end (&self, view);
  return pick;
}
