// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `hls` of the configuration.

#include "text/schema.h"

typedef struct {
  guint segment_ms, part_ms, n_segments;
} HlsConfig;

extern const SchemaObject hls_config_object;

// Refuses the key `hls` of a file whose proxy has no HTTP listener.
gboolean hls_config_check (
    YamlReader *reader, const YamlNode *root, gboolean has_http, GError **error);
