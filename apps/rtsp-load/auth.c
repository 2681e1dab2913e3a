// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "auth.h"

gboolean
auth_take_challenge (
    RtspAuth *self, const GstRTSPMessage *answer, const gchar *user, const gchar *password)
{
  RtspMessage message = { .status = GST_RTSP_STS_UNAUTHORIZED };
  gchar *value;

  self->user = user;
  self->password = password ? password : "";
  while (message.n_headers < RTSP_HEADERS_MAX
         && gst_rtsp_message_get_header (
                answer, GST_RTSP_HDR_WWW_AUTHENTICATE, &value, (gint) message.n_headers)
                == GST_RTSP_OK)
    message.headers[message.n_headers++] = (RtspHeader) { "WWW-Authenticate", value };
  return rtsp_auth_take (self, &message, 1);
}

gchar *
auth_header (RtspAuth *self, const gchar *method, const gchar *uri)
{
  gchar *value = rtsp_auth_dup_header (self, method, uri);
  gchar *line = value ? g_strdup_printf ("Authorization: %s\r\n", value) : NULL;

  g_free (value);
  return line;
}
