// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/proxy_config.h"
#include "sources/pull.h"
#include "stages/stage_set.h"
#include "text/config_error.h"
#include "text/yaml_expand.h"
#include "text/yaml_merge.h"

#include "base/trusted_networks.h"
#include "config/host_names.h"
#include "config/mount_pattern.h"
#include "config/mount_read.h"
#include "config/mount_templates.h"
#include "config/user_read.h"
#include "config/variables.h"
#include "isolate/pool.h"
#include "sources/isolated_pull.h"
#include <gio/gio.h>
#include <string.h>

#define RECEIVE_TICK_US 2000 // the default
#define RECEIVE_TICK_MAX_MS 100

// ---- values ----

// Returns NULL, or an error message that the caller owns.
static gchar *
check_new_path (ProxyConfig *self, const gchar *path)
{
  if (g_hash_table_contains (self->paths, path))
    return g_strdup_printf ("\"%s\" appears twice", path);
  return mount_check_path (path);
}

static void
add_mount (ProxyConfig *self, MountConfig *mount)
{
  g_ptr_array_add (self->mounts, mount);
  g_hash_table_add (self->paths, mount->path);
}

// ---- the file ----

static gchar *
check_file_root (SchemaText *it)
{
  return g_path_is_absolute (it->text)
             ? NULL
             : g_strdup_printf (
                   "\"%s\" is not the absolute path of a folder, such as /srv/films", it->text);
}

static gchar *
check_network (SchemaText *it)
{
  return trusted_networks_check (it->text);
}

static gboolean
read_receive_tick (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ProxyConfig *self = object;
  const gchar *text = yaml_text (reader, node);
  gdouble ms;

  if (!text || !schema_parse_time (text, &ms) || ms > RECEIVE_TICK_MAX_MS)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf (
            "expected a time from 0ms to %dms, such as 2ms or 0.5ms", RECEIVE_TICK_MAX_MS));
  self->receive_tick = (guint) (1000 * ms + 0.5);
  return TRUE;
}

static void
reset_receive_tick (const SchemaKey *key, gpointer object)
{
  ((ProxyConfig *) object)->receive_tick = RECEIVE_TICK_US;
}

static gboolean
equal_receive_tick (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const ProxyConfig *x = a, *y = b;

  return x->receive_tick == y->receive_tick;
}

static gboolean
read_stages (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ProxyConfig *self = object;
  const gchar *text = yaml_text (reader, node);

  if (!text || !g_file_test (text, G_FILE_TEST_IS_DIR))
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        text ? g_strdup_printf ("no such folder: %s", text) : g_strdup ("expected a folder"));
  if (!self->stage_folder) // --stages overrides the key
    self->stage_folder = g_strdup (text);
  return TRUE;
}

gboolean
proxy_config_load_stages (ProxyConfig *self, GError **error)
{
  if (!self->stage_set)
    self->stage_set = stage_set_load_usual (self->stage_folder, error);
  return self->stage_set != NULL;
}

// Reads a mount of a path with variables.
static gboolean
load_pattern (ProxyConfig *self, YamlReader *reader, YamlNode *key, YamlNode *value, GError **error)
{
  const gchar *path = yaml_text (reader, key);
  gchar *wrong = NULL;
  MountPattern *pattern = mount_pattern_new (path, &wrong);
  MountConfig *mount;
  gboolean ok;

  if (pattern && !g_hash_table_add (self->paths, (gpointer) mount_pattern_get_path (pattern)))
    wrong = g_strdup_printf ("\"%s\" appears twice", path);
  if (wrong) {
    g_clear_pointer (&pattern, mount_pattern_unref);
    return yaml_fail_take (reader, key, path, CONFIG_ERROR_KEY, error, wrong);
  }
  mount = mount_config_new (path);
  mount->pattern = pattern;
  g_ptr_array_add (self->patterns, mount);
  ok = mount_templates_apply (reader, value, error);
  return mount_read (mount, self->stage_set, reader, key, value, SCHEMA_WHOLE, error) && ok;
}

static gboolean
load_mount (ProxyConfig *self, YamlReader *reader, YamlNode *key, YamlNode *value, GError **error)
{
  const gchar *path = yaml_text (reader, key);
  gchar *wrong;
  MountConfig *mount;
  gboolean shared, ok;

  if (!path)
    return yaml_fail (
        reader, key, NULL, CONFIG_ERROR_KEY, error, "expected the path of a mount, such as /cam");
  if (mount_pattern_is (path))
    return load_pattern (self, reader, key, value, error);
  wrong = check_new_path (self, path);
  if (wrong)
    return yaml_fail_take (reader, key, path, CONFIG_ERROR_KEY, error, wrong);
  mount = mount_config_new (path);
  shared = mount_templates_apply (reader, value, error);
  ok = mount_read_file (&mount, self->strict, self->stage_set, reader, key, value, error) && shared;
  add_mount (self, mount);
  return ok;
}

static gboolean
read_mounts (
    const SchemaKey *unused, gpointer object, YamlReader *reader, YamlNode *mounts, GError **error)
{
  YamlNode *key, *value;
  GError *found = NULL;
  gboolean ok = TRUE;

  if (!yaml_is_mapping (mounts))
    return yaml_fail (reader, mounts, "mounts", CONFIG_ERROR_VALUE, error,
        "expected paths with their keys: {/PATH: {upstream: URI}}");
  if (!proxy_config_load_stages (object, &found))
    return yaml_fail_error (reader, mounts, CONFIG_ERROR_FILE, error, found);
  for (guint i = 0; yaml_pair (reader, mounts, i, &key, &value); i++)
    ok = load_mount (object, reader, key, value, error) && ok;
  return ok;
}

static gboolean
read_users (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ProxyConfig *self = object;
  const gchar *file = yaml_text (reader, node);

  g_clear_pointer (&self->users, user_set_unref);
  self->users = user_set_new ();
  if (g_str_equal (key->name, "users"))
    return user_set_read (self->users, reader, node, error);
  if (!file)
    return schema_fail (reader, node, key, error, "expected a file");
  return user_set_read_file (self->users, file, reader, node, error);
}

static gboolean
equal_users (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const UserSet *x = ((const ProxyConfig *) a)->users, *y = ((const ProxyConfig *) b)->users;

  return x && y ? user_set_equal (x, y) : x == y;
}

static gboolean
read_jwt (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ProxyConfig *self = object;

  self->jwt = jwt_config_read (key->name, reader, node, error);
  return self->jwt != NULL;
}

static gboolean
read_external_auth (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ProxyConfig *self = object;

  self->external_auth = external_auth_config_read (key->name, reader, node, error);
  return self->external_auth != NULL;
}

const gchar *const proxy_effect_words[] = { NULL, "reload", "restart" };

static const SchemaValue receive_tick_value = { .read = read_receive_tick,
  .reset = reset_receive_tick,
  .equal = equal_receive_tick,
  .is_text = TRUE };
static const SchemaValue users_value = { .read = read_users, .equal = equal_users };
static const SchemaValue users_file_value = { .read = read_users, .is_text = TRUE };
static const SchemaValue jwt_value = { .read = read_jwt };
static const SchemaValue external_auth_value = { .read = read_external_auth };
static const SchemaValue stages_value = { .read = read_stages, .is_text = TRUE };
static const SchemaValue mounts_value = { .read = read_mounts };

static const gchar *const isolates[] = { "no", "auto", "yes", NULL };     // by Isolate
static const gchar *const kernel_paths[] = { "off", "auto", "on", NULL }; // by KernelPath

#define AT(field) G_STRUCT_OFFSET (ProxyConfig, field)

static const SchemaKey top_keys[] = {
  { "listen", SCHEMA_OTHER, AT (listen), "127.0.0.1:8554", .form = "ADDR:PORT",
      .value = &listen_address_or_off_value, .effect = PROXY_EFFECT_RESTART,
      .help =
          "where readers connect; `:8554`: all IPv4 addresses, `[::]:8554`: all addresses, port "
          "0: any free port, `off`: nowhere without TLS" },
  { "tls", SCHEMA_OBJECT, AT (tls), .form = "{certificate: FILE, ...}",
      .object = &tls_config_object, .effect = PROXY_EFFECT_RESTART,
      .help = "serves readers over TLS (RTSPS), and the API over HTTPS" },
  { "http", SCHEMA_OBJECT, AT (http), .form = "{listen: ADDR:PORT}", .object = &http_config_object,
      .effect = PROXY_EFFECT_RESTART,
      .help = "serves the titles of mounts over HTTP, too, as they are stored and at their own "
              "rate, and live mounts as HLS; off without this key" },
  { "hls", SCHEMA_OBJECT, AT (hls), .form = "{KEY: ...}", .object = &hls_config_object,
      .effect = PROXY_EFFECT_RESTART,
      .help =
          "how live mounts are cut for HLS, which the listener of `http` serves; see the keys of "
          "`hls`" },
  { "srt", SCHEMA_OBJECT, AT (srt), .form = "{listen: ADDR:PORT, ...}",
      .object = &srt_config_object, .effect = PROXY_EFFECT_RESTART, .feature = FEATURE_SRT,
      .help = "takes publishers over SRT, and serves live mounts over SRT as MPEG-TS; off without "
              "this key" },
  { "rtmp", SCHEMA_OBJECT, AT (rtmp), .form = "{listen: ADDR:PORT}", .object = &rtmp_config_object,
      .effect = PROXY_EFFECT_RESTART, .help = "takes publishers over RTMP; off without this key" },
  { "webrtc", SCHEMA_OBJECT, AT (webrtc), .form = "{listen: ADDR:PORT, ...}",
      .object = &webrtc_config_object, .effect = PROXY_EFFECT_RESTART, .feature = FEATURE_WEBRTC,
      .help = "serves live mounts to browsers over WebRTC, at `/PATH/whep` of the listener of "
              "`http`, and lets them publish, at `/PATH/whip`; off without this key" },
  { "cluster", SCHEMA_OBJECT, AT (cluster), .form = "{etcd: [URL, ...], ...}",
      .object = &cluster_config_object, .effect = PROXY_EFFECT_RESTART,
      .help =
          "this proxy is one of several that serve as one, see [many machines](cluster.md); off "
          "without this key" },
  { "api", SCHEMA_OTHER, AT (api), "127.0.0.1:9554", .form = "ADDR:PORT",
      .value = &listen_address_or_off_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where the control API and the metrics listen; `off` disables them" },
  { "api-token", SCHEMA_SECRET, AT (api_token), .form = "TEXT", .effect = PROXY_EFFECT_RESTART,
      .help =
          "the secret that API clients must send; one of the three token keys is required unless "
          "`api` listens on loopback" },
  { "api-token-file", SCHEMA_OTHER, AT (api_token), .form = "FILE",
      .value = &schema_secret_elsewhere, .effect = PROXY_EFFECT_RESTART,
      .help = "a file that holds the token" },
  { "api-token-env", SCHEMA_OTHER, AT (api_token), .form = "NAME",
      .value = &schema_secret_elsewhere, .effect = PROXY_EFFECT_RESTART,
      .help = "an environment variable that holds the token" },
  { "hosts", SCHEMA_LIST, AT (hosts), .form = "[NAME, ...]", .check = host_names_check,
      .effect = PROXY_EFFECT_RESTART,
      .help = "the names by which HTTP clients without a secret may call this machine, beside its "
              "addresses, `localhost` and its host name; other names get 403" },
  { "file-roots", SCHEMA_LIST, AT (file_roots), .form = "[DIR, ...]", .check = check_file_root,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "the folders below which API clients may name files; none without this key" },
  { "trusted-networks", SCHEMA_LIST, AT (trusted_networks), .form = "[NETWORK, ...]",
      .check = check_network, .effect = PROXY_EFFECT_RELOAD,
      .preset = "loopback, private and link-local",
      .help = "networks in which UDP readers need send no datagram, see "
              "[operations](operations.md#readers-that-send-nothing-over-udp)" },
  { "strict-queries", SCHEMA_FLAG, AT (strict_queries), .preset = "no",
      .effect = PROXY_EFFECT_RELOAD,
      .help = "`yes`: a URL with a parameter that the mount does not offer gets 404" },
  { "users", SCHEMA_OTHER, .form = "list of users", .value = &users_value, .object = &user_object,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "who may do what; without users, only clients on this machine may read" },
  { "users-file", SCHEMA_OTHER, .form = "FILE", .value = &users_file_value,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "a YAML file with the list of users, which other users of the machine cannot read" },
  { "jwt", SCHEMA_OTHER, .form = "{jwks: ...}", .value = &jwt_value, .object = &jwt_config_object,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "admits clients with a signed token (JSON Web Token)" },
  { "external-auth", SCHEMA_OTHER, .form = "{url: ...}", .value = &external_auth_value,
      .object = &external_auth_config_object, .effect = PROXY_EFFECT_RELOAD,
      .help = "asks a server by HTTP about each client" },
  { "basic-without-tls", SCHEMA_FLAG, AT (basic), .preset = "no", .effect = PROXY_EFFECT_RELOAD,
      .help = "`yes`: readers may send their password unencrypted (basic authentication); a "
              "user who has only a `hash` cannot log in without TLS otherwise" },
  { "receive-tick", SCHEMA_OTHER, .preset = "2ms", .form = "time from 0ms to 100ms",
      .value = &receive_tick_value, .effect = PROXY_EFFECT_RESTART,
      .help = "time between two rounds of receiving from RTSP upstreams; a packet waits for up to "
              "this time, and a longer time saves CPU time; `0ms`: each packet is received at "
              "once" },
  { "kernel", SCHEMA_INDEX, AT (kernel), "off", .words = kernel_paths,
      .effect = PROXY_EFFECT_RESTART, .feature = FEATURE_KERNEL,
      .help =
          "clones made by the kernel in place of a send to each UDP reader, see docs/kernel.md; "
          "`auto`: where they are possible and evade no packet rule of the system; `on`: the proxy "
          "does not start without them" },
  { "isolate", SCHEMA_INDEX, AT (isolate), "auto", .words = isolates,
      .effect = PROXY_EFFECT_RESTART,
      .help =
          "which upstreams and stages run in worker processes, which end without the proxy if a "
          "parser or decoder crashes; `auto`: upstreams whose media is parsed (`udp:`, `file:`, "
          "`launch:`, and `rtp:` with MPEG-TS), and stages with other elements than Weir's and "
          "GStreamer's core elements, such as transcoders, titles of folders, and peers of swarms; "
          "`yes`: all" },
  { "workers", SCHEMA_NUMBER, AT (workers), "16", 1, WORKERS_MAX, .effect = PROXY_EFFECT_RESTART,
      .help = "the most worker processes of each kind; upstreams, stages and titles share them "
              "beyond that number, and end together if their worker crashes" },
  { "hooks", SCHEMA_OBJECT, AT (hooks), .form = "{on-up: [PROGRAM, ...], ...}",
      .object = &hooks_config_object, .effect = PROXY_EFFECT_RESTART,
      .help = "what runs when something happens to a stream, see the keys of `hooks`" },
  { "limits", SCHEMA_OBJECT, AT (limits), .form = "{KEY: ...}", .object = &limits_object,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "what RTSP and HTTP clients may use, see the keys of `limits`; a change concerns new "
              "connections" },
  { "stages", SCHEMA_OTHER, .form = "DIR", .value = &stages_value, .effect = PROXY_EFFECT_RELOAD,
      .help = "a folder with your own stages, searched before the installed ones" },
  { "defaults", SCHEMA_OTHER, .form = "{KEY: ...}", .value = &mount_defaults_value,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "keys that all mounts of the file have, unless they set them themselves" },
  { "templates", SCHEMA_OTHER, .form = "{NAME: {KEY: ...}}", .value = &mount_templates_value,
      .effect = PROXY_EFFECT_RELOAD,
      .help = "keys that those mounts of the file have which name this template" },
  { "mounts", SCHEMA_OTHER, .form = "{/PATH: ...}", .value = &mounts_value,
      .effect = PROXY_EFFECT_RELOAD, .help = "the served paths, each with the keys of a mount" },
  { NULL },
};

#undef AT

const SchemaKey *
proxy_config_keys (void)
{
  return top_keys;
}

ProxyConfig *
proxy_config_new (void)
{
  ProxyConfig *self = g_new0 (ProxyConfig, 1);

  schema_init (top_keys, self);
  self->mounts = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_config_unref);
  self->patterns = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_config_unref);
  self->paths = g_hash_table_new (g_str_hash, g_str_equal);
  return self;
}

void
proxy_config_free (ProxyConfig *self)
{
  schema_clear (top_keys, self);
  g_clear_pointer (&self->tls.pair, tls_pair_unref);
  g_free (self->stage_folder);
  g_clear_pointer (&self->stage_set, stage_set_unref);
  g_clear_pointer (&self->users, user_set_unref);
  g_clear_pointer (&self->jwt, jwt_config_unref);
  g_clear_pointer (&self->external_auth, external_auth_config_unref);
  g_hash_table_unref (self->paths);
  g_ptr_array_unref (self->mounts);
  g_ptr_array_unref (self->patterns);
  g_free (self);
}

void
proxy_config_list_listen (const ProxyConfig *self, ListenAddress own[3])
{
  if (!self->listen.is_off)
    *own++ = self->listen;
  if (self->tls.pair)
    *own++ = self->tls.listen;
  *own = (ListenAddress) { NULL };
}

gboolean
proxy_config_is_loopback (const gchar *address)
{
  g_autoptr (GInetAddress) inet = g_inet_address_new_from_string (address);

  return g_inet_address_get_is_loopback (inet);
}

static gboolean
load_document (ProxyConfig *self, YamlReader *reader, GError **error)
{
  YamlNode *root = yaml_root (reader);
  const gchar *over_tls;
  gboolean ok;

  ok = yaml_check_alternatives (reader, root, "api-token",
      "set only one of api-token, api-token-file and api-token-env", error);
  ok = yaml_check_alternatives (reader, root, "users", "set users or users-file, not both", error)
       && ok;
  if (!schema_read (top_keys, self, reader, root, NULL, SCHEMA_WHOLE, error) || !ok)
    return FALSE;
  // Without users, clients on this machine would be admitted without a token or check.
  if ((self->jwt || self->external_auth) && !self->users)
    self->users = user_set_new ();
  if (self->api.is_given && !self->api.is_off && !self->api_token && !self->jwt
      && !self->external_auth && !proxy_config_is_loopback (self->api.address)
      && !(self->users && user_set_has_action (self->users, ACCESS_API, FALSE)))
    return yaml_fail (reader, yaml_get (reader, root, "api"), "api", CONFIG_ERROR_VALUE, error,
        "other machines can reach this address: set a token (api-token-file: FILE), or add a user "
        "with the action api");
  over_tls = self->http.tls_listen.address ? "http" : self->rtmp.tls_listen.address ? "rtmp" : NULL;
  if (over_tls && !self->tls.pair)
    return yaml_fail (reader, yaml_get (reader, root, over_tls), over_tls, CONFIG_ERROR_VALUE,
        error, "tls-listen needs a certificate; set tls");
  if (self->webrtc.listen.address && !self->http.listen.address && !self->http.tls_listen.address)
    return yaml_fail (reader, yaml_get (reader, root, "webrtc"), "webrtc", CONFIG_ERROR_VALUE,
        error, "browsers ask for media over HTTP; set http, such as {listen: 0.0.0.0:8888}");
  if (self->http.tls_in_front && !self->users)
    return yaml_fail (reader, yaml_get (reader, root, "http"), "http", CONFIG_ERROR_VALUE, error,
        "tls-in-front: without users, everybody who reaches the reverse proxy would count as a "
        "client on this machine and might read; add users");
  if (self->cluster.address && cluster_config_is_hidden (&self->cluster, &self->listen))
    return yaml_fail (reader, yaml_get (reader, root, "cluster"), "cluster", CONFIG_ERROR_VALUE,
        error,
        "the other members can't reach a loopback address; set listen, such as 0.0.0.0:8554");
  if (self->api_token && !*self->api_token)
    return yaml_fail (reader, root, "api-token", CONFIG_ERROR_VALUE, error, "the token is empty");
  if (self->listen.is_off && !self->tls.pair)
    return yaml_fail (reader, yaml_get (reader, root, "listen"), "listen", CONFIG_ERROR_VALUE,
        error, "with `off` there is nowhere to connect; set tls");
  return hls_config_check (
      reader, root, self->http.listen.address || self->http.tls_listen.address, error);
}

static YamlReader *
open_empty (const gchar *name, GError **error)
{
  return yaml_reader_new (name, "{}", 2, error);
}

gboolean
proxy_config_load (ProxyConfig *self, const gchar *file, GError **error)
{
  YamlReader *reader = file ? yaml_expand_file (file, error) : open_empty ("environment", error);
  gboolean ok;

  if (reader && !yaml_root (reader)) { // without mounts, but variables may set the rest
    yaml_reader_free (reader);
    reader = open_empty (file, error);
  }
  if (reader) {
    yaml_drop_keys (reader, "x-");
    variables_apply (reader, top_keys);
  }
  ok = reader && load_document (self, reader, error);
  g_clear_pointer (&reader, yaml_reader_free);
  return ok;
}

gboolean
proxy_config_set_listen (ProxyConfig *self, const gchar *listen, GError **error)
{
  gchar *wrong = listen_address_parse (&self->listen, listen);

  self->listen.is_off = FALSE;
  if (wrong) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, "--listen: %s", wrong);
    g_free (wrong);
    return FALSE;
  }
  return TRUE;
}

gboolean
proxy_config_add_mount (
    ProxyConfig *self, const gchar *text, gboolean *has_password, GError **error)
{
  const gchar *equals = strchr (text, '=');
  const PullConfig *pull;
  gchar *path, *wrong;
  MountConfig *mount;

  // The error does not repeat the text, which may be a URI with a password.
  if (text[0] != '/' || !equals) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
        "--mount: expected /PATH=URI, such as /cam=rtsp://192.0.2.7/stream");
    return FALSE;
  }
  if (!proxy_config_load_stages (self, error))
    return FALSE;
  path = g_strndup (text, (gsize) (equals - text));
  wrong = check_new_path (self, path);
  if (!wrong) {
    mount = mount_config_new (path);
    add_mount (self, mount);
    wrong = mount_read_uri (mount, self->stage_set, equals + 1);
  }
  if (!wrong) {
    pull = g_ptr_array_index (mount->pulls, 0);
    *has_password |= pull->password && *pull->password;
  }
  if (wrong) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, "--mount: %s: %s", path, wrong);
    g_free (wrong);
  }
  g_free (path);
  return wrong == NULL;
}

gboolean
proxy_config_guards (const ProxyConfig *self, AccessAction action)
{
  if (self->api_token || !proxy_config_is_loopback (self->api.address))
    return TRUE;
  if (!self->users)
    return FALSE;
  return user_set_has_action (self->users, ACCESS_API, FALSE)
         || user_set_has_action (self->users, action, FALSE);
}
