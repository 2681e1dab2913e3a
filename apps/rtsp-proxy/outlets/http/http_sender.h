// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends bytes of a title to a socket with sendfile(), at the title's rate: one time slice at once
// to fill the player's buffer, then one slice each time slice, the first of them at once, too
// (pace/pacer.h, by block). So a player holds one to two slices. A title of unknown rate is sent as
// fast as the reader takes it, and a piece of a title as fast as the line is free, too
// (http_pieces.h). For one thread at a time.

#include "pace/pacer.h"
#include "stores/bytes.h"

typedef enum {
  HTTP_SENDER_DONE,
  HTTP_SENDER_AGAIN,       // call again at `wake_ns` at the latest, or once a region is ready
  HTTP_SENDER_SOCKET_FULL, // call again when the socket can be written
  HTTP_SENDER_GONE,        // the reader has closed the connection
  HTTP_SENDER_FAILED,      // the title cannot be read; `error` says why
} HttpSenderState;

typedef struct {
  // For the caller to read.
  guint64 sent;       // bytes
  guint64 starved[2]; // by HttpStarved
  gint64 wake_ns;
  gint64 deficit_ns;    // how much later than planned the current slice began
  gint64 full_since_ns; // since when the socket takes nothing; 0: it does
  GError *error;

  // Private.
  StoreBytes *bytes;
  StoreRegion *region, *next;
  StoreRegionDone ready;
  gpointer data;
  guint64 at, end;
  WeirPacer pacer;
  guint64 n_starved;
  gsize chunk, chunk_left; // of the packet at the front of the pacer
  gboolean begun;          // a byte of the packet has left
  gboolean was_full;       // the socket was full since the last packet
  gboolean is_piece;
  gint64 due_ns; // when the chunk of a piece may leave
} HttpSender;

// Prepares to send `length` bytes from byte `start` on. Keeps a reference to `bytes`. `ready` runs
// when a region is ready that was not: in any thread; it must not block.
void http_sender_init (HttpSender *self, StoreBytes *bytes, guint64 start, guint64 length,
    gboolean is_piece, StoreRegionDone ready, gpointer data);
void http_sender_clear (HttpSender *self);

// Sends what is due at `now_ns` of weir_now_ns().
HttpSenderState http_sender_run (HttpSender *self, int socket, gint64 now_ns);
