// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// For fuzz targets of the proxy's readers.

#include <gst/gst.h>
#include <string.h>

#include "fuzz.h"

// Starts GStreamer without plugins and registry, so that inputs start nothing.
static inline void
init_gst (void)
{
  g_setenv ("GST_PLUGIN_SYSTEM_PATH_1_0", "", TRUE);
  g_setenv ("GST_PLUGIN_PATH", "", TRUE);
  g_setenv ("GST_REGISTRY", "/dev/null", TRUE);
  g_setenv ("GST_REGISTRY_UPDATE", "no", TRUE);
  g_setenv ("GST_REGISTRY_FORK", "no", TRUE);
  gst_init (NULL, NULL);
  gst_debug_set_default_threshold (GST_LEVEL_NONE);
}

static inline void
on_log (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
  if (!(level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR)))
    return;
  g_printerr ("%s: %s\n", domain, message);
  abort ();
}

// Makes critical messages of GLib findings, and prints no others.
static inline void
only_critical (void)
{
  g_log_set_default_handler (on_log, NULL);
}

// Frees an error, which must be set exactly if the call failed.
static inline void
check_error (gboolean ok, GError **error)
{
  require (ok == (*error == NULL));
  require (ok || *(*error)->message);
  g_clear_error (error);
}
