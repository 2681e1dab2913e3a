// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Sets how many us pass between two rounds of receiving, 0 to 100,000; 0: each packet is received
// at once. Call before the first upstream starts. The default is 2000.
void receive_tick_set (guint us);
