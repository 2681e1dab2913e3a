// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_codecs.h"

static const struct {
  const gchar *name;
  WebrtcCodecs codec;
} codecs[] = {
  { "H264", WEBRTC_H264 },
  { "H265", WEBRTC_H265 },
  { "VP8", WEBRTC_VP8 },
  { "VP9", WEBRTC_VP9 },
  { "AV1", WEBRTC_AV1 },
  { "OPUS", WEBRTC_OPUS },
  { "G722", WEBRTC_G722 },
  { "PCMU", WEBRTC_PCMU },
  { "PCMA", WEBRTC_PCMA },
};

WebrtcCodecs
webrtc_codec_from_name (const gchar *name)
{
  for (guint i = 0; name && i < G_N_ELEMENTS (codecs); i++) {
    if (!g_ascii_strcasecmp (name, codecs[i].name))
      return codecs[i].codec;
  }
  return 0;
}

gchar *
webrtc_codecs_dup_names (guint32 set)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (codecs); i++) {
    if (set & codecs[i].codec)
      g_string_append_printf (text, "%s%s", text->len > 0 ? ", " : "", codecs[i].name);
  }
  return g_string_free (text, text->len == 0);
}
