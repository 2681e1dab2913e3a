// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_source.h"

#include <string.h>

#include "import/mtx_pattern.h"
#include "import/weir_text.h"

// Why a source has no counterpart, by the beginning of its text.
static const struct {
  const gchar *prefix, *why;
} others[] = {
  { "rpiCamera", "Weir reads no camera module; try upstream: \"launch: libcamerasrc ! ...\"" },
  { "redirect", "Weir sends no readers elsewhere; name the other server as upstream" },
  { "whep://", "Weir reads no WHEP server" },
  { "wheps://", "Weir reads no WHEP server" },
  { "moq", "Weir does not speak Media over QUIC" },
  { "rtmps://", "Weir reads RTMP without TLS only" },
  { "udp+rtp://", "write the text of rtpSDP to a file, and upstream: sdp:///DIR/FILE.sdp" },
  { "unix+", "Weir reads no Unix sockets" },
  { "rtsp+", "Weir reads RTSP over TCP, UDP and TLS only" },
  { "rtsps+", "Weir reads RTSP over TCP, UDP and TLS only" },
};

static gboolean
leave_out (MtxFile *self, const YamlNode *place, const gchar *name, const gchar *why)
{
  mtx_note (self, place, name, "left out: %s", why);
  return FALSE;
}

// Sets the user and the password of a URL as keys. (transfer full)
static gchar *
take_user (const gchar *uri, MtxMount *mount)
{
  g_autoptr (GUri) parsed = g_uri_parse (uri,
      G_URI_FLAGS_HAS_PASSWORD | G_URI_FLAGS_PARSE_RELAXED | G_URI_FLAGS_ENCODED_PATH
          | G_URI_FLAGS_ENCODED_QUERY,
      NULL);
  const gchar *begin = strstr (uri, "://"), *at;

  if (!parsed || !begin || !g_uri_get_user (parsed))
    return g_strdup (uri);
  begin += strlen ("://");
  at = memrchr (begin, '@', strcspn (begin, "/?#"));
  if (!at)
    return g_strdup (uri);
  mtx_mount_set (mount, "user", g_uri_get_user (parsed));
  if (g_uri_get_password (parsed))
    mtx_mount_set (mount, "password", g_uri_get_password (parsed));
  return g_strdup_printf ("%.*s%s", (int) (begin - uri), uri, at + 1);
}

// Keeps the parameters of a query that the proxy knows, by pairs of a former and a present name,
// and returns the URI with them. (transfer full)
static gchar *
keep_parameters (const gchar *uri, const gchar *const *known, MtxMount *mount)
{
  const gchar *query = strchr (uri, '?');
  g_auto (GStrv) parts = g_strsplit (query ? query + 1 : "", "&", 0);
  GString *out = g_string_new_len (uri, query ? query - uri : -1);
  gchar separator = '?';

  for (guint i = 0; parts[i]; i++) {
    const gsize len = strcspn (parts[i], "=");
    g_autofree gchar *name = g_strndup (parts[i], len);

    for (guint k = 0; known[k]; k += 2) {
      if (!g_str_equal (known[k], name))
        continue;
      g_string_append_printf (out, "%c%s%s", separator, known[k + 1], parts[i] + len);
      separator = '&';
    }
    if (g_str_equal (name, "passphrase") && parts[i][len]) {
      g_autofree gchar *secret = g_uri_unescape_string (parts[i] + len + 1, NULL);

      mtx_mount_set (mount, "password", secret ? secret : parts[i] + len + 1);
    }
  }
  return g_string_free (out, FALSE);
}

static void
set_rtsp (MtxFile *self, const MtxScope *scope, MtxMount *mount)
{
  const gchar *transport = mtx_text (self, scope, "rtspTransport", "automatic");
  const gchar *fingerprint = mtx_text (self, scope, "sourceFingerprint", "");

  if (g_str_equal (transport, "udp") || g_str_equal (transport, "tcp"))
    mtx_mount_set (mount, "transport", transport);
  else if (!g_str_equal (transport, "automatic"))
    mtx_note (self, mtx_find (self, scope, "rtspTransport"), mount->path,
        "rtspTransport: left out: Weir asks cameras for UDP, then for TCP");
  if (*fingerprint)
    mtx_mount_set (mount, "tls-fingerprint", fingerprint);
}

// Sets what all mounts have which read from somewhere.
static void
set_pull (MtxFile *self, const MtxScope *scope, MtxMount *mount)
{
  const gboolean on_demand = mtx_flag (self, scope, "sourceOnDemand", FALSE);
  const guint64 start = mtx_time (self, scope, "sourceOnDemandStartTimeout", 10000);
  const guint64 linger = mtx_time (self, scope, "sourceOnDemandCloseAfter", 10000);

  if (!on_demand)
    mtx_mount_take (mount, "on-demand", g_strdup ("no"));
  if (on_demand && start != 10000)
    mtx_mount_take (mount, "start-timeout", weir_text_dup_time (start));
  if (on_demand && linger != 10000)
    mtx_mount_take (mount, "linger", weir_text_dup_time (linger));
}

// Returns the URI of the upstream, or NULL if the source has none. (transfer full)
static gchar *
dup_upstream (const gchar *source, MtxMount *mount)
{
  static const gchar *const udp[] = { "interface", "iface", NULL }, *const srt[] = { "streamid",
    "streamid", "latency", "latency", NULL };

  if (g_str_has_prefix (source, "rtsp://") || g_str_has_prefix (source, "rtsps://")
      || g_str_has_prefix (source, "rtmp://"))
    return g_strdup (source);
  if (g_str_has_prefix (source, "http://") || g_str_has_prefix (source, "https://"))
    return take_user (source, mount);
  if (g_str_has_prefix (source, "srt://"))
    return keep_parameters (source, srt, mount);
  if (g_str_has_prefix (source, "udp+mpegts://")) {
    g_autofree gchar *plain = g_strconcat ("udp", strstr (source, "://"), NULL);

    return keep_parameters (plain, udp, mount);
  }
  return g_str_has_prefix (source, "udp://") ? keep_parameters (source, udp, mount) : NULL;
}

gboolean
mtx_source_import (
    MtxFile *self, const MtxScope *scope, const YamlNode *place, const gchar *name, MtxMount *mount)
{
  const gchar *source = mtx_text (self, scope, "source", "publisher");
  g_autofree gchar *named = NULL, *upstream = NULL;

  if (!*source || g_str_equal (source, "publisher")) {
    mtx_mount_set (mount, "upstream", "publish");
    if (mtx_flag (self, scope, "overridePublisher", TRUE))
      mtx_mount_take (mount, "takeover", g_strdup ("yes"));
    return TRUE;
  }
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    if (g_str_has_prefix (source, others[i].prefix))
      return leave_out (self, place, name, others[i].why);
  }
  named = mtx_pattern_dup_source (mount->path, source);
  if (!named)
    return leave_out (
        self, place, name, "the source has a variable that is no whole segment of the path");
  upstream = dup_upstream (named, mount);
  if (!upstream)
    return leave_out (self, place, name, "Weir knows no such source");
  mtx_mount_set (mount, "upstream", upstream);
  if (g_str_has_prefix (upstream, "rtsp"))
    set_rtsp (self, scope, mount);
  set_pull (self, scope, mount);
  return TRUE;
}
