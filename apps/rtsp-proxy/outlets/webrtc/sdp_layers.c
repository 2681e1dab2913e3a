// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/sdp_layers.h"

#include <string.h>

// Returns the text of the list of layers that are sent in "send h;m;~l" or "recv x send h;m;~l", or
// NULL. (transfer full)
static gchar *
dup_sent_list (const gchar *value)
{
  gchar **words = g_strsplit_set (value, " \t", -1), *list = NULL;

  for (gchar **word = words; *word && !list; word++) {
    if (g_str_equal (*word, "send") && word[1])
      list = g_strdup (word[1]);
  }
  g_strfreev (words);
  return list;
}

// Reports whether the m-line says "a=rid:NAME send" of a layer.
static gboolean
is_sent_rid (const GstSDPMedia *media, const gchar *name)
{
  const gsize length = strlen (name);
  const gchar *value;

  for (guint i = 0; (value = gst_sdp_media_get_attribute_val_n (media, "rid", i)); i++) {
    if (!strncmp (value, name, length) && g_str_has_prefix (value + length, " send"))
      return TRUE;
  }
  return FALSE;
}

static gboolean
is_rid (const gchar *name)
{
  const gsize length = strspn (name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_");

  return length > 0 && length <= SDP_RID_MAX && !name[length];
}

static gboolean
has_layer (const SdpLayers *self, const gchar *name)
{
  for (guint i = 0; i < self->n; i++) {
    if (g_str_equal (self->rids[i], name))
      return TRUE;
  }
  return FALSE;
}

// A layer may have alternatives, of which the first one counts, and begin with a pause.
void
sdp_layers_read (SdpLayers *self, const GstSDPMedia *media)
{
  const gchar *value = gst_sdp_media_get_attribute_val (media, "simulcast");
  gchar *list = value ? dup_sent_list (value) : NULL;
  gchar **layers = g_strsplit (list ? list : "", ";", -1);

  for (gchar **each = layers; *each && self->n < SDP_LAYERS_MAX; each++) {
    const gchar *name = **each == '~' ? *each + 1 : *each;

    (*each)[strcspn (*each, ",")] = '\0';
    if (is_rid (name) && is_sent_rid (media, name) && !has_layer (self, name))
      self->rids[self->n++] = g_strdup (name);
  }
  g_strfreev (layers);
  g_free (list);
}

void
sdp_layers_clear (SdpLayers *self)
{
  for (guint i = 0; i < self->n; i++)
    g_free (self->rids[i]);
}
