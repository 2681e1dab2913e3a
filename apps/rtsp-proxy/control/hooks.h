// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs a program, or posts to a URL, when something happens to a stream. At most `at-once` run; the
// events that wait are those which events.h keeps, so that no queue grows. A program has its own
// process group, and each value in a variable of its environment. Call from the main thread.

#include "config/hooks_config.h"

typedef struct _Hooks Hooks;

// Takes the events from now on. Returns NULL if nothing is configured. `config` must outlive it.
Hooks *hooks_new (const HooksConfig *config);

// Kills what runs.
void hooks_free (Hooks *self);
