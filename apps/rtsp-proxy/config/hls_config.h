// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `hls` of the configuration.

#include "text/schema.h"

typedef struct {
  guint segment_ms, part_ms, n_segments;
} HlsConfig;

// Returns the table of the keys of `hls`.
const SchemaKey *hls_config_keys (void);

// Sets the defaults.
void hls_config_init (HlsConfig *self);

// Read the value of the key `hls` into the HlsConfig at its offset, and compare two.
gboolean hls_config_read (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);

// Refuses the key `hls` of a file whose proxy has no HTTP listener.
gboolean hls_config_check (
    YamlReader *reader, const YamlNode *root, gboolean has_http, GError **error);
gboolean hls_config_equal (const HlsConfig *a, const HlsConfig *b);
