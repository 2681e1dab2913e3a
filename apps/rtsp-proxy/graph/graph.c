// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/graph.h"

#include "sources/pull.h"

struct _Graph {
  GHashTable *nodes; // key -> Node, without a reference
};

static void
append_pull (GString *key, const PullConfig *pull)
{
  const TlsTrust *trust = &pull->trust;

  g_string_append_printf (key, "%s %s %s %d %d %u %u\n", pull->uri, pull->user ? pull->user : "",
      pull->password ? pull->password : "", pull->transport, pull->client, pull->connect_timeout_ms,
      pull->read_timeout_ms);
  if (pull_config_awaits (pull)) // each mount has its own publisher
    g_string_append_printf (key, "of %s\n", pull->path);
  if (pull->encodes_sound)
    g_string_append (key, "sound\n");
  if (pull->lack)
    g_string_append_printf (key, "lacks %s\n", pull->lack);
  g_string_append_printf (key, "tls %d %s %s\n", trust->any, trust->ca ? trust->ca : "",
      trust->fingerprint ? trust->fingerprint : "");
}

static gchar *
dup_key (const MountConfig *config, const GPtrArray *stages, guint n_stages, guint instance)
{
  GString *key = g_string_new (NULL);

  if (instance)
    g_string_append_printf (key, "%u of %s\n", instance, config->path);
  for (guint i = 0; i < config->pulls->len; i++)
    append_pull (key, g_ptr_array_index (config->pulls, i));
  if (config->standby == MOUNT_STANDBY_WARM)
    g_string_append (key, "standby warm\n");
  if (config->insert.folder) // what is inserted for one mount, no other one sees
    g_string_append_printf (key, "insertions of %s\n", config->path);
  if (config->slate.path)
    g_string_append_printf (key, "slate %s\n", config->slate.path);
  for (guint i = 1; i < n_stages; i++) {
    const Stage *each = g_ptr_array_index (stages, i);
    gchar *stage = stage_dup_key (each);

    g_string_append_printf (key, "! %s %s\n", stage, stage_get_file (each)->sum);
    g_free (stage);
  }
  return g_string_free (key, FALSE);
}

gchar *
graph_dup_key (const MountConfig *config, const GPtrArray *stages, guint instance)
{
  return dup_key (config, stages, stages->len, instance);
}

typedef struct {
  Graph *graph;
  gchar *key;
} Entry;

static void
on_node_freed (Node *node, gpointer data)
{
  Entry *entry = data;

  g_hash_table_remove (entry->graph->nodes, entry->key);
  g_free (entry);
}

// Takes ownership of `key` and `node`.
static Node *
add (Graph *self, gchar *key, Node *node)
{
  Entry *entry = g_new (Entry, 1);

  *entry = (Entry) { self, key };
  g_hash_table_insert (self->nodes, key, node);
  node_set_free_notify (node, on_node_freed, entry);
  return node;
}

Node *
graph_get (Graph *self, MountConfig *config, const GPtrArray *stages, guint instance)
{
  Node *node = NULL;

  for (guint n = 1; n <= stages->len; n++) {
    gchar *key = dup_key (config, stages, n, instance);
    Node *next = g_hash_table_lookup (self->nodes, key);

    if (next) {
      node_ref (next);
      g_free (key);
    } else {
      next = add (self, key,
          n == 1 ? node_new_pull (config)
                 : node_new_stage (node, g_ptr_array_index (stages, n - 1)));
    }
    g_clear_pointer (&node, node_unref); // the next node holds a reference
    node = next;
  }
  return node;
}

static gint
compare_ids (gconstpointer a, gconstpointer b)
{
  return (gint) node_get_id (*(Node **) a) - (gint) node_get_id (*(Node **) b);
}

GPtrArray *
graph_dup_nodes (Graph *self)
{
  GPtrArray *nodes = g_ptr_array_new_with_free_func ((GDestroyNotify) node_unref);
  GHashTableIter iter;
  gpointer node;

  g_hash_table_iter_init (&iter, self->nodes);
  while (g_hash_table_iter_next (&iter, NULL, &node))
    g_ptr_array_add (nodes, node_ref (node));
  g_ptr_array_sort (nodes, compare_ids);
  return nodes;
}

Graph *
graph_new (void)
{
  Graph *self = g_new (Graph, 1);

  self->nodes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

void
graph_free (Graph *self)
{
  g_hash_table_unref (self->nodes);
  g_free (self);
}
