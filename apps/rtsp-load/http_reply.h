// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the answers of an HTTP/1.1 server (RFC 9112) as they come.

#include <glib.h>

typedef struct {
  gboolean keeps; // set by the caller: the body is kept, not only counted
  guint status;
  gboolean closes; // the server closes the connection after this answer
  gchar *location, *cookie;
  GString *body;
  guint64 n_body;

  // Of http_reply.c.
  guint phase;
  gboolean chunked;
  guint64 left; // of the body or chunk
  GString *line;
} HttpReply;

void http_reply_init (HttpReply *self);
void http_reply_clear (HttpReply *self);

// Prepares for the next answer.
void http_reply_reset (HttpReply *self, gboolean keeps);

// Reads bytes. Returns how many belong to the answer, and sets `*done` at its end; -1 if the answer
// is malformed, or too long to be kept.
gssize http_reply_read (HttpReply *self, const gchar *data, gsize len, gboolean *done);

// Returns how many of the next bytes are body that is only counted; http_reply_skip() counts them.
gsize http_reply_skippable (const HttpReply *self);
gboolean http_reply_skip (HttpReply *self, gsize n);
