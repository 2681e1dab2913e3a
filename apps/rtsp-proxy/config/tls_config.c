// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/tls_config.h"

#include "config/proxy_effect.h"
#include "text/config_error.h"

#define EXPECTED "expected {certificate: FILE}, such as {certificate: proxy.pem}"

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, G_STRUCT_OFFSET (TlsConfig, listen), "127.0.0.1:8322",
      .form = "ADDR:PORT", .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where readers connect over TLS, written like the `listen` of the file" },
  { "certificate", SCHEMA_TEXT, G_STRUCT_OFFSET (TlsConfig, certificate), .form = "FILE",
      .missing = EXPECTED, .effect = PROXY_EFFECT_RESTART,
      .help = "the certificate in PEM form, followed by those of its issuers; required" },
  { "key", SCHEMA_TEXT, G_STRUCT_OFFSET (TlsConfig, key), .form = "FILE",
      .effect = PROXY_EFFECT_RESTART,
      .help = "the private key in PEM form, without a password; without this key of the "
              "configuration it is in the file of `certificate`" },
  { "api", SCHEMA_FLAG, G_STRUCT_OFFSET (TlsConfig, api), "no", .effect = PROXY_EFFECT_RESTART,
      .help = "`yes`: the API and the metrics are served over HTTPS" },
  { NULL },
};

// Reads the files.
static gboolean
load_pair (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  TlsConfig *self = object;
  GError *why = NULL;
  const gchar *wrong;
  YamlNode *place;

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

const SchemaObject tls_config_object = { .keys = keys, .expected = EXPECTED, .check = load_pair };
