// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>

#include "tap.h"

static struct sockaddr_in
v4 (uint32_t address, uint16_t port)
{
  return (struct sockaddr_in) {
    .sin_family = AF_INET, .sin_port = htons (port), .sin_addr.s_addr = htonl (address)
  };
}

static struct sockaddr_in6
v6 (const char *address, uint16_t port, uint32_t scope)
{
  struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons (port) };

  inet_pton (AF_INET6, address, &a.sin6_addr);
  a.sin6_scope_id = scope;
  a.sin6_flowinfo = scope * 7;
  return a;
}

#define ADDRESS(a) (const struct sockaddr *) &(a), sizeof (a)

static WeirAddress
normal (const struct sockaddr *address, socklen_t len)
{
  WeirAddress out;

  memset (&out, 0xaa, sizeof out);
  CHECK_INT (weir_address_normalise (address, len, &out), 0);
  return out;
}

static bool
equal (WeirAddress a, WeirAddress b)
{
  return memcmp (&a, &b, sizeof a) == 0;
}

static void
equal_addresses_are_equal_bytes (void)
{
  struct sockaddr_in a = v4 (0x01020304, 9);
  struct sockaddr_in6 mapped = v6 ("::ffff:1.2.3.4", 9, 3), global1 = v6 ("2001:db8::1", 9, 1),
                      global2 = v6 ("2001:db8::1", 9, 2), link1 = v6 ("fe80::1", 9, 1),
                      link2 = v6 ("fe80::1", 9, 2), group1 = v6 ("ff02::1", 9, 1),
                      group2 = v6 ("ff02::1", 9, 2);

  memset (a.sin_zero, 0xff, sizeof a.sin_zero);
  CHECK (equal (normal (ADDRESS (a)), normal (ADDRESS (mapped))));
  CHECK (equal (normal (ADDRESS (global1)), normal (ADDRESS (global2))));
  CHECK (!equal (normal (ADDRESS (link1)), normal (ADDRESS (link2))));
  CHECK (!equal (normal (ADDRESS (group1)), normal (ADDRESS (group2))));
  CHECK (!equal (normal (ADDRESS (a)), normal (ADDRESS (global1))));
}

static void
invalid_addresses_are_refused (void)
{
  struct sockaddr_in a = v4 (0x01020304, 9), no_port = v4 (0x01020304, 0);
  struct sockaddr_in6 b = v6 ("2001:db8::1", 9, 0), no_port6 = v6 ("2001:db8::1", 0, 0),
                      mapped = v6 ("::ffff:1.2.3.4", 0, 0);
  struct sockaddr_storage odd = { .ss_family = AF_UNIX };
  WeirAddress out;

  CHECK_INT (weir_address_normalise (ADDRESS (no_port), &out), -EINVAL);
  CHECK_INT (weir_address_normalise (ADDRESS (no_port6), &out), -EINVAL);
  CHECK_INT (weir_address_normalise (ADDRESS (mapped), &out), -EINVAL);
  CHECK_INT (weir_address_normalise (ADDRESS (odd), &out), -EAFNOSUPPORT);
  for (socklen_t len = 0; len < sizeof a; len++)
    CHECK_INT (weir_address_normalise ((struct sockaddr *) &a, len, &out), -EINVAL);
  for (socklen_t len = 0; len < sizeof b; len++)
    CHECK_INT (weir_address_normalise ((struct sockaddr *) &b, len, &out), -EINVAL);
  CHECK_INT (weir_address_normalise ((struct sockaddr *) &odd, sizeof odd + 1, &out), -EINVAL);
}

static void
ipv4_addresses_map_to_ipv6_for_an_ipv6_socket (void)
{
  struct sockaddr_in a = v4 (0x01020304, 9);
  struct sockaddr_in6 expected = v6 ("::ffff:1.2.3.4", 9, 0);
  WeirAddress address = normal (ADDRESS (a));

  CHECK_INT (weir_address_len (&address), sizeof (struct sockaddr_in));
  weir_address_map_to_v6 (&address);
  CHECK_INT (weir_address_len (&address), sizeof expected);
  CHECK (memcmp (&address, &expected, sizeof expected) == 0);
}

static void
multicast_addresses_are_recognised (void)
{
  struct sockaddr_in one = v4 (0x7f000001, 9), group = v4 (0xe0000001, 9),
                     last = v4 (0xefffffff, 9), past = v4 (0xf0000000, 9);
  struct sockaddr_in6 one6 = v6 ("2001:db8::1", 9, 0), group6 = v6 ("ff15::1", 9, 0);
  WeirAddress address;

  address = normal (ADDRESS (one));
  CHECK (!weir_address_is_multicast (&address));
  address = normal (ADDRESS (group));
  CHECK (weir_address_is_multicast (&address));
  address = normal (ADDRESS (last));
  CHECK (weir_address_is_multicast (&address));
  address = normal (ADDRESS (past));
  CHECK (!weir_address_is_multicast (&address));
  address = normal (ADDRESS (one6));
  CHECK (!weir_address_is_multicast (&address));
  address = normal (ADDRESS (group6));
  CHECK (weir_address_is_multicast (&address));
}

int
main (void)
{
  RUN (equal_addresses_are_equal_bytes);
  RUN (invalid_addresses_are_refused);
  RUN (ipv4_addresses_map_to_ipv6_for_an_ipv6_socket);
  RUN (multicast_addresses_are_recognised);
  return tap_done ();
}
