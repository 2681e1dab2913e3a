// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `rtmp` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

// An address is NULL if there is no such listener.
typedef struct {
  ListenAddress listen, tls_listen;
} RtmpConfig;

// Returns the table of the keys of `rtmp`.
const SchemaKey *rtmp_config_keys (void);

void rtmp_config_clear (RtmpConfig *self);

// Reads the value of the key `rtmp` into the RtmpConfig at its offset.
gboolean rtmp_config_read (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);

gboolean rtmp_config_equal (const RtmpConfig *a, const RtmpConfig *b);
