// SPDX-License-Identifier: LGPL-2.1-or-later
#include "proxy_config.h"

#include "yaml_reader.h"

#include <gio/gio.h>
#include <gst/rtsp/rtsp.h>
#include <string.h>

G_DEFINE_QUARK (proxy - config - error - quark, proxy_config_error)

#define DAY_MS (24 * 60 * 60 * 1000)

static const gchar *const top_keys[] = { "listen", "mounts", NULL };
static const gchar *const mount_keys[] = { "upstream", "user", "password", "password-file",
  "password-env", "transport", "on-demand", "linger", "start-timeout", "connect-timeout",
  "read-timeout", "join", "catch-up", "class", NULL };

static const gchar *const transports[] = { "auto", "udp", "tcp", NULL }; // as PullTransport
static const gchar *const joins[] = { "keyframe", "live", NULL };
static const gchar *const catch_ups[] = { "live", "delay", NULL };

static void
mount_config_free (gpointer data)
{
  MountConfig *config = data;

  g_free (config->path);
  g_free (config->pull.uri);
  g_free (config->pull.user);
  g_free (config->pull.password);
  g_free (config);
}

static MountConfig *
mount_config_new (const gchar *path)
{
  MountConfig *config = g_new0 (MountConfig, 1);

  config->path = g_strdup (path);
  config->on_demand = TRUE;
  config->linger_ms = 10000;
  config->start_timeout_ms = 10000;
  config->join = joins[0];
  config->catch_up = catch_ups[0];
  config->class = 4;
  config->pull.connect_timeout_ms = 5000;
  config->pull.read_timeout_ms = 10000;
  return config;
}

ProxyConfig *
proxy_config_new (void)
{
  ProxyConfig *self = g_new0 (ProxyConfig, 1);

  self->address = g_strdup ("127.0.0.1");
  self->port = 8554;
  self->mounts = g_ptr_array_new_with_free_func (mount_config_free);
  return self;
}

void
proxy_config_free (ProxyConfig *self)
{
  g_free (self->address);
  g_ptr_array_unref (self->mounts);
  g_free (self);
}

// ---- values ----
// Each of these gives NULL, or what is wrong with the text (to be freed).

static gchar *
check_listen (const gchar *text, gchar **address, guint16 *port)
{
  const gchar *colon = strrchr (text, ':');
  gchar *host, *end = NULL;
  GInetAddress *inet;
  guint64 number;

  if (!colon)
    return g_strdup_printf ("\"%s\" is not ADDR:PORT", text);
  number = g_ascii_strtoull (colon + 1, &end, 10);
  if (!g_ascii_isdigit (colon[1]) || *end || number > 65535)
    return g_strdup_printf ("\"%s\" is not a port", colon + 1);
  host = g_strndup (text, (gsize) (colon - text));
  if (host[0] == '[' && g_str_has_suffix (host, "]")) {
    memmove (host, host + 1, strlen (host));
    host[strlen (host) - 1] = '\0';
  }
  if (!*host) {
    g_free (host);
    host = g_strdup ("0.0.0.0");
  } else if (g_str_equal (host, "localhost")) {
    g_free (host);
    host = g_strdup ("127.0.0.1");
  }
  inet = g_inet_address_new_from_string (host);
  if (!inet) {
    gchar *wrong = g_strdup_printf ("\"%s\" is not an IP address", host);

    g_free (host);
    return wrong;
  }
  g_object_unref (inet);
  g_free (*address);
  *address = host;
  *port = (guint16) number;
  return NULL;
}

static gchar *
check_path (ProxyConfig *self, const gchar *path)
{
  if (path[0] != '/' || !path[1] || g_str_has_suffix (path, "/") || strstr (path, "//")
      || strlen (path) > 255)
    return g_strdup_printf ("\"%s\" is not a path like /cam", path);
  for (const gchar *c = path; *c; c++) {
    if (!g_ascii_isalnum (*c) && !strchr ("/-_.~", *c))
      return g_strdup_printf (
          "\"%s\" holds a character that is not one of A-Z a-z 0-9 / - _ . ~", path);
  }
  if (g_str_has_prefix (strrchr (path, '/'), "/stream="))
    return g_strdup ("/stream=N names a track, not a mount");
  for (guint i = 0; i < self->mounts->len; i++) {
    if (g_str_equal (((MountConfig *) g_ptr_array_index (self->mounts, i))->path, path))
      return g_strdup_printf ("\"%s\" is there twice", path);
  }
  return NULL;
}

// What the library's parser takes, and gets wrong: a password with an '@' or a '/' in it becomes
// part of the host, a wrong port is cut off, and a line break would end the line of a request.
static gboolean
is_sound_authority (const gchar *uri)
{
  const gchar *authority = strstr (uri, "://") + 3;
  const gchar *end = authority + strcspn (authority, "/?#");
  const gchar *at = memchr (authority, '@', (gsize) (end - authority));
  const gchar *host = at ? at + 1 : authority;
  const gchar *colon = g_strrstr_len (host, end - host, ":");
  gchar *rest = NULL;
  guint64 port;

  for (const gchar *c = uri; *c; c++) {
    if ((guchar) *c <= 0x20 || *c == 0x7f)
      return FALSE;
  }
  if (memchr (host, '@', (gsize) (end - host)))
    return FALSE;
  if (!colon || memchr (colon, ']', (gsize) (end - colon)))
    return TRUE;
  port = g_ascii_strtoull (colon + 1, &rest, 10);
  return g_ascii_isdigit (colon[1]) && rest == end && port > 0 && port <= 65535;
}

// Takes the credentials out of the URI into the configuration.
static gchar *
check_upstream (const gchar *uri, PullConfig *pull)
{
  GstRTSPUrl *url = NULL;
  gchar *path;

  if (g_str_has_prefix (uri, "file:")) {
    path = g_filename_from_uri (uri, NULL, NULL);
    if (!path)
      return g_strdup ("not a file URI like file:///dir/clip.mp4");
    if (!g_file_test (path, G_FILE_TEST_IS_REGULAR)) {
      gchar *wrong = g_strdup_printf ("there is no file %s", path);

      g_free (path);
      return wrong;
    }
    g_free (path);
    pull->uri = g_strdup (uri);
    return NULL;
  }
  if (!g_str_has_prefix (uri, "rtsp://") && !g_str_has_prefix (uri, "rtsps://"))
    return g_strdup ("not a URI of a kind that can be pulled: rtsp://, rtsps:// or file://");
  if (!is_sound_authority (uri) || gst_rtsp_url_parse (uri, &url) != GST_RTSP_OK || !url->host
      || !*url->host) {
    if (url)
      gst_rtsp_url_free (url);
    return g_strdup ("not a valid RTSP URI");
  }
  if (url->user) {
    pull->user = g_uri_unescape_string (url->user, NULL);
    pull->password = g_uri_unescape_string (url->passwd ? url->passwd : "", NULL);
    g_clear_pointer (&url->user, g_free);
    g_clear_pointer (&url->passwd, g_free);
  }
  path = gst_rtsp_url_get_request_uri (url);
  pull->uri = path;
  if (g_str_has_prefix (uri, "rtsps:") && g_str_has_prefix (path, "rtsp:")) {
    pull->uri = g_strconcat ("rtsps", path + 4, NULL);
    g_free (path);
  }
  gst_rtsp_url_free (url);
  return NULL;
}

gboolean
proxy_config_parse_duration (const gchar *text, guint *ms)
{
  gchar *unit = NULL;
  gdouble number;
  guint scale;

  if (!g_ascii_isdigit (*text))
    return FALSE;
  number = g_ascii_strtod (text, &unit);
  if (strspn (text, "0123456789.") != (gsize) (unit - text)) // hexadecimal, an exponent
    return FALSE;
  if (g_str_equal (unit, "") || g_str_equal (unit, "s"))
    scale = 1000;
  else if (g_str_equal (unit, "ms"))
    scale = 1;
  else if (g_str_equal (unit, "m"))
    scale = 60 * 1000;
  else if (g_str_equal (unit, "h"))
    scale = 60 * 60 * 1000;
  else
    return FALSE;
  if (!(number * scale <= DAY_MS))
    return FALSE;
  *ms = (guint) (number * scale + 0.5);
  return TRUE;
}

static gchar *
check_duration (const gchar *text, guint min_ms, guint *ms)
{
  guint value;

  if (!proxy_config_parse_duration (text, &value) || value < min_ms)
    return g_strdup_printf (
        "\"%s\" is not a time from %ums to 24h like 10s or 500ms", text, min_ms);
  *ms = value;
  return NULL;
}

static gchar *
check_choice (const gchar *text, const gchar *const *choices, guint *choice)
{
  gchar *all, *wrong;

  for (*choice = 0; choices[*choice]; ++*choice) {
    if (g_str_equal (text, choices[*choice]))
      return NULL;
  }
  all = g_strjoinv (", ", (gchar **) choices);
  wrong = g_strdup_printf ("\"%s\" is none of: %s", text, all);
  g_free (all);
  return wrong;
}

static gchar *
check_class (const gchar *text, guint *class)
{
  guint64 number;

  if (!g_ascii_string_to_unsigned (text, 10, 0, 7, &number, NULL))
    return g_strdup_printf ("\"%s\" is not a class from 0 (served first) to 7", text);
  *class = (guint) number;
  return NULL;
}

static gchar *
check_flag (const gchar *text, gboolean *flag)
{
  if (g_str_equal (text, "yes") || g_str_equal (text, "true"))
    *flag = TRUE;
  else if (g_str_equal (text, "no") || g_str_equal (text, "false"))
    *flag = FALSE;
  else
    return g_strdup_printf ("\"%s\" is not yes or no", text);
  return NULL;
}

static gchar *
read_password_file (const gchar *file, gchar **password)
{
  GError *error = NULL;
  gchar *text = NULL, *wrong;

  if (g_file_get_contents (file, &text, NULL, &error)) {
    g_strchomp (text);
    *password = text;
    return NULL;
  }
  wrong = g_strdup (error->message);
  g_error_free (error);
  return wrong;
}

static gchar *
read_password_env (const gchar *variable, gchar **password)
{
  const gchar *value = g_getenv (variable);

  if (!value)
    return g_strdup_printf ("the environment has no variable %s", variable);
  *password = g_strdup (value);
  return NULL;
}

// ---- the file ----

static gchar *
check_mount_value (MountConfig *mount, const gchar *key, const gchar *text)
{
  PullConfig *pull = &mount->pull;
  guint choice = 0;
  gchar *wrong;

  if (g_str_equal (key, "upstream"))
    return check_upstream (text, pull);
  if (g_str_equal (key, "transport")) {
    wrong = check_choice (text, transports, &choice);
    pull->transport = (PullTransport) choice;
    return wrong;
  }
  if (g_str_equal (key, "join")) {
    wrong = check_choice (text, joins, &choice);
    mount->join = joins[choice];
    return wrong;
  }
  if (g_str_equal (key, "catch-up")) {
    wrong = check_choice (text, catch_ups, &choice);
    mount->catch_up = catch_ups[choice];
    return wrong;
  }
  if (g_str_equal (key, "class"))
    return check_class (text, &mount->class);
  if (g_str_equal (key, "on-demand"))
    return check_flag (text, &mount->on_demand);
  if (g_str_equal (key, "linger"))
    return check_duration (text, 0, &mount->linger_ms);
  if (g_str_equal (key, "start-timeout"))
    return check_duration (text, 100, &mount->start_timeout_ms);
  if (g_str_equal (key, "connect-timeout"))
    return check_duration (text, 100, &pull->connect_timeout_ms);
  if (g_str_equal (key, "read-timeout"))
    return check_duration (text, 100, &pull->read_timeout_ms);

  // Credentials beside the URI go before those within it.
  if (g_str_equal (key, "user")) {
    g_free (pull->user);
    pull->user = g_strdup (text);
    return NULL;
  }
  g_clear_pointer (&pull->password, g_free);
  if (g_str_equal (key, "password-file"))
    return read_password_file (text, &pull->password);
  if (g_str_equal (key, "password-env"))
    return read_password_env (text, &pull->password);
  pull->password = g_strdup (text);
  return NULL;
}

static gboolean
load_mount (ProxyConfig *self, YamlReader *reader, YamlNode *key, YamlNode *value, GError **error)
{
  MountConfig *mount = NULL;
  const gchar *path = yaml_text (reader, key);
  guint n_passwords = 0;
  gchar *wrong;

  if (!path)
    return yaml_fail (
        reader, key, NULL, PROXY_CONFIG_ERROR_KEY, error, "a mount's path is missing");
  wrong = check_path (self, path);
  if (wrong)
    return yaml_fail_take (reader, key, path, PROXY_CONFIG_ERROR_KEY, error, wrong);
  if (!yaml_check_keys (reader, value, path, mount_keys, error))
    return FALSE;

  mount = mount_config_new (path);
  g_ptr_array_add (self->mounts, mount);
  // In the order of mount_keys: the URI comes before what overrides parts of it.
  for (guint i = 0; mount_keys[i]; i++) {
    YamlNode *node = yaml_get (reader, value, mount_keys[i]);
    const gchar *text;

    if (!node)
      continue;
    text = yaml_text (reader, node);
    if (!text)
      return yaml_fail (reader, node, mount_keys[i], PROXY_CONFIG_ERROR_VALUE, error,
          "a single value belongs here");
    if (g_str_has_prefix (mount_keys[i], "password") && ++n_passwords > 1)
      return yaml_fail (reader, node, mount_keys[i], PROXY_CONFIG_ERROR_KEY, error,
          "only one of password, password-file and password-env can be there");
    wrong = check_mount_value (mount, mount_keys[i], text);
    if (wrong)
      return yaml_fail_take (reader, node, mount_keys[i], PROXY_CONFIG_ERROR_VALUE, error, wrong);
  }
  if (!mount->pull.uri)
    return yaml_fail (reader, key, path, PROXY_CONFIG_ERROR_KEY, error,
        "its upstream is missing (upstream: rtsp://host/path)");
  return TRUE;
}

static gboolean
load_document (ProxyConfig *self, YamlReader *reader, GError **error)
{
  YamlNode *root = yaml_root (reader);
  YamlNode *listen, *mounts, *key, *value;

  if (!root)
    return TRUE; // an empty file
  if (!yaml_check_keys (reader, root, NULL, top_keys, error))
    return FALSE;

  listen = yaml_get (reader, root, "listen");
  if (listen) {
    const gchar *text = yaml_text (reader, listen);
    gchar *wrong = text ? check_listen (text, &self->address, &self->port)
                        : g_strdup ("ADDR:PORT belongs here");

    if (wrong)
      return yaml_fail_take (reader, listen, "listen", PROXY_CONFIG_ERROR_VALUE, error, wrong);
  }

  mounts = yaml_get (reader, root, "mounts");
  if (!mounts)
    return TRUE;
  if (!yaml_is_mapping (mounts))
    return yaml_fail (reader, mounts, "mounts", PROXY_CONFIG_ERROR_VALUE, error,
        "paths with their upstreams belong here");
  for (guint i = 0; yaml_pair (reader, mounts, i, &key, &value); i++) {
    if (!load_mount (self, reader, key, value, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
proxy_config_load (ProxyConfig *self, const gchar *file, GError **error)
{
  YamlReader *reader = yaml_reader_open (file, error);
  gboolean ok;

  if (!reader)
    return FALSE;
  ok = load_document (self, reader, error);
  yaml_reader_free (reader);
  return ok;
}

// ---- arguments ----

gboolean
proxy_config_set_listen (ProxyConfig *self, const gchar *listen, GError **error)
{
  gchar *wrong = check_listen (listen, &self->address, &self->port);

  if (wrong) {
    g_set_error (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_VALUE, "--listen: %s", wrong);
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
  gchar *path, *wrong;
  MountConfig *mount;

  // What has no path is not repeated: it may be a URI with a password in it.
  if (text[0] != '/' || !equals) {
    g_set_error (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_VALUE,
        "--mount: /path=rtsp://host/path belongs here");
    return FALSE;
  }
  path = g_strndup (text, (gsize) (equals - text));
  wrong = check_path (self, path);
  if (!wrong) {
    mount = mount_config_new (path);
    g_ptr_array_add (self->mounts, mount);
    wrong = check_upstream (equals + 1, &mount->pull);
    *has_password = mount->pull.password && *mount->pull.password;
  }
  if (wrong) {
    g_set_error (
        error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_VALUE, "--mount: %s: %s", path, wrong);
    g_free (wrong);
  }
  g_free (path);
  return wrong == NULL;
}
