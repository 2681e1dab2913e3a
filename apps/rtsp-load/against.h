// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Measures the delay that a server adds: matches packets that arrived through the server with the
// same packets straight from its origin. Memory is bounded: it holds the origin's newest packets,
// and readers' packets that wait for an origin's packet that arrives later.

#include <glib.h>

#include "run/histogram.h"

typedef struct Against Against;

Against *against_new (void);
void against_free (Against *self);

// Returns a hash of a packet's payload and timestamp, by which packets are matched.
guint64 against_key (guint32 timestamp, const guint8 *payload, gsize len);

void against_add_origin (Against *self, guint64 key, gint64 arrival_ns);
void against_add_reader (Against *self, guint64 key, gint64 arrival_ns);

// Adds to `delays` the delay of each readers' packet that arrived up to `until_ns`. Returns the
// number of packets that have no match.
guint64 against_match (Against *self, gint64 until_ns, WeirHistogram *delays);

// Returns whether the readers' packets fill their buffer; then call against_match() before the
// next.
gboolean against_is_full (const Against *self);
