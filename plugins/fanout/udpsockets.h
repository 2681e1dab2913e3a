// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The UDP sockets of a sink, one for IPv4 and one for IPv6: opens or borrows them, sets their
// options, and joins multicast groups. Nothing here locks.

#include <gio/gio.h>

G_BEGIN_DECLS

// The properties of the sink that concern its sockets. Strings and sockets are borrowed.
typedef struct {
  GSocket *socket;
  GSocket *socket_v6;
  const gchar *bind_address;
  gint bind_port;
  gint buffer_size;
  gint qos_dscp;
  const gchar *multicast_iface;
  gboolean auto_multicast;
  gint ttl;
  gint ttl_mc;
  gboolean loop;
} WeirUdpConfig;

typedef struct {
  GSocket *v4;
  GSocket *v6;
  gboolean borrowed; // at least one is a property of the sink
} WeirUdpSockets;

// Opens the sockets, or borrows those of `config`. Sets `buffer_short` if a send buffer is smaller
// than `config->buffer_size`.
gboolean weir_udp_sockets_open (WeirUdpSockets *sockets, const WeirUdpConfig *config,
    GCancellable *cancellable, gboolean *buffer_short, GError **error);

// Closes the sockets that were opened here; `close` closes borrowed ones too.
void weir_udp_sockets_close (WeirUdpSockets *sockets, gboolean close);

void weir_udp_sockets_set_qos (const WeirUdpSockets *sockets, gint qos_dscp);
void weir_udp_sockets_set_max_pacing_rate (const WeirUdpSockets *sockets, guint64 bits_per_s);

// Returns the socket that reaches an address of this family, or NULL. An IPv6 socket serves IPv4 if
// there is no other.
GSocket *weir_udp_sockets_pick (const WeirUdpSockets *sockets, GSocketFamily family);

// Sets the TTL for an address; if it is a multicast address, joins its group and sets the loop
// option.
gboolean weir_udp_sockets_enter (const WeirUdpSockets *sockets, const WeirUdpConfig *config,
    GInetAddress *address, GError **error);
void weir_udp_sockets_leave (
    const WeirUdpSockets *sockets, const WeirUdpConfig *config, GInetAddress *address);

// Returns the address of a numeric host at once, or resolves a host name, which may block. Returns
// NULL and an error if it fails; the caller owns the result.
GInetAddress *weir_udp_resolve (const gchar *host, GCancellable *cancellable, GError **error);

G_END_DECLS
