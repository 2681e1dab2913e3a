// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "core/run/workers.h"

// Returns the threads that all elements of the process share until it ends, one for each processor;
// NULL if they cannot be created. A task in them must never block, or other tasks are late. Call
// from any thread.
WeirWorkers *weir_shared_workers (void);
