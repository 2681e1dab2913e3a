// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Timers of the main thread. All timers share one source of the main loop, because the loop looks
// at each source whenever it wakes, which is costly with a thousand timeouts. Call from the main
// thread only.

#include <glib.h>

typedef struct _Timer Timer;

// Each calls `function` with `data` until it returns G_SOURCE_REMOVE, which frees the timer: every
// `delay_ms`; or at whole multiples of the interval (in ms) of the monotonic clock, so that all
// ticks of one interval wake the main loop together, first within one interval.
Timer *timer_add (guint delay_ms, GSourceFunc function, gpointer data);
Timer *timer_add_tick (guint interval_ms, GSourceFunc function, gpointer data);

// Frees the timer. May be called in its function.
void timer_remove (Timer *self);
