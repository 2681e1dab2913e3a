// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A UDP socket for an upstream that sends to this host. Any host can send to the socket, so the
// first sender is locked in until it falls silent.

#include <gio/gio.h>

#include "sources/pull.h"

// Bytes of the receive buffer, as SO_RCVBUF is set: room for a keyframe, or for the packets that
// arrive while the thread cannot run.
#define UDP_INPUT_BUFFER (4 * 1024 * 1024)

typedef struct {
  guint64 n_foreign; // datagrams from other senders
  guint64 n_wrong;   // malformed datagrams
  guint64 n_lost;    // datagrams dropped because the socket's buffer was full
} UdpStats;

typedef struct _UdpInput UdpInput;

// Opens the socket, or takes the one that the endpoint has. Returns NULL and sets `error` if that
// fails.
UdpInput *udp_input_new (const PullEndpoint *endpoint, GError **error);
void udp_input_free (gpointer self);

// Adds to `bin` a udpsrc that reads from the socket. Returns NULL and sets `error` if udpsrc is
// missing. (transfer none)
GstElement *udp_input_add_source (UdpInput *self, GstBin *bin, GError **error);

// Reports whether the datagram's sender is accepted at `now` (ns, monotonic). If not, counts the
// datagram as foreign.
gboolean udp_input_admits (UdpInput *self, GstBuffer *datagram, gint64 now);
// Locks in the sender of a valid datagram. Returns TRUE if the sender has begun, or begun again.
gboolean udp_input_accept (UdpInput *self, GstBuffer *datagram, gint64 now);
// Counts a malformed datagram.
void udp_input_refuse (UdpInput *self);

// Returns how many datagrams the kernel dropped, because the socket's buffer was full, since the
// last call. Asks the kernel once a second at most; in between it returns 0.
guint32 udp_input_take_overflow (UdpInput *self, gint64 now);

// Adds the socket's counts to `stats`.
void udp_input_add_stats (UdpInput *self, UdpStats *stats);

// Logs one line if a datagram was dropped.
void udp_stats_log (const UdpStats *stats, const gchar *uri);
