// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the replies of WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep-03) have in common: an
// endpoint, such as /PATH/whep, takes an offer by POST, and answers with the URL of a session,
// /PATH/whep/NAME, which PATCH changes and DELETE ends.

#include "config/webrtc_config.h"
#include "outlets/http/http_route.h"
#include "outlets/webrtc/webrtc_clients.h"

// What the requests need.
typedef struct {
  Mounts *mounts;
  WebrtcClients *clients;
  WebrtcPort *port;
  GStrv stun_servers; // URIs, or NULL
} WebrtcEndpoints;

// The first field of a reply.
typedef struct {
  HttpReply reply; // first
  const HttpAsked *asked;
  WebrtcEndpoints *endpoints;
  SdpOffer *offer; // NULL: none, or its client has it
  guint status;    // 0: not known yet

  // Private:
  GString *headers;
  gchar *reason;
  const gchar *type; // of the body; NULL: a text
  GBytes *body;      // NULL: none
  gboolean is_counted;
} WebrtcReply;

// Makes the route of the URLs that end in `suffix`, a static text. `answer` is that of HttpRoute,
// for `endpoints`.
HttpRoute webrtc_reply_make_route (WebrtcEndpoints *endpoints, const gchar *suffix,
    AccessAction action, gchar *(*dup_target) (gpointer endpoints, const gchar *target),
    HttpReply *(*answer) (gpointer endpoints, const HttpAsked *asked));

// Returns the target of the mount (transfer full), or NULL: the name of a session is secret, so
// access is asked for before there is one only.
gchar *webrtc_reply_dup_target (const gchar *target, const gchar *suffix);

// Initialises a reply. Then webrtc_reply_take() answers the request, or calls `take_offer` for a
// POST to an endpoint, which may leave the answer for later.
void webrtc_reply_init (
    WebrtcReply *self, const HttpReplyOps *ops, WebrtcEndpoints *endpoints, const HttpAsked *asked);
void webrtc_reply_take (
    WebrtcReply *self, const gchar *suffix, void (*take_offer) (WebrtcReply *self));
void webrtc_reply_clear (WebrtcReply *self);

// Functions of HttpReplyOps. The first one fills the head of an answer that is known.
void webrtc_reply_fill (WebrtcReply *self, HttpHead *head);
GBytes *webrtc_reply_next (HttpReply *self, gboolean *ended);

// Set the answer. Take ownership of `reason`, which may be NULL, and of the error.
void webrtc_reply_answer (WebrtcReply *self, guint status, gchar *reason);
void webrtc_reply_answer_error (WebrtcReply *self, guint status, GError *error);

// Reads the offer of the request. Answers, and returns FALSE, if there is no proper one.
gboolean webrtc_reply_read_offer (WebrtcReply *self);

// Counts a session of the client. Answers, and returns FALSE, if there are too many.
gboolean webrtc_reply_enter (WebrtcReply *self);

// Opens a client, which has the offer and was counted, and answers with its session. Takes
// ownership.
void webrtc_reply_answer_session (WebrtcReply *self, WebrtcClient *client);
