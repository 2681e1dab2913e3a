// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `hooks` of the configuration: what runs when something happens to a stream.

#include "events/events.h"
#include "text/schema.h"

#define HOOKS_KINDS (EVENT_RECORD_DONE + 1)

typedef struct {
  GStrv run[HOOKS_KINDS]; // by EventKind: a program and its arguments, or one URL; empty: nothing
  guint at_once;
  guint timeout_ms;
} HooksConfig;

extern const SchemaObject hooks_config_object;

// Reports whether nothing runs for any event.
gboolean hooks_config_is_empty (const HooksConfig *self);
