// SPDX-License-Identifier: LGPL-2.1-or-later

// The upstream of a mount that lacks something of this machine, such as a folder.

#include "sources/pull.h"

static gpointer
start (const PullContext *context, GError **error)
{
  g_set_error_literal (
      error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, context->config->lack);
  return NULL;
}

static const PullLight held_pull_light = { start, NULL, NULL, FALSE };

void
held_pull_init (PullConfig *config, const gchar *uri, const gchar *lack)
{
  config->uri = g_strdup (uri);
  config->light = &held_pull_light;
  config->parser = PULL_PASSES;
  config->lack = g_strdup (lack);
}
