// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull.h"

void
pull_config_clear (PullConfig *config)
{
  g_clear_pointer (&config->uri, g_free);
  g_clear_pointer (&config->user, g_free);
  g_clear_pointer (&config->password, g_free);
  g_clear_pointer (&config->endpoint.address, g_free);
  g_clear_pointer (&config->endpoint.iface, g_free);
  gst_clear_caps (&config->rtp);
  g_clear_pointer (&config->path, g_free);
  g_clear_pointer (&config->launch, g_free);
}
