// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The WeirSrtp (fanout/srtp.h) of transports: it encrypts, or only numbers the packets for
// feedback. Each function may be called for any transport.

#include <gst/rtsp-server/rtsp-server.h>

// Returns the transport's WeirSrtp (transfer full), or NULL if it has none.
GObject *weir_srtp_dup (GstRTSPStreamTransport *transport);

// Returns the host by which sinks know a reader with a WeirSrtp (transfer full), or NULL. If its
// keys could not be made, it is a host for which sinks add no reader.
gchar *weir_srtp_dup_token (GstRTSPStreamTransport *transport);

// Returns the sequence number with which the reader begins at the stream's packet `seq`.
guint weir_srtp_map_seq (GstRTSPStreamTransport *transport, guint seq);

// Checks and decrypts an RTCP packet of the reader in place, and takes its feedback on packets.
// Returns its length; -1, and counts the packet, if it is not authentic. Call from any thread.
gssize weir_srtp_unprotect (GObject *srtp, guint8 *data, gsize len);

// Does so with an RTCP packet in a buffer, which it may replace. Returns FALSE if the packet is not
// authentic.
gboolean weir_srtp_unprotect_buffer (GObject *srtp, GstBuffer **buffer);

// Returns the WeirSrtp of the reader that sent this RTCP packet within its connection (transfer
// full), or NULL if the packet came by another way or the reader does not use SRTP.
GObject *weir_srtp_dup_of_sender (GstBuffer *buffer);
