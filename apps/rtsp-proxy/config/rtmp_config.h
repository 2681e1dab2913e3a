// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `rtmp` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

// An address is NULL if there is no such listener.
typedef struct {
  ListenAddress listen, tls_listen;
} RtmpConfig;

extern const SchemaObject rtmp_config_object;
