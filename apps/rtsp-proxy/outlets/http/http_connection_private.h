// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The parts of a connection: requests (http_connection.c), titles (http_connection_title.c), and
// the replies of routes (http_connection_reply.c). All run in its task.

#include "outlets/http/http_connection.h"
#include "outlets/http/http_opening.h"
#include "outlets/http/http_passer.h"
#include "outlets/http/http_reader.h"
#include "outlets/http/http_refusal.h"
#include "outlets/http/http_sender.h"

#define NS_PER_MS 1000000
#define NS_PER_S G_GINT64_CONSTANT (1000000000)

typedef enum {
  STATE_READING,  // a request
  STATE_ASKING,   // for access
  STATE_OPENING,  // the title
  STATE_WRITING,  // the head of the answer, or all of it
  STATE_SENDING,  // the title
  STATE_REPLYING, // waiting for the reply of a route
  STATE_PASSING,  // the reply
  STATE_TAKEN,    // the reply itself writes to the socket
  STATE_LINGERING,
  STATE_ENDED,
} State;

struct _HttpConnection {
  WeirTask task;
  LoopWatch watch;      // of the socket
  gatomicrefcount refs; // one for the loop, one for each case that is not decided
  const HttpContext *context;
  GSocket *socket;
  int fd; // of the socket
  GInetAddress *address;
  AccessPeer *visitor;
  gchar *peer;
  gint gone, closing; // atomic: the client has closed the connection; it is to be closed
  gint can_read;      // atomic: bytes may have come since the last that were received

  // The fields below are the task's.
  State state;
  gint64 wake_ns; // when the task runs again at the latest
  Limits limits;
  GByteArray *in; // received
  RequestCheck check;
  gint64 deadline_ns; // of the request, or of writing the answer
  gint64 earliest_ns; // when a request would have come at the allowed rate
  gsize lingered;
  HttpRequest request;
  Demand *demand;
  Resolved resolved; // `mount` is NULL if nothing was found
  AccessCase *asked;
  gchar *place; // the mount on which the reader has a place
  HttpOpening *opening;
  StoreBytes *entered; // the title as a stream of its store; NULL: not counted
  gboolean has_piece;  // of the address, under way
  HttpBody body;
  gboolean keeps;   // the connection stays open after the answer
  GString *headers; // of a route's reply
  GString *out;     // the answer
  gsize out_at;
  HttpSender sender;
  HttpReader *reader;
  const HttpRoute *route; // that answers the request, or NULL
  HttpAsked question;
  HttpReply *reply;
  HttpPasser passer;
  gboolean takes_over; // the reply takes the socket over after the head
};

// Wakes the task. Call from any thread.
void http_connection_wake (gpointer connection);

// A step returns whether the task goes on with the next step. http_connection_wait_until() returns
// FALSE: the task goes on at `wake_ns` at the latest.
gboolean http_connection_wait_until (HttpConnection *self, gint64 wake_ns);
gboolean http_connection_end (HttpConnection *self);

// Begins the answer: its head is in `out`.
void http_connection_begin_answer (HttpConnection *self, guint status);

// Answers with a text; `reason` may be NULL.
gboolean http_connection_answer_text (HttpConnection *self, guint status, const gchar *reason);

// Answers with the reason of a limit, which is logged, too.
gboolean http_connection_answer_refused (
    HttpConnection *self, guint status, RefusedReason reason, const gchar *text);

// Ends the answer. The connection goes on with the next request, or closes.
gboolean http_connection_end_answer (HttpConnection *self, gint64 now);

// ---- titles ----

gboolean http_connection_open_title (HttpConnection *self);
gboolean http_connection_step_opening (HttpConnection *self, gint64 now);
gboolean http_connection_step_sending (HttpConnection *self, gint64 now);

// ---- routes ----

// Sets `route` and `demand` of the request. Returns whether access is asked for.
gboolean http_connection_find_route (HttpConnection *self);

gboolean http_connection_ask_route (HttpConnection *self);
gboolean http_connection_step_replying (HttpConnection *self, gint64 now);
gboolean http_connection_step_passing (HttpConnection *self, gint64 now);
gboolean http_connection_step_taken (HttpConnection *self, gint64 now);
void http_connection_clear_reply (HttpConnection *self);
