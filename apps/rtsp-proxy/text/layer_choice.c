// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/layer_choice.h"

#include "text/address.h"
#include "text/config_error.h"

#define MAX_QUALITY 15
#define MAX_TEMPORAL 7

static gboolean
parse_one (const gchar *text, guint max, gint8 *layer)
{
  guint64 value;

  if (g_str_equal (text, "*")) {
    *layer = -1;
    return TRUE;
  }
  if (!g_ascii_string_to_unsigned (text, 10, 0, max, &value, NULL))
    return FALSE;
  *layer = (gint8) value;
  return TRUE;
}

gboolean
layer_choice_parse (const gchar *text, WeirLayerSet *set)
{
  gchar **parts = g_strsplit (text, ".", 4);
  WeirLayerSet read;
  gboolean ok = g_strv_length (parts) == 3
                && parse_one (parts[0], WEIR_SPATIAL_LAYERS - 1, &read.spatial)
                && parse_one (parts[1], MAX_QUALITY, &read.quality)
                && parse_one (parts[2], MAX_TEMPORAL, &read.temporal);

  if (ok)
    *set = read;
  g_strfreev (parts);
  return ok;
}

static void
append (GString *text, gint layer, const gchar *end)
{
  if (layer < 0)
    g_string_append_c (text, '*');
  else
    g_string_append_printf (text, "%d", layer);
  g_string_append (text, end);
}

gchar *
layer_choice_dup_text (WeirLayerSet set)
{
  GString *text = g_string_new (NULL);

  append (text, set.spatial, ".");
  append (text, set.quality, ".");
  append (text, set.temporal, "");
  return g_string_free (text, FALSE);
}

static gint8
lower (gint8 a, gint8 b)
{
  return a < 0 ? b : b < 0 ? a : MIN (a, b);
}

WeirLayerSet
layer_choice_join (WeirLayerSet a, WeirLayerSet b)
{
  return (WeirLayerSet) { .spatial = lower (a.spatial, b.spatial),
    .temporal = lower (a.temporal, b.temporal),
    .quality = lower (a.quality, b.quality) };
}

gboolean
layer_choice_cut (gchar **query, WeirLayerSet *set, GError **error)
{
  gchar *value, *rest;
  guint n = address_cut_param (*query, "layers", &value, &rest);
  gboolean ok;

  *set = WEIR_LAYER_SET_ALL;
  ok = n == 0 || (n == 1 && layer_choice_parse (value, set));
  if (!ok)
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
        "layers are chosen once, like layers=1.0.2: spatial, quality, temporal");
  if (ok && n > 0) {
    g_free (*query);
    *query = g_steal_pointer (&rest);
  }
  g_free (value);
  g_free (rest);
  return ok;
}
