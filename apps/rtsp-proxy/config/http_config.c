// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/http_config.h"

#include "base/trusted_networks.h"
#include "config/host_names.h"
#include "config/proxy_effect.h"

#define EXPECTED "expected {listen: ADDR:PORT}, such as {listen: 127.0.0.1:8888}"

static gchar *
check_network (SchemaText *it)
{
  return trusted_networks_check (it->text);
}

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, G_STRUCT_OFFSET (HttpConfig, listen), .form = "ADDR:PORT",
      .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where HTTP clients connect, written like the `listen` of the file" },
  { "tls-listen", SCHEMA_OTHER, G_STRUCT_OFFSET (HttpConfig, tls_listen), .form = "ADDR:PORT",
      .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where HTTPS clients connect; requires the key `tls`, which has the certificate" },
  { "allow-origins", SCHEMA_LIST, G_STRUCT_OFFSET (HttpConfig, allow_origins),
      .form = "[ORIGIN, ...]", .check = host_names_check_origin, .effect = PROXY_EFFECT_RESTART,
      .help =
          "the web pages of other servers, such as `https://www.example.org`, that may read "
          "the HLS streams that their user gets by an address alone, and publish over WebRTC for a "
          "user without credentials; `*`: all pages" },
  { "trusted-proxies", SCHEMA_LIST, G_STRUCT_OFFSET (HttpConfig, trusted_proxies),
      .form = "[NETWORK, ...]", .check = check_network, .effect = PROXY_EFFECT_RESTART,
      .help = "reverse proxies, such as `127.0.0.1`, that say who their clients are: by "
              "`X-Forwarded-For` and `X-Forwarded-Proto`, or by `Forwarded`" },
  { "tls-in-front", SCHEMA_FLAG, G_STRUCT_OFFSET (HttpConfig, tls_in_front), .preset = "no",
      .effect = PROXY_EFFECT_RELOAD,
      .help =
          "`yes`: HTTP clients on this machine are those of a reverse proxy that speaks TLS with "
          "them, so they may send passwords (basic authentication); requires `users`, `jwt` or "
          "`external-auth`" },
  { NULL },
};

static gboolean
check_http (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const HttpConfig *self = object;

  return self->listen.address || self->tls_listen.address
         || schema_fail (reader, node, key, error, EXPECTED);
}

const SchemaObject http_config_object = { .keys = keys, .expected = EXPECTED, .check = check_http };
