// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "base/log.h"
#include "base/main_loop.h"
#include "base/service.h"
#include "cluster/cluster.h"
#include "cli/make_certificate.h"
#include "cli/hash_password.h"
#include "cli/import_mediamtx.h"
#include "cli/options.h"
#include "cli/show_cluster.h"
#include "control/api.h"
#include "control/hooks.h"
#include "control/notices.h"
#include "control/reload.h"
#include "isolate/connect_broker.h"
#include "isolate/pool.h"
#include "isolate/spawn.h"
#include "outlets/hls/web_outlet.h"
#include "outlets/recording/recordings.h"
#include "outlets/rtmp/rtmp_outlet.h"
#include "outlets/rtsp/rtsp_outlet.h"
#include "outlets/rtsp/kernel_path.h"
#include "outlets/srt/srt_outlet.h"
#include "outlets/ts/pushes.h"
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
#define THREAD_IDLE_MS 2000 // until an idle thread of a pool ends; GLib's default is 15 s

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
  g_autoptr (GUri) uri = g_uri_parse (base, G_URI_FLAGS_NONE, NULL);

  if (uri && g_uri_get_port (uri) > 0)
    connect_broker_refuse_port ((guint16) g_uri_get_port (uri));
}

// Returns NULL without an error if the proxy runs without an API.
static Api *
start_api (
    const ProxyConfig *config, Proxy *proxy, Reload *reload, Cluster *cluster, GError **error)
{
  GError *why = NULL;
  Api *api;
  g_autofree gchar *base = NULL;

  if (config->api.is_off)
    return NULL;
  api = api_new (config, proxy, reload, cluster, &why);
  if (!api && config->api.is_given) {
    g_propagate_error (error, why);
  } else if (!api) {
    log_event (
        "the API is off: no address is configured, and the default one failed: %s", why->message);
    g_error_free (why);
  } else {
    base = api_dup_base_url (api);
    hide_api (base);
    log_event ("api %s/v1", base);
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

// ---- outlets ----

// The RTSP outlet is the first, because it adds the mounts. The last two need no clients: they end
// while the API still answers the commands that recordings run.
static const Outlet *const outlets[] = { &rtsp_outlet, &web_outlet, WITH_SRT ? &srt_outlet : NULL,
  &rtmp_outlet, &pushes_outlet, &recordings_outlet }; // NULL: the build does not have it

#define N_SERVING (G_N_ELEMENTS (outlets) - 2) // outlets that clients reach

typedef struct {
  gpointer selves[G_N_ELEMENTS (outlets)]; // NULL: not in the configuration
} Outlets;

static gboolean
start_outlets (Outlets *self, Proxy *proxy, ProxyConfig *config, GError **error)
{
  GError *why = NULL;

  for (guint i = 0; !why && i < G_N_ELEMENTS (outlets); i++) {
    if (outlets[i])
      self->selves[i] = outlets[i]->start (proxy, config, &why);
  }
  if (why)
    g_propagate_error (error, why);
  return !why;
}

// Stops the outlets from number `first` on. Returns FALSE if connections do not end in time.
static gboolean
stop_outlets (Outlets *self, guint first)
{
  gboolean stopped = TRUE;

  for (guint i = G_N_ELEMENTS (outlets); i-- > first;) {
    if (!self->selves[i])
      continue;
    stopped &= outlets[i]->stop (self->selves[i], STOP_TIMEOUT_MS);
    if (!outlets[i]->free)
      self->selves[i] = NULL;
  }
  return stopped;
}

static void
free_outlets (Outlets *self)
{
  for (guint i = G_N_ELEMENTS (outlets); i-- > 0;) {
    if (self->selves[i])
      outlets[i]->free (self->selves[i]);
  }
}

static void
log_urls_of (const GPtrArray *mounts, GStrv bases)
{
  for (guint i = 0; i < mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (mounts, i);

    for (gchar **base = bases; *base; base++)
      log_event ("serves %s%s", *base, mount->path);
  }
}

static void
log_urls (Proxy *proxy, const ProxyConfig *config)
{
  g_auto (GStrv) bases = proxy_dup_base_urls (proxy);

  log_urls_of (config->mounts, bases);
  log_urls_of (config->patterns, bases);
}

static void
run_proxy (Proxy *proxy, const ProxyConfig *config, Reload *reload)
{
  GMainLoop *loop = g_main_loop_new (NULL, FALSE);
  guint on_int = g_unix_signal_add (SIGINT, quit, loop);
  guint on_term = g_unix_signal_add (SIGTERM, quit, loop);
  guint on_hup = g_unix_signal_add (SIGHUP, on_hangup, reload);
  guint watchdog = service_add_watchdog ();

  log_access (config);
  // A program that waits for the log line may then send a signal, so the handlers come first.
  log_urls (proxy, config);
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
fail_start (GError *error)
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

// Returns when a signal has ended the program, or with an error.
static void
serve_mounts (Proxy *proxy, const Options *options, ProxyConfig *config, Outlets *all,
    Cluster **cluster, GError **error)
{
  GError *why = NULL;
  Notices *notices;
  Hooks *hooks;
  Reload *reload;
  Api *api;

  cluster_prepare (config);
  if (start_outlets (all, proxy, config, &why))
    *cluster = cluster_new (proxy, config, &why);
  if (why) {
    g_propagate_error (error, why);
    access_close (proxy_get_access (proxy));
    return;
  }
  hooks = hooks_new (&config->hooks);
  proxy_start (proxy);
  if (*cluster)
    cluster_start (*cluster);
  notices = notices_new (proxy);
  reload = reload_new (options, proxy, config);
  api = start_api (config, proxy, reload, *cluster, error);
  if (api || config->api.is_off || !config->api.is_given) {
    run_proxy (proxy, config, reload);
    if (*cluster)
      cluster_hand_over (*cluster);
    log_event ("stopping");
    stop_outlets (all, N_SERVING);
  }
  access_close (proxy_get_access (proxy));
  g_clear_pointer (&api, api_free);
  reload_free (reload);
  notices_free (notices);
  g_clear_pointer (&hooks, hooks_free);
  if (*cluster)
    cluster_leave (*cluster);
}

static int
serve (const Options *options, ProxyConfig *config)
{
  GError *error = NULL;
  Outlets all = { 0 };
  Cluster *cluster = NULL;
  gboolean stopped;
  Proxy *proxy;

  if (!kernel_path_load ((KernelPath) config->kernel, &error))
    return fail_start (error);
  raise_file_limit ();
  g_thread_pool_set_max_idle_time (THREAD_IDLE_MS);
  receive_tick_set (config->receive_tick);
  workers_set_limit (config->workers);
  spawn_set_options ((const gchar *const *) options->gst);
  proxy = proxy_new (config, &error);
  if (!proxy)
    return fail_start (error);
  serve_mounts (proxy, options, config, &all, &cluster, &error);
  stopped = stop_outlets (&all, 0);
  // After a time-out, threads still use what is not freed; the process ends anyway.
  if (proxy_stop (proxy, STOP_TIMEOUT_MS) && stopped) {
    main_loop_drain (); // what threads have sent here last
    g_clear_pointer (&cluster, cluster_free);
    free_outlets (&all);
    proxy_free (proxy);
  }
  workers_stop ();
  if (error)
    return fail_start (error);
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
  if (argc > 1 && g_str_equal (argv[1], IMPORT_MEDIAMTX_COMMAND))
    return import_mediamtx_run (argc - 1, argv + 1);
  if (argc > 1 && g_str_equal (argv[1], SHOW_CLUSTER_COMMAND))
    return show_cluster_run (argc - 1, argv + 1);
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
  if (WITH_SWARM)
    swarm_reader_set_isolated (config->isolate != ISOLATE_NO);
  status = options_shows (&options) ? options_show (&options, config) : serve (&options, config);
  proxy_config_free (config);
  options_clear (&options);
  return status;
}
