// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

#include "core/net/address.h"
#include "core/rtp/rtcp.h"

// Reads the receiver reports that the reader of this transport sends over UDP from now on, in place
// of gst-rtsp-server. Call before the response to a SETUP is sent.
void weir_reports_watch (GstRTSPContext *ctx);

// Returns the pad "PREFIX_N" of stream N, of rtpbin or of the element that replaces it; NULL if
// there is none. The caller owns the reference.
GstPad *weir_reports_find_pad (GstRTSPStream *stream, const gchar *prefix);

// For the streams of a WEIR_TYPE_RELAY_MEDIA, whose RTCP passes no pad. Call from any thread.

// Notes a sender report that is sent now.
void weir_reports_note_sent (GstRTSPStream *stream, const WeirNtpMap *sr);

// Takes an RTCP packet, of `len` bytes of `data`, and decrypts it there if its reader uses SRTP;
// sets `len` to the length of the RTCP. Returns TRUE if it is from a reader and may hold feedback.
gboolean weir_reports_take (
    GstRTSPStream *stream, const WeirAddress *from, guint8 *data, gsize *len);

// Notes that a datagram came to the stream's RTP port.
void weir_reports_hear (GstRTSPStream *stream, const WeirAddress *from);
