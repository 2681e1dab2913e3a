// SPDX-License-Identifier: LGPL-2.1-or-later

// Checks an upstream's answers before rtspsrc reads them: some answers crash rtspsrc. While rtspsrc
// plays over UDP, no signal and no GstRTSPExtension sees the answers. So this file replaces the
// library function that reads them, and calls the original.

#include <dlfcn.h>
#include <gst/rtsp/rtsp.h>
#include <string.h>

typedef GstRTSPResult (*Receive) (GstRTSPConnection *, GstRTSPMessage *, gint64);

static const gchar *
skip (const gchar *s, const gchar *characters)
{
  return s + strspn (s, characters);
}

static const gchar *
skip_token (const gchar *s)
{
  while (g_ascii_isalnum (*s) || (*s && strchr ("!#$%&'*+-.^_`|~", *s)))
    s++;
  return s;
}

// Skips the value after a '=': a token or a quoted string. Returns NULL if there is neither.
static const gchar *
skip_value (const gchar *s)
{
  if (*s != '"') {
    s += strcspn (s, " \t\v\f,\"");
  } else {
    for (s++; *s && *s != '"'; s++)
      s += *s == '\\' && s[1];
    if (*s++ != '"')
      return NULL;
  }
  return !*s || strchr (" \t\v\f,", *s) ? s : NULL;
}

// Reports whether a challenge is a list of schemes, each with its parameters. rtspsrc follows a
// null pointer if "Digest" has no parameters, or none that its parser finds.
static gboolean
is_valid_challenge (const gchar *s)
{
  gboolean named = FALSE, lacks_parameters = FALSE;

  while (*(s = skip (s, " \t\v\f,"))) {
    const gchar *end = skip_token (s);

    if (end > s && *end == '=' && named) {
      if (end[1] && strchr (" \t\v\f", end[1]))
        return FALSE;
      end = skip_value (end + 1);
      if (!end)
        return FALSE;
      lacks_parameters = FALSE;
    } else if (end > s && !lacks_parameters && (!*end || strchr (" \t\v\f", *end))) {
      named = TRUE;
      lacks_parameters = !g_ascii_strncasecmp (s, "digest", 6);
    } else {
      return FALSE;
    }
    s = end;
  }
  return !lacks_parameters;
}

// Reports whether the library finds a digest without parameters. Behind a scheme that it does not
// know it takes every word for a scheme, also within a quoted string.
static gboolean
has_bare_digest (GstRTSPMessage *answer)
{
  GstRTSPAuthCredential **credentials =
      gst_rtsp_message_parse_auth_credentials (answer, GST_RTSP_HDR_WWW_AUTHENTICATE);
  gboolean found = FALSE;

  for (GstRTSPAuthCredential **c = credentials; c && *c; c++)
    found |= (*c)->scheme == GST_RTSP_AUTH_DIGEST && !(*c)->params;
  if (credentials)
    gst_rtsp_auth_credentials_free (credentials);
  return found;
}

static void
remove_invalid_challenges (GstRTSPMessage *answer)
{
  gchar *challenge;
  gint i = 0;

  while (gst_rtsp_message_get_header (answer, GST_RTSP_HDR_WWW_AUTHENTICATE, &challenge, i)
         == GST_RTSP_OK) {
    if (is_valid_challenge (challenge))
      i++;
    else
      gst_rtsp_message_remove_header (answer, GST_RTSP_HDR_WWW_AUTHENTICATE, i);
  }
  if (i > 0 && has_bare_digest (answer))
    gst_rtsp_message_remove_header (answer, GST_RTSP_HDR_WWW_AUTHENTICATE, -1);
}

// Rejects a transport that is not RTP: rtspsrc accepts RealMedia's transport and crashes. Removes a
// transport that cannot be parsed: rtspsrc would repeat the request endlessly, with two more
// sockets each time that it never closes.
static gboolean
check_transport (GstRTSPMessage *answer)
{
  GstRTSPTransport *transport;
  gboolean valid = TRUE;
  gchar *text;

  if (gst_rtsp_message_get_header (answer, GST_RTSP_HDR_TRANSPORT, &text, 0) != GST_RTSP_OK)
    return TRUE;
  gst_rtsp_transport_new (&transport);
  if (gst_rtsp_transport_parse (text, transport) == GST_RTSP_OK)
    valid = transport->trans == GST_RTSP_TRANS_RTP;
  else
    gst_rtsp_message_remove_header (answer, GST_RTSP_HDR_TRANSPORT, -1);
  gst_rtsp_transport_free (transport);
  return valid;
}

// Removes a base URL that cannot be parsed: rtspsrc joins the tracks' URLs to it and would follow a
// null pointer.
static void
remove_invalid_base (GstRTSPMessage *answer)
{
  gchar *base;
  GstUri *url;

  if (gst_rtsp_message_get_header (answer, GST_RTSP_HDR_CONTENT_BASE, &base, 0) != GST_RTSP_OK)
    return;
  url = gst_uri_from_string (base);
  if (url)
    gst_uri_unref (url);
  else
    gst_rtsp_message_remove_header (answer, GST_RTSP_HDR_CONTENT_BASE, -1);
}

G_MODULE_EXPORT GstRTSPResult
gst_rtsp_connection_receive_usec (
    GstRTSPConnection *connection, GstRTSPMessage *message, gint64 timeout)
{
  static gsize library;
  GstRTSPResult result;

  if (g_once_init_enter (&library))
    g_once_init_leave (&library, (gsize) dlsym (RTLD_NEXT, G_STRFUNC));
  result = ((Receive) library) (connection, message, timeout);
  if (result != GST_RTSP_OK || message->type != GST_RTSP_MESSAGE_RESPONSE)
    return result;
  remove_invalid_challenges (message);
  remove_invalid_base (message);
  if (check_transport (message))
    return GST_RTSP_OK;
  gst_rtsp_message_unset (message);
  return GST_RTSP_EPARSE;
}
