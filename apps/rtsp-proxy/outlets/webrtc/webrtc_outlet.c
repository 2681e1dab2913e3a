// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_outlet.h"

#include "base/log.h"
#include "base/main_loop.h"
#include "outlets/webrtc/whep.h"
#include "outlets/webrtc/whip.h"

struct _WebrtcOutlet {
  WebrtcEndpoints endpoints;
  Loop *loop;
};

static void
close_readers (Presentation *presentation, const gchar *reason, gpointer data)
{
  webrtc_clients_end (((WebrtcOutlet *) data)->endpoints.clients, presentation, reason);
}

static void
log_port (WebrtcOutlet *self)
{
  GPtrArray *candidates = webrtc_port_get_candidates (self->endpoints.port);
  gchar *text = webrtc_candidates_dup_text (candidates);

  log_event ("WebRTC at port %u: %s", webrtc_port_get_number (self->endpoints.port), text);
  g_free (text);
  g_ptr_array_unref (candidates);
}

WebrtcOutlet *
webrtc_outlet_new (Proxy *proxy, const WebrtcConfig *config, GError **error)
{
  const WebrtcPortSettings settings = { config->listen.address, config->listen.port, config->tcp,
    (const gchar *const *) config->additional_hosts };
  const LoopSettings loop = { .name = "webrtc-clients" };
  WebrtcOutlet *self = g_new0 (WebrtcOutlet, 1);

  self->endpoints.port = webrtc_port_new (&settings, error);
  self->loop = self->endpoints.port ? loop_new (&loop, error) : NULL;
  if (!self->loop) {
    g_clear_pointer (&self->endpoints.port, webrtc_port_free);
    g_free (self);
    g_prefix_error (error, "webrtc: ");
    return NULL;
  }
  self->endpoints.mounts = proxy_get_mounts (proxy);
  self->endpoints.clients = webrtc_clients_new (self->endpoints.port, self->loop);
  self->endpoints.stun_servers = g_strdupv (config->stun_servers);
  proxy_add_closer (proxy, close_readers, self);
  log_port (self);
  return self;
}

void
webrtc_outlet_get_routes (WebrtcOutlet *self, HttpRoute *whep, HttpRoute *whip)
{
  *whep = whep_get_route (&self->endpoints);
  *whip = whip_get_route (&self->endpoints);
}

static gboolean
is_empty (gpointer self)
{
  return webrtc_clients_count (((WebrtcOutlet *) self)->endpoints.clients) == 0;
}

gboolean
webrtc_outlet_stop (WebrtcOutlet *self, guint timeout_ms)
{
  webrtc_clients_end (self->endpoints.clients, NULL, "the proxy stops");
  return main_loop_wait (is_empty, self, timeout_ms);
}

void
webrtc_outlet_free (WebrtcOutlet *self)
{
  loop_free (self->loop);
  webrtc_clients_free (self->endpoints.clients);
  webrtc_port_free (self->endpoints.port);
  g_strfreev (self->endpoints.stun_servers);
  g_free (self);
}
