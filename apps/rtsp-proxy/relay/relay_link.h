// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A relay behind another: a sink of the one is a source of the other.

#include "relay/relay.h"

// All tracks go into another relay, under the same indices and with their times. The source is
// begun with the tracks whenever they become known or others. What it is asked for goes back.
void relay_link (Relay *self, RelaySource *to);

// Only the tracks of the mask, with bases of the instant `start`; whoever owns the source begins
// it, and says who is asked for keyframes.
void relay_link_some (Relay *self, RelaySource *to, guint32 tracks, gint64 start);
void relay_unlink (Relay *self, RelaySource *to);
