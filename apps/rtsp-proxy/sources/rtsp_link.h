// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A connection to an RTSP server, over TCP or TLS, that never blocks. Call from the thread of
// rtsp_loop.h only, which also runs the callbacks.

#include <gio/gio.h>

#include "sources/rtsp_parser.h"
#include "sources/tls_trust.h"

// Most bytes that wait for room in the socket. A server that reads nothing is closed.
#define RTSP_LINK_BACKLOG (64 * 1024)

typedef struct {
  void (*connected) (gpointer data);
  // The connection could not be made, or has ended, by the server or a fault. Not called after
  // rtsp_link_free().
  void (*closed) (gpointer data, const gchar *reason);
  RtspParserOps messages;
} RtspLinkOps;

typedef struct _RtspLink RtspLink;

// Connects; over TLS if `trust` is not NULL. `ops` must stay valid.
RtspLink *rtsp_link_new (const gchar *host, guint16 port, const TlsTrust *trust, guint timeout_ms,
    const RtspLinkOps *ops, gpointer data);
// Closes the connection at once. May be called in a callback.
void rtsp_link_free (RtspLink *self);

// Sends bytes, or keeps them until there is room.
void rtsp_link_send (RtspLink *self, gconstpointer bytes, gsize len);

// Passes a channel to rtsp_parser_expect().
void rtsp_link_expect (RtspLink *self, guint8 channel);

// Reports whether bytes wait for room.
gboolean rtsp_link_is_full (const RtspLink *self);

// Returns the address of the server's end, of this end, or NULL while not connected. (transfer
// full)
GSocketAddress *rtsp_link_get_peer (const RtspLink *self);
GSocketAddress *rtsp_link_get_own (const RtspLink *self);
