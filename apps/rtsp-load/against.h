// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Puts packets that came through a server beside the same packets straight from its origin, and so
// tells what delay the server adds. Memory is bounded: the origin's newest packets are remembered,
// and those of readers wait a moment for an origin's packet that comes after them.

#include <glib.h>

#include "run/histogram.h"

typedef struct Against Against;

Against *against_new (void);
void against_free (Against *self);

// What a packet is known by: its payload and timestamp.
guint64 against_key (guint32 timestamp, const guint8 *payload, gsize len);

void against_add_origin (Against *self, guint64 key, gint64 arrival_ns);
void against_add_reader (Against *self, guint64 key, gint64 arrival_ns);

// Takes the delays of all packets that came up to `until_ns`; returns how many had no counterpart.
guint64 against_match (Against *self, gint64 until_ns, WeirHistogram *delays);

gboolean against_is_full (const Against *self);
