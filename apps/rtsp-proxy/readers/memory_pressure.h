// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Measures the memory, and closes the readers that lag most while it is nearly used up: the packets
// that wait for them are what can be given back. Call once a second, from the main thread.
void memory_pressure_check (void);
