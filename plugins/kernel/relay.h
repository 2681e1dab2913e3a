// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Relays one stream of RTP to many readers, as a translator that changes no packet (RFC 3550,
// section 7.1). The packets are relayed by a program at the ingress of the network device where
// possible, else by a thread of the relay. RTCP always goes by the thread: the sender's to all
// readers, the readers' to the sender.
//
// Whenever something changes, the thread takes over, and gives back when it has sent all that it
// got. So no packet is lost, sent twice or overtaken by a change. If the thread does not keep up
// with the stream, it drops packets to give back.

#include <gio/gio.h>

#include "core/net/address.h"

G_BEGIN_DECLS

typedef struct weir_relay WeirRelay;

typedef struct {
  guint64 packets;            // RTP packets of the stream
  guint64 kernel_packets;     // those of them that the program relayed
  guint64 due;                // a packet is due once to each reader
  guint64 sent;               // of those due
  guint64 no_buffers, failed; // of those due: dropped by a full queue, or with another error
  guint64 backlog;            // of those due: dropped because the thread did not keep up
  guint64 rtcp;               // RTCP packets, of either side
  guint64 foreign, malformed; // dropped: of another sender, or neither RTP nor RTCP
  guint64 longest_ns;         // most time that the clones of one packet took
  guint readers;
  const gchar *kernel; // "ingress", or why the program does not relay
} WeirRelayStats;

// Receives RTP at an IPv4 address of this host and RTCP at the next port. The first sender of RTP
// is relayed; another one is after a second of silence. Returns NULL and an error if the ports
// cannot be opened. Call all functions from any thread, weir_relay_free() last.
WeirRelay *weir_relay_new (const WeirAddress *address, GError **error);
void weir_relay_free (WeirRelay *self);

// Lets the program relay if `on`. Returns FALSE and an error if it cannot be loaded; then the
// thread relays.
gboolean weir_relay_set_kernel (WeirRelay *self, gboolean on, GError **error);

// Replaces the readers. Those that stay lose nothing.
void weir_relay_set_readers (WeirRelay *self, const WeirAddress *readers, guint n);

// Sets `stats`; its counts are from the beginning on. Sums are exact while no packet is on its way.
void weir_relay_get_stats (WeirRelay *self, WeirRelayStats *stats);

G_END_DECLS
