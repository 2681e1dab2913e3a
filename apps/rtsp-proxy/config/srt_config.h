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

extern const SchemaObject srt_config_object;

void srt_config_copy (SrtConfig *self, const SrtConfig *from);
void srt_config_clear (SrtConfig *self);
