// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_upstreams.h"

#include "base/log.h"
#include "config/mount_pattern.h"
#include "sources/kinds.h"
#include "text/config_error.h"

#include <string.h>

#define UPSTREAMS_MAX 8

// Parses an upstream with variables as it could be. Nothing runs it, so it need not be there.
static gchar *
parse_sample (const MountConfig *pattern, const gchar *uri, PullConfig *pull)
{
  g_autoptr (GHashTable) values = mount_pattern_dup_sample (pattern->pattern);
  gboolean in_host = FALSE;
  gchar *wrong = mount_pattern_check_uri (pattern->pattern, uri, &in_host);
  g_autofree gchar *sample = wrong ? NULL : mount_pattern_expand (uri, values);

  if (!wrong)
    wrong = kinds_check (sample, 0, pull);
  if (wrong && pull->absent && strchr (uri, '{')) {
    g_clear_pointer (&wrong, g_free);
    pull_config_clear (pull);
    *pull = (PullConfig) { 0 };
    held_pull_init (pull, uri, "");
  }
  return wrong;
}

static gchar *
parse (MountConfig *mount, const gchar *uri, PullUriFlags flags)
{
  PullConfig *pull = g_new0 (PullConfig, 1);

  g_ptr_array_add (mount->pulls, pull);
  return mount_is_pattern (mount) ? parse_sample (mount, uri, pull)
                                  : kinds_check (uri, flags, pull);
}

static void
apply_settings (const MountConfig *mount, PullConfig *pull)
{
  pull->transport = mount->pull.transport;
  pull->client = mount->pull.client;
  pull->connect_timeout_ms = mount->pull.connect_timeout_ms;
  pull->read_timeout_ms = mount->pull.read_timeout_ms;
  if (pull_config_awaits (pull) && !pull->path)
    pull->path = g_strdup (mount->path);
  pull->trust = (TlsTrust) { .any = !mount->pull.tls_verify,
    .fingerprint = g_strdup (mount->pull.tls_fingerprint),
    .ca = g_strdup (mount->pull.tls_ca.path),
    .is_limited = mount->pull.tls_ca.is_limited };
  // The keys `user` and `password` override credentials in the URI.
  if (mount->pull.user) {
    g_free (pull->user);
    pull->user = g_strdup (mount->pull.user);
  }
  if (mount->pull.password) {
    g_free (pull->password);
    pull->password = g_strdup (mount->pull.password);
  }
}

// Reports whether the element that reads the upstream judges the certificate, by the system's
// authorities.
static gboolean
has_fixed_trust (const PullConfig *pull)
{
  return pull->make == stream_pull_new && g_str_has_prefix (pull->uri, "https:");
}

// Returns NULL, or an error message (transfer full).
static gchar *
check_trust (const MountConfig *mount)
{
  const gchar *key = mount->pull.tls_ca.path       ? "tls-ca"
                     : mount->pull.tls_fingerprint ? "tls-fingerprint"
                     : !mount->pull.tls_verify     ? "tls-verify: no"
                                                   : NULL;

  if (mount->pull.tls_fingerprint && mount->pull.client == PULL_RTSPSRC)
    return g_strdup ("tls-fingerprint needs client: light; rtspsrc does not show the certificate");
  for (guint i = 0; key && i < mount->pulls->len; i++) {
    if (has_fixed_trust (g_ptr_array_index (mount->pulls, i)))
      return g_strdup_printf ("%s does not work with a stream over https: its certificate must be "
                              "good for the system's authorities",
          key);
  }
  return NULL;
}

gchar *
mount_upstreams_apply (MountConfig *mount)
{
  gchar *wrong = NULL;

  for (guint i = 0; mount->pulls->len == i && mount->upstreams[i] && !wrong; i++)
    wrong = parse (mount, mount->upstreams[i], mount->are_limited ? PULL_URI_FROM_API : 0);
  if (wrong)
    g_ptr_array_set_size (mount->pulls, 0); // the last one is unfinished
  else
    wrong = check_trust (mount);
  // It costs nothing while no one publishes, and a reader then sees a picture at once.
  if (!wrong && mount->pulls->len == 1 && !mount->slate.path
      && pull_config_awaits (g_ptr_array_index (mount->pulls, 0)))
    mount->on_demand = FALSE;
  for (guint i = 0; !wrong && i < mount->pulls->len; i++)
    apply_settings (mount, g_ptr_array_index (mount->pulls, i));
  return wrong;
}

static void
clear_upstreams (const SchemaKey *key, gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->upstreams, g_strfreev);
}

static void
reset_upstreams (const SchemaKey *key, gpointer object)
{
  clear_upstreams (key, object);
  g_ptr_array_set_size (((MountConfig *) object)->pulls, 0);
}

static gboolean
is_last_absent (const MountConfig *mount)
{
  const guint n = mount->pulls->len;

  return n > 0 && ((PullConfig *) g_ptr_array_index (mount->pulls, n - 1))->absent;
}

// Reads one upstream, or a list.
static gboolean
read_upstreams (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  gboolean list = g_str_equal (key->name, "upstreams");
  g_autoptr (GStrvBuilder) uris = NULL;
  YamlNode *item;
  PullUriFlags flags = mount->from_api ? PULL_URI_FROM_API : 0;
  gboolean ok = TRUE;

  reset_upstreams (key, mount);
  mount->are_limited = mount->from_api;
  if (list && (!yaml_is_sequence (node) || !yaml_item (reader, node, 0)))
    return schema_fail (reader, node, key, error, "expected a list of URIs: [URI, ...]");
  uris = g_strv_builder_new ();
  for (guint i = 0; i <= UPSTREAMS_MAX && (item = list ? yaml_item (reader, node, i) : node); i++) {
    const gchar *uri = yaml_text (reader, item);
    gchar *wrong = uri ? parse (mount, uri, flags) : g_strdup ("expected a single value");

    if (!wrong && i == UPSTREAMS_MAX)
      wrong = g_strdup_printf ("too many upstreams: at most %u are allowed", UPSTREAMS_MAX);
    if (uri)
      g_strv_builder_add (uris, uri);
    if (wrong)
      ok = yaml_fail_take (reader, item, key->name,
          uri && is_last_absent (mount) ? CONFIG_ERROR_ABSENT : CONFIG_ERROR_VALUE, error, wrong);
    if (!list)
      break;
  }
  mount->upstreams = g_strv_builder_end (uris);
  return ok;
}

static void
copy_upstreams (const SchemaKey *key, gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->upstreams = g_strdupv (((const MountConfig *) from)->upstreams);
  ((MountConfig *) to)->are_limited = ((const MountConfig *) from)->are_limited;
}

static gboolean
equal_upstreams (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  return g_strv_equal ((const gchar *const *) ((const MountConfig *) a)->upstreams,
      (const gchar *const *) ((const MountConfig *) b)->upstreams);
}

static void
write_upstreams (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;

  if (!*mount->upstreams) // the mount has inputs
    return;
  json_builder_set_member_name (builder, "upstreams");
  json_builder_begin_array (builder);
  for (guint i = 0; i < mount->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (mount->pulls, i);
    g_autofree gchar *shown = pull->launch ? g_strdup (pull->uri) : log_redact (pull->uri);

    json_builder_add_string_value (builder, shown);
  }
  json_builder_end_array (builder);
}

const SchemaValue mount_upstreams_value = { read_upstreams, reset_upstreams, equal_upstreams,
  write_upstreams, copy_upstreams, clear_upstreams };
const SchemaValue mount_upstreams_list_value = { .read = read_upstreams, .reset = reset_upstreams };
