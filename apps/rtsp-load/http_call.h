// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One HTTP/1.1 request on a connection of its own. Nothing here blocks.

#include "http_reply.h"
#include "target.h"

typedef enum {
  HTTP_CALL_OPEN,
  HTTP_CALL_DONE,  // the answer is in `reply`
  HTTP_CALL_FAILED // `problem` says why
} HttpCallState;

typedef struct {
  HttpCallState state;
  const gchar *problem;
  HttpReply reply;

  // Of http_call.c.
  int epoll, fd; // fd is -1: closed
  guint64 tag;
  gboolean connecting;
  GString *out;
} HttpCall;

// Events of the connection come to `epoll` with `tag`.
void http_call_init (HttpCall *self, int epoll, guint64 tag);
void http_call_clear (HttpCall *self);

// Begins a request to the server of `target`. `path`: with the query. `fields`: further header
// fields, each with its CRLF. `body` may be empty.
HttpCallState http_call_begin (HttpCall *self, const Target *target, const gchar *method,
    const gchar *path, const gchar *fields, const gchar *body);

// Goes on after an event. Returns the state after it.
HttpCallState http_call_on_event (HttpCall *self);
