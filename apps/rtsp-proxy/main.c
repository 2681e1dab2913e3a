// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "base/log.h"
#include "base/service.h"
#include "cli/make_certificate.h"
#include "cli/hash_password.h"
#include "cli/options.h"
#include "control/api.h"
#include "control/notices.h"
#include "control/reload.h"
#include "isolate/connect_broker.h"
#include "isolate/pool.h"
#include "isolate/spawn.h"
#include "outlets/hls/hls_outlet.h"
#include "outlets/hls/page_outlet.h"
#include "outlets/http/http_outlet.h"
#include "outlets/recording/recordings.h"
#include "outlets/rtmp/rtmp_outlet.h"
#include "outlets/rtsp/server.h"
#include "outlets/rtsp/kernel_path.h"
#ifdef HAVE_SRT
#include "outlets/srt/srt_outlet.h"
#endif
#include "outlets/ts/pushes.h"
#include "outlets/ts/ts_outlet.h"
#include "sources/isolated_pull.h"
#include "sources/receive_tick.h"
#include "stores/swarm_reader.h"
#include "title/title_open.h"
#include "worker/worker.h"

#include <errno.h>
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define STOP_TIMEOUT_MS 4000
#define NS_PER_MS G_GINT64_CONSTANT (1000000)

static gboolean
quit (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_CONTINUE;
}

static gboolean
on_hangup (gpointer reload)
{
  service_tell_reloading ();
  reload_run (reload);
  service_tell_ready ();
  return G_SOURCE_CONTINUE;
}

// The worker processes, with media of strangers, may not reach the API.
static void
hide_api (const gchar *base)
{
  GUri *uri = g_uri_parse (base, G_URI_FLAGS_NONE, NULL);

  if (uri && g_uri_get_port (uri) > 0)
    connect_broker_refuse_port ((guint16) g_uri_get_port (uri));
  g_clear_pointer (&uri, g_uri_unref);
}

// Returns NULL without an error if the proxy runs without an API.
static Api *
start_api (const ProxyConfig *config, Server *server, Reload *reload, GError **error)
{
  GError *why = NULL;
  Api *api;
  gchar *base;

  if (config->api == API_OFF)
    return NULL;
  api = api_new (config, server, reload, &why);
  if (!api && config->api == API_ON) {
    g_propagate_error (error, why);
  } else if (!api) {
    log_event (
        "the API is off: no address is configured, and the default one failed: %s", why->message);
    g_error_free (why);
  } else {
    base = api_dup_base_url (api);
    hide_api (base);
    log_event ("api %s/v1", base);
    g_free (base);
  }
  return api;
}

static void
log_access (const ProxyConfig *config)
{
  const gchar *const others[] = { config->http.listen.address, config->http.tls_listen.address,
    config->srt.listen.address, config->rtmp.listen.address, config->rtmp.tls_listen.address };
  ListenAddress listen[3];
  gboolean reachable = FALSE;

  proxy_config_list_listen (config, listen);
  for (const ListenAddress *each = listen; each->address; each++)
    reachable |= !proxy_config_is_loopback (each->address);
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    reachable |= others[i] && !proxy_config_is_loopback (others[i]);
  if (!config->users && reachable)
    log_event ("only clients on this machine are admitted, because the configuration has no users; "
               "to admit everybody, write: users: [{name: any, permissions: [{action: read}, "
               "{action: playback}]}]");
}

// The outlets that HTTP clients reach. All are NULL if the configuration has no HTTP.
typedef struct {
  HttpOutlet *http;
  HlsOutlet *hls;
  PageOutlet page;
  HttpRoute routes[6]; // the last one is empty
} Web;

static gboolean
start_http (Web *self, const ProxyConfig *config, Server *server, GError **error)
{
  const HlsSettings hls = { config->hls.segment_ms * NS_PER_MS, config->hls.part_ms * NS_PER_MS,
    config->hls.n_segments };
  GStrv urls;

  if (!config->http.listen.address && !config->http.tls_listen.address)
    return TRUE;
  self->hls = hls_outlet_new (&hls, server_get_mounts (server));
  self->page = (PageOutlet) { server_get_mounts (server), server_get_access (server) };
  self->routes[0] = hls_outlet_get_route (self->hls);
  self->routes[1] = ts_outlet_get_route (server_get_mounts (server));
  self->routes[2] = page_outlet_get_watch_route (&self->page);
  self->routes[3] = page_outlet_get_list_route (&self->page);
  self->routes[4] = page_outlet_get_icon_route (&self->page);
  self->http = http_outlet_new (&config->http, config->hosts, server_get_mounts (server),
      server_get_access (server), self->routes, server_get_tls (server), error);
  if (!self->http)
    return FALSE;
  urls = http_outlet_dup_base_urls (self->http);
  for (gchar **url = urls; *url; url++)
    log_event ("live mounts and titles %s", *url);
  g_strfreev (urls);
  return TRUE;
}

// Connections that do not end in time still use it; the process ends anyway.
static void
stop_http (Web *self)
{
  gboolean stopped = !self->http || http_outlet_stop (self->http, STOP_TIMEOUT_MS);

  if (stopped)
    g_clear_pointer (&self->http, http_outlet_free);
  if (stopped)
    g_clear_pointer (&self->hls, hls_outlet_free);
}

// The outlets that take publishers over other protocols than RTSP. Each is NULL if the
// configuration does not have it.
typedef struct {
#ifdef HAVE_SRT
  SrtOutlet *srt;
#endif
  RtmpOutlet *rtmp;
} Takers;

static void
log_taker (gchar *url)
{
  log_event ("takes publishers at %s", url);
  g_free (url);
}

static gboolean
start_takers (Takers *self, const ProxyConfig *config, Server *server, GError **error)
{
  GStrv urls;

#ifdef HAVE_SRT
  if (config->srt.listen.address) {
    self->srt = srt_outlet_new (
        &config->srt, server_get_mounts (server), server_get_access (server), error);
    if (!self->srt)
      return FALSE;
    log_taker (srt_outlet_dup_url (self->srt));
  }
#endif
  if (config->rtmp.listen.address || config->rtmp.tls_listen.address) {
    self->rtmp = rtmp_outlet_new (&config->rtmp, server_get_mounts (server),
        server_get_access (server), server_get_tls (server), error);
    if (!self->rtmp)
      return FALSE;
    urls = rtmp_outlet_dup_urls (self->rtmp);
    for (gchar **url = urls; *url; url++)
      log_taker (*url);
    g_free (urls);
  }
  return TRUE;
}

static void
stop_takers (Takers *self)
{
#ifdef HAVE_SRT
  g_clear_pointer (&self->srt, srt_outlet_free);
#endif
  g_clear_pointer (&self->rtmp, rtmp_outlet_free);
}

static void
log_ready (Server *server, const ProxyConfig *config)
{
  GStrv bases = server_dup_base_urls (server);

  for (guint i = 0; i < config->mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (config->mounts, i);

    for (gchar **base = bases; *base; base++)
      log_event ("ready %s%s", *base, mount->path);
  }
  g_strfreev (bases);
}

static void
run (Server *server, const ProxyConfig *config, Reload *reload)
{
  GMainLoop *loop = g_main_loop_new (NULL, FALSE);
  guint on_int = g_unix_signal_add (SIGINT, quit, loop);
  guint on_term = g_unix_signal_add (SIGTERM, quit, loop);
  guint on_hup = g_unix_signal_add (SIGHUP, on_hangup, reload);
  guint watchdog = service_add_watchdog ();

  log_access (config);
  // A program that waits for the log line may then send a signal, so the handlers come first.
  log_ready (server, config);
  service_tell_ready ();
  g_main_loop_run (loop);
  service_tell_stopping ();
  g_source_remove (on_int);
  g_source_remove (on_term);
  g_source_remove (on_hup);
  if (watchdog)
    g_source_remove (watchdog);
  g_main_loop_unref (loop);
}

static int
fail (GError *error)
{
  fprintf (stderr, "rtsp-proxy: %s\n", error->message);
  g_error_free (error);
  return EXIT_FAILURE;
}

// The default, 1024, is for programs that use select(), which this one does not.
static void
raise_file_limit (void)
{
  struct rlimit limit;

  if (getrlimit (RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
    return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit (RLIMIT_NOFILE, &limit) < 0)
    log_event ("cannot raise the limit of open files: %s", g_strerror (errno));
}

static int
serve (const Options *options, ProxyConfig *config)
{
  GError *error = NULL;
  static Web web; // connections that do not end in time still use it
  Takers takers = { 0 };
  Notices *notices;
  Reload *reload;
  Server *server;
  Api *api = NULL;

  if (!kernel_path_load ((KernelPath) config->kernel, &error))
    return fail (error);
  raise_file_limit ();
  receive_tick_set (config->receive_tick);
  workers_set_limit (config->workers);
  spawn_set_options ((const gchar *const *) options->gst);
  server = server_new (config, &error);
  if (!server)
    return fail (error);
  notices = notices_new (server);
  reload = reload_new (options, server, config);
  if (start_http (&web, config, server, &error) && start_takers (&takers, config, server, &error))
    api = start_api (config, server, reload, &error);
  if (!error) {
    Pushes *pushes = pushes_new (server_get_mounts (server));
    Recordings *recordings = recordings_new (server_get_mounts (server));

    run (server, config, reload);
    log_event ("stopping");
    pushes_free (pushes);
    recordings_free (recordings, STOP_TIMEOUT_MS);
  }
  access_close (server_get_access (server));
  g_clear_pointer (&api, api_free);
  reload_free (reload);
  notices_free (notices);
  stop_http (&web);
  stop_takers (&takers);
  // After a time-out, threads still use the server; the process ends anyway.
  if (server_stop (server, STOP_TIMEOUT_MS)) {
    while (g_main_context_iteration (NULL, FALSE)) // what threads have sent here last
      ;
    server_free (server);
  }
  workers_stop ();
  if (error)
    return fail (error);
  log_event ("stopped");
  return EXIT_SUCCESS;
}

int
main (int argc, char **argv)
{
  Options options = { 0 };
  ProxyConfig *config;
  int status;

  if (argc > 1 && g_str_equal (argv[1], "make-certificate"))
    return make_certificate_run (argc - 1, argv + 1);
  if (worker_is (argc, argv))
    return worker_run (argc, argv);
  if (argc > 1 && g_str_equal (argv[1], HASH_PASSWORD_COMMAND))
    return hash_password_run (argc - 1, argv + 1);
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
  // Otherwise functions that other threads send here run there while no main loop runs: at the
  // start and at the end.
  g_main_context_acquire (NULL);
  config = options_build_config (&options, &status);
  if (!config || options.check_config) {
    g_clear_pointer (&config, proxy_config_free);
    options_clear (&options);
    return status;
  }
  isolated_pull_set (config->isolate);
  title_open_set (config->isolate != ISOLATE_NO);
  swarm_reader_set_isolated (config->isolate != ISOLATE_NO);
  status = options_shows (&options) ? options_show (&options, config) : serve (&options, config);
  proxy_config_free (config);
  options_clear (&options);
  return status;
}
