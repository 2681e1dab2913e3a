// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sends HTTP requests without blocking: answers of a bounded size, and no redirects, which could
// lead credentials to another server. All of a client is in the thread whose default context it was
// made with.

#include <libsoup/soup.h>

typedef struct _HttpClient HttpClient;
typedef struct _HttpCall HttpCall;

typedef struct {
  guint status;  // of the answer
  GBytes *body;  // of http_client_send(): its body
  gsize size;    // of its body
  GError *error; // set if there was no whole answer in time; then the fields above are unset
} HttpAnswer;

// Called once. `answer` belongs to the client.
typedef void (*HttpDone) (const HttpAnswer *answer, gpointer data);

// Requests beyond `connections_max` at the same time wait for a connection.
HttpClient *http_client_new (guint connections_max);

// Ends all requests, whose `done` is called with an error.
void http_client_free (HttpClient *self);

SoupSession *http_client_get_session (HttpClient *self); // (transfer none)

// Gets `url`, or posts `json` there if it is not NULL. `url` must be valid. The whole exchange,
// with the wait for a connection, has one deadline. An answer of more than `size_max` bytes is an
// error. For clients of the main thread only.
void http_client_send (HttpClient *self, const gchar *url, GBytes *json, guint timeout_ms,
    gsize size_max, HttpDone done, gpointer data);

// The same for a message (transfer full).
void http_client_send_message (HttpClient *self, SoupMessage *message, guint timeout_ms,
    gsize size_max, HttpDone done, gpointer data);

// Sends a message (transfer full), and reads the body of the answer into `bytes` until it ends or
// has `size`. `head`, which may be NULL, is called when the headers have come; FALSE ends the
// request: the body is of no use. The call is valid until `done`.
HttpCall *http_client_call (HttpClient *self, SoupMessage *message, guint8 *bytes, gsize size,
    gboolean (*head) (gpointer data), HttpDone done, gpointer data);

// Ends the request, whose `done` is called soon, with an error.
void http_call_cancel (HttpCall *call);
