// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Like g_timeout_add(), but at whole multiples of the interval: all that tick so wake the main loop
// at once, however many they are. The first time comes sooner than one interval from now.
guint tick_add (guint interval_ms, GSourceFunc function, gpointer data);
