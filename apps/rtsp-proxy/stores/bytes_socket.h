// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gives the bytes of a title to a reader behind a socket, such as a worker process: the reader
// sends a BytesRequest, and gets the answer and as many bytes as the answer says.

#include "stores/bytes.h"

#define BYTES_REQUEST_MAX (16u << 20) // bytes
#define BYTES_REASON_MAX 1023         // bytes of text

typedef struct {
  guint64 offset;
  guint64 length; // 0: asks for the size of the title
} BytesRequest;

typedef struct {
  gint64 value; // the size, or the number of bytes that follow; less than asked for at the end of
                // the title. If they cannot be read, -1 - n: n bytes of text follow, the reason
} BytesAnswer;

// Returns the reader's end of a pair of sockets. A thread of a pool serves it while it sends
// requests, until all copies of that end are closed, and then calls store_bytes_leave(): call
// store_bytes_enter() before. Returns -1 with errno on failure.
int bytes_socket_new (StoreBytes *bytes);

// Opens a title for store_open(): counts a stream of `bytes`, and sets `*size` unless it is NULL.
// Takes ownership of `bytes`; NULL: they could not be opened, and `error` is set. Returns the
// reader's end, or -1 and sets `error`.
int bytes_socket_open (StoreBytes *bytes, guint64 *size, GError **error);
