// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `tls` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"
#include "tls/tls_pair.h"

typedef struct {
  ListenAddress listen;
  gchar *certificate, *key; // files; `key` may be the same file
  gboolean api;             // the API speaks HTTPS
  TlsPair *pair;            // read from the files; NULL: no TLS
} TlsConfig;

// Returns the table of the keys of `tls`.
const SchemaKey *tls_config_keys (void);

void tls_config_init (TlsConfig *self);
void tls_config_clear (TlsConfig *self);

// Reads the mapping of `key`, and the files that it names. Returns FALSE if anything is wrong.
gboolean tls_config_read (
    TlsConfig *self, const SchemaKey *key, YamlReader *reader, YamlNode *node, GError **error);

// Compares the settings, but not the content of the files.
gboolean tls_config_equal (const TlsConfig *a, const TlsConfig *b);
