// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_outlet.h"

#include "base/log.h"
#include "base/main_loop.h"
#include "outlets/webrtc/whep.h"

struct _WebrtcOutlet {
  Whep whep;
  Loop *loop;
};

static void
close_readers (Presentation *presentation, const gchar *reason, gpointer data)
{
  whep_sessions_end (((WebrtcOutlet *) data)->whep.sessions, presentation, reason);
}

static void
log_port (WebrtcOutlet *self)
{
  GPtrArray *candidates = webrtc_port_get_candidates (self->whep.port);
  gchar *text = webrtc_candidates_dup_text (candidates);

  log_event ("WebRTC at port %u: %s", webrtc_port_get_number (self->whep.port), text);
  g_free (text);
  g_ptr_array_unref (candidates);
}

WebrtcOutlet *
webrtc_outlet_new (Proxy *proxy, const WebrtcConfig *config, GError **error)
{
  const WebrtcPortSettings settings = { config->listen.address, config->listen.port, config->tcp,
    (const gchar *const *) config->additional_hosts };
  const LoopSettings loop = { .name = "webrtc-readers" };
  WebrtcOutlet *self = g_new0 (WebrtcOutlet, 1);

  self->whep.port = webrtc_port_new (&settings, error);
  self->loop = self->whep.port ? loop_new (&loop, error) : NULL;
  if (!self->loop) {
    g_clear_pointer (&self->whep.port, webrtc_port_free);
    g_free (self);
    g_prefix_error (error, "webrtc: ");
    return NULL;
  }
  self->whep.sessions = whep_sessions_new (self->whep.port, self->loop);
  self->whep.stun_servers = g_strdupv (config->stun_servers);
  proxy_add_closer (proxy, close_readers, self);
  log_port (self);
  return self;
}

HttpRoute
webrtc_outlet_get_route (WebrtcOutlet *self)
{
  return whep_get_route (&self->whep);
}

static gboolean
is_empty (gpointer self)
{
  return whep_sessions_count (((WebrtcOutlet *) self)->whep.sessions) == 0;
}

gboolean
webrtc_outlet_stop (WebrtcOutlet *self, guint timeout_ms)
{
  whep_sessions_end (self->whep.sessions, NULL, "the proxy stops");
  return main_loop_wait (is_empty, self, timeout_ms);
}

void
webrtc_outlet_free (WebrtcOutlet *self)
{
  loop_free (self->loop);
  whep_sessions_free (self->whep.sessions);
  webrtc_port_free (self->whep.port);
  g_strfreev (self->whep.stun_servers);
  g_free (self);
}
