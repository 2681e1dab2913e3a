// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull.h"

GstElement *
pull_new (const PullContext *context, GError **error)
{
  switch (context->config->kind) {
    case PULL_FILE:
      return file_pull_new (context, error);
    case PULL_TS:
      return ts_pull_new (context, error);
    case PULL_RTP:
    case PULL_SDP:
      return rtp_pull_new (context, error);
    case PULL_LAUNCH:
      return launch_pull_new (context, error);
    case PULL_FOLDER:
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "%s is a folder",
          context->config->path);
      return NULL;
    default:
      return rtsp_pull_new (context, error);
  }
}
