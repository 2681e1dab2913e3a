// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files share that serve a client: serve.c (how it is done, and the writing), transports.c
// (what stands for a reader in the library), requests.c (requests that wait).

#include "weir-rtsp.h"

// One that waits, or is handled anew.
typedef struct {
  GstRTSPMessage *message;
  gsize n_bytes;
  gboolean deferred; // has been put aside once
} Request;

// What we know of a client: hangs on it, and goes with it.
typedef struct {
  GstRTSPClient *client; // ours hangs on it
  gboolean stock;        // TLS: the library keeps writing
  gint taken, closing;   // atomic
  GObject *connection;   // WeirConnection; set once, before anything is written
  gchar *token;
  GMainContext *context; // of the client's thread
  GPtrArray *leaving;    // transports of the TEARDOWN at hand
  GPtrArray *unnamed;    // transports of the PLAY at hand that the sinks are not to know yet
  GstRTSPAuth *auth;     // the program's, behind ours
  Request *again;        // is handled anew. Of the client's thread

  GMutex lock; // all below
  guint cseq;
  GPtrArray *kept; // GWeakRef of sessions that don't expire
  gchar *close_reason;
  GQueue requests;  // the one that is put aside, and those behind it
  gsize n_bytes;    // of all of them
  gboolean waits;   // the first of them
  gboolean swallow; // the answer that the library is about to give
  gboolean ended;
} Served;

// ---- serve.c ----

// NULL: it is not served here.
Served *weir_served_get (GstRTSPClient *client);

// Writes to the client from now on, if it is not done yet and this is its thread.
void weir_served_take_over (Served *self);

// Calls `func` with a GWeakRef of the client in its thread, which may have ended: then nobody would
// let a client go that is held.
void weir_served_run (Served *self, GSourceFunc func, gint priority);

// It would find the end of the connection by itself, but only after all that the client has asked.
void weir_served_close_soon (Served *self);

// A GWeakRef and its memory.
void weir_served_free_weak (gpointer weak);

// ---- transports.c ----

// Handlers of the client's signals.
GstRTSPStatusCode weir_transports_on_pre_setup (
    GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_setup (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
GstRTSPStatusCode weir_transports_on_pre_play (
    GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_play (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_pause (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);
void weir_transports_on_teardown (GstRTSPClient *client, GstRTSPContext *ctx, Served *self);

// The answer is about to leave, whatever it says.
void weir_transports_let_name (Served *self);

// A PLAY that was to go elsewhere is refused: what was sent goes on, if the program has stopped it.
void weir_transports_play_on (GstRTSPSessionMedia *media);

// The sink has let them go. The library forgets the channels of those that are TCP.
void weir_transports_restore_leaving (Served *self);

// Lets sessions expire again: this one, or all.
void weir_transports_let_expire (Served *self, GstRTSPSession *session);

// ---- requests.c ----

// From now on requests wait behind one that is put aside.
void weir_requests_guard (Served *self);
void weir_request_free (gpointer request);

// The answer at hand does not leave: its request is handled anew later.
gboolean weir_requests_is_put_aside (Served *self);

// Whether these are that answer, which then counts as gone.
gboolean weir_requests_swallow (Served *self, const GstRTSPMessage *messages, guint n);

// What the library refuses before it asks anybody, as it knows no such session, is to be answered
// in its turn, too. Nothing has come of it. What was no request at all has no turn.
void weir_requests_hold_refused (Served *self, GstRTSPContext *ctx);
