// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Socket addresses of readers.

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

// An IPv4 or IPv6 address, in a quarter of the room of a sockaddr_storage.
typedef union {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} WeirAddress;

// Brings an address into the form in which two equal ones are equal bytes: nothing but family,
// address, port and (IPv6, link-local) scope; an IPv4-mapped IPv6 address as IPv4. 0, -EAFNOSUPPORT
// for another family, or -EINVAL for an address cut short or without a port.
int weir_address_normalise (const struct sockaddr *address, socklen_t len, WeirAddress *out);

// Turns an IPv4 address into the IPv4-mapped IPv6 one, as which an IPv6 socket sends to it.
void weir_address_map_to_v6 (WeirAddress *address);

static inline socklen_t
weir_address_len (const WeirAddress *address)
{
  return address->any.sa_family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
}

static inline bool
weir_address_is_multicast (const WeirAddress *address)
{
  return address->any.sa_family == AF_INET6 ? IN6_IS_ADDR_MULTICAST (&address->v6.sin6_addr)
                                            : IN_MULTICAST (ntohl (address->v4.sin_addr.s_addr));
}
