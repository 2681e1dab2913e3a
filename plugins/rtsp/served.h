// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The declarations that the files serving a client share: serve.c (overview, and writing),
// transports.c (sessions and transports), requests.c (deferred requests).

#include "weir-rtsp.h"

// A request that waits, or is handled again.
typedef struct {
  GstRTSPMessage *message;
  gsize n_bytes;
  gboolean deferred; // by weir_client_defer()
} Request;

// The state of a client, which is freed with it.
typedef struct {
  GstRTSPClient *client; // not a reference
  gboolean stock;        // gst-rtsp-server writes by itself, because of TLS
  gint taken, closing;   // atomic
  gint written;          // atomic; `connection` is set
  GObject *connection;   // WeirConnection; set once, before the first write
  gchar *token;
  GMainContext *context; // of the client's thread
  GPtrArray *leaving;    // transports of the current TEARDOWN
  GPtrArray *unnamed;    // transports of the current PLAY that the sinks do not know yet
  GPtrArray *masked;     // transports of the current PLAY that say WEIR_RELAY_LOWER_TRANS
  GstRTSPAuth *auth;     // the program's; the guard asks it
  Request *again;        // the request that is handled again; for the client's thread only

  GMutex lock; // guards all below
  guint cseq;
  GPtrArray *kept; // GWeakRef of sessions that do not expire
  gchar *close_reason;
  GQueue requests;  // the deferred request, and those behind it
  gsize n_bytes;    // the size of all of them
  gboolean waits;   // the first of them is deferred
  gboolean swallow; // do not send the next response of gst-rtsp-server
  gboolean ended;
} Served;

// ---- serve.c ----

// Returns NULL if Weir does not serve the client.
Served *weir_served_get (GstRTSPClient *client);

// Takes over writing to the client, if this is its thread. Further calls have no effect.
void weir_served_take_over (Served *self);

// Calls `func` in the client's thread with a GWeakRef of the client. A strong reference would leak
// if the thread has ended.
void weir_served_run (Served *self, GSourceFunc func, gint priority);

// Closes the client soon. Without this, gst-rtsp-server would first handle all pending requests.
void weir_served_close_soon (Served *self);

// Clears and frees a GWeakRef.
void weir_served_free_weak (gpointer weak);

// ---- transports.c ----

// Reports whether the stream that a SETUP names plays over the connection. The SETUP must have a
// session and a URL.
gboolean weir_transports_plays (Served *self, GstRTSPContext *ctx);

// Handlers of the client's signals.
GstRTSPStatusCode weir_transports_on_pre_setup (
    GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_setup (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
GstRTSPStatusCode weir_transports_on_pre_play (
    GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_play (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_pause (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_teardown (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);

// Removes the transports of the current PLAY from their streams, so that gst-rtsp-server adds them,
// also to the sinks, after the response. Call before each response is sent.
void weir_transports_let_name (Served *self);

// Lets the transports of the current PLAY say UDP again. Further calls have no effect.
void weir_transports_unmask (Served *self);

// Continues a playing media after a refused PLAY, if the program has stopped it for a seek.
void weir_transports_play_on (GstRTSPSessionMedia *media);

// Makes the transports of a TEARDOWN say TCP again, so that gst-rtsp-server forgets their channels.
// Call when the sinks have removed their readers.
void weir_transports_restore_leaving (Served *self);

// Lets `session` expire again, or all sessions of the client if it is NULL.
void weir_transports_let_expire (Served *self, GstRTSPSession *session);

// ---- requests.c ----

// Makes requests wait behind a deferred one from now on.
void weir_requests_guard (Served *self);
void weir_request_free (gpointer request);

// Reports whether the current request was deferred, so that its response is not sent.
gboolean weir_requests_is_put_aside (Served *self);

// Returns TRUE, once, if `messages` are the response to the deferred request, which is not sent.
gboolean weir_requests_swallow (Served *self, const GstRTSPMessage *messages, guint n);

// Defers a request that gst-rtsp-server refuses before it asks the guard, for example because the
// session does not exist: its response must not overtake those of the requests before it. Ignores
// messages that are not requests.
void weir_requests_hold_refused (Served *self, GstRTSPContext *ctx);
