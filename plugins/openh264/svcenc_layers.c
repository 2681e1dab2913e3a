// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svcenc_layers.h"

#define BITS_PER_PIXEL 0.05
#define MIN_BITRATE 50000
#define MIN_SIDE 16

// Gives each layer half the width and height of the layer above, rounded down to even numbers, and
// a bit rate by its size.
static void
set_defaults (SvcEncLayer *layers, guint n, const GstVideoInfo *info)
{
  gdouble rate = info->fps_n > 0 ? (gdouble) info->fps_n / info->fps_d : 30;

  for (guint i = 0; i < n; i++) {
    SvcEncLayer *layer = &layers[i];
    const guint shift = n - 1 - i;

    layer->width = (info->width >> shift) & ~1;
    layer->height = (info->height >> shift) & ~1;
    layer->bitrate =
        (guint) MAX (layer->width * layer->height * rate * BITS_PER_PIXEL, MIN_BITRATE);
  }
}

static gboolean
read_bitrate (const gchar *text, SvcEncLayer *layer)
{
  guint64 value;

  if (!g_ascii_string_to_unsigned (text, 10, 1000, G_MAXINT, &value, NULL))
    return FALSE;
  layer->bitrate = (guint) value;
  return TRUE;
}

static gboolean
read_size (const gchar *text, SvcEncLayer *layer)
{
  gchar **sides = g_strsplit (text, "x", 2);
  guint64 width, height;
  gboolean ok = sides[0] && sides[1]
                && g_ascii_string_to_unsigned (sides[0], 10, MIN_SIDE, 3840, &width, NULL)
                && g_ascii_string_to_unsigned (sides[1], 10, MIN_SIDE, 2160, &height, NULL)
                && width % 2 == 0 && height % 2 == 0;

  if (ok) {
    layer->width = (gint) width;
    layer->height = (gint) height;
  }
  g_strfreev (sides);
  return ok;
}

// Reads a comma-separated list with one value for each layer. An empty list leaves the layers
// unchanged. Returns NULL, or an error text. (transfer full)
static gchar *
read_list (SvcEncLayer *layers, guint n_layers, const gchar *name, const gchar *list,
    const gchar *expected, gboolean (*read) (const gchar *, SvcEncLayer *))
{
  gchar **values = g_strsplit (list ? list : "", ",", 0), *wrong = NULL;
  guint n = g_strv_length (values);

  if (n != 0 && n != n_layers)
    wrong = g_strdup_printf (
        "%s=%s is not a list of %u values, one for each spatial layer", name, list, n_layers);
  for (guint i = 0; !wrong && i < n; i++) {
    if (!read (g_strstrip (values[i]), &layers[i]))
      wrong = g_strdup_printf ("\"%s\" in %s=%s is not %s", values[i], name, list, expected);
  }
  g_strfreev (values);
  return wrong;
}

static gchar *
check_sizes (const SvcEncLayer *layers, guint n, const GstVideoInfo *info)
{
  const SvcEncLayer *top = &layers[n - 1];
  gboolean ok = top->width == info->width && top->height == info->height
                && layers[0].width >= MIN_SIDE && layers[0].height >= MIN_SIDE;

  for (guint i = 1; i < n; i++)
    ok &= layers[i - 1].width <= layers[i].width && layers[i - 1].height <= layers[i].height;
  if (info->width % 2 || info->height % 2)
    return g_strdup_printf (
        "the input is %dx%d, but width and height must be even", info->width, info->height);
  if (!ok)
    return g_strdup_printf ("layer sizes must grow from at least 16x16 up to the input size, %dx%d",
        info->width, info->height);
  return NULL;
}

gchar *
svc_enc_layers_fill (SvcEncLayer *layers, guint n, const GstVideoInfo *info, const gchar *sizes,
    const gchar *bitrates)
{
  gchar *wrong;

  set_defaults (layers, n, info);
  wrong = read_list (
      layers, n, "layer-sizes", sizes, "a size in even numbers from 16x16 to 3840x2160", read_size);
  if (!wrong)
    wrong = read_list (
        layers, n, "layer-bitrates", bitrates, "a bit rate of at least 1000 bits/s", read_bitrate);
  return wrong ? wrong : check_sizes (layers, n, info);
}
