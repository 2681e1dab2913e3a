// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Like g_timeout_add(), but calls `function` at whole multiples of the interval (in ms) of the
// monotonic clock, so that all ticks of one interval wake the main loop together. The first call
// comes within one interval.
guint tick_add (guint interval_ms, GSourceFunc function, gpointer data);
