// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/description.h"

#include <gst/rtp/rtp.h>
#include <gst/sdp/sdp.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "gioaddress.h"
#include "rtp/encoding.h"

#define SDP_MAX (64 * 1024) // bytes; a longer file is not a session description

void
relay_description_clear (RelayDescription *self)
{
  gst_clear_caps (&self->caps);
}

static gboolean set_problem (GError **error, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
set_problem (GError **error, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  if (error)
    *error = g_error_new_valist (GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, format, args);
  va_end (args);
  return FALSE;
}

static gboolean
set_address (RelayDescription *self, const gchar *host, guint port, GError **error)
{
  GInetAddress *address = g_inet_address_new_from_string (host);
  GSocketAddress *at;
  gboolean ok;

  if (!address)
    return set_problem (error, "\"%s\" is not an IP address", host);
  if (port < 1 || port > 65535) {
    g_object_unref (address);
    return set_problem (error, "port %u is not from 1 to 65535", port);
  }
  at = g_inet_socket_address_new (address, (guint16) port);
  ok = weir_address_from_gio (at, &self->rtp);
  g_object_unref (at);
  g_object_unref (address);
  return ok || set_problem (error, "\"%s\" is not an IP address", host);
}

static gboolean
set_iface (RelayDescription *self, const gchar *iface, GError **error)
{
  if (!iface)
    return TRUE;
  self->iface = if_nametoindex (iface);
  return self->iface != 0 || set_problem (error, "there is no network interface \"%s\"", iface);
}

// ---- rtp:// ----

// Takes a number out of the query; `number` holds the default, -1 for none.
static gboolean
take_number (
    GHashTable *query, const gchar *name, guint64 least, guint64 most, gint *number, GError **error)
{
  const gchar *text = g_hash_table_lookup (query, name);
  guint64 value = 0;

  if (!text)
    return *number >= (gint) least
           || set_problem (
               error, "%s is missing (rtp://ADDR:PORT?encoding-name=H264&payload=96)", name);
  if (!g_ascii_string_to_unsigned (text, 10, least, most, &value, NULL))
    return set_problem (
        error, "%s=%s is not a number from %u to %u", name, text, (guint) least, (guint) most);
  *number = (gint) value;
  g_hash_table_remove (query, name);
  return TRUE;
}

// Adds the other parameters of the query, which are those of the format (a=fmtp of SDP).
static gboolean
add_format (GstStructure *s, GHashTable *query, GError **error)
{
  GHashTableIter iter;
  gpointer name, value;

  g_hash_table_iter_init (&iter, query);
  while (g_hash_table_iter_next (&iter, &name, &value)) {
    const gchar *rest = name;

    if (!g_ascii_islower (*rest)
        || rest[strspn (rest, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
      return set_problem (error, "\"%s\" is not the name of a parameter", rest);
    for (const gchar *c = value; *c; c++) {
      if (!g_ascii_isgraph (*c))
        return set_problem (
            error, "the value of %s has a character that is not printable ASCII", rest);
    }
    gst_structure_set (s, rest, G_TYPE_STRING, value, NULL);
  }
  return TRUE;
}

static gboolean
read_query (RelayDescription *self, GHashTable *query, GError **error)
{
  const gchar *given = g_hash_table_lookup (query, "encoding-name");
  const gchar *media = g_hash_table_lookup (query, "media");
  gint payload = -1, rate = 0;
  const WeirRtpEncoding *known;
  gchar *name;
  GstStructure *s;

  if (!given)
    return set_problem (
        error, "encoding-name is missing (rtp://ADDR:PORT?encoding-name=H264&payload=96)");
  name = g_ascii_strup (given, -1);
  known = weir_rtp_encoding (name);
  if (known) {
    media = media ? media : known->media;
    payload = known->payload;
    rate = known->clock_rate;
  }
  s = gst_structure_new ("application/x-rtp", "media", G_TYPE_STRING, media, "encoding-name",
      G_TYPE_STRING, name, NULL);
  g_free (name);
  self->caps = gst_caps_new_full (s, NULL);
  if (!media || (!g_str_equal (media, "video") && !g_str_equal (media, "audio")))
    return set_problem (error, "%s needs media=video or media=audio", given);
  if (!take_number (query, "payload", 0, 127, &payload, error)
      || !take_number (query, "clock-rate", 1, 192000, &rate, error)
      || !set_iface (self, g_hash_table_lookup (query, "iface"), error))
    return FALSE;
  gst_structure_set (s, "payload", G_TYPE_INT, payload, "clock-rate", G_TYPE_INT, rate, NULL);
  g_hash_table_remove (query, "encoding-name");
  g_hash_table_remove (query, "media");
  g_hash_table_remove (query, "iface");
  return add_format (s, query, error);
}

static gboolean
read_rtp_uri (RelayDescription *self, const gchar *uri, GError **error)
{
  gchar *host = NULL, *query_text = NULL;
  gint port = -1;
  GHashTable *query;
  gboolean ok;

  if (!g_uri_split (
          uri, G_URI_FLAGS_ENCODED_QUERY, NULL, NULL, &host, &port, NULL, &query_text, NULL, error))
    return FALSE;
  query = g_uri_parse_params (query_text ? query_text : "", -1, "&", G_URI_PARAMS_NONE, error);
  ok = query != NULL
       && set_address (self, host && *host ? host : "0.0.0.0", port < 0 ? 0 : (guint) port, error);
  if (ok && port == 65535)
    ok = set_problem (error, "port 65535 leaves no port for RTCP, which is on the next one");
  self->rtcp_port = (guint16) (port + 1);
  ok = ok && read_query (self, query, error);
  g_clear_pointer (&query, g_hash_table_unref);
  g_free (query_text);
  g_free (host);
  return ok;
}

// ---- SDP ----

// Adds what RFC 3551 says of a static payload type, which needs no a=rtpmap. Returns FALSE if the
// format is still unknown.
static gboolean
complete_caps (GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  const GstRTPPayloadInfo *info;
  gint payload;

  if (!gst_structure_has_field_typed (s, "encoding-name", G_TYPE_STRING)
      && gst_structure_get_int (s, "payload", &payload) && payload >= 0 && payload < 96
      && (info = gst_rtp_payload_info_for_pt ((guint8) payload)))
    gst_structure_set (s, "encoding-name", G_TYPE_STRING, info->encoding_name, "clock-rate",
        G_TYPE_INT, (gint) info->clock_rate, NULL);
  return gst_structure_has_field_typed (s, "clock-rate", G_TYPE_INT)
         && gst_structure_has_field_typed (s, "encoding-name", G_TYPE_STRING);
}

// Returns the caps of a track's first format; NULL if it is not RTP that can be received. The
// caller owns the result.
static GstCaps *
media_caps (const GstSDPMessage *sdp, const GstSDPMedia *media)
{
  const gchar *format = gst_sdp_media_get_format (media, 0);
  const gchar *proto = gst_sdp_media_get_proto (media);
  GstCaps *caps;

  if (!format || gst_sdp_media_get_port (media) == 0
      || (g_strcmp0 (proto, "RTP/AVP") && g_strcmp0 (proto, "RTP/AVPF")))
    return NULL;
  caps = gst_sdp_media_get_caps_from_media (media, atoi (format));
  if (!caps)
    return NULL;
  gst_sdp_message_attributes_to_caps (sdp, caps);
  gst_sdp_media_attributes_to_caps (media, caps);
  gst_structure_set_name (gst_caps_get_structure (caps, 0), "application/x-rtp");
  if (!complete_caps (caps))
    gst_clear_caps (&caps);
  return caps;
}

// Returns the port of a=rtcp (RFC 3605), the media's with a=rtcp-mux, or the one after the media's.
static guint64
rtcp_port (const GstSDPMedia *media)
{
  const gchar *rtcp = gst_sdp_media_get_attribute_val (media, "rtcp");
  guint port = gst_sdp_media_get_port (media);

  if (gst_sdp_media_get_attribute_val (media, "rtcp-mux"))
    return port;
  return rtcp ? g_ascii_strtoull (rtcp, NULL, 10) : port + 1;
}

static gboolean
read_media (
    RelayDescription *self, const GstSDPMessage *sdp, const GstSDPMedia *media, GError **error)
{
  const GstSDPConnection *connection = gst_sdp_media_connections_len (media) > 0
                                           ? gst_sdp_media_get_connection (media, 0)
                                           : gst_sdp_message_get_connection (sdp);
  guint64 rtcp = rtcp_port (media);

  if (!connection || !connection->address)
    return set_problem (error, "the session description has no address (c=) for m=%s",
        gst_sdp_media_get_media (media));
  if (rtcp < 1 || rtcp > 65535)
    return set_problem (error, "the session description has no port for RTCP of m=%s",
        gst_sdp_media_get_media (media));
  self->rtcp_port = (guint16) rtcp;
  return set_address (self, connection->address, gst_sdp_media_get_port (media), error);
}

static gboolean
read_session (RelayDescription *self, const GstSDPMessage *sdp, guint track, GError **error)
{
  guint n = 0;

  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++) {
    const GstSDPMedia *media = gst_sdp_message_get_media (sdp, i);
    GstCaps *caps = media_caps (sdp, media);

    if (!caps)
      continue;
    if (n++ < track) {
      gst_caps_unref (caps);
      continue;
    }
    self->caps = caps;
    return read_media (self, sdp, media, error);
  }
  return set_problem (
      error, "the session description has %u tracks of RTP, so no track %u", n, track);
}

gboolean
relay_description_from_sdp (const gchar *text, guint track, RelayDescription *out, GError **error)
{
  gsize len = strlen (text);
  GstSDPMessage *sdp;
  gboolean ok;

  *out = (RelayDescription) { 0 };
  gst_sdp_message_new (&sdp);
  if (strstr (text, "a=key-mgmt:"))
    ok = set_problem (
        error, "the session description has keys (a=key-mgmt); relaysrc cannot decrypt");
  else if (len > SDP_MAX || !g_utf8_validate (text, (gssize) len, NULL)
           || !g_str_has_prefix (text, "v=0")
           || gst_sdp_message_parse_buffer ((const guint8 *) text, (guint) len, sdp) != GST_SDP_OK)
    ok = set_problem (error, "not a session description (it begins with v=0)");
  else
    ok = read_session (out, sdp, track, error);
  gst_sdp_message_free (sdp);
  if (!ok)
    relay_description_clear (out);
  return ok;
}

static gboolean
read_sdp_uri (const gchar *uri, guint track, RelayDescription *out, GError **error)
{
  gsize len = strcspn (uri, "?");
  gchar *file_uri = g_strdup_printf ("file%.*s", (int) len - 3, uri + 3);
  gchar *path = g_filename_from_uri (file_uri, NULL, NULL), *text = NULL;
  gsize size = 0;
  gboolean ok = FALSE;

  g_free (file_uri);
  if (!path || uri[len] != '\0' || !g_str_has_prefix (uri, "sdp:///"))
    set_problem (error, "\"%s\" is not a URI like sdp:///dir/session.sdp", uri);
  else if (g_file_get_contents (path, &text, &size, error))
    ok = strlen (text) == size
             ? relay_description_from_sdp (text, track, out, error)
             : set_problem (error, "not a session description (it begins with v=0)");
  if (!ok && path)
    g_prefix_error (error, "%s: ", path);
  g_free (text);
  g_free (path);
  return ok;
}

gboolean
relay_description_from_uri (const gchar *uri, guint track, RelayDescription *out, GError **error)
{
  *out = (RelayDescription) { 0 };
  if (g_str_has_prefix (uri, "sdp:"))
    return read_sdp_uri (uri, track, out, error);
  if (!g_str_has_prefix (uri, "rtp:"))
    return set_problem (error, "\"%s\" does not begin with rtp:// or sdp:///", uri);
  if (track > 0)
    return set_problem (error, "a rtp:// URI has one track, number 0");
  if (read_rtp_uri (out, uri, error))
    return TRUE;
  relay_description_clear (out);
  return FALSE;
}
