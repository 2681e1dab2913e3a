// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "outlets/hls/web_outlet.h"

#include "base/log.h"
#include "outlets/hls/hls_outlet.h"
#include "outlets/hls/page_outlet.h"
#include "outlets/http/http_outlet.h"
#include "outlets/picture/picture_outlet.h"
#include "outlets/ts/ts_outlet.h"
#include "outlets/webrtc/webrtc_outlet.h"

#define NS_PER_MS G_GINT64_CONSTANT (1000000)

typedef struct {
  HttpOutlet *http;
  HlsOutlet *hls;
  WebrtcOutlet *webrtc; // NULL: not configured
  PageOutlet page;
  PictureOutlet *pictures;
  HttpRoute routes[10]; // the last one is empty
} Web;

static void
web_free (gpointer data)
{
  Web *self = data;

  g_clear_pointer (&self->http, http_outlet_free);
  if (WITH_WEBRTC)
    g_clear_pointer (&self->webrtc, webrtc_outlet_free);
  picture_outlet_free (self->pictures);
  hls_outlet_free (self->hls);
  g_free (self);
}

static gboolean
stop (gpointer data, guint timeout_ms)
{
  Web *self = data;

  if (!http_outlet_stop (self->http, timeout_ms))
    return FALSE;
  return !WITH_WEBRTC || !self->webrtc || webrtc_outlet_stop (self->webrtc, timeout_ms);
}

static void
make_routes (Web *self, Mounts *mounts, Access *access)
{
  self->page = (PageOutlet) { mounts, access };
  self->routes[0] = hls_outlet_get_route (self->hls);
  self->routes[1] = ts_outlet_get_route (mounts);
  self->routes[2] = page_outlet_get_watch_route (&self->page);
  self->routes[3] = page_outlet_get_list_route (&self->page);
  self->routes[4] = page_outlet_get_icon_route (&self->page);
  self->routes[5] = picture_outlet_get_route (self->pictures);
  if (WITH_WEBRTC && self->webrtc) {
    webrtc_outlet_get_routes (self->webrtc, &self->routes[6], &self->routes[7]);
    self->routes[8] = page_outlet_get_publish_route (&self->page);
  }
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  const HlsSettings hls = { { config->hls.segment_ms * NS_PER_MS, config->hls.part_ms * NS_PER_MS },
    config->hls.n_segments };
  Mounts *mounts = proxy_get_mounts (proxy);
  Access *access = proxy_get_access (proxy);
  g_auto (GStrv) urls = NULL;
  Web *self;

  if (!config->http.listen.address && !config->http.tls_listen.address)
    return NULL;
  self = g_new0 (Web, 1);
  self->hls = hls_outlet_new (&hls, mounts);
  self->pictures = picture_outlet_new (proxy);
  if (WITH_WEBRTC && config->webrtc.listen.address) {
    self->webrtc = webrtc_outlet_new (proxy, &config->webrtc, error);
    if (!self->webrtc) {
      web_free (self);
      return NULL;
    }
  }
  make_routes (self, mounts, access);
  self->http = http_outlet_new (
      &config->http, config->hosts, mounts, access, self->routes, proxy_get_tls (proxy), error);
  if (!self->http) {
    web_free (self);
    return NULL;
  }
  urls = http_outlet_dup_base_urls (self->http);
  for (gchar **url = urls; *url; url++)
    log_event ("live mounts and titles %s", *url);
  return self;
}

const Outlet web_outlet = { start, stop, web_free };
