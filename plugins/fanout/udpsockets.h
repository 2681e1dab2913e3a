// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The one or two UDP sockets of a sink: made or borrowed, set up, and told about multicast groups.
// None of this knows the element; nothing here locks.

#include <gio/gio.h>

G_BEGIN_DECLS

// What the sockets are to be. Strings and sockets are borrowed.
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
  gboolean borrowed; // at least one was given
} WeirUdpSockets;

// Makes the sockets. `buffer_short` is set if a send buffer came out smaller than asked.
gboolean weir_udp_sockets_open (WeirUdpSockets *sockets, const WeirUdpConfig *config,
    GCancellable *cancellable, gboolean *buffer_short, GError **error);

// Lets them go; `close` closes them even if they were borrowed.
void weir_udp_sockets_close (WeirUdpSockets *sockets, gboolean close);

void weir_udp_sockets_set_qos (const WeirUdpSockets *sockets, gint qos_dscp);
void weir_udp_sockets_set_max_pacing_rate (const WeirUdpSockets *sockets, guint64 bits_per_s);

// The socket that reaches an address of this family, or NULL. An IPv6 socket serves IPv4 too if
// there is no other.
GSocket *weir_udp_sockets_pick (const WeirUdpSockets *sockets, GSocketFamily family);

// Joins a multicast address's group, and sets TTL and loop.
gboolean weir_udp_sockets_enter (const WeirUdpSockets *sockets, const WeirUdpConfig *config,
    GInetAddress *address, GError **error);
void weir_udp_sockets_leave (
    const WeirUdpSockets *sockets, const WeirUdpConfig *config, GInetAddress *address);

// A numeric address at once, a name by the resolver.
GInetAddress *weir_udp_resolve (const gchar *host, GCancellable *cancellable, GError **error);

G_END_DECLS
