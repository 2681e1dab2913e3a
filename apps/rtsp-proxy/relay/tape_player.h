// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Plays tapes into the relay of one reader, each packet as long after its arrival as the first one.
// It plays one tape at a time, and may go from one to another: the relay's numbers continue.
// Reference counted. Call from any thread.

#include "relay/tape.h"

typedef struct _TapePlayer TapePlayer;

typedef enum {
  TAPE_PLAYS,
  TAPE_GONE,    // the tape has lost what comes next
  TAPE_CHANGED, // the tape has other tracks than the relay
} TapeResult;

// `ended` is called from any thread, with a lock held, when the player has played the last packet
// of a tape that has ended; it must not block or call the player. Returns NULL and sets `error` if
// the system has no thread left. The relay gets the tracks of `tape`, which is not played yet.
TapePlayer *tape_player_new (
    Relay *relay, Tape *tape, void (*ended) (gpointer owner), gpointer owner, GError **error);
TapePlayer *tape_player_ref (TapePlayer *self);
void tape_player_unref (TapePlayer *self);

// Ends what is played; `ended` is not called any more.
void tape_player_stop (TapePlayer *self);

// Begins a new run of the relay: with the beginning of `tape`, or if that is NULL, with the next
// packet of the last tape. The first packets of the run wait in the relay until
// tape_player_go(). Calls `done` once, from any thread; then tape_player_get_result() has the
// result.
void tape_player_begin (TapePlayer *self, Tape *tape, void (*done) (gpointer data), gpointer data);
TapeResult tape_player_get_result (TapePlayer *self);
void tape_player_go (TapePlayer *self);

// Stops. Calls `done` once, from any thread: from then on no packet comes.
void tape_player_pause (TapePlayer *self, void (*done) (gpointer data), gpointer data);

// Returns the time of the title of the last packet, or at which a run begins, in ns.
gint64 tape_player_get_position (TapePlayer *self);

// Reports whether the player has played the last packet.
gboolean tape_player_is_at_end (TapePlayer *self);
