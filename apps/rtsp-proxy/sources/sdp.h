// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the RTP streams of a session description (RFC 8866) in a file.

#include <gst/sdp/sdp.h>

#include "sources/pull.h"

// Different names of attributes and of their parameters in all descriptions that a process reads.
#define SDP_NAMES_MAX 4096

typedef struct {
  PullEndpoint rtp;
  guint16 rtcp_port;
  GstCaps *caps; // application/x-rtp
} RtpStream;

// Makes a stream of one RTP track, with RTCP on the next port. Copies `endpoint` and references
// `caps`.
RtpStream *rtp_stream_new (const PullEndpoint *endpoint, GstCaps *caps);
void rtp_stream_free (gpointer stream);

// Returns the RtpStreams of a file (transfer full). Returns NULL and sets `error` if the file
// cannot be read or has no usable track. `iface` may be NULL.
GPtrArray *sdp_read (const gchar *path, const gchar *iface, GError **error);

// Parses a session description, which begins with "v=" or has a track. Returns NULL if it is not
// one. Replaces bytes that are not UTF-8, and leaves out keys of encrypted tracks (a=key-mgmt),
// which are not relayed: the library reads those keys, and puts them into caps, even if the track
// is not encrypted. (transfer full)
GstSDPMessage *sdp_parse (const gchar *text, gsize len);

// Returns the caps of a track's first format, application/x-rtp, or NULL if the track cannot be
// relayed. The track's port does not matter. (transfer full)
GstCaps *sdp_media_caps (const GstSDPMessage *sdp, const GstSDPMedia *media);

// The same for its format number `n`, from 0.
GstCaps *sdp_format_caps (const GstSDPMessage *sdp, const GstSDPMedia *media, guint n);

// Adds the encoding and clock rate of a static payload type (RFC 3551), which needs no a=rtpmap.
// Returns FALSE if media type, encoding or clock rate are still unknown.
gboolean sdp_complete_caps (GstCaps *caps);
