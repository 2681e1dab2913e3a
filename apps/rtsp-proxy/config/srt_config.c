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

const SchemaKey *
srt_config_keys (void)
{
  return keys;
}

void
srt_config_init (SrtConfig *self)
{
  *self = (SrtConfig) { 0 };
  schema_init (keys, self);
}

void
srt_config_copy (SrtConfig *self, const SrtConfig *from)
{
  *self = *from;
  self->listen.address = g_strdup (from->listen.address);
  self->passphrase = g_strdup (from->passphrase);
}

void
srt_config_clear (SrtConfig *self)
{
  g_free (self->listen.address);
  g_free (self->passphrase);
}

static const gchar *
find_mistake (const SrtConfig *self)
{
  gsize len = self->passphrase ? strlen (self->passphrase) : PASSPHRASE_MIN;

  if (!self->listen.address)
    return "listen is missing; write it like {listen: 0.0.0.0:8890}";
  if (len < PASSPHRASE_MIN || len > PASSPHRASE_MAX)
    return "an SRT passphrase has 10 to 79 bytes";
  return self->latency_ms > LATENCY_MAX_MS ? "the latency is 60s at most" : NULL;
}

gboolean
srt_config_read (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  SrtConfig *self = (SrtConfig *) ((guint8 *) object + key->offset);
  const gchar *wrong;

  if (!yaml_is_mapping (node))
    return schema_fail (reader, node, key, error, "expected {listen: ADDR:PORT}");
  if (!yaml_check_alternatives (reader, node, "passphrase",
          "set only one of passphrase, passphrase-file and passphrase-env", error)
      || !schema_read (keys, self, reader, node, key->name, SCHEMA_WHOLE, error))
    return FALSE;
  wrong = find_mistake (self);
  return !wrong || schema_fail (reader, node, key, error, wrong);
}

gboolean
srt_config_equal (const SrtConfig *a, const SrtConfig *b)
{
  return listen_address_maybe_equal (&a->listen, &b->listen)
         && !g_strcmp0 (a->passphrase, b->passphrase) && a->latency_ms == b->latency_ms;
}
