// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/explain_ways.h"

// What follows the path of the mount in a URL.
static gchar *
dup_query (const Demand *demand)
{
  return demand->query ? g_strconcat ("?", demand->query, NULL) : g_strdup ("");
}

static void
append_http (GString *out, const ListenAddress *at, const gchar *scheme, const Demand *demand)
{
  g_autofree gchar *base = NULL, *query = NULL;

  if (!at->address)
    return;
  base = listen_address_dup_url (at, scheme);
  query = dup_query (demand);
  g_string_append_printf (out,
      "# Readers over HTTP get it at %s/hls%s/index.m3u8%s, /watch%s%s and /ts%s%s.\n", base,
      demand->path, query, demand->path, query, demand->path, query);
}

static void
append_webrtc (GString *out, const ListenAddress *at, const gchar *scheme, const Demand *demand,
    gboolean publishes)
{
  gchar *base, *query;

  if (!at->address)
    return;
  base = listen_address_dup_url (at, scheme);
  query = dup_query (demand);
  g_string_append_printf (
      out, "# Browsers get it over WebRTC at %s%s/whep%s.\n", base, demand->path, query);
  if (publishes)
    g_string_append_printf (
        out, "# Publishers over WebRTC send offers to %s%s/whip.\n", base, demand->path);
  g_free (query);
  g_free (base);
}

static void
append_srt (GString *out, const ListenAddress *at, const Demand *demand, gboolean publishes)
{
  g_autofree gchar *base = NULL, *query = NULL;

  if (!at->address)
    return;
  base = listen_address_dup_url (at, "srt");
  query = dup_query (demand);
  g_string_append_printf (out, "# Readers over SRT call %s with the stream id read:%s%s.\n", base,
      demand->path + 1, query);
  if (publishes)
    g_string_append_printf (out, "# Publishers over SRT call %s with the stream id publish:%s.\n",
        base, demand->path + 1);
}

static void
append_rtmp (GString *out, const ListenAddress *at, const gchar *scheme, const Demand *demand)
{
  g_autofree gchar *base = NULL;

  if (!at->address)
    return;
  base = listen_address_dup_url (at, scheme);
  g_string_append_printf (out, "# Publishers over RTMP send to %s%s.\n", base, demand->path);
}

gchar *
explain_ways (const ProxyConfig *config, const MountConfig *mount, const Demand *demand)
{
  gboolean publishes = !demand->choices && mount_config_awaits (mount);
  GString *out = g_string_new (NULL);

  append_http (out, &config->http.listen, "http", demand);
  append_http (out, &config->http.tls_listen, "https", demand);
  if (config->webrtc.listen.address) {
    append_webrtc (out, &config->http.listen, "http", demand, publishes);
    append_webrtc (out, &config->http.tls_listen, "https", demand, publishes);
  }
  append_srt (out, &config->srt.listen, demand, publishes);
  if (publishes) {
    append_rtmp (out, &config->rtmp.listen, "rtmp", demand);
    append_rtmp (out, &config->rtmp.tls_listen, "rtmps", demand);
  }
  return g_string_free (out, FALSE);
}
