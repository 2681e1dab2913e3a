// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/tls_config.h"

#include "config/proxy_effect.h"
#include "text/config_error.h"

#define TLS_PORT 8322

static gboolean
read_listen (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  gchar *wrong = text ? listen_address_parse (&((TlsConfig *) object)->listen, text)
                      : g_strdup ("expected ADDR:PORT");

  return !wrong || yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
}

static const SchemaValue listen_value = { .read = read_listen };

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, .preset = "127.0.0.1:8322", .form = "ADDR:PORT", .value = &listen_value,
      .effect = PROXY_EFFECT_RESTART,
      .help = "where readers connect over TLS, written like the `listen` of the file" },
  { "certificate", SCHEMA_TEXT, G_STRUCT_OFFSET (TlsConfig, certificate), .form = "FILE",
      .effect = PROXY_EFFECT_RESTART,
      .help = "the certificate in PEM form, followed by those of its issuers; required" },
  { "key", SCHEMA_TEXT, G_STRUCT_OFFSET (TlsConfig, key), .form = "FILE",
      .effect = PROXY_EFFECT_RESTART,
      .help = "the private key in PEM form, without a password; without this key of the "
              "configuration it is in the file of `certificate`" },
  { "api", SCHEMA_FLAG, G_STRUCT_OFFSET (TlsConfig, api), "no", .effect = PROXY_EFFECT_RESTART,
      .help = "`yes`: the API and the metrics are served over HTTPS" },
  { NULL },
};

const SchemaKey *
tls_config_keys (void)
{
  return keys;
}

void
tls_config_init (TlsConfig *self)
{
  self->listen = (ListenAddress) { g_strdup ("127.0.0.1"), TLS_PORT };
}

void
tls_config_clear (TlsConfig *self)
{
  g_free (self->listen.address);
  g_free (self->certificate);
  g_free (self->key);
  g_clear_pointer (&self->pair, tls_pair_unref);
}

gboolean
tls_config_read (
    TlsConfig *self, const SchemaKey *key, YamlReader *reader, YamlNode *node, GError **error)
{
  GError *why = NULL;
  const gchar *wrong;
  YamlNode *place;

  if (!yaml_is_mapping (node) || !yaml_get (reader, node, "certificate"))
    return schema_fail (
        reader, node, key, error, "expected {certificate: FILE}, such as {certificate: proxy.pem}");
  if (!schema_read (keys, self, reader, node, key->name, SCHEMA_WHOLE, error))
    return FALSE;
  if (!self->key)
    self->key = g_strdup (self->certificate);
  self->pair = tls_pair_load (self->certificate, self->key, &why);
  if (self->pair)
    return TRUE;
  wrong = why->code == TLS_PAIR_ERROR_KEY ? "key" : "certificate";
  place = yaml_get (reader, node, wrong);
  yaml_fail_take (reader, place ? place : yaml_get (reader, node, "certificate"), wrong,
      CONFIG_ERROR_VALUE, error, g_strdup (why->message));
  g_error_free (why);
  return FALSE;
}

gboolean
tls_config_equal (const TlsConfig *a, const TlsConfig *b)
{
  return !a->pair == !b->pair && listen_address_equal (&a->listen, &b->listen)
         && !g_strcmp0 (a->certificate, b->certificate) && !g_strcmp0 (a->key, b->key)
         && !a->api == !b->api;
}
