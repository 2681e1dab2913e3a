// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "target.h"

#include <gst/rtsp/rtsp.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static gboolean
resolve (Target *self, const GstRTSPUrl *url)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  struct addrinfo *found = NULL;
  gchar port[8];
  guint16 number = GST_RTSP_DEFAULT_PORT;
  int error;

  gst_rtsp_url_get_port (url, &number);
  g_snprintf (port, sizeof port, "%u", number);
  error = getaddrinfo (url->host, port, &hints, &found);
  if (error) {
    fprintf (stderr, "rtsp-load: %s: %s: %s\n", self->uri, url->host, gai_strerror (error));
    return FALSE;
  }
  memcpy (&self->address, found->ai_addr, found->ai_addrlen);
  self->address_len = found->ai_addrlen;
  freeaddrinfo (found);
  return TRUE;
}

gboolean
target_init (Target *self, const gchar *text, const gchar *user, const gchar *password)
{
  GstRTSPUrl *url = NULL;
  gboolean ok;

  if (gst_rtsp_url_parse (text, &url) != GST_RTSP_OK) {
    fprintf (stderr, "rtsp-load: \"%s\" is not an RTSP URL\n", text);
    return FALSE;
  }
  self->uri = gst_rtsp_url_get_request_uri (url);
  self->user = g_strdup (url->user ? url->user : user);
  self->password = g_strdup (url->user ? url->passwd : password);
  if (self->user && !self->password)
    self->password = g_strdup ("");
  ok = resolve (self, url);
  gst_rtsp_url_free (url);
  return ok;
}

void
target_clear (Target *self)
{
  g_free (self->uri);
  g_free (self->user);
  g_free (self->password);
  *self = (Target) { 0 };
}
