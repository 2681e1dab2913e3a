// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The table of readers of one stream, keyed by socket address.
//
// Records lie in a dense array, so that a pass over all of them is a walk; an open-addressed hash
// finds one in O(1), and removing one moves the last record into its place. A record therefore has
// no fixed address: whoever wants to come back to a reader keeps its handle, which goes stale, and
// is known to be stale, when the reader is removed.
//
// The table has no lock of its own. A sender that works without the owner's lock takes a snapshot
// and renews it when `generation` has changed.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

// Why a packet that was due to a reader was not sent.
typedef enum {
  WEIR_DROP_WOULD_BLOCK, // the socket's buffer stayed full for as long as the pass may wait
  WEIR_DROP_NO_BUFFERS,  // the kernel had no memory for it, or the device's queue is full
  WEIR_DROP_TOO_BIG,     // larger than the path takes
  WEIR_DROP_ERROR,       // refused, unreachable, not permitted, no socket of that family
  WEIR_DROP_FLUSHED,     // thrown away because the owner stopped
  WEIR_N_DROPS
} WeirDrop;

// The reason's name as statistics show it: "would-block", ...
const char *weir_drop_name (WeirDrop reason);

typedef struct {
  uint32_t slot;
  uint32_t generation; // never 0 in a valid handle
} WeirReaderHandle;

typedef struct {
  struct sockaddr_storage address;
  socklen_t address_len;
  WeirReaderHandle handle;
  uint32_t refcount; // how often it was added, less how often it was removed
  uint64_t packets_sent;
  uint64_t bytes_sent;
  uint64_t dropped[WEIR_N_DROPS];
  int64_t connect_ns;
  int64_t disconnect_ns; // 0 while it is in the table
} WeirReader;

typedef struct {
  WeirReader *records;
  size_t n;
  size_t capacity;
  uint64_t generation; // changes whenever a reader comes, goes, or is added again
  // Slots of handles, and the hash of slot numbers. Private.
  struct weir_reader_slot *slots;
  uint32_t first_free;
  uint32_t *hash;
  size_t hash_size;
  uint64_t seed;
} WeirReaders;

void weir_readers_init (WeirReaders *readers);
void weir_readers_free (WeirReaders *readers);

// Brings an address into the form in which two equal ones are equal bytes: nothing but family,
// address, port and (IPv6, link-local) scope; an IPv4-mapped IPv6 address as IPv4. 0, -EAFNOSUPPORT
// for another family, or -EINVAL for an address cut short or without a port.
int weir_address_normalise (const struct sockaddr *address, socklen_t len,
    struct sockaddr_storage *out, socklen_t *out_len);

// Turns an IPv4 address into the IPv4-mapped IPv6 one, as which an IPv6 socket sends to it.
void weir_address_map_to_v6 (struct sockaddr_storage *address, socklen_t *len);

// 0 if the reader is new, 1 if it was there already and is now there once more, or a negative
// errno.
int weir_readers_add (WeirReaders *readers, const struct sockaddr *address, socklen_t len,
    int64_t now_ns, WeirReaderHandle *handle);

// 0 if the reader is gone, and then `gone` (if not NULL) is its last record; 1 if it was added more
// often than removed and stays; -ENOENT if there is none.
int weir_readers_remove (WeirReaders *readers, const struct sockaddr *address, socklen_t len,
    int64_t now_ns, WeirReader *gone);

void weir_readers_remove_all (WeirReaders *readers);

// NULL if there is none. The record is good until the next add or remove.
WeirReader *weir_readers_find (
    const WeirReaders *readers, const struct sockaddr *address, socklen_t len);
WeirReader *weir_readers_get (const WeirReaders *readers, WeirReaderHandle handle);
