// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/rtmp_config.h"

#include "config/proxy_effect.h"

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, G_STRUCT_OFFSET (RtmpConfig, listen), .form = "ADDR:PORT",
      .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help = "where RTMP publishers connect, written like the `listen` of the file; one TCP port "
              "for all mounts, usually 1935" },
  { "tls-listen", SCHEMA_OTHER, G_STRUCT_OFFSET (RtmpConfig, tls_listen), .form = "ADDR:PORT",
      .value = &listen_address_value, .effect = PROXY_EFFECT_RESTART,
      .help =
          "where RTMPS publishers connect, who take port 443 by default; requires the key `tls`, "
          "which has the certificate" },
  { NULL },
};

const SchemaKey *
rtmp_config_keys (void)
{
  return keys;
}

void
rtmp_config_clear (RtmpConfig *self)
{
  g_free (self->listen.address);
  g_free (self->tls_listen.address);
}

gboolean
rtmp_config_read (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  RtmpConfig *self = (RtmpConfig *) ((guint8 *) object + key->offset);

  if (!yaml_is_mapping (node))
    return schema_fail (reader, node, key, error, "expected {listen: ADDR:PORT}");
  if (!schema_read (keys, self, reader, node, key->name, SCHEMA_WHOLE, error))
    return FALSE;
  return self->listen.address || self->tls_listen.address
         || schema_fail (
             reader, node, key, error, "listen is missing; write it like {listen: 0.0.0.0:1935}");
}

gboolean
rtmp_config_equal (const RtmpConfig *a, const RtmpConfig *b)
{
  return listen_address_maybe_equal (&a->listen, &b->listen)
         && listen_address_maybe_equal (&a->tls_listen, &b->tls_listen);
}
