// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "core/run/workers.h"

// The threads that all elements of the process share, for as long as it runs: one for each
// processor. NULL if there can't be any. A task there must not wait for anything: the others wait
// with it.
WeirWorkers *weir_shared_workers (void);
