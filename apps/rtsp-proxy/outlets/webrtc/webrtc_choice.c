// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_choice.h"

#include "config/mount_renditions.h"
#include "mounts/offer.h"
#include "relay/left_out.h"
#include "stages/choice.h"

#define BROWSER_CHANNELS 2 // of Opus; more are another format to browsers

static const gchar *
get_string (const GstCaps *caps, const gchar *field)
{
  return gst_structure_get_string (gst_caps_get_structure (caps, 0), field);
}

static gboolean
is_media (const GstCaps *caps, const gchar *media)
{
  return !g_strcmp0 (get_string (caps, "media"), media);
}

static gboolean
has_few_channels (const GstCaps *caps)
{
  const gchar *text = get_string (caps, "encoding-params");
  gint64 n = text ? g_ascii_strtoll (text, NULL, 10) : 1;

  return n <= BROWSER_CHANNELS;
}

static gboolean
fits (const GstCaps *caps, guint32 offered)
{
  return webrtc_codec_from_name (get_string (caps, "encoding-name")) & offered
         && has_few_channels (caps);
}

// Reports whether the stage can make Opus of the track.
static gboolean
can_encode (Presentation *presentation, const GstCaps *caps, GError **error)
{
  MountConfig *config = presentation_dup_config (presentation);
  gchar *name = g_ascii_strup (left_out_codec (caps), -1);
  Stage *stage = NULL;
  gboolean can;

  if (presentation_follows (presentation))
    g_set_error_literal (
        error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "it plays for one reader alone");
  else if (config->stage_set)
    stage = stage_new (config->stage_set, WEBRTC_SOUND_STAGE, error);
  can = stage && stage_check_elements (stage, name, error);
  g_clear_pointer (&stage, stage_unref);
  g_free (name);
  mount_config_unref (config);
  return can;
}

static gint
find (const GPtrArray *caps, const gchar *media, guint32 offered)
{
  for (guint i = 0; i < caps->len; i++) {
    const GstCaps *each = g_ptr_array_index (caps, i);

    if (is_media (each, media) && fits (each, offered))
      return (gint) i;
  }
  return WEBRTC_NO_TRACK;
}

static void
choose_audio (WebrtcChoice *self, Presentation *presentation, const GPtrArray *caps,
    guint32 offered, GString *others)
{
  self->audio = find (caps, "audio", offered);
  for (guint i = 0; self->audio < 0 && offered & WEBRTC_OPUS && i < caps->len; i++) {
    const GstCaps *each = g_ptr_array_index (caps, i);
    GError *problem = NULL;

    if (!is_media (each, "audio"))
      continue;
    self->encodes = can_encode (presentation, each, &problem);
    if (self->encodes)
      self->audio = (gint) i;
    else
      left_out_add (others, i, "%s cannot become Opus: %s", left_out_codec (each),
          problem ? problem->message : "there are no stages");
    g_clear_error (&problem);
  }
}

static void
tell_others (const WebrtcChoice *self, const GPtrArray *caps, guint32 offered, GString *others)
{
  for (guint i = 0; i < caps->len; i++) {
    const GstCaps *each = g_ptr_array_index (caps, i);
    const gboolean video = is_media (each, "video"), audio = is_media (each, "audio");

    if ((gint) i == self->video || (gint) i == self->audio)
      continue;
    if (!video && !audio)
      left_out_add (others, i, "WebRTC carries no %s", left_out_codec (each));
    else if (!(offered & (video ? WEBRTC_VIDEO : WEBRTC_AUDIO)))
      left_out_add (others, i, "the reader offers no %s", video ? "video" : "audio");
    else if ((video ? self->video : self->audio) >= 0)
      left_out_add (others, i, "a reader gets one %s track", video ? "video" : "audio");
    else if (video || !(offered & WEBRTC_OPUS))
      left_out_add (others, i, "the reader does not offer %s", left_out_codec (each));
  }
}

static void
set_unsupported (GError **error, const GPtrArray *caps, guint32 offered)
{
  gchar *offers = webrtc_codecs_dup_names (offered);
  GString *has = g_string_new (NULL);

  for (guint i = 0; i < caps->len; i++)
    g_string_append_printf (
        has, "%s%s", i > 0 ? ", " : "", left_out_codec (g_ptr_array_index (caps, i)));
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "the stream is %s, and the reader offers %s", caps->len > 0 ? has->str : "without tracks",
      offers ? offers : "nothing known");
  g_string_free (has, TRUE);
  g_free (offers);
}

static gboolean
has_media (const GPtrArray *caps, const gchar *media)
{
  for (guint i = 0; i < caps->len; i++) {
    if (is_media (g_ptr_array_index (caps, i), media))
      return TRUE;
  }
  return FALSE;
}

static GPtrArray *
dup_caps (Relay *relay)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  GstCaps *caps;

  for (guint i = 0; (caps = relay_dup_caps (relay, i)); i++)
    g_ptr_array_add (all, caps);
  return all;
}

gboolean
webrtc_choice_make (WebrtcChoice *self, Presentation *presentation, guint32 offered,
    gchar **left_out, GError **error)
{
  GPtrArray *caps = dup_caps (presentation_get_relay (presentation));
  GString *others = g_string_new (NULL);
  gboolean ok;

  *self = (WebrtcChoice) { find (caps, "video", offered), WEBRTC_NO_TRACK, FALSE };
  ok = self->video >= 0 || !(offered & WEBRTC_VIDEO) || !has_media (caps, "video");
  if (ok)
    choose_audio (self, presentation, caps, offered, others);
  ok = ok && (self->video >= 0 || self->audio >= 0);
  if (ok)
    tell_others (self, caps, offered, others);
  else
    set_unsupported (error, caps, offered);
  *left_out = g_string_free (others, others->len == 0);
  g_ptr_array_unref (caps);
  return ok;
}

// Reports whether a chain encodes video as one of the codecs.
static gboolean
encodes_as (const MountConfig *config, const gchar *choices, guint32 offered)
{
  GPtrArray *chain = offer_make_chain (config, choices, NULL);
  gboolean fits = FALSE;

  if (chain)
    fits = webrtc_codec_from_name (choice_get_codec (chain, chain->len, STAGE_VIDEO, NULL))
           & offered & WEBRTC_VIDEO;
  g_clear_pointer (&chain, g_ptr_array_unref);
  return fits;
}

gchar *
webrtc_choice_find_rendition (Presentation *presentation, guint32 offered, WeirLayerSet *layers)
{
  MountConfig *config = presentation_dup_config (presentation);
  gchar *found = NULL;

  for (gchar **each = config->renditions; *each && !found; each++) {
    gchar *choices;

    *layers = mount_rendition_split (config, *each, &choices);
    if (choices && encodes_as (config, choices, offered))
      found = g_steal_pointer (&choices);
    g_free (choices);
  }
  mount_config_unref (config);
  return found;
}
