// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "target.h"

#include <errno.h>
#include <gst/rtsp/rtsp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gboolean
resolve (Target *self, const gchar *host, guint16 number)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  struct addrinfo *found = NULL;
  gchar port[8];
  int error;

  g_snprintf (port, sizeof port, "%u", number);
  error = getaddrinfo (host, port, &hints, &found);
  if (error) {
    fprintf (stderr, "rtsp-load: %s: %s: %s\n", self->uri, host, gai_strerror (error));
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
  guint16 port = GST_RTSP_DEFAULT_PORT;
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
  gst_rtsp_url_get_port (url, &port);
  ok = resolve (self, url->host, port);
  gst_rtsp_url_free (url);
  return ok;
}

gboolean
target_init_http (Target *self, const gchar *text, const gchar *user, const gchar *password)
{
  GUri *url = g_uri_parse (text, G_URI_FLAGS_ENCODED, NULL);
  gboolean ok;

  if (!url || !g_uri_get_host (url) || !*g_uri_get_host (url) || g_uri_get_userinfo (url)) {
    fprintf (stderr, "rtsp-load: \"%s\" is not an HTTP URL without credentials\n", text);
    g_clear_pointer (&url, g_uri_unref);
    return FALSE;
  }
  self->uri = g_strdup (text);
  self->user = g_strdup (user);
  self->password = g_strdup (user && !password ? "" : password);
  ok = resolve (
      self, g_uri_get_host (url), (guint16) (g_uri_get_port (url) > 0 ? g_uri_get_port (url) : 80));
  g_uri_unref (url);
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

gchar *
target_dup_path (const gchar *url)
{
  GUri *uri = g_uri_parse (url, G_URI_FLAGS_ENCODED, NULL);
  const gchar *path, *query;
  gchar *text;

  if (!uri)
    return NULL;
  path = g_uri_get_path (uri);
  query = g_uri_get_query (uri);
  text = g_strconcat (*path ? path : "/", query ? "?" : "", query, NULL);
  g_uri_unref (uri);
  return text;
}

int
target_connect (const Target *self)
{
  const int on = 1;
  int fd = socket (self->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), problem;

  if (fd < 0)
    return -1;
  if (connect (fd, (const struct sockaddr *) &self->address, self->address_len) < 0
      && errno != EINPROGRESS) {
    problem = errno;
    close (fd);
    errno = problem;
    return -1;
  }
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void
target_add_fields (const Target *self, GString *request)
{
  GUri *uri = g_uri_parse (self->uri, G_URI_FLAGS_ENCODED, NULL);
  const gchar *host = g_uri_get_host (uri);
  gint port = g_uri_get_port (uri);

  g_string_append_printf (request, strchr (host, ':') ? "Host: [%s]:%d\r\n" : "Host: %s:%d\r\n",
      host, port > 0 ? port : 80);
  if (self->user) {
    gchar *pair = g_strconcat (self->user, ":", self->password, NULL);
    gchar *coded = g_base64_encode ((const guchar *) pair, strlen (pair));

    g_string_append_printf (request, "Authorization: Basic %s\r\n", coded);
    g_free (coded);
    g_free (pair);
  }
  g_uri_unref (uri);
}
