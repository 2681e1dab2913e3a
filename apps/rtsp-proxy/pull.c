// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pull.h"

GstElement *
pull_new (const PullContext *context, GError **error)
{
  if (g_str_has_prefix (context->config->uri, "file:"))
    return file_pull_new (context, error);
  return rtsp_pull_new (context, error);
}
