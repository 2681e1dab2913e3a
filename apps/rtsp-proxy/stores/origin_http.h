// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gets ranges of files from HTTP servers and S3-compatible ones. All requests run on one thread of
// the client; whoever asks waits. Redirects are not followed, and each exchange has one deadline.
// Call from any thread.

#include "sources/tls_trust.h"
#include "stores/sigv4.h"

typedef struct _OriginHttp OriginHttp;

// How servers are asked. The client copies it.
typedef struct {
  const S3Keys *keys;           // sign requests with these; or NULL
  const gchar *user, *password; // basic authentication, without `keys`; or NULL
  const TlsTrust *trust;
} OriginAccess;

// Returns NULL and sets an error if the authorities of `trust` cannot be read.
OriginHttp *origin_http_new (const OriginAccess *access, GError **error);
OriginHttp *origin_http_ref (OriginHttp *self);

// The last call ends the thread, and does not wait for it.
void origin_http_unref (OriginHttp *self);

// A request for a range, and its answer.
typedef struct {
  const gchar *url;
  const gchar *tag; // the file must still have this tag; NULL: any
  guint64 offset;
  gsize length;
  guint8 *bytes; // gets the range

  gint error;    // errno of the answer; 0: the range is there. ESTALE: the file has another tag
  gchar *why;    // the reason for the error; the caller frees it
  gchar *found;  // the tag of the file; the caller frees it; NULL: it has none
  guint64 total; // its size
} OriginRange;

#define ORIGIN_RANGES_MAX 2

// Gets `n` ranges at the same time, each within `timeout_ms`. When one is there, the others are
// ended after another `grace_ms`, with the error ETIMEDOUT.
void origin_http_get (
    OriginHttp *self, OriginRange *ranges, guint n, guint timeout_ms, guint grace_ms);
