// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the payload formats of RTP say of their encodings (RFC 3551 and the formats' own RFCs), so
// that a URI need not repeat it. Call from any thread.

typedef struct {
  const char *name;  // encoding name in capitals, as in caps
  const char *media; // "video" or "audio"
  int clock_rate;    // Hz; 0: the format has no rate of its own
  int payload;       // static payload type; -1: dynamic
} WeirRtpEncoding;

// Returns the encoding `name`, in capitals, or NULL if it is not known.
const WeirRtpEncoding *weir_rtp_encoding (const char *name);
