// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/layer_choice.h"

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
  g_auto (GStrv) parts = g_strsplit (text, ".", 4);
  WeirLayerSet read;
  gboolean ok = g_strv_length (parts) == 3
                && parse_one (parts[0], WEIR_SPATIAL_LAYERS - 1, &read.spatial)
                && parse_one (parts[1], MAX_QUALITY, &read.quality)
                && parse_one (parts[2], MAX_TEMPORAL, &read.temporal);

  if (ok)
    *set = read;
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
