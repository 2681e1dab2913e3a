// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/sdp/sdp.h>
#include <stdlib.h>
#include <string.h>

#include "sources/rtsp_client_private.h"
#include "sources/rtsp_control.h"
#include "sources/sdp.h"

static void
list_payload_types (RtspTrack *track, const GstSDPMedia *media)
{
  for (guint i = 0; i < gst_sdp_media_formats_len (media); i++) {
    gulong pt = strtoul (gst_sdp_media_get_format (media, i), NULL, 10) & 127;

    track->listed[pt / 64] |= G_GUINT64_CONSTANT (1) << pt % 64;
  }
}

// Reports whether a track can be requested by this URL. A track without a URL of its own has the
// session's, which names a track if it is the only one, or if the session's a=control is a URL.
static gboolean
can_request (RtspClient *self, const GstSDPMessage *sdp, const gchar *url)
{
  const gchar *control = gst_sdp_message_get_attribute_val (sdp, "control");

  for (guint i = 0; i < self->tracks->len; i++) {
    if (g_str_equal (((RtspTrack *) g_ptr_array_index (self->tracks, i))->url, url))
      return FALSE;
  }
  if (g_str_equal (url, self->session_uri) && gst_sdp_message_medias_len (sdp) > 1
      && (!control || g_str_equal (control, "*")))
    return FALSE;
  return rtsp_control_is_sound (url);
}

// Adds a track, unless it cannot be relayed or requested.
static void
add_plain_track (RtspClient *self, const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  const gchar *control = gst_sdp_media_get_attribute_val (media, "control");
  GstCaps *caps = sdp_media_caps (sdp, media);
  gchar *url;
  RtspTrack *track;
  gint payload = 0;

  if (!caps)
    return;
  url = rtsp_control_join (self->session_uri, control);
  if (!can_request (self, sdp, url)) {
    gst_caps_unref (caps);
    g_free (url);
    return;
  }
  track = g_new0 (RtspTrack, 1);
  track->media.context = self->context;
  track->media.caps = caps;
  track->client = self;
  track->sockets = WEIR_INGEST_NO_SOCKETS;
  track->url = url;
  gst_structure_get_int (gst_caps_get_structure (caps, 0), "payload", &payload);
  track->payload = (guint8) payload;
  list_payload_types (track, media);
  g_ptr_array_add (self->tracks, track);
}

// A server that has TLS may offer its tracks by SRTP only. Within TLS that is not needed: such
// servers send plain RTP over the connection if they are asked for that.
static void
add_track (RtspClient *self, const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  const gchar *protocol = gst_sdp_media_get_proto (media);
  GstSDPMedia *plain = NULL;

  if (!self->tls || self->config.transport == PULL_UDP || !protocol
      || g_ascii_strncasecmp (protocol, "RTP/SAVP", 8) != 0
      || gst_sdp_media_copy (media, &plain) != GST_SDP_OK) {
    add_plain_track (self, sdp, media);
    return;
  }
  gst_sdp_media_set_proto (plain, "RTP/AVP");
  add_plain_track (self, sdp, plain);
  gst_sdp_media_free (plain);
  self->over_tcp = TRUE;
}

gboolean
rtsp_client_read_sdp (RtspClient *self, const gchar *base, const RtspMessage *answer)
{
  gsize len = strlen (answer->body); // some servers end it with a byte 0
  GstSDPMessage *sdp = len + 1 >= answer->body_len ? sdp_parse (answer->body, len) : NULL;
  gchar *session;

  if (!sdp)
    return FALSE;
  session = rtsp_control_join (base, gst_sdp_message_get_attribute_val (sdp, "control"));
  g_free (self->session_uri);
  self->session_uri = rtsp_control_is_sound (session) ? session : g_strdup (base);
  if (self->session_uri != session)
    g_free (session);
  for (guint i = 0; i < gst_sdp_message_medias_len (sdp) && self->tracks->len < RELAY_MAX_TRACKS;
      i++)
    add_track (self, sdp, gst_sdp_message_get_media (sdp, i));
  gst_sdp_message_free (sdp);
  return TRUE;
}

// Reports whether two URLs name the same track: the whole, or their last parts.
static gboolean
is_url_of (const RtspTrack *track, const gchar *url)
{
  const gchar *own_end = strrchr (track->url, '/'), *end = strrchr (url, '/');

  return g_str_equal (track->url, url) || (own_end && g_str_equal (own_end, end ? end : url))
         || (own_end && g_str_equal (own_end + 1, url));
}

// Reads one entry: url=URL;seq=NUMBER;rtptime=NUMBER.
static void
read_entry (RtspClient *self, const gchar *text)
{
  gchar **fields = g_strsplit (text, ";", 8);
  const gchar *url = NULL;
  guint64 time = RELAY_NO_BASE;

  for (gchar **field = fields; *field; field++) {
    g_strstrip (*field);
    if (!g_ascii_strncasecmp (*field, "url=", 4))
      url = *field + 4;
    else if (!g_ascii_strncasecmp (*field, "rtptime=", 8)
             && !g_ascii_string_to_unsigned (*field + 8, 10, 0, G_MAXUINT32, &time, NULL))
      time = RELAY_NO_BASE;
  }
  for (guint i = 0; i < self->tracks->len; i++) {
    RtspTrack *track = g_ptr_array_index (self->tracks, i);

    if (track->media.in && (url ? is_url_of (track, url) : self->tracks->len == 1))
      __atomic_store_n (&track->base, time, __ATOMIC_RELAXED);
  }
  g_strfreev (fields);
}

void
rtsp_client_read_rtp_info (RtspClient *self, const gchar *text)
{
  gchar **entries = g_strsplit (text, ",", 2 * RELAY_MAX_TRACKS);

  for (gchar **entry = entries; *entry; entry++)
    read_entry (self, *entry);
  g_strfreev (entries);
}
