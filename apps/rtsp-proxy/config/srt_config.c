// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/srt_config.h"

#include <string.h>

#include "config/proxy_effect.h"

#define AT(field) G_STRUCT_OFFSET (SrtConfig, field)
#define LATENCY_MAX_MS 60000
#define PASSPHRASE_MIN 10 // bytes, as libsrt allows
#define PASSPHRASE_MAX 79

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, AT (listen), .form = "ADDR:PORT", .value = &listen_address_value,
      .missing = "listen is missing; write it like {listen: 0.0.0.0:8890}",
      .effect = PROXY_EFFECT_RESTART,
      .help = "where SRT callers connect, written like the `listen` of the file; one UDP port for "
              "all mounts" },
  { "passphrase", SCHEMA_SECRET, AT (passphrase), .form = "TEXT", .effect = PROXY_EFFECT_RESTART,
      .help = "10 to 79 bytes; encrypts all connections, and refuses callers without it" },
  { "passphrase-file", SCHEMA_OTHER, AT (passphrase), .form = "FILE",
      .value = &schema_secret_elsewhere, .effect = PROXY_EFFECT_RESTART,
      .help = "a file that holds the passphrase" },
  { "passphrase-env", SCHEMA_OTHER, AT (passphrase), .form = "NAME",
      .value = &schema_secret_elsewhere, .effect = PROXY_EFFECT_RESTART,
      .help = "an environment variable that holds the passphrase" },
  { "latency", SCHEMA_DURATION, AT (latency_ms), "120ms", .min = 20, .effect = PROXY_EFFECT_RESTART,
      .help = "time in which lost packets are sent again, up to 60s; a caller may ask for more" },
  { NULL },
};

#undef AT

void
srt_config_copy (SrtConfig *self, const SrtConfig *from)
{
  *self = (SrtConfig) { 0 };
  schema_copy (keys, self, from);
}

void
srt_config_clear (SrtConfig *self)
{
  schema_clear (keys, self);
}

static gboolean
check_srt (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const SrtConfig *self = object;
  gsize len = self->passphrase ? strlen (self->passphrase) : PASSPHRASE_MIN;

  if (!yaml_check_alternatives (reader, node, "passphrase",
          "set only one of passphrase, passphrase-file and passphrase-env", error))
    return FALSE;
  if (len < PASSPHRASE_MIN || len > PASSPHRASE_MAX)
    return schema_fail (reader, node, key, error, "an SRT passphrase has 10 to 79 bytes");
  return self->latency_ms <= LATENCY_MAX_MS
         || schema_fail (reader, node, key, error, "the latency is 60s at most");
}

const SchemaObject srt_config_object = {
  .keys = keys, .expected = "expected {listen: ADDR:PORT}", .check = check_srt
};
