// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

#include "core/ingest/engine.h"

// Returns the engine that all elements of the process with this tick share. Give it back with
// weir_shared_ingest_unref(), which ends its threads with the last user. Call both from any thread.
WeirIngest *weir_shared_ingest_ref (gint64 tick_ns);
void weir_shared_ingest_unref (WeirIngest *engine);
