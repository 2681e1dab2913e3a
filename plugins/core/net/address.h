// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Normalises the socket addresses of readers, so that they can be compared as bytes.

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

// An IPv4 or IPv6 address in a quarter of the size of sockaddr_storage.
typedef union {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} WeirAddress;

// Normalises an address, so that equal addresses are equal bytes: only family, address, port and
// (IPv6 link-local) scope remain, and an IPv4-mapped IPv6 address becomes IPv4. Returns 0;
// -EAFNOSUPPORT for another family; -EINVAL for an address that is cut short or has no port.
int weir_address_normalise (const struct sockaddr *address, socklen_t len, WeirAddress *out);

// Converts an IPv4 address to the IPv4-mapped IPv6 address that an IPv6 socket sends to.
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

static inline uint16_t
weir_address_port (const WeirAddress *address)
{
  return ntohs (address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}
