// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A part of the URLs of the HTTP listener that another outlet serves. The connection reads the
// request, asks for access and sends the answer; the route says what is asked and makes the answer.
// Call from any thread.

#include "access/decision.h"
#include "mounts/mounts.h"
#include "outlets/http/http_request.h"

typedef struct _HttpReply HttpReply;

// A request that was admitted, or that a route answers without asking for access. Its texts are
// valid until the reply is freed.
typedef struct {
  const HttpRequest *request;
  const Demand *demand;     // of the target that the route gave, or NULL: it gave none
  const Resolved *resolved; // of the demand; `mount` is NULL if there is no such target
  AccessPeer *visitor;
  AccessDecision *decided; // NULL: access was not asked for
  GInetAddress *address;   // of the client
  const gchar *peer;       // and its port
  gboolean names_us; // the Host header names this machine: a route that asks for access checks it
  // Call when the reply, which was not ready, may be. It does not block.
  void (*wake) (gpointer wake_data);
  gpointer wake_data;
} HttpAsked;

typedef struct {
  guint status;
  const gchar *type;   // media type of the body; NULL: the body is the status and `reason`, or
                       // nothing with 204
  const gchar *reason; // NULL: the status alone; valid until the reply is freed
  GString *headers;    // further headers, for http_answer_add()
  gint64 length;       // of the body; -1: the body ends with the connection
} HttpHead;

typedef struct {
  // Fills `head` and returns TRUE when the answer is known. Otherwise it is called again after
  // `wake`, or at `*wake_ns` of weir_now_ns(), which is WEIR_NEVER before the call.
  gboolean (*begin) (HttpReply *self, HttpHead *head, gint64 now_ns, gint64 *wake_ns);
  // Returns the next bytes of the body (transfer full). NULL: there are none now, or with
  // `*ended` set, none will come. NULL if `take_over` is not.
  GBytes *(*next) (HttpReply *self, gboolean *ended);
  // Says that so many bytes of the body have been sent. May be NULL.
  void (*sent) (HttpReply *self, gsize n);
  // Takes the client's socket after the head of an answer of unknown length; only the reply writes
  // to it from then on. The connection ends when the client closes it, or the reply shuts it down.
  // Returns FALSE if the socket has broken. NULL: `next` gives the body.
  gboolean (*take_over) (HttpReply *self, GSocket *socket);
  // Frees it; from then on it calls no `wake`.
  void (*free) (HttpReply *self);
} HttpReplyOps;

// The first field of a route's own reply.
struct _HttpReply {
  const HttpReplyOps *ops;
};

typedef struct {
  // Of the targets, such as "/hls/"; "/", and one without "/" at its end, is one target.
  const gchar *prefix;
  AccessAction action;
  // Returns the target of the mounts that the request is about (transfer full), such as "/cam?a=b".
  // NULL: access is not asked for.
  gchar *(*dup_target) (gpointer outlet, const gchar *target);
  // Makes the reply. `asked` is valid until the reply is freed.
  HttpReply *(*answer) (gpointer outlet, const HttpAsked *asked);
  gpointer outlet;
  // Pages of other sites may send their users' credentials, and read all answers. OPTIONS is
  // answered for the route, which has no such method itself.
  gboolean is_shared;

  // A route for other methods than GET and HEAD sets these, too.
  const gchar *suffix;  // in place of `prefix`: "whep" is for "/cam/whep" and "/cam/whep/SOMETHING"
  guint methods;        // of HttpMethod; 0: GET and HEAD
  const gchar *given;   // headers that pages of other sites may send; NULL: Authorization, Range
  const gchar *exposed; // headers of the answer that they may read, or NULL
  const gchar *accepts; // media type of the body of POST, or NULL
  // A POST does what pages of other sites may do with their users' credentials only: it is refused
  // if the user has sent none, unless `allow-origins` names the page.
  gboolean changes;
  // Reports whether a request begins a reader, whom another member of a cluster may serve. NULL:
  // none does.
  gboolean (*begins) (const HttpRequest *request);
} HttpRoute;

// Returns the route of the target, or NULL. The last one of `routes` has no prefix and no suffix.
const HttpRoute *http_route_find (const HttpRoute *routes, const gchar *target);

// Returns the end of the target that a route with `suffix` serves: what follows its path, from the
// suffix on, or NULL. (transfer none)
const gchar *http_route_find_suffix (const gchar *target, const gchar *suffix);

// Returns the methods of a target, of HttpMethod. `self` is NULL for a title.
guint http_route_get_methods (const HttpRoute *self);

// Adds the header Allow with these.
void http_route_add_allow (const HttpRoute *self, GString *answer);

// Adds the headers of an answer to OPTIONS: of the preflight of a browser (CORS), and what the
// route accepts.
void http_route_add_options (const HttpRoute *self, GString *answer);
