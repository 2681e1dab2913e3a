// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// A port of 127.0.0.1 that relays TCP connections to another one, and delays all bytes both ways.
typedef struct {
  guint16 from, to;
  gint64 delay_us;
} SwarmDelay;

// Starts a thread that relays till the process ends. `delays` must stay.
void swarm_delay_start (const SwarmDelay *delays, guint n);
