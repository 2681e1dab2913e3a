// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the limits refuse to HTTP clients: the answers and their reasons.

#include "access/refusals.h"
#include "mounts/mounts.h"
#include "text/request_check.h"

typedef struct {
  guint status;
  RefusedReason reason;
  const gchar *text;
} HttpRefusal;

// Returns the refusal of a request with this fault, which is not REQUEST_FINE.
const HttpRefusal *http_refusal_of (RequestFault fault);

// Reports whether the mount has no room for a new reader. NULL: the mount is not made yet.
gboolean http_refusal_is_full (Mount *mount);

// Takes a place for a reader of the mount, which ends with reader_limit_leave(). Returns NULL, or
// the refusal if there is no room.
const HttpRefusal *http_refusal_of_reader (Mount *mount);

// Returns the status for a title that cannot be opened (store_open_bytes()), and sets `text` to
// what the client may know of the reason; NULL: no more than the status says.
guint http_refusal_of_error (const GError *error, const gchar **text);

// Counts a stream of a title that begins at byte `at` (store_bytes_enter()). If it is one too many,
// logs that and returns the reason. (transfer full)
gchar *http_refusal_enter_store (
    StoreBytes *bytes, guint64 at, const gchar *peer, const gchar *path);
