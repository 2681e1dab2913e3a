// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A proxy that serves RTSP.

#include "outlets/rtsp/rtsp_outlet.h"

typedef struct {
  Proxy *proxy;
  gpointer rtsp;
} Served;

static inline Served
serve (ProxyConfig *config)
{
  GError *error = NULL;
  Served self;

  self.proxy = proxy_new (config, &error);
  g_assert_no_error (error);
  self.rtsp = rtsp_outlet.start (self.proxy, config, &error);
  g_assert_no_error (error);
  proxy_start (self.proxy);
  return self;
}

static inline void
stop_serving (Served *self)
{
  g_assert_true (rtsp_outlet.stop (self->rtsp, 4000));
  g_assert_true (proxy_stop (self->proxy, 4000));
  rtsp_outlet.free (self->rtsp);
  proxy_free (self->proxy);
}
