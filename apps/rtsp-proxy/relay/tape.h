// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The newest packets of a relay that plays a stored title, from its first one on. Any number of
// players (tape_player.h) play them, each from its own position, and none delays another one.
// Reference counted. Call from any thread, unless the function says otherwise.

#include "relay/relay.h"

typedef struct _Tape Tape;

// Keeps packets for `keep_ns`, at most 32 MiB of them. `changed` is called from any thread, with a
// lock held, when tape_get_place() has changed; it must not block or call the tape. Call before the
// relay has packets.
Tape *tape_new (Relay *relay, gint64 keep_ns, void (*changed) (gpointer owner), gpointer owner);
Tape *tape_ref (Tape *self);
void tape_unref (Tape *self);

// Drops all packets and takes no more; `changed` is not called any more.
void tape_stop (Tape *self, Relay *relay);

// No packets come any more: players have reached the end when they have played what is there.
void tape_end (Tape *self);

// Sets `place` to where the tape's beginning is in the title. Returns FALSE if the source does not
// say that it can seek. `place->from` is negative until it says where it plays.
gboolean tape_get_place (Tape *self, TitlePlace *place);

// Reports whether the first packet is still there.
gboolean tape_has_beginning (Tape *self);

// Returns the caps of the tracks, or NULL while they are not known. (transfer full)
GPtrArray *tape_dup_caps (Tape *self);
