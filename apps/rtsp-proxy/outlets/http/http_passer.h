// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends the head of an answer and the shared blocks of a reply, many with one system call and
// without copies. For one thread at a time.

#include "outlets/http/http_route.h"

#define HTTP_PASSER_BLOCKS 16 // of one call

typedef enum {
  HTTP_PASSER_DONE,
  HTTP_PASSER_AGAIN, // the reply has no bytes now, and wakes the connection when it has
  HTTP_PASSER_FULL,  // call again when the socket can be written
  HTTP_PASSER_TURN,  // much was sent; call again after others have had their turn
  HTTP_PASSER_GONE,  // the reader has closed the connection
} HttpPasserState;

typedef struct {
  guint64 sent; // bytes, for the caller to read

  // Private.
  HttpReply *reply; // NULL: the head alone is sent
  const GString *head;
  GBytes *blocks[HTTP_PASSER_BLOCKS];
  guint n_blocks;
  gsize head_at, at; // `at`: in the first block
  gboolean ended;
} HttpPasser;

// Prepares to send `head` and the body of `reply`, which may be NULL. Both stay the caller's.
void http_passer_init (HttpPasser *self, const GString *head, HttpReply *reply);
void http_passer_clear (HttpPasser *self);

HttpPasserState http_passer_run (HttpPasser *self, int socket);
