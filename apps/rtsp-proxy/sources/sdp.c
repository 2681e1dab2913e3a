// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/sdp.h"

#include "relay/relay_caps.h"

#include <gst/rtp/rtp.h>
#include <gst/sdp/sdp.h>
#include <stdlib.h>
#include <string.h>

// Longest SDP file that is read, in bytes.
#define NAME_MAX_LENGTH 128 // characters
#define MAX_FILE (64 * 1024)

RtpStream *
rtp_stream_new (const PullEndpoint *endpoint, GstCaps *caps)
{
  RtpStream *stream = g_new0 (RtpStream, 1);

  stream->rtp.address = g_strdup (endpoint->address);
  stream->rtp.port = endpoint->port;
  stream->rtp.iface = g_strdup (endpoint->iface);
  stream->rtcp_port = endpoint->port + 1;
  stream->caps = gst_caps_ref (caps);
  return stream;
}

void
rtp_stream_free (gpointer data)
{
  RtpStream *stream = data;

  g_free (stream->rtp.address);
  g_free (stream->rtp.iface);
  gst_caps_unref (stream->caps);
  g_free (stream);
}

static gboolean
has_word (const GstStructure *s, const gchar *name)
{
  const gchar *word = gst_structure_get_string (s, name);

  return word && relay_caps_is_printable (word);
}

gboolean
sdp_complete_caps (GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  const GstRTPPayloadInfo *info;
  gint payload;

  if (!gst_structure_has_field_typed (s, "encoding-name", G_TYPE_STRING)
      && gst_structure_get_int (s, "payload", &payload) && payload >= 0 && payload < 96
      && (info = gst_rtp_payload_info_for_pt ((guint8) payload))) {
    gst_structure_set (s, "encoding-name", G_TYPE_STRING, info->encoding_name, "clock-rate",
        G_TYPE_INT, (gint) info->clock_rate, NULL);
    if (info->encoding_parameters)
      gst_structure_set (s, "encoding-params", G_TYPE_STRING, info->encoding_parameters, NULL);
  }
  return gst_structure_has_field_typed (s, "clock-rate", G_TYPE_INT) && has_word (s, "media")
         && has_word (s, "encoding-name");
}

static gboolean
is_rtp (const GstSDPMedia *media)
{
  static const gchar *const protocols[] = { "RTP/AVP", "RTP/AVPF", "RTP/AVP/UDP", "RTP/AVP/TCP" };
  const gchar *protocol = gst_sdp_media_get_proto (media);

  for (guint i = 0; protocol && i < G_N_ELEMENTS (protocols); i++) {
    if (!g_ascii_strcasecmp (protocol, protocols[i]))
      return TRUE;
  }
  return FALSE;
}

GstCaps *
sdp_media_caps (const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  return sdp_format_caps (sdp, media, 0);
}

GstCaps *
sdp_format_caps (const GstSDPMessage *sdp, const GstSDPMedia *media, guint n)
{
  const gchar *format =
      n < gst_sdp_media_formats_len (media) ? gst_sdp_media_get_format (media, n) : NULL;
  GstCaps *caps;

  // Some cameras without sound name the format "(null)".
  if (!format || !g_ascii_isdigit (*format) || !is_rtp (media))
    return NULL;
  caps = gst_sdp_media_get_caps_from_media (media, atoi (format));
  if (!caps)
    return NULL;
  gst_sdp_message_attributes_to_caps (sdp, caps);
  gst_sdp_media_attributes_to_caps (media, caps);
  gst_structure_set_name (gst_caps_get_structure (caps, 0), "application/x-rtp");
  if (!sdp_complete_caps (caps))
    gst_clear_caps (&caps);
  return caps;
}

// Reports whether an attribute or a parameter may have this name. The library makes names of caps'
// fields of them, which are never freed; so the process knows a limited number of names.
static gboolean
is_name_known (const gchar *name)
{
  static GMutex lock;
  static GHashTable *known; // never freed
  gboolean ok;

  if (strlen (name) > NAME_MAX_LENGTH)
    return FALSE;
  g_mutex_lock (&lock);
  if (!known)
    known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  ok = g_hash_table_contains (known, name) || g_hash_table_size (known) < SDP_NAMES_MAX;
  if (ok)
    g_hash_table_add (known, g_strdup (name));
  g_mutex_unlock (&lock);
  return ok;
}

// Reads a=fmtp:FORMAT NAME=VALUE;NAME=VALUE.
static gboolean
are_parameters_known (const gchar *fmtp)
{
  gchar **parameters = g_strsplit (fmtp + strcspn (fmtp, " "), ";", -1);
  gboolean ok = TRUE;

  for (gchar **parameter = parameters; ok && *parameter; parameter++) {
    (*parameter)[strcspn (*parameter, "=")] = '\0';
    ok = is_name_known (g_strstrip (*parameter));
  }
  g_strfreev (parameters);
  return ok;
}

static gboolean
is_kept (const GstSDPAttribute *attribute)
{
  static const gchar *const named_by_value[] = { "extmap", "rid", "rtcp-fb", "ssrc", NULL };
  const gchar *key = attribute->key ? attribute->key : "";
  const gchar *value = attribute->value ? attribute->value : "";
  gchar *name;
  gboolean ok;

  if (g_str_equal (key, "key-mgmt") || !is_name_known (key))
    return FALSE;
  if (g_str_equal (key, "fmtp"))
    return are_parameters_known (value);
  if (!g_strv_contains (named_by_value, key))
    return TRUE;
  name = g_strconcat (key, ":", value, NULL);
  ok = is_name_known (name);
  g_free (name);
  return ok;
}

static void
drop_attributes (GstSDPMessage *sdp)
{
  for (guint i = gst_sdp_message_attributes_len (sdp); i-- > 0;) {
    if (!is_kept (gst_sdp_message_get_attribute (sdp, i)))
      gst_sdp_message_remove_attribute (sdp, i);
  }
  for (guint n = 0; n < gst_sdp_message_medias_len (sdp); n++) {
    GstSDPMedia *media = (GstSDPMedia *) gst_sdp_message_get_media (sdp, n);

    for (guint i = gst_sdp_media_attributes_len (media); i-- > 0;) {
      if (!is_kept (gst_sdp_media_get_attribute (media, i)))
        gst_sdp_media_remove_attribute (media, i);
    }
  }
}

// Some cameras leave out the lines before the tracks, or sort them otherwise: a line "m=" makes a
// description of any lines.
static gboolean
is_description (const gchar *text)
{
  return g_str_has_prefix (text, "v=")
         || (g_ascii_islower (text[0]) && text[1] == '='
             && (g_str_has_prefix (text, "m=") || strstr (text, "\nm=")));
}

GstSDPMessage *
sdp_parse (const gchar *text, gsize len)
{
  gchar *valid = g_utf8_make_valid (text, (gssize) len);
  GstSDPMessage *sdp;

  gst_sdp_message_new (&sdp);
  if (is_description (valid)
      && gst_sdp_message_parse_buffer ((const guint8 *) valid, (guint) strlen (valid), sdp)
             == GST_SDP_OK)
    drop_attributes (sdp);
  else
    g_clear_pointer (&sdp, gst_sdp_message_free);
  g_free (valid);
  return sdp;
}

static const gchar *
media_address (const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  const GstSDPConnection *connection = gst_sdp_media_connections_len (media) > 0
                                           ? gst_sdp_media_get_connection (media, 0)
                                           : gst_sdp_message_get_connection (sdp);

  return connection ? connection->address : NULL;
}

// Returns the port of a=rtcp:PORT (RFC 3605), or the next port; with a=rtcp-mux, the media's port.
static guint
rtcp_port (const GstSDPMedia *media)
{
  const gchar *rtcp = gst_sdp_media_get_attribute_val (media, "rtcp");
  guint port = gst_sdp_media_get_port (media) + 1;

  if (gst_sdp_media_get_attribute_val (media, "rtcp-mux"))
    return port - 1;
  return rtcp ? (guint) strtoul (rtcp, NULL, 10) : port;
}

static gboolean
add_media (GPtrArray *streams, const GstSDPMessage *sdp, const GstSDPMedia *media,
    const gchar *iface, GError **error)
{
  const gchar *address = media_address (sdp, media);
  PullEndpoint endpoint = { (gchar *) address, (guint16) gst_sdp_media_get_port (media),
    (gchar *) iface };
  GstCaps *caps = gst_sdp_media_get_port (media) ? sdp_media_caps (sdp, media) : NULL;
  RtpStream *stream;

  if (!caps || streams->len == RELAY_MAX_TRACKS) {
    gst_clear_caps (&caps);
    return TRUE;
  }
  if (!address || !g_hostname_is_ip_address (address) || gst_sdp_media_get_port (media) > 65535
      || rtcp_port (media) < 1 || rtcp_port (media) > 65535) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "the m=%s line has no IP address (c=) or no valid port", gst_sdp_media_get_media (media));
    gst_caps_unref (caps);
    return FALSE;
  }
  stream = rtp_stream_new (&endpoint, caps);
  gst_caps_unref (caps);
  stream->rtcp_port = (guint16) rtcp_port (media);
  for (guint i = 0; i < streams->len; i++) {
    if (((RtpStream *) g_ptr_array_index (streams, i))->rtp.port == stream->rtp.port) {
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
          "two tracks have port %u; each track needs its own", stream->rtp.port);
      rtp_stream_free (stream);
      return FALSE;
    }
  }
  g_ptr_array_add (streams, stream);
  return TRUE;
}

static GPtrArray *
read_streams (const GstSDPMessage *sdp, const gchar *iface, GError **error)
{
  GPtrArray *streams = g_ptr_array_new_with_free_func (rtp_stream_free);

  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++) {
    if (!add_media (streams, sdp, gst_sdp_message_get_media (sdp, i), iface, error)) {
      g_ptr_array_unref (streams);
      return NULL;
    }
  }
  if (streams->len == 0) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "no track can be relayed: each needs a line m=video PORT RTP/AVP ..., and an a=rtpmap for "
        "a payload type from 96 on");
    g_ptr_array_unref (streams);
    return NULL;
  }
  return streams;
}

GPtrArray *
sdp_read (const gchar *path, const gchar *iface, GError **error)
{
  GstSDPMessage *sdp = NULL;
  GPtrArray *streams = NULL;
  gchar *text;
  gsize len;

  if (!g_file_get_contents (path, &text, &len, error))
    return NULL;
  if (len <= MAX_FILE && strlen (text) == len)
    sdp = sdp_parse (text, len);
  if (!sdp)
    g_set_error (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, "not a session description (SDP)");
  else
    streams = read_streams (sdp, iface, error);
  if (!streams)
    g_prefix_error (error, "%s: ", path);
  g_clear_pointer (&sdp, gst_sdp_message_free);
  g_free (text);
  return streams;
}
