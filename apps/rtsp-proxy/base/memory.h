// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Watches the memory of the process, so that the proxy refuses work before the kernel ends it.

#include <glib.h>

typedef enum {
  MEMORY_ENOUGH,
  MEMORY_SHORT, // 90 % of the ceiling are used: refuse new connections and readers
  MEMORY_FULL,  // 95 %: close readers
} MemoryLevel;

// Measures the memory and returns the level. `ceiling` is in bytes; 0 is the limit of the control
// group, or none. Only anonymous memory counts: the kernel can take back the pages of files. Call
// about once a second, from the main thread.
MemoryLevel memory_measure (guint64 ceiling);

// Returns the last level. Call from any thread.
MemoryLevel memory_get_level (void);

// Get the last measure, and the ceiling in effect, in bytes; 0: none. Call from any thread.
guint64 memory_get_used (void);
guint64 memory_get_ceiling (void);

// The reason that a log line gives.
#define MEMORY_PROBLEM "too little memory is left (limits.memory)"
