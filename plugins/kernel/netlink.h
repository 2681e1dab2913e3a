// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the routes, neighbours and network devices of the system (rtnetlink). Addresses are IPv4,
// in network byte order.

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct {
  guint32 device; // interface index
  guint32 via;    // address of the next hop: a gateway, or the destination itself
  guint32 source; // address from which packets to the destination are sent
} WeirNetRoute;

typedef struct {
  guint32 device;
  guint8 address[6];
  gboolean ethernet; // packets over it have Ethernet headers and need hardware addresses
  gboolean up;
  gboolean gone;
  gchar name[16];
} WeirNetDevice;

typedef struct {
  guint32 device;
  guint32 address;
  guint8 hardware[6];
  gboolean usable; // `hardware` is known
} WeirNetNeighbour;

// What has changed. Each gets `data`.
typedef struct {
  void (*device) (const WeirNetDevice *device, gpointer data);
  void (*neighbour) (const WeirNetNeighbour *neighbour, gpointer data);
  void (*routes) (gpointer data);
} WeirNetChanges;

// Open a socket for requests, and one that is told of changes. Return a negative errno if that
// fails.
int weir_netlink_open (void);
int weir_netlink_watch (void);

// Finds the route to a destination for packets from `source`, or from any address if it is 0.
// Returns FALSE if there is none, or if it is not plain: local, multicast, a tunnel, or with an MTU
// of its own.
gboolean weir_netlink_find_route (int fd, guint32 to, guint32 source, WeirNetRoute *route);

// Calls `changes` for all devices, and for all neighbours.
gboolean weir_netlink_list (int fd, const WeirNetChanges *changes, gpointer data);

// Calls `changes` for what the watching socket has received. Returns FALSE if changes were lost.
gboolean weir_netlink_read (int fd, const WeirNetChanges *changes, gpointer data);

G_END_DECLS
