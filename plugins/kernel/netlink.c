// SPDX-License-Identifier: LGPL-2.1-or-later
#include "netlink.h"

#include <errno.h>
#include <linux/lwtunnel.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER 65536
#define WATCH_BUFFER (4 << 20) // bytes, for a burst of changes of neighbours

typedef struct {
  struct nlmsghdr header;
  union {
    struct rtmsg route;
    struct ndmsg neighbour;
    struct ifinfomsg device;
  } body;
  char attributes[64];
} Request;

// ---- sockets ----

static int
open_socket (guint32 groups)
{
  struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = groups };
  int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

  if (fd < 0)
    return -errno;
  if (bind (fd, (struct sockaddr *) &address, sizeof address) < 0) {
    int error = errno;

    close (fd);
    return -error;
  }
  return fd;
}

int
weir_netlink_open (void)
{
  return open_socket (0);
}

int
weir_netlink_watch (void)
{
  int fd = open_socket (
      RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_RULE);
  int size = WATCH_BUFFER;

  if (fd >= 0)
    setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  return fd;
}

static void
add_attribute (Request *request, guint16 type, guint32 value)
{
  struct rtattr *attribute =
      (struct rtattr *) ((char *) request + NLMSG_ALIGN (request->header.nlmsg_len));

  attribute->rta_type = type;
  attribute->rta_len = RTA_LENGTH (sizeof value);
  memcpy (RTA_DATA (attribute), &value, sizeof value);
  request->header.nlmsg_len =
      NLMSG_ALIGN (request->header.nlmsg_len) + RTA_ALIGN (attribute->rta_len);
}

// ---- messages ----

// Returns the attributes of a message by type. `data` is the first one, `len` the bytes from there.
static void
read_attributes (const struct rtattr *data, gsize len, const struct rtattr **found, guint most)
{
  int left = (int) len;

  memset (found, 0, (most + 1) * sizeof *found);
  for (const struct rtattr *a = data; RTA_OK (a, left); a = RTA_NEXT (a, left)) {
    guint type = a->rta_type & NLA_TYPE_MASK;

    if (type <= most)
      found[type] = a;
  }
}

static gboolean
get_bytes (const struct rtattr *attribute, gpointer to, gsize len)
{
  if (!attribute || RTA_PAYLOAD (attribute) != len)
    return FALSE;
  memcpy (to, RTA_DATA (attribute), len);
  return TRUE;
}

static void
read_device (struct nlmsghdr *message, const WeirNetChanges *changes, gpointer data)
{
  const struct ifinfomsg *body = NLMSG_DATA (message);
  const struct rtattr *attributes[IFLA_ADDRESS + 3];
  WeirNetDevice device = { .device = (guint32) body->ifi_index };

  if (message->nlmsg_len < NLMSG_LENGTH (sizeof *body) || body->ifi_family != AF_UNSPEC)
    return;
  read_attributes (IFLA_RTA (body), IFLA_PAYLOAD (message), attributes, IFLA_IFNAME);
  device.ethernet = body->ifi_type == ARPHRD_ETHER
                    && (body->ifi_flags & (IFF_LOOPBACK | IFF_NOARP)) == 0
                    && get_bytes (attributes[IFLA_ADDRESS], device.address, sizeof device.address);
  device.up = (body->ifi_flags & IFF_UP) != 0 && (body->ifi_flags & IFF_RUNNING) != 0;
  device.gone = message->nlmsg_type == RTM_DELLINK;
  if (attributes[IFLA_IFNAME])
    g_strlcpy (device.name, RTA_DATA (attributes[IFLA_IFNAME]),
        MIN (sizeof device.name, RTA_PAYLOAD (attributes[IFLA_IFNAME]) + 1));
  changes->device (&device, data);
}

static void
read_neighbour (struct nlmsghdr *message, const WeirNetChanges *changes, gpointer data)
{
  const guint16 usable = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT;
  const struct ndmsg *body = NLMSG_DATA (message);
  const struct rtattr *attributes[NDA_LLADDR + 1];
  WeirNetNeighbour neighbour = { .device = (guint32) body->ndm_ifindex };

  if (message->nlmsg_len < NLMSG_LENGTH (sizeof *body) || body->ndm_family != AF_INET)
    return;
  read_attributes ((const struct rtattr *) ((const char *) body + NLMSG_ALIGN (sizeof *body)),
      NLMSG_PAYLOAD (message, sizeof *body), attributes, NDA_LLADDR);
  if (!get_bytes (attributes[NDA_DST], &neighbour.address, sizeof neighbour.address))
    return;
  neighbour.usable =
      message->nlmsg_type == RTM_NEWNEIGH && body->ndm_state & usable
      && get_bytes (attributes[NDA_LLADDR], neighbour.hardware, sizeof neighbour.hardware);
  changes->neighbour (&neighbour, data);
}

static void
read_message (struct nlmsghdr *message, const WeirNetChanges *changes, gpointer data)
{
  switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      read_device (message, changes, data);
      break;
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      read_neighbour (message, changes, data);
      break;
    default:
      changes->routes (data);
      break;
  }
}

// ---- requests ----

// Numbers the request. An answer has its number, so that one to a request before, which was not
// read, is not taken for it.
static gboolean
send_request (int fd, Request *request)
{
  static atomic_uint n_requests;

  request->header.nlmsg_seq = atomic_fetch_add (&n_requests, 1);
  return send (fd, request, request->header.nlmsg_len, 0) == (gssize) request->header.nlmsg_len;
}

static gssize
receive (int fd, gpointer buffer, gsize size)
{
  gssize n;

  do
    n = recv (fd, buffer, size, 0);
  while (n < 0 && errno == EINTR);
  return n;
}

static gboolean
list (int fd, guint16 type, gsize body, const WeirNetChanges *changes, gpointer data)
{
  Request request = { .header = { .nlmsg_len = (guint32) NLMSG_LENGTH (body),
                          .nlmsg_type = type,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
  g_autofree gchar *buffer = g_malloc (BUFFER);

  if (!send_request (fd, &request))
    return FALSE;
  for (;;) {
    gssize r = receive (fd, buffer, BUFFER);
    int left = (int) r;

    if (r < 0)
      return FALSE;
    for (struct nlmsghdr *m = (struct nlmsghdr *) buffer; NLMSG_OK (m, (guint) left);
        m = NLMSG_NEXT (m, left)) {
      if (m->nlmsg_seq != request.header.nlmsg_seq)
        continue;
      if (m->nlmsg_type == NLMSG_DONE)
        return TRUE;
      if (m->nlmsg_type == NLMSG_ERROR)
        return FALSE;
      read_message (m, changes, data);
    }
  }
}

gboolean
weir_netlink_list (int fd, const WeirNetChanges *changes, gpointer data)
{
  return list (fd, RTM_GETLINK, sizeof (struct ifinfomsg), changes, data)
         && list (fd, RTM_GETNEIGH, sizeof (struct ndmsg), changes, data);
}

static gboolean
has_own_mtu (const struct rtattr *metrics)
{
  const struct rtattr *found[RTAX_MTU + 1];

  if (!metrics)
    return FALSE;
  read_attributes (RTA_DATA (metrics), RTA_PAYLOAD (metrics), found, RTAX_MTU);
  return found[RTAX_MTU] != NULL;
}

gboolean
weir_netlink_find_route (int fd, guint32 to, guint32 source, WeirNetRoute *route)
{
  Request request = { .header = { .nlmsg_len = NLMSG_LENGTH (sizeof (struct rtmsg)),
                          .nlmsg_type = RTM_GETROUTE,
                          .nlmsg_flags = NLM_F_REQUEST },
    .body.route = { .rtm_family = AF_INET, .rtm_dst_len = 32 } };
  const struct rtattr *attributes[RTA_ENCAP + 1];
  union {
    struct nlmsghdr header;
    char bytes[4096];
  } answer;
  const struct rtmsg *body = NLMSG_DATA (&answer.header);
  gssize r;

  add_attribute (&request, RTA_DST, to);
  if (source)
    add_attribute (&request, RTA_SRC, source);
  if (!send_request (fd, &request))
    return FALSE;
  do
    r = receive (fd, &answer, sizeof answer);
  while (r >= (gssize) sizeof answer.header && answer.header.nlmsg_seq != request.header.nlmsg_seq);
  if (r < 0 || !NLMSG_OK (&answer.header, (guint) r) || answer.header.nlmsg_type != RTM_NEWROUTE
      || answer.header.nlmsg_len < NLMSG_LENGTH (sizeof *body))
    return FALSE;
  read_attributes (RTM_RTA (body), RTM_PAYLOAD (&answer.header), attributes, RTA_ENCAP);
  if (body->rtm_type != RTN_UNICAST || attributes[RTA_VIA] || attributes[RTA_ENCAP]
      || has_own_mtu (attributes[RTA_METRICS])
      || !get_bytes (attributes[RTA_OIF], &route->device, sizeof route->device))
    return FALSE;
  route->source = source;
  if (!source && !get_bytes (attributes[RTA_PREFSRC], &route->source, sizeof route->source))
    return FALSE;
  if (!get_bytes (attributes[RTA_GATEWAY], &route->via, sizeof route->via))
    route->via = to;
  return TRUE;
}

gboolean
weir_netlink_read (int fd, const WeirNetChanges *changes, gpointer data)
{
  g_autofree gchar *buffer = g_malloc (BUFFER);

  for (;;) {
    gssize r = recv (fd, buffer, BUFFER, MSG_DONTWAIT);
    int left = (int) r;

    if (r < 0 && errno == EINTR)
      continue;
    if (r < 0)
      return errno == EAGAIN;
    for (struct nlmsghdr *m = (struct nlmsghdr *) buffer; NLMSG_OK (m, (guint) left);
        m = NLMSG_NEXT (m, left))
      read_message (m, changes, data);
  }
}
