// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `http` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

// An address is NULL if there is no such listener.
typedef struct {
  ListenAddress listen, tls_listen;
  GStrv allow_origins;   // of pages that may read HLS by the address of their user; may be NULL
  gboolean tls_in_front; // clients on this machine are a reverse proxy's, which spoke TLS with it
} HttpConfig;

// Returns the table of the keys of `http`.
const SchemaKey *http_config_keys (void);

void http_config_clear (HttpConfig *self);

// Reads the mapping of `key`. Returns FALSE if anything is wrong.
gboolean http_config_read (
    HttpConfig *self, const SchemaKey *key, YamlReader *reader, YamlNode *node, GError **error);

// Compares what needs a restart.
gboolean http_config_equal (const HttpConfig *a, const HttpConfig *b);
