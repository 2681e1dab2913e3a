// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/address.h"

#include <errno.h>
#include <string.h>

static int
normalise_v4 (struct in_addr address, in_port_t port, WeirAddress *out)
{
  if (port == 0)
    return -EINVAL;
  memset (out, 0, sizeof *out);
  out->v4.sin_family = AF_INET;
  out->v4.sin_addr = address;
  out->v4.sin_port = port;
  return 0;
}

static int
normalise_v6 (const struct sockaddr_in6 *in, WeirAddress *out)
{
  const struct in6_addr *address = &in->sin6_addr;
  struct in_addr v4;

  if (IN6_IS_ADDR_V4MAPPED (address)) {
    memcpy (&v4, &address->s6_addr[12], sizeof v4);
    return normalise_v4 (v4, in->sin6_port, out);
  }
  if (in->sin6_port == 0)
    return -EINVAL;
  memset (out, 0, sizeof *out);
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_addr = *address;
  out->v6.sin6_port = in->sin6_port;
  if (IN6_IS_ADDR_LINKLOCAL (address) || IN6_IS_ADDR_MC_LINKLOCAL (address))
    out->v6.sin6_scope_id = in->sin6_scope_id;
  return 0;
}

int
weir_address_normalise (const struct sockaddr *address, socklen_t len, WeirAddress *out)
{
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  sa_family_t family;

  if (len < (socklen_t) sizeof family || len > (socklen_t) sizeof (struct sockaddr_storage))
    return -EINVAL;
  memcpy (&family, address, sizeof family);
  switch (family) {
    case AF_INET:
      if (len < (socklen_t) sizeof v4)
        return -EINVAL;
      memcpy (&v4, address, sizeof v4);
      return normalise_v4 (v4.sin_addr, v4.sin_port, out);
    case AF_INET6:
      if (len < (socklen_t) sizeof v6)
        return -EINVAL;
      memcpy (&v6, address, sizeof v6);
      return normalise_v6 (&v6, out);
    default:
      return -EAFNOSUPPORT;
  }
}

void
weir_address_map_to_v6 (WeirAddress *address)
{
  struct sockaddr_in v4 = address->v4;

  memset (address, 0, sizeof *address);
  address->v6.sin6_family = AF_INET6;
  address->v6.sin6_port = v4.sin_port;
  address->v6.sin6_addr.s6_addr[10] = address->v6.sin6_addr.s6_addr[11] = 0xff;
  memcpy (&address->v6.sin6_addr.s6_addr[12], &v4.sin_addr, sizeof v4.sin_addr);
}
