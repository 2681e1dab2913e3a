// SPDX-License-Identifier: LGPL-2.1-or-later
// How a change of the configuration affects readers.
#include "mounts/mount.h"
#include "mounts/offer.h"
#include "stages/choice.h"

// Returns the codec of a relay's first video track, or NULL. (transfer full)
static gchar *
dup_codec (Relay *relay)
{
  gchar *codec = NULL;

  for (guint i = 0; i < relay_n_tracks (relay) && !codec; i++) {
    g_autoptr (GstCaps) caps = relay_dup_caps (relay, i);
    GstStructure *s = gst_caps_get_structure (caps, 0);

    if (!g_strcmp0 (gst_structure_get_string (s, "media"), "video"))
      codec = g_strdup (gst_structure_get_string (s, "encoding-name"));
  }
  return codec;
}

static gchar *
dup_source_codec (Presentation *main)
{
  Node *node = presentation_get_node (main);

  while (node && node_get_input (node))
    node = node_get_input (node);
  return node ? dup_codec (node_get_relay (node)) : NULL;
}

// Returns a message if the new stages output a codec other than the one in the readers' SDP, else
// NULL. (transfer full)
static gchar *
find_other_codec (Mount *self, const MountConfig *to)
{
  g_autoptr (GPtrArray) chain = offer_make_chain (to, NULL, NULL);
  g_autoptr (Presentation) main = mount_dup_main (self);
  g_autofree gchar *told = dup_codec (presentation_get_relay (main));
  g_autofree gchar *from = dup_source_codec (main);
  const gchar *gives = chain ? choice_get_codec (chain, chain->len, STAGE_VIDEO, from) : NULL;
  gchar *effect = NULL;

  if (told && gives && g_ascii_strcasecmp (told, gives))
    effect = g_strdup_printf (
        "readers are closed, because the codec changes from %s to %s", told, gives);
  return effect;
}

gchar *
mount_dup_effect (Mount *self, const MountConfig *to)
{
  const MountConfig *config = mount_get_config (self);
  MountEffect effect = mount_config_get_effect (config, to);
  gchar *codec = NULL;

  if (mount_config_equal (config, to))
    return g_strdup ("nothing changes");
  if (mount_config_get_titles (config))
    return g_strdup ("readers of titles continue; new readers get the new values");
  switch (effect) {
    case MOUNT_EFFECT_NONE:
      return g_strdup ("readers are not affected");
    case MOUNT_EFFECT_LAYERS:
      return g_strdup (
          "readers switch to the new layers at a packet from which their decoders can continue");
    case MOUNT_EFFECT_SERVING:
      return g_strdup ("new readers get the new values; current readers get the new priority, and "
                       "move forward if a shorter cache no longer holds their position");
    case MOUNT_EFFECT_CLOSES:
      return g_strdup (
          "readers are closed, because the mount's cache or fan-out has changed, and begins anew");
    case MOUNT_EFFECT_PIPELINE:
      codec = find_other_codec (self, to);
      break;
    case MOUNT_EFFECT_UPSTREAM:
      break;
  }
  return codec ? codec
               : g_strdup ("the new pipeline starts beside the old one and takes over at its next "
                           "join point; readers are closed only if its tracks differ");
}
