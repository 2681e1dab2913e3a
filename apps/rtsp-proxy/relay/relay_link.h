// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Links a relay behind another: the link is a sink of the first and a source of the second.

#include "relay/relay.h"

// Passes all tracks of `self` to `to`, under the same indices and with their times. `to` begins
// when the tracks become known, and again when they change. Keyframe requests go back to `self`.
void relay_link (Relay *self, RelaySource *to);

// Passes only the tracks whose bits are set in `tracks`, with bases of the instant `start`. The
// owner of `to` begins it and sets its handler.
void relay_link_some (Relay *self, RelaySource *to, guint32 tracks, gint64 start);
void relay_unlink (Relay *self, RelaySource *to);
