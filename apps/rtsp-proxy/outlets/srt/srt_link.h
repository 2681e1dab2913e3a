// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy's end of the two sockets to the worker process that has libsrt (isolate/srt_wire.h).
// One thread calls these functions; none but the last one waits.

#include "base/loop.h"
#include "isolate/srt_wire.h"

typedef struct _SrtLink SrtLink;

// Takes ownership of the sockets.
SrtLink *srt_link_new (gint commands, gint questions);
void srt_link_free (SrtLink *self);

// Sends a command, at once or as soon as the worker takes it. `fd` stays the caller's; -1: none.
void srt_link_send (SrtLink *self, SrtCommand command, guint32 id, gint fd);

// Answers the question about a handshake: `code` is 0 or SRT's reason of a refusal.
void srt_link_answer (SrtLink *self, guint32 id, guint16 code);

// Has the loop wait for what the link needs now. Call it after all others but the last one.
void srt_link_watch (SrtLink *self, LoopWatch *watch);

// Sends what waits, and passes what the worker says to `handler`: the ends of earlier callers
// before a new handshake. Returns FALSE if the worker has sent a malformed message, and sets
// `heard` if it has sent any.
gboolean srt_link_run (
    SrtLink *self, const SrtWireHandler *handler, gpointer owner, gboolean *heard);

// Tells the worker to end, and waits for it.
void srt_link_finish (SrtLink *self, guint limit_ms);
