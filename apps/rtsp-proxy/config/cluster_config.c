// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/cluster_config.h"

#include <gio/gio.h>
#include <string.h>

#include "config/proxy_effect.h"
#include "config/web_url.h"

#define AT(field) G_STRUCT_OFFSET (ClusterConfig, field)
#define NAME_MAX_LEN 64
#define SECRET_MIN 16 // bytes

static gchar *
check_endpoint (SchemaText *it)
{
  return web_url_check (it->text);
}

gboolean
cluster_config_is_name (const gchar *text)
{
  const gsize len = strlen (text);

  return len > 0 && len <= NAME_MAX_LEN
         && strspn (text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-") == len;
}

// Names of hosts consist of the same characters.
gboolean
cluster_config_is_address (const gchar *text)
{
  return g_hostname_is_ip_address (text) || cluster_config_is_name (text);
}

static gchar *
check_name (SchemaText *it)
{
  return cluster_config_is_name (it->text)
             ? NULL
             : g_strdup_printf (
                   "\"%s\" is not a name: use letters, digits, '.', '_' and '-', up to "
                   "%d in all",
                   it->text, NAME_MAX_LEN);
}

static gchar *
check_address (SchemaText *it)
{
  return cluster_config_is_address (it->text)
             ? NULL
             : g_strdup_printf (
                   "\"%s\" is not an IP address or the name of a host, without a port", it->text);
}

static gchar *
check_prefix (SchemaText *it)
{
  return it->text[0] == '/' && g_str_has_suffix (it->text, "/") && !strstr (it->text, "//")
             ? NULL
             : g_strdup_printf (
                   "\"%s\" does not begin and end with a slash, like /weir/", it->text);
}

static const SchemaKey keys[] = {
  { "etcd", SCHEMA_LIST, AT (etcd), .form = "[URL, ...]", .check = check_endpoint,
      .missing = "etcd is missing; write it like [http://10.0.0.5:2379]",
      .effect = PROXY_EFFECT_RESTART,
      .help = "the client URLs of the members of etcd; the next one is asked where one does not "
              "answer" },
  { "etcd-ca", SCHEMA_PATH, AT (etcd_ca), .form = "FILE", .effect = PROXY_EFFECT_RESTART,
      .help =
          "the certificates (PEM) that sign those of etcd; otherwise those of the system count" },
  { "etcd-certificate", SCHEMA_PATH, AT (etcd_certificate), .form = "FILE",
      .effect = PROXY_EFFECT_RESTART,
      .help = "the certificate (PEM) that this member shows to etcd" },
  { "etcd-key", SCHEMA_PATH, AT (etcd_key), .form = "FILE", .effect = PROXY_EFFECT_RESTART,
      .help = "its private key (PEM), unless the file of `etcd-certificate` has it" },
  { "etcd-user", SCHEMA_TEXT, AT (etcd_user), .form = "NAME", .effect = PROXY_EFFECT_RESTART,
      .help = "the user of etcd, who needs to read and write below `prefix`" },
  { "etcd-password", SCHEMA_SECRET, AT (etcd_password), .form = "TEXT",
      .effect = PROXY_EFFECT_RESTART, .help = "the password of that user" },
  { "etcd-password-file", SCHEMA_OTHER, AT (etcd_password), .form = "FILE",
      .value = &schema_secret_elsewhere, .effect = PROXY_EFFECT_RESTART,
      .help = "a file that holds the password" },
  { "name", SCHEMA_TEXT, AT (name), .form = "NAME", .check = check_name,
      .effect = PROXY_EFFECT_RESTART,
      .help = "the name of this member, which no other one has; without it, the name of the host" },
  { "address", SCHEMA_TEXT, AT (address), .form = "ADDRESS", .check = check_address,
      .missing = "address is missing; write it like 10.0.0.13", .effect = PROXY_EFFECT_RESTART,
      .help = "where the other members reach this one: an IP address or a host name, without a "
              "port" },
  { "secret", SCHEMA_SECRET, AT (secret), .form = "TEXT", .effect = PROXY_EFFECT_RESTART,
      .help = "at least 16 bytes, by which the members know each other; one of the two secret keys "
              "is required" },
  { "secret-file", SCHEMA_OTHER, AT (secret), .form = "FILE", .value = &schema_secret_elsewhere,
      .effect = PROXY_EFFECT_RESTART, .help = "a file that holds the secret" },
  { "prefix", SCHEMA_TEXT, AT (prefix), "/weir/", .form = "/PATH/", .check = check_prefix,
      .effect = PROXY_EFFECT_RESTART,
      .help = "what all keys in etcd begin with; two clusters on one etcd need two of them" },
  { "mounts", SCHEMA_FLAG, AT (mounts), "no", .effect = PROXY_EFFECT_RESTART,
      .help = "`yes`: etcd keeps the mounts that the API adds, and all members serve them" },
  { NULL },
};

#undef AT

gchar *
cluster_config_dup_name (const ClusterConfig *self)
{
  return g_strdup (self->name ? self->name : g_get_host_name ());
}

static gboolean
is_loopback (const gchar *text)
{
  g_autoptr (GInetAddress) address = g_inet_address_new_from_string (text);

  return address ? g_inet_address_get_is_loopback (address)
                 : g_ascii_strcasecmp (text, "localhost") == 0;
}

gboolean
cluster_config_is_hidden (const ClusterConfig *self, const ListenAddress *listen)
{
  return !listen->is_off && is_loopback (listen->address) && !is_loopback (self->address);
}

static gboolean
check_cluster (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const ClusterConfig *self = object;
  g_autofree gchar *name = cluster_config_dup_name (self);

  if (!yaml_check_alternatives (
          reader, node, "secret", "set only one of secret and secret-file", error)
      || !yaml_check_alternatives (reader, node, "etcd-password",
          "set only one of etcd-password and etcd-password-file", error))
    return FALSE;
  if (!self->secret)
    return schema_fail (
        reader, node, key, error, "the secret is missing; write it like {secret-file: FILE}");
  if (strlen (self->secret) < SECRET_MIN)
    return schema_fail (reader, node, key, error, "the secret has less than 16 bytes");
  if (self->etcd_key.path && !self->etcd_certificate.path)
    return schema_fail (reader, node, key, error, "etcd-key needs etcd-certificate");
  if (!cluster_config_is_name (name))
    return schema_fail (
        reader, node, key, error, "the name of this host is not usable here; set name");
  return TRUE;
}

const SchemaObject cluster_config_object = { .keys = keys,
  .expected = "expected {etcd: [URL, ...], address: ADDRESS, secret-file: FILE}",
  .check = check_cluster };
