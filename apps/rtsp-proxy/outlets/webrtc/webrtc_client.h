// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client of WebRTC: what readers and publishers have in common. It has one session, which its
// offer began, and ends once: the session closes, or webrtc_client_end() is called. Embed it in
// them, first. Reference counted. Call all functions from any thread.

#include "base/loop.h"
#include "mounts/presentation.h"
#include "outlets/webrtc/sdp_answer.h"
#include "outlets/webrtc/webrtc_port.h"
#include "outlets/webrtc/webrtc_session.h"

typedef struct _WebrtcClient WebrtcClient;

// What all clients share.
typedef struct {
  WebrtcPort *port;
  Loop *loop; // does what is due, and what must not delay the port's thread
  // The client has ended. Called once, in the thread of `loop`.
  void (*ended) (WebrtcClient *client, gpointer data);
  gpointer data;
} WebrtcContext;

typedef struct {
  WebrtcSessionEvents events; // of its session; they get the client
  gchar *(*write_answer) (WebrtcClient *self, const AnswerOwn *own); // (transfer full)

  // The loop's thread calls these. `due` is for loop_set_due(). `leave` comes when the client ends,
  // while it can still send; it may be NULL. `end` comes after that: no event of the session runs
  // or comes any more.
  void (*due) (WebrtcClient *self, gint64 now);
  void (*leave) (WebrtcClient *self);
  void (*end) (WebrtcClient *self, const gchar *reason);

  void (*free) (WebrtcClient *self); // the whole structure; from any thread
} WebrtcClientOps;

struct _WebrtcClient {
  LoopWatch watch; // first
  const WebrtcClientOps *ops;
  const WebrtcContext *context;
  SdpOffer *offer;
  Presentation *presentation; // that it reads; NULL: none
  gchar *peer;                // address and port of its request
  guint64 id;
  gchar *cname;
  // Guards the fields below, and those of readers and publishers that say so. Events of the session
  // that take it wait until the client knows the session.
  GMutex lock;
  WebrtcSession *session; // NULL: closed

  // Private:
  gchar *ufrag; // of the client, for ICE; guarded, too
  gboolean is_open;
  gchar *reason; // of webrtc_client_end(); NULL: it was not called
  gatomicrefcount refs;
};

// Initialises it, with one reference. `context` must outlive it. Takes ownership of the offer.
void webrtc_client_init (WebrtcClient *self, const WebrtcClientOps *ops,
    const WebrtcContext *context, SdpOffer *offer, const gchar *peer);

// Begins its session. From now on it is in the loop, which ends it if it ends already. Call it
// once.
void webrtc_client_open (WebrtcClient *self);

WebrtcClient *webrtc_client_ref (WebrtcClient *self);
void webrtc_client_unref (WebrtcClient *self);

// Runs a function in the loop's thread, with a reference that it releases.
void webrtc_client_post (WebrtcClient *self, void (*function) (gpointer client));

// Ends the client soon. `reason` is logged.
void webrtc_client_end (WebrtcClient *self, const gchar *reason);
gboolean webrtc_client_is_ending (WebrtcClient *self);

// Notes that the client consents (webrtc_session_note_alive()).
void webrtc_client_note_alive (WebrtcClient *self);

// Returns the SDP answer, or NULL if the client has ended. (transfer full)
gchar *webrtc_client_write_answer (WebrtcClient *self);

// Reads a part of a description that the client sends later (sdp_offer_read_fragment()).
gboolean webrtc_client_read_fragment (
    WebrtcClient *self, GBytes *body, gchar **ufrag, GError **error);

// Reports whether the client has this user name for ICE now.
gboolean webrtc_client_is_same (WebrtcClient *self, const gchar *ufrag);

// Restarts ICE for a client with another user name. Returns the lines for it, or NULL if the client
// has ended. (transfer full)
gchar *webrtc_client_restart (WebrtcClient *self, const gchar *ufrag);
