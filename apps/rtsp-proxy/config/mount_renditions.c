// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_renditions.h"

#include "stages/choice.h"
#include "text/demand.h"
#include "text/layer_choice.h"

WeirLayerSet
mount_rendition_split (const MountConfig *config, const gchar *query, gchar **choices)
{
  WeirLayerSet layers;

  demand_cut_layers (query, &layers, choices);
  return layer_choice_join (config->layers, layers);
}

typedef struct {
  const MountConfig *config;
  GHashTable *chains, *streams; // keys of chains of stages, and of these with layers
} Known;

// Adds the stream of a query; NULL: the mount's own. Returns what is wrong (transfer full), or
// NULL.
static gchar *
add_stream (Known *self, const gchar *query)
{
  const MountConfig *config = self->config;
  WeirLayerSet layers;
  gchar *choices, *key, *text;
  const gchar *wrong = demand_cut_layers (query, &layers, &choices);
  g_autoptr (GError) error = NULL;
  GPtrArray *chain =
      choice_make_chain (config->stage_set, config->stages, config->choices, choices, &error);
  gboolean is_new = FALSE;

  if (chain) {
    key = choice_dup_key (chain);
    text = layer_choice_dup_text (layer_choice_join (config->layers, layers));
    is_new = g_hash_table_add (self->streams, g_strjoin ("\n", key, text, NULL));
    g_hash_table_add (self->chains, key);
    g_free (text);
    g_ptr_array_unref (chain);
  }
  if (!wrong && error)
    wrong = error->message;
  else if (!wrong && !is_new)
    wrong = "it is the same as the mount's own stream or another rendition";
  text = g_strdup (wrong);
  g_free (choices);
  return text;
}

gchar *
mount_renditions_check (const MountConfig *config)
{
  Known known = { config, g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  gchar *wrong = NULL;

  g_free (add_stream (&known, NULL));
  if (*config->renditions && config->interval_ms > 0)
    wrong = g_strdup ("renditions: a mount with interval has none");
  for (gchar **each = config->renditions; *each && !wrong; each++) {
    g_autofree gchar *why = add_stream (&known, *each);

    if (why)
      wrong = g_strdup_printf ("renditions: %s: %s", *each, why);
  }
  // The first chain is the mount's own.
  if (!wrong && g_hash_table_size (known.chains) > config->max_presentations + 1)
    wrong = g_strdup_printf ("renditions: they need max-presentations: %u or more",
        g_hash_table_size (known.chains) - 1);
  g_hash_table_unref (known.chains);
  g_hash_table_unref (known.streams);
  return wrong;
}
