// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/rtsp/gstrtsprange.h>
#include <gst/sdp/sdp.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sources/rtsp_client_private.h"
#include "sources/rtsp_control.h"
#include "sources/sdp.h"

#define FORMATS_MAX 16 // further ones of an m= line are ignored
#define NPT_MAX_S 1e9

void
rtsp_format_free (gpointer data)
{
  RtspFormat *self = data;

  gst_clear_caps (&self->caps);
  g_free (self);
}

static gboolean
is_extra (const GstCaps *caps)
{
  static const gchar *const names[] = { "RTX", "RED", "ULPFEC", "FLEXFEC-03", "PARITYFEC",
    "TELEPHONE-EVENT", "TONE", "CN", NULL };
  const gchar *name = gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name");
  gchar *upper = g_ascii_strup (name, -1);
  gboolean is = g_strv_contains (names, upper);

  g_free (upper);
  return is;
}

// Returns the formats of an m= line. (transfer full)
static GPtrArray *
read_formats (const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  GPtrArray *formats = g_ptr_array_new_with_free_func (rtsp_format_free);

  for (guint i = 0; i < gst_sdp_media_formats_len (media) && i < FORMATS_MAX; i++) {
    gulong pt = strtoul (gst_sdp_media_get_format (media, i), NULL, 10) & 127;
    RtspFormat *format = g_new0 (RtspFormat, 1);

    format->payload = (guint8) pt;
    format->caps = sdp_format_caps (sdp, media, i);
    format->is_extra = format->caps && is_extra (format->caps);
    g_ptr_array_add (formats, format);
  }
  return formats;
}

// Returns the first format that can be relayed by itself, or else the first one; or NULL.
static const RtspFormat *
find_main (GPtrArray *formats)
{
  for (guint i = 0; i < formats->len; i++) {
    const RtspFormat *format = g_ptr_array_index (formats, i);

    if (format->caps && !format->is_extra)
      return format;
  }
  return formats->len > 0 ? g_ptr_array_index (formats, 0) : NULL;
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
  GPtrArray *formats = read_formats (sdp, media);
  const RtspFormat *format = find_main (formats);
  gchar *url = rtsp_control_join (self->session_uri, control);
  RtspTrack *track;

  if (!format || !format->caps || !can_request (self, sdp, url)) {
    g_ptr_array_unref (formats);
    g_free (url);
    return;
  }
  track = g_new0 (RtspTrack, 1);
  track->media.gate = &rtsp_track_gate;
  track->media.context = self->context;
  track->media.caps = gst_caps_ref (format->caps);
  track->client = self;
  track->sockets = WEIR_INGEST_NO_SOCKETS;
  track->url = url;
  track->payload = format->payload;
  track->formats = formats;
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

// Reports whether a track is for sound to the camera (ONVIF): a=sendonly, beside a track of sound
// from it. Some cameras say a=sendonly of their only sound.
static gboolean
is_talk_back (const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  if (g_strcmp0 (gst_sdp_media_get_media (media), "audio") != 0
      || !gst_sdp_media_get_attribute_val (media, "sendonly"))
    return FALSE;
  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++) {
    const GstSDPMedia *other = gst_sdp_message_get_media (sdp, i);

    if (!g_strcmp0 (gst_sdp_media_get_media (other), "audio")
        && !gst_sdp_media_get_attribute_val (other, "sendonly"))
      return TRUE;
  }
  return FALSE;
}

static void
log_left_out (const RtspClient *self, const GstSDPMedia *media)
{
  static LogLimit limit = { .burst = 8, .interval_ms = 10000 };
  gchar *shown = log_redact (self->config.uri);
  const gchar *format = gst_sdp_media_get_format (media, 0);

  log_event_limited (&limit,
      "upstream %s: an audio track (payload type %d) is left out: it is for sound to the "
      "camera (a=sendonly)",
      shown, format ? atoi (format) : -1);
  g_free (shown);
}

// Returns a time of a range of npt in ns, or -1 for none.
static gint64
read_npt (const GstRTSPTimeRange *range, const GstRTSPTime *time)
{
  gboolean is_time = range->unit == GST_RTSP_RANGE_NPT && time->type == GST_RTSP_TIME_SECONDS
                     && time->seconds >= 0 && time->seconds < NPT_MAX_S;

  return is_time ? (gint64) (time->seconds * GST_SECOND) : -1;
}

static void
read_length (RtspClient *self, const gchar *text)
{
  GstRTSPTimeRange *range = NULL;

  self->has_place = FALSE;
  if (!text || gst_rtsp_range_parse (text, &range) != GST_RTSP_OK)
    return;
  // gst-rtsp-server says "now-20" of a file that it has not played yet.
  if (range->min.type == GST_RTSP_TIME_NOW)
    range->min = (GstRTSPTime) { GST_RTSP_TIME_SECONDS, 0 };
  self->place = (TitlePlace) { read_npt (range, &range->min), read_npt (range, &range->max), -1 };
  self->has_place = self->place.start >= 0 && self->place.end > self->place.start;
  gst_rtsp_range_free (range);
}

gint64
rtsp_client_read_from (RtspClient *self, const RtspMessage *answer)
{
  const gchar *text = rtsp_message_get (answer, "Range", 0);
  GstRTSPTimeRange *range = NULL;
  gint64 from = -1;

  if (text && gst_rtsp_range_parse (text, &range) == GST_RTSP_OK) {
    from = read_npt (range, &range->min);
    gst_rtsp_range_free (range);
  }
  return from >= 0 ? from : MAX (self->from, self->place.start);
}

// Some servers have the range of the whole in a track only.
static const gchar *
find_range (const GstSDPMessage *sdp)
{
  const gchar *range = gst_sdp_message_get_attribute_val (sdp, "range");

  for (guint i = 0; !range && i < gst_sdp_message_medias_len (sdp); i++)
    range = gst_sdp_media_get_attribute_val (gst_sdp_message_get_media (sdp, i), "range");
  return range;
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
  read_length (self, find_range (sdp));
  g_free (self->session_uri);
  self->session_uri = rtsp_control_is_sound (session) ? session : g_strdup (base);
  if (self->session_uri != session)
    g_free (session);
  for (guint i = 0; i < gst_sdp_message_medias_len (sdp) && self->tracks->len < RELAY_MAX_TRACKS;
      i++) {
    const GstSDPMedia *media = gst_sdp_message_get_media (sdp, i);

    if (is_talk_back (sdp, media))
      log_left_out (self, media);
    else
      add_track (self, sdp, media);
  }
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
