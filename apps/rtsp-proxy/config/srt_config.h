// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `srt` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

typedef struct {
  ListenAddress listen; // the address is NULL if there is no SRT
  gchar *passphrase;    // NULL: connections are not encrypted
  guint latency_ms;
} SrtConfig;

// Returns the table of the keys of `srt`.
const SchemaKey *srt_config_keys (void);

// Sets the defaults.
void srt_config_init (SrtConfig *self);
void srt_config_copy (SrtConfig *self, const SrtConfig *from);
void srt_config_clear (SrtConfig *self);

// Reads the value of the key `srt` into the SrtConfig at its offset.
gboolean srt_config_read (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);

gboolean srt_config_equal (const SrtConfig *a, const SrtConfig *b);
