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

static gboolean
check_rtmp (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const RtmpConfig *self = object;

  return self->listen.address || self->tls_listen.address
         || schema_fail (
             reader, node, key, error, "listen is missing; write it like {listen: 0.0.0.0:1935}");
}

const SchemaObject rtmp_config_object = {
  .keys = keys, .expected = "expected {listen: ADDR:PORT}", .check = check_rtmp
};
