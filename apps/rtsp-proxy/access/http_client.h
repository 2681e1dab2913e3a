// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends HTTP requests without blocking: one deadline for a whole exchange, answers of a bounded
// size, and no redirects, which could lead credentials to another server. Call from the main thread
// only.

#include <gio/gio.h>

typedef struct _HttpClient HttpClient;

typedef struct {
  guint status;  // of the answer
  GBytes *body;  // its body
  GError *error; // set if there was no whole answer in time; then the fields above are unset
} HttpAnswer;

// Called once, on the main thread. `answer` belongs to the client.
typedef void (*HttpDone) (const HttpAnswer *answer, gpointer data);

// Requests beyond `connections_max` at the same time wait for a connection, within their deadline.
HttpClient *http_client_new (guint connections_max);

// Ends all requests, whose `done` is called with an error.
void http_client_free (HttpClient *self);

// Gets `url`, or posts `json` there if it is not NULL. `url` must be valid. An answer of more than
// `size_max` bytes is an error.
void http_client_send (HttpClient *self, const gchar *url, GBytes *json, guint timeout_ms,
    gsize size_max, HttpDone done, gpointer data);
