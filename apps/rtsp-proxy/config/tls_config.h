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
  TlsPair *pair;            // read from the files; NULL: no TLS. It is not the value of a key
} TlsConfig;

extern const SchemaObject tls_config_object;
