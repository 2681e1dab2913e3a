// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

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

static void
counts_how_often_it_was_added (void)
{
  WeirReaders r;
  WeirReader gone;
  WeirReaderHandle h1, h2;
  struct sockaddr_in a = v4 (0x7f000001, 5000);
  uint64_t generation;

  weir_readers_init (&r);
  generation = r.generation;
  CHECK_INT (weir_readers_remove (&r, ADDRESS (a), 1, NULL), -ENOENT);
  CHECK_INT (weir_readers_add (&r, ADDRESS (a), 11, &h1), 0);
  CHECK (r.generation != generation);
  generation = r.generation;
  CHECK_INT (weir_readers_add (&r, ADDRESS (a), 12, &h2), 1);
  CHECK (r.generation != generation);
  CHECK (memcmp (&h1, &h2, sizeof h1) == 0);
  CHECK_INT (r.n, 1);
  CHECK_INT (weir_readers_get (&r, h1)->refcount, 2);
  CHECK_INT (weir_readers_get (&r, h1)->connect_ns, 11);
  CHECK_INT (weir_readers_remove (&r, ADDRESS (a), 13, &gone), 1);
  CHECK_INT (weir_readers_remove (&r, ADDRESS (a), 14, &gone), 0);
  CHECK_INT (gone.disconnect_ns, 14);
  CHECK_INT (gone.connect_ns, 11);
  CHECK (weir_readers_get (&r, h1) == NULL && weir_readers_find (&r, ADDRESS (a)) == NULL);
  CHECK_INT (weir_readers_add (&r, ADDRESS (a), 15, &h2), 0);
  CHECK (weir_readers_get (&r, h1) == NULL && weir_readers_get (&r, h2) != NULL);
  weir_readers_free (&r);
}

static void
normalises_addresses (void)
{
  WeirReaders r;
  struct sockaddr_in a = v4 (0x01020304, 9);
  struct sockaddr_in6 mapped = v6 ("::ffff:1.2.3.4", 9, 3), global1 = v6 ("2001:db8::1", 9, 1),
                      global2 = v6 ("2001:db8::1", 9, 2), link1 = v6 ("fe80::1", 9, 1),
                      link2 = v6 ("fe80::1", 9, 2);
  struct sockaddr_in no_port = v4 (0x01020304, 0);
  struct sockaddr_storage odd = { .ss_family = AF_UNIX };
  struct sockaddr_storage out;
  socklen_t len;

  memset (a.sin_zero, 0xff, sizeof a.sin_zero);
  weir_readers_init (&r);
  CHECK_INT (weir_readers_add (&r, ADDRESS (a), 1, NULL), 0);
  CHECK_INT (weir_readers_add (&r, ADDRESS (mapped), 1, NULL), 1);
  CHECK_INT (weir_readers_add (&r, ADDRESS (global1), 1, NULL), 0);
  CHECK_INT (weir_readers_add (&r, ADDRESS (global2), 1, NULL), 1);
  CHECK_INT (weir_readers_add (&r, ADDRESS (link1), 1, NULL), 0);
  CHECK_INT (weir_readers_add (&r, ADDRESS (link2), 1, NULL), 0);
  CHECK_INT (weir_readers_add (&r, ADDRESS (no_port), 1, NULL), -EINVAL);
  CHECK_INT (weir_readers_add (&r, ADDRESS (odd), 1, NULL), -EAFNOSUPPORT);
  CHECK_INT (weir_readers_add (&r, (struct sockaddr *) &a, 7, 1, NULL), -EINVAL);
  CHECK_INT (weir_readers_add (&r, (struct sockaddr *) &global1, 20, 1, NULL), -EINVAL);
  CHECK_INT (r.n, 4);

  CHECK_INT (weir_address_normalise (ADDRESS (a), &out, &len), 0);
  weir_address_map_to_v6 (&out, &len);
  mapped.sin6_flowinfo = mapped.sin6_scope_id = 0;
  CHECK (len == sizeof mapped && memcmp (&out, &mapped, sizeof mapped) == 0);
  weir_readers_free (&r);
}

// Against a model that is too simple to be wrong: ten thousand random steps over 700 addresses.
static void
agrees_with_a_model (void)
{
  enum { N = 700 };
  static uint32_t count[N];
  static WeirReaderHandle handle[N], stale[N];
  WeirReaders r;
  size_t present = 0;

  srand (1);
  memset (count, 0, sizeof count);
  weir_readers_init (&r);
  for (int step = 0; step < 10000; step++) {
    int i = rand () % N;
    struct sockaddr_in a = v4 (0x0a000000 + (uint32_t) i % 3, (uint16_t) (1000 + i));

    if (rand () % 100 < 53) {
      CHECK_INT (weir_readers_add (&r, ADDRESS (a), step, &handle[i]), count[i] > 0);
      present += count[i]++ == 0;
    } else if (count[i] == 0) {
      CHECK_INT (weir_readers_remove (&r, ADDRESS (a), step, NULL), -ENOENT);
    } else {
      CHECK_INT (weir_readers_remove (&r, ADDRESS (a), step, NULL), count[i] > 1);
      if (--count[i] == 0) {
        stale[i] = handle[i];
        present--;
      }
    }
    CHECK_INT (r.n, present);
  }
  for (int i = 0; i < N; i++) {
    struct sockaddr_in a = v4 (0x0a000000 + (uint32_t) i % 3, (uint16_t) (1000 + i));
    WeirReader *found = weir_readers_find (&r, ADDRESS (a));

    CHECK_INT (found ? found->refcount : 0, count[i]);
    CHECK (!found || weir_readers_get (&r, handle[i]) == found);
    CHECK (stale[i].generation == 0 || weir_readers_get (&r, stale[i]) == NULL);
  }
  weir_readers_remove_all (&r);
  CHECK_INT (r.n, 0);
  for (int i = 0; i < N; i++)
    CHECK (handle[i].generation == 0 || weir_readers_get (&r, handle[i]) == NULL);
  weir_readers_free (&r);
}

int
main (void)
{
  RUN (counts_how_often_it_was_added);
  RUN (normalises_addresses);
  RUN (agrees_with_a_model);
  return tap_done ();
}
