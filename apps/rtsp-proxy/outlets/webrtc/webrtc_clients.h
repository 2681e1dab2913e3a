// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The clients by the names of their sessions, which are secrets: who knows the URL of a session may
// change and end it. Call from any thread.

#include "access/connections.h"
#include "outlets/webrtc/webrtc_client.h"

typedef struct _WebrtcClients WebrtcClients;

// `port` and `loop` are those of the clients.
WebrtcClients *webrtc_clients_new (WebrtcPort *port, Loop *loop);

// Call after webrtc_clients_end() when webrtc_clients_count() is 0.
void webrtc_clients_free (WebrtcClients *self);

// A session as a request sees it.
typedef struct {
  WebrtcClient *client;
  gchar *name; // 128 random bits, in hexadecimal digits
  gchar *etag; // with its quotation marks
} WebrtcEntry;

void webrtc_entry_clear (WebrtcEntry *session);

// Counts a session of a client in. Returns NULL, or why there are too many (transfer full). Then
// call webrtc_clients_add() or webrtc_clients_leave().
gchar *webrtc_clients_enter (WebrtcClients *self, GInetAddress *address, const gchar *peer);
void webrtc_clients_leave (WebrtcClients *self, GInetAddress *address);

// What the clients of the table are made with.
const WebrtcContext *webrtc_clients_get_context (WebrtcClients *self);

// Opens a new client (webrtc_client_open()), which is counted until it ends. Takes its reference.
// Fills `session`.
void webrtc_clients_add (
    WebrtcClients *self, WebrtcClient *client, GInetAddress *address, WebrtcEntry *session);

// Finds the session with the first characters of `name`, which may have more behind a "?". Returns
// FALSE if there is none.
gboolean webrtc_clients_find (WebrtcClients *self, const gchar *name, WebrtcEntry *session);

// Gives the session another ETag.
void webrtc_clients_renew (WebrtcClients *self, WebrtcEntry *session);

// Ends the readers of a presentation, or all clients if it is NULL.
void webrtc_clients_end (WebrtcClients *self, Presentation *presentation, const gchar *reason);

guint webrtc_clients_count (WebrtcClients *self);
