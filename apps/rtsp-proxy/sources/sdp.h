// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// RTP streams by a session description in a file (RFC 8866).

#include "sources/pull.h"

typedef struct {
  PullEndpoint rtp;
  guint16 rtcp_port;
  GstCaps *caps; // application/x-rtp
} RtpStream;

// Of one RTP track, `caps` and `endpoint` copied; RTCP is on the next port.
RtpStream *rtp_stream_new (const PullEndpoint *endpoint, GstCaps *caps);
void rtp_stream_free (gpointer stream);

// The streams in a file, of RtpStream; or NULL, and an error that says what is wrong. `iface` may
// be NULL.
GPtrArray *sdp_read (const gchar *path, const gchar *iface, GError **error);

// What a track's caps don't say of a static payload type (RFC 3551), which needs no a=rtpmap.
// FALSE: it is not known what the track is.
gboolean sdp_complete_caps (GstCaps *caps);
