// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/http_config.h"

#include "config/host_names.h"
#include "config/proxy_effect.h"

static const SchemaValue origins_value = { .read = host_names_read_origins };

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, G_STRUCT_OFFSET (HttpConfig, listen), .form = "ADDR:PORT",
      .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where HTTP clients connect, written like the `listen` of the file" },
  { "tls-listen", SCHEMA_OTHER, G_STRUCT_OFFSET (HttpConfig, tls_listen), .form = "ADDR:PORT",
      .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where HTTPS clients connect; requires the key `tls`, which has the certificate" },
  { "allow-origins", SCHEMA_OTHER, G_STRUCT_OFFSET (HttpConfig, allow_origins),
      .form = "[ORIGIN, ...]", .value = &origins_value, .effect = PROXY_EFFECT_RESTART,
      .help =
          "the web pages of other servers, such as `https://www.example.org`, that may read the "
          "HLS streams that their user gets by an address alone; `*`: all pages" },
  { "tls-in-front", SCHEMA_FLAG, G_STRUCT_OFFSET (HttpConfig, tls_in_front), .preset = "no",
      .effect = PROXY_EFFECT_RELOAD,
      .help =
          "`yes`: HTTP clients on this machine are those of a reverse proxy that speaks TLS with "
          "them, so they may send passwords (basic authentication); requires `users`, `jwt` or "
          "`external-auth`" },
  { NULL },
};

const SchemaKey *
http_config_keys (void)
{
  return keys;
}

void
http_config_clear (HttpConfig *self)
{
  g_free (self->listen.address);
  g_free (self->tls_listen.address);
  g_strfreev (self->allow_origins);
}

gboolean
http_config_read (
    HttpConfig *self, const SchemaKey *key, YamlReader *reader, YamlNode *node, GError **error)
{
  if (!yaml_is_mapping (node)
      || (!yaml_get (reader, node, "listen") && !yaml_get (reader, node, "tls-listen")))
    return schema_fail (
        reader, node, key, error, "expected {listen: ADDR:PORT}, such as {listen: 127.0.0.1:8888}");
  return schema_read (keys, self, reader, node, key->name, SCHEMA_WHOLE, error);
}

gboolean
http_config_equal (const HttpConfig *a, const HttpConfig *b)
{
  return listen_address_maybe_equal (&a->listen, &b->listen)
         && listen_address_maybe_equal (&a->tls_listen, &b->tls_listen)
         && text_list_equal (a->allow_origins, b->allow_origins);
}
