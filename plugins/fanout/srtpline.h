// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the line to the reader of a session carries, by the reader's feedback on the packets of all
// the session's streams (core/net/estimate.h). Call from any thread.

#include <glib.h>

#include "core/net/estimate.h"

G_BEGIN_DECLS

typedef struct _SrtpLine SrtpLine;

// Returns NULL if there is no memory.
SrtpLine *srtp_line_new (void);
void srtp_line_free (SrtpLine *self);

// Returns the transport-wide number of the next packet.
guint16 srtp_line_take_number (SrtpLine *self);

// Notes that a packet of `size` bytes was sent at `now`, ns of weir_now_ns() like each `now` here.
// Takes no lock.
void srtp_line_sent (SrtpLine *self, guint16 number, gsize size, gint64 now);

// Takes the feedback in a compound or reduced-size RTCP packet, as it is without protection. What
// is malformed is left out.
void srtp_line_take (SrtpLine *self, const guint8 *rtcp, gsize size, gint64 now);

WeirEstimateView srtp_line_view (SrtpLine *self, gint64 now);

// Reports whether the line was congested at the last srtp_line_take() or srtp_line_view(). Takes no
// lock.
gboolean srtp_line_is_congested (const SrtpLine *self);

// Returns 2.5 times the bit rate that the line was estimated to carry then, bit/s; 0: not known.
// Takes no lock.
guint64 srtp_line_get_pace (const SrtpLine *self);

G_END_DECLS
