// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Returns the time of CLOCK_MONOTONIC in ns. Call from any thread.
// Core's weir_now_ns() returns the same.
gint64 clock_now (void);
