// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A UDP socket of an upstream that sends without being asked. Anybody can send to it: who is heard
// first is listened to, and nobody else until that one has fallen silent.

#include <gio/gio.h>

#include "sources/pull.h"

typedef struct {
  guint64 n_foreign; // datagrams of another sender
  guint64 n_wrong;   // that are not what they should be
  guint64 n_lost;    // for which the socket had no room
} UdpStats;

typedef struct _UdpInput UdpInput;

// Listens from now on.
UdpInput *udp_input_new (const PullEndpoint *endpoint, GError **error);
void udp_input_free (gpointer self);

// Adds a udpsrc that reads from the socket to the bin; NULL and an error if there is none.
GstElement *udp_input_add_source (UdpInput *self, GstBin *bin, GError **error);

// May the datagram's sender be listened to at `now`? If not it is counted.
gboolean udp_input_admits (UdpInput *self, GstBuffer *datagram, gint64 now);
// It was what it should be: its sender is the one. TRUE if that one has begun, or begun again.
gboolean udp_input_accept (UdpInput *self, GstBuffer *datagram, gint64 now);
// It was not.
void udp_input_refuse (UdpInput *self);

// Is the datagram, which came elsewhere, of this one's sender, whatever its port? It may be if
// there is none yet.
gboolean udp_input_is_of_sender (UdpInput *self, GstBuffer *datagram);

// Sends a datagram to who was accepted last; to nobody, if there is none. Never waits.
void udp_input_answer (UdpInput *self, const guint8 *data, gsize size);

void udp_input_add_stats (UdpInput *self, UdpStats *stats);

// One line, if anything was counted.
void udp_stats_log (const UdpStats *stats, const gchar *uri);
