// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/graph.h"

#include "config/mount_inputs.h"
#include "isolate/spawn.h"
#include "sources/pull.h"

struct _Graph {
  GHashTable *nodes; // key -> Node, without a reference
};

// Returns which of a publisher's layers the chain begins with; see publication.h.
static guint
get_rank (const GPtrArray *stages)
{
  const gchar *value = stages ? stage_get_value (g_ptr_array_index (stages, 0), "simulcast") : NULL;
  const guint64 number = value ? g_ascii_strtoull (value, NULL, 10) : 0; // 0: the best one

  return number > 0 ? (guint) number - 1 : 0;
}

static void
append_pull (GString *key, const PullConfig *pull, guint rank)
{
  const TlsTrust *trust = &pull->trust;

  g_string_append_printf (key, "%s %s %s %d %d %u %u\n", pull->uri, pull->user ? pull->user : "",
      pull->password ? pull->password : "", pull->transport, pull->client, pull->connect_timeout_ms,
      pull->read_timeout_ms);
  if (pull_config_awaits (pull)) // each mount has its own publisher
    g_string_append_printf (key, "of %s, %u\n", pull->path, rank);
  if (pull->encodes_sound)
    g_string_append (key, "sound\n");
  if (pull->lack)
    g_string_append_printf (key, "lacks %s\n", pull->lack);
  g_string_append_printf (key, "tls %d %s %s\n", trust->any, trust->ca ? trust->ca : "",
      trust->fingerprint ? trust->fingerprint : "");
}

static void
append_stage (GString *key, const Stage *stage)
{
  g_autofree gchar *text = stage_dup_key (stage);

  g_string_append_printf (key, "! %s %s\n", text, stage_get_file (stage)->sum);
}

static void
allow_file (const gchar *path, gpointer unused)
{
  spawn_allow (SANDBOX_STAGE, path);
}

static void
append_file (const gchar *path, gpointer key)
{
  g_string_append_printf (key, "for %s\n", path);
}

static void
foreach_file (
    const GPtrArray *stages, void (*each) (const gchar *path, gpointer data), gpointer data)
{
  for (guint i = 0; i < stages->len; i++)
    stage_foreach_file (g_ptr_array_index (stages, i), each, data);
}

// The stages of a chain run in one worker as far as they pass raw frames, and a worker reads the
// files that were allowed when it began: those of chains with other files are not shared.
static gchar *
dup_key (const MountConfig *config, const GPtrArray *stages, guint n_stages, guint instance)
{
  GString *key = g_string_new (NULL);

  if (instance)
    g_string_append_printf (key, "%u of %s\n", instance, config->path);
  for (guint i = 0; i < config->pulls->len; i++)
    append_pull (key, g_ptr_array_index (config->pulls, i), get_rank (stages));
  if (config->standby == MOUNT_STANDBY_WARM)
    g_string_append (key, "standby warm\n");
  if (config->insert.folder) // what is inserted for one mount, no other one sees
    g_string_append_printf (key, "insertions of %s %s\n", config->path,
        config->insert.on_cue ? config->insert.on_cue : "");
  if (config->slate.path)
    g_string_append_printf (key, "slate %s\n", config->slate.path);
  for (guint i = 0; config->source_chain && i < config->source_chain->len; i++) {
    g_string_append (key, "before ");
    append_stage (key, g_ptr_array_index (config->source_chain, i));
  }
  for (guint i = 1; i < n_stages; i++) {
    const Stage *each = g_ptr_array_index (stages, i);

    append_stage (key, each);
    for (gchar **path = config->inputs; stage_get_file (each)->inputs && *path; path++)
      g_string_append_printf (key, "of %s\n", *path);
  }
  if (n_stages > 1)
    foreach_file (stages, append_file, key);
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

// ---- upstreams with source stages ----

// Returns the last node of an upstream and its source stages. (transfer full)
static Node *
get_source (Graph *self, MountConfig *config, guint upstream, guint rank, guint instance)
{
  GString *key = g_string_new (NULL);
  Node *node = NULL;

  if (instance)
    g_string_append_printf (key, "%u of %s\n", instance, config->path);
  append_pull (key, g_ptr_array_index (config->pulls, upstream), rank);
  if (config->insert.on_cue)
    g_string_append (key, "cues\n");
  foreach_file (config->source_chain, allow_file, NULL);
  for (guint n = 0; n <= config->source_chain->len; n++) {
    Stage *stage = n > 0 ? g_ptr_array_index (config->source_chain, n - 1) : NULL;
    Node *next;

    if (n == 1) // see dup_key()
      foreach_file (config->source_chain, append_file, key);
    if (stage)
      append_stage (key, stage);
    next = g_hash_table_lookup (self->nodes, key->str);
    if (next)
      node_ref (next);
    else
      next = add (self, g_strdup (key->str),
          stage ? node_new_stage (node, stage, NULL) : node_new_upstream (config, upstream));
    if (n == 0)
      node_take_rank (next, rank);
    g_clear_pointer (&node, node_unref); // the next node holds a reference
    node = next;
  }
  g_string_free (key, TRUE);
  return node;
}

static Node *
new_pull (Graph *self, MountConfig *config, guint rank, guint instance)
{
  GPtrArray *sources;
  Node *node;

  if (!config->source_chain) {
    node = node_new_pull (config, NULL);
    node_take_rank (node, rank);
    return node;
  }
  sources = g_ptr_array_new_with_free_func ((GDestroyNotify) node_unref);
  for (guint i = 0; i < config->pulls->len; i++)
    g_ptr_array_add (sources, get_source (self, config, i, rank, instance));
  node = node_new_pull (config, sources);
  g_ptr_array_unref (sources);
  return node;
}

// ---- stages with several inputs ----

// Returns the node that decodes an input of `joining`, whose key is `key`. Takes ownership of
// `input_key`. (transfer full)
static Node *
get_decoded (Graph *self, Node *joining, const gchar *key, Node *input, gchar *input_key,
    const MountConfig *config)
{
  const StageFile *file = stage_get_file (node_get_stage (joining));
  Stage *decoder =
      stage_new (config->stage_set, stage_set_find_decoder (config->stage_set, file->media), NULL);
  g_autoptr (GString) whole = g_string_new (input_key);
  Node *node;

  append_stage (whole, decoder);
  // Raw frames do not leave the worker that decodes.
  if (node_is_isolated (joining))
    g_string_append_printf (whole, "for %s", key);
  node = g_hash_table_lookup (self->nodes, whole->str);
  if (node)
    node_ref (node);
  else
    node = add (self, g_strdup (whole->str), node_new_stage (input, decoder, joining));
  stage_unref (decoder);
  g_free (input_key);
  return node;
}

// Returns the node of the upstream that an input other than the first is. (transfer full)
static Node *
get_input (Graph *self, const MountConfig *config, guint i, gchar **key)
{
  g_autoptr (MountConfig) alone = mount_inputs_make_alone (config, i);
  Node *node;

  *key = dup_key (alone, NULL, 1, 0);
  node = g_hash_table_lookup (self->nodes, *key);
  return node ? node_ref (node) : add (self, g_strdup (*key), node_new_pull (alone, NULL));
}

// Adds what a new node of such a stage reads. `before` is the key of the chain before it.
static void
add_sides (
    Graph *self, Node *joining, const gchar *key, const gchar *before, const MountConfig *config)
{
  for (guint i = 0; config->inputs[i]; i++) {
    gchar *input_key = g_strdup (before);
    g_autoptr (Node) input = NULL, decoded = NULL;

    if (i > 0)
      g_free (input_key);
    input = i > 0 ? get_input (self, config, i, &input_key) : node_ref (node_get_input (joining));
    decoded = get_decoded (self, joining, key, input, input_key, config);
    node_add_side (joining, decoded);
  }
}

Node *
graph_get (Graph *self, MountConfig *config, const GPtrArray *stages, guint instance)
{
  Node *node = NULL;
  gchar *before = NULL;

  foreach_file (stages, allow_file, NULL);
  for (guint n = 1; n <= stages->len; n++) {
    gchar *key = dup_key (config, stages, n, instance);
    Node *next = g_hash_table_lookup (self->nodes, key);
    Stage *stage = g_ptr_array_index (stages, n - 1);

    if (next) {
      node_ref (next);
    } else {
      next = add (self, g_strdup (key),
          n == 1 ? new_pull (self, config, get_rank (stages), instance)
                 : node_new_stage (node, stage, NULL));
      if (stage_get_file (stage)->inputs)
        add_sides (self, next, key, before, config);
    }
    g_clear_pointer (&node, node_unref); // the next node holds a reference
    node = next;
    g_free (before);
    before = key;
  }
  g_free (before);
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
