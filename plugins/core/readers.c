// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EMPTY UINT32_MAX
#define FIRST_CAPACITY 16

struct weir_reader_slot {
  uint32_t generation;
  uint32_t index; // into records while in use, else the next free slot
};

const char *
weir_drop_name (WeirDrop reason)
{
  static const char *const names[WEIR_N_DROPS] = {
    [WEIR_DROP_WOULD_BLOCK] = "would-block",
    [WEIR_DROP_NO_BUFFERS] = "no-buffers",
    [WEIR_DROP_TOO_BIG] = "too-big",
    [WEIR_DROP_ERROR] = "error",
    [WEIR_DROP_FLUSHED] = "flushed",
  };

  return (unsigned) reason < WEIR_N_DROPS ? names[reason] : "unknown";
}

void
weir_readers_init (WeirReaders *readers)
{
  *readers = (WeirReaders) { .first_free = EMPTY };
  // Peers choose their ports, so the place in the hash must not be theirs to foresee.
  if (getrandom (&readers->seed, sizeof readers->seed, GRND_NONBLOCK) != sizeof readers->seed)
    readers->seed = (uint64_t) (uintptr_t) readers * UINT64_C (0x9e3779b97f4a7c15);
}

void
weir_readers_free (WeirReaders *readers)
{
  free (readers->records);
  free (readers->slots);
  free (readers->hash);
  weir_readers_init (readers);
}

int
weir_address_normalise (
    const struct sockaddr *address, socklen_t len, struct sockaddr_storage *out, socklen_t *out_len)
{
  struct sockaddr_storage in = { 0 };
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

  if (len < (socklen_t) sizeof (sa_family_t) || len > (socklen_t) sizeof in)
    return -EINVAL;
  memcpy (&in, address, len);

  switch (in.ss_family) {
    case AF_INET: {
      struct sockaddr_in from;

      if (len < (socklen_t) sizeof from)
        return -EINVAL;
      memcpy (&from, &in, sizeof from);
      v4.sin_addr = from.sin_addr;
      v4.sin_port = from.sin_port;
      break;
    }
    case AF_INET6: {
      struct sockaddr_in6 from;

      if (len < (socklen_t) sizeof from)
        return -EINVAL;
      memcpy (&from, &in, sizeof from);
      if (IN6_IS_ADDR_V4MAPPED (&from.sin6_addr)) {
        memcpy (&v4.sin_addr, &from.sin6_addr.s6_addr[12], 4);
        v4.sin_port = from.sin6_port;
        in.ss_family = AF_INET;
        break;
      }
      v6.sin6_addr = from.sin6_addr;
      v6.sin6_port = from.sin6_port;
      if (IN6_IS_ADDR_LINKLOCAL (&from.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL (&from.sin6_addr))
        v6.sin6_scope_id = from.sin6_scope_id;
      break;
    }
    default:
      return -EAFNOSUPPORT;
  }

  if (in.ss_family == AF_INET ? v4.sin_port == 0 : v6.sin6_port == 0)
    return -EINVAL;
  memset (out, 0, sizeof *out);
  if (in.ss_family == AF_INET) {
    memcpy (out, &v4, sizeof v4);
    *out_len = sizeof v4;
  } else {
    memcpy (out, &v6, sizeof v6);
    *out_len = sizeof v6;
  }
  return 0;
}

void
weir_address_map_to_v6 (struct sockaddr_storage *address, socklen_t *len)
{
  struct sockaddr_in v4;
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

  memcpy (&v4, address, sizeof v4);
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  memcpy (&v6.sin6_addr.s6_addr[12], &v4.sin_addr, 4);
  memset (address, 0, sizeof *address);
  memcpy (address, &v6, sizeof v6);
  *len = sizeof v6;
}

static size_t
hash_address (const WeirReaders *readers, const struct sockaddr_storage *address, socklen_t len)
{
  uint64_t h = readers->seed;
  const uint8_t *at = (const uint8_t *) address;

  for (socklen_t i = 0; i < len; i += 8) {
    uint64_t word = 0;

    memcpy (&word, at + i, len - i < 8 ? len - i : 8);
    h = (h ^ word) * UINT64_C (0x9e3779b97f4a7c15);
    h ^= h >> 32;
  }
  return h & (readers->hash_size - 1);
}

static const WeirReader *
record_of (const WeirReaders *readers, uint32_t slot)
{
  return &readers->records[readers->slots[slot].index];
}

// Where the address is in the hash, or where it would go.
static size_t
probe (const WeirReaders *readers, const struct sockaddr_storage *address, socklen_t len)
{
  size_t at = hash_address (readers, address, len);

  for (;; at = (at + 1) & (readers->hash_size - 1)) {
    uint32_t slot = readers->hash[at];
    const WeirReader *record;

    if (slot == EMPTY)
      return at;
    record = record_of (readers, slot);
    if (record->address_len == len && memcmp (&record->address, address, len) == 0)
      return at;
  }
}

// Doubles everything. The hash stays at most half full.
static int
grow (WeirReaders *readers)
{
  size_t capacity = readers->capacity ? readers->capacity * 2 : FIRST_CAPACITY;
  size_t hash_size = capacity * 2;
  WeirReader *records;
  struct weir_reader_slot *slots;
  uint32_t *hash;

  if (capacity > EMPTY / 4)
    return -ENOSPC;
  if (!(records = realloc (readers->records, capacity * sizeof *records)))
    return -ENOMEM;
  readers->records = records;
  if (!(slots = realloc (readers->slots, capacity * sizeof *slots)))
    return -ENOMEM;
  readers->slots = slots;
  if (!(hash = malloc (hash_size * sizeof *hash)))
    return -ENOMEM;
  free (readers->hash);
  readers->hash = hash;
  readers->hash_size = hash_size;

  for (size_t i = capacity; i-- > readers->capacity;) {
    slots[i] = (struct weir_reader_slot) { .generation = 1, .index = readers->first_free };
    readers->first_free = (uint32_t) i;
  }
  readers->capacity = capacity;

  memset (hash, 0xff, hash_size * sizeof *hash);
  for (size_t i = 0; i < readers->n; i++) {
    const WeirReader *record = &records[i];
    hash[probe (readers, &record->address, record->address_len)] = record->handle.slot;
  }
  return 0;
}

int
weir_readers_add (WeirReaders *readers, const struct sockaddr *address, socklen_t len,
    int64_t now_ns, WeirReaderHandle *handle)
{
  struct sockaddr_storage key;
  socklen_t key_len;
  int r = weir_address_normalise (address, len, &key, &key_len);
  WeirReader *record;
  uint32_t slot;

  if (r < 0)
    return r;
  if ((record = weir_readers_find (readers, (struct sockaddr *) &key, key_len))) {
    if (record->refcount == UINT32_MAX)
      return -EOVERFLOW;
    record->refcount++;
    readers->generation++;
    if (handle)
      *handle = record->handle;
    return 1;
  }

  if (readers->n == readers->capacity && (r = grow (readers)) < 0)
    return r;
  slot = readers->first_free;
  readers->first_free = readers->slots[slot].index;
  readers->hash[probe (readers, &key, key_len)] = slot;
  readers->slots[slot].index = (uint32_t) readers->n;
  record = &readers->records[readers->n++];
  *record = (WeirReader) {
    .address = key,
    .address_len = key_len,
    .handle = { slot, readers->slots[slot].generation },
    .refcount = 1,
    .connect_ns = now_ns,
  };
  readers->generation++;
  if (handle)
    *handle = record->handle;
  return 0;
}

// Empties one place of the hash and moves those behind it up, so that no gap cuts a chain.
static void
unhash (WeirReaders *readers, size_t hole)
{
  size_t mask = readers->hash_size - 1;

  for (size_t at = (hole + 1) & mask; readers->hash[at] != EMPTY; at = (at + 1) & mask) {
    const WeirReader *record = record_of (readers, readers->hash[at]);
    size_t home = hash_address (readers, &record->address, record->address_len);

    if (((at - home) & mask) >= ((at - hole) & mask)) {
      readers->hash[hole] = readers->hash[at];
      hole = at;
    }
  }
  readers->hash[hole] = EMPTY;
}

static void
free_slot (WeirReaders *readers, uint32_t slot)
{
  struct weir_reader_slot *s = &readers->slots[slot];

  if (++s->generation == 0)
    s->generation = 1;
  s->index = readers->first_free;
  readers->first_free = slot;
}

int
weir_readers_remove (WeirReaders *readers, const struct sockaddr *address, socklen_t len,
    int64_t now_ns, WeirReader *gone)
{
  WeirReader *record = weir_readers_find (readers, address, len);
  WeirReader *last;
  uint32_t slot;

  if (!record)
    return -ENOENT;
  readers->generation++;
  if (--record->refcount > 0)
    return 1;

  if (gone) {
    *gone = *record;
    gone->disconnect_ns = now_ns;
  }
  slot = record->handle.slot;
  unhash (readers, probe (readers, &record->address, record->address_len));
  last = &readers->records[--readers->n];
  if (last != record) {
    *record = *last;
    readers->slots[record->handle.slot].index = (uint32_t) (record - readers->records);
  }
  free_slot (readers, slot);
  return 0;
}

void
weir_readers_remove_all (WeirReaders *readers)
{
  for (size_t i = 0; i < readers->n; i++)
    free_slot (readers, readers->records[i].handle.slot);
  readers->n = 0;
  readers->generation++;
  if (readers->hash)
    memset (readers->hash, 0xff, readers->hash_size * sizeof *readers->hash);
}

WeirReader *
weir_readers_find (const WeirReaders *readers, const struct sockaddr *address, socklen_t len)
{
  struct sockaddr_storage key;
  socklen_t key_len;
  uint32_t slot;

  if (readers->n == 0 || weir_address_normalise (address, len, &key, &key_len) < 0)
    return NULL;
  slot = readers->hash[probe (readers, &key, key_len)];
  return slot == EMPTY ? NULL : &readers->records[readers->slots[slot].index];
}

WeirReader *
weir_readers_get (const WeirReaders *readers, WeirReaderHandle handle)
{
  const struct weir_reader_slot *slot;

  if (handle.slot >= readers->capacity)
    return NULL;
  slot = &readers->slots[handle.slot];
  // A free slot's generation was never given out, so comparing it is enough.
  if (slot->generation != handle.generation)
    return NULL;
  return slot->index < readers->n ? &readers->records[slot->index] : NULL;
}
