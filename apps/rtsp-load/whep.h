// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A run of WebRTC readers, in one thread.

#include "options.h"

// Runs until --duration is over, until all readers have failed, or until SIGINT or SIGTERM, and
// prints the result. Returns whether each reader had media and none failed.
gboolean whep_run (const Options *options);
