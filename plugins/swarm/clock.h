// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

#include <glib.h>

// Returns a time of the clock of GLib's main loops, in ns.
static inline int64_t
clock_now_ns ()
{
  return g_get_monotonic_time () * 1000;
}
