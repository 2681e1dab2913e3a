// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `http` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

// An address is NULL if there is no such listener.
typedef struct {
  ListenAddress listen, tls_listen;
  GStrv allow_origins;   // of pages that may read HLS by the address of their user
  GStrv trusted_proxies; // networks of reverse proxies that name their clients
  gboolean tls_in_front; // clients on this machine are a reverse proxy's, which spoke TLS with it
} HttpConfig;

extern const SchemaObject http_config_object;
