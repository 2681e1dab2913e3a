// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the end of an RTSP request (RFC 2326) or HTTP request (RFC 9112) in bytes that a client
// sends, and checks its limits and its form as they arrive. What passes has one meaning for every
// parser behind it: each line ends with CR LF or LF, no line continues another, there are no
// control characters, and at most one body length.

#include <glib.h>

typedef struct {
  guint line;    // bytes of the request line, and of each header line
  guint headers; // number of header lines
  guint head;    // bytes of all these lines
  guint body;    // bytes
} RequestLimits;

typedef enum {
  REQUEST_FINE,
  REQUEST_LINE_LONG,    // the request line
  REQUEST_HEADER_LONG,  // a header line
  REQUEST_HEADERS_MANY, // too many header lines
  REQUEST_HEAD_LARGE,   // too many bytes in all lines
  REQUEST_BODY_LARGE,
  REQUEST_MALFORMED,
  REQUEST_VERSION_WRONG, // not RTSP/1.0, or not HTTP/1.0 or HTTP/1.1
  REQUEST_N_FAULTS
} RequestFault;

// The progress in a request that is incomplete; zeros at its start, but `http` for HTTP.
typedef struct {
  gboolean http;
  gsize line, searched; // offsets: of the last line, and of the bytes without its end
  guint n_lines;
  gsize head;      // bytes of the complete head, with the empty line; 0 before that
  gboolean bare;   // a line ends with LF alone
  gboolean is_new; // HTTP/1.1
  gboolean has_length;
  guint body;
  gboolean continues; // the client of HTTP/1.1 waits for 100 before it sends the body
  gboolean has_cseq;
  guint64 cseq;
  RequestFault fault;
} RequestCheck;

// Checks the first `len` bytes of a request; each call has the bytes of the last one and more.
// Returns the length of the request when it is complete, else 0. Sets `fault` if it may not pass.
gsize request_check (
    RequestCheck *self, const RequestLimits *limits, const guint8 *bytes, gsize len);

// Returns the head with CR LF at the end of each line. (transfer full)
GByteArray *request_dup_head (const RequestCheck *self, const guint8 *bytes);
