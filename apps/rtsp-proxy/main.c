// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "log.h"
#include "options.h"
#include "reload.h"
#include "server.h"

#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>

#define STOP_TIMEOUT_MS 4000

static gboolean
quit (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_CONTINUE;
}

static gboolean
on_hangup (gpointer reload)
{
  reload_run (reload);
  return G_SOURCE_CONTINUE;
}

static int
serve (const Options *options, ProxyConfig *config)
{
  GMainLoop *loop = g_main_loop_new (NULL, FALSE);
  GError *error = NULL;
  Server *server = server_new (config, &error);
  Reload *reload;
  gchar *base;
  guint on_int, on_term, on_hup;
  gboolean closed;

  if (!server) {
    fprintf (stderr, "rtsp-proxy: %s\n", error->message);
    g_error_free (error);
    g_main_loop_unref (loop);
    return EXIT_FAILURE;
  }
  on_int = g_unix_signal_add (SIGINT, quit, loop);
  on_term = g_unix_signal_add (SIGTERM, quit, loop);
  reload = reload_new (options, server, config);
  on_hup = g_unix_signal_add (SIGHUP, on_hangup, reload);
  base = server_dup_base_url (server);
  for (guint i = 0; i < config->mounts->len; i++)
    log_event ("ready %s%s", base, ((MountConfig *) g_ptr_array_index (config->mounts, i))->path);
  g_free (base);

  g_main_loop_run (loop);
  g_source_remove (on_int);
  g_source_remove (on_term);
  g_source_remove (on_hup);
  reload_free (reload);

  log_event ("going down");
  closed = server_stop (server, STOP_TIMEOUT_MS);
  g_main_loop_unref (loop);
  if (closed) // else threads still use it: the process ends with it
    server_free (server);
  log_event ("down");
  return EXIT_SUCCESS;
}

int
main (int argc, char **argv)
{
  Options options = { 0 };
  ProxyConfig *config;
  int status;

  if (!options_parse (&options, &argc, &argv, &status)) {
    options_clear (&options);
    return status;
  }
  if (options.list_stages) {
    status = options_show (&options, NULL);
    options_clear (&options);
    return status;
  }
  log_init ();
  config = options_build_config (&options, &status);
  if (!config || options.check_config) {
    g_clear_pointer (&config, proxy_config_free);
    options_clear (&options);
    return status;
  }
  status = options.explain ? options_show (&options, config) : serve (&options, config);
  proxy_config_free (config);
  options_clear (&options);
  return status;
}
