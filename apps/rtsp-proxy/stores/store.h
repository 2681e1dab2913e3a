// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A store holds titles. It is reference-counted. Call from any thread; calls may block on a disk.

#include "stores/bytes.h"

typedef struct _Store Store;

// The longest name of a title in bytes. A name is a relative path in UTF-8.
#define STORE_NAME_MAX 1024

// Reports whether `name` can be the name of a title: no part of the path is empty, begins with a
// dot, or contains a backslash or a control character. Such names do not get into the log; stores
// do not rely on this check for their safety.
gboolean store_is_name (const gchar *name);

// Called for each title; `size` is in bytes. Returns FALSE to end the listing.
typedef gboolean (*StoreFoundFunc) (const gchar *name, guint64 size, gpointer data);

// What a disk of a store does. The numbers are since the store was opened.
typedef struct {
  guint number;
  guint64 queue; // reads that wait or are in progress
  guint64 reads, errors, bytes;
  guint64 second_choices;         // reads of a copy that is not the first one
  guint64 moved_here, moved_away; // copies, by a balance
  guint64 service_us;             // moving average of the time of a read
  guint64 access_us;              // measured access time (t_a)
  guint64 rate;                   // measured, bits a second (r_d)
  guint64 failing;                // 1: it is avoided
} StoreDisk;

// What a title of a swarm does. The numbers are since the proxy joined it; a sum has those of
// titles that have left, too.
typedef struct {
  guint64 readers, peers; // now
  guint64 size, held_bytes;
  guint64 saved_permille; // of the useful bytes, those that the origin did not send
  guint64 peer_bytes, origin_bytes, sent_bytes;
  guint64 duplicate_bytes; // that were there when peers sent them
  guint64 wrong_bytes;     // that did not have the torrent's hash
  guint64 origin_errors;
  guint64 late_pieces;        // not there when a reader asked for them
  guint64 stalls, stalled_us; // of readers
  guint64 start_up_us;        // of the latest reader
  guint64 starts, starts_us;  // of all readers
} StoreSwarmTitle;

// Adds to `sum` the figures that only grow: bytes, errors, pieces, stalls and starts.
void store_swarm_add (StoreSwarmTitle *sum, const StoreSwarmTitle *figures);

typedef void (*StoreSwarmFunc) (gpointer data, const gchar *name, const StoreSwarmTitle *title);

// The functions of a kind of store, whose struct begins with a Store.
typedef struct {
  int (*open) (Store *self, const gchar *name, guint64 *size, GError **error);
  StoreBytes *(*open_bytes) (Store *self, const gchar *name, GError **error);
  gboolean (*list) (Store *self, StoreFoundFunc found, gpointer data);
  guint (*get_disks) (Store *self, StoreDisk *disks, guint n_max); // NULL: 0
  void (*free) (Store *self);
  void (*get_swarm) (Store *self, StoreSwarmTitle *sum, StoreSwarmFunc found,
      gpointer data); // NULL: it is no swarm
} StoreKind;

struct _Store {
  gatomicrefcount refs;
  const StoreKind *kind;
};

// Initialises the base of a store with one reference. For kinds of stores only.
void store_init (Store *self, const StoreKind *kind);

Store *store_ref (Store *self);
void store_unref (Store *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Store, store_unref)

// Opens the title `name` for reading, and sets `*size` to its size in bytes; `size` may be NULL.
// Returns a file descriptor that the caller owns: a file, or a socket that is asked for the bytes
// (bytes_socket.h). On failure, returns -1 and sets an error of the domain G_IO_ERROR:
// - G_IO_ERROR_NO_SPACE: the store can give no more streams,
// - G_IO_ERROR_PROXY_FAILED: the origin cannot be reached, or gives no answer of use,
// - G_IO_ERROR_TIMED_OUT: the origin has not answered in time,
// - G_IO_ERROR_INVALID_DATA: the store, or its index of the title, cannot be read,
// - others: there is no such title for clients.
int store_open (Store *self, const gchar *name, guint64 *size, GError **error);

// Opens the title `name` for outlets that send its bytes. Returns NULL and sets an error of the
// domain G_IO_ERROR on failure. (transfer full)
StoreBytes *store_open_bytes (Store *self, const gchar *name, GError **error);

// Fills in up to `n_max` disks. Returns their number: 0 for a store that knows of no disks, or that
// nobody has used yet.
guint store_get_disks (Store *self, StoreDisk *disks, guint n_max);

// Sets `sum` to the sums of the titles whose swarms the proxy has joined, and calls `found`, which
// may be NULL, for each that it is in. Returns FALSE if the store has no swarms.
gboolean store_get_swarm (Store *self, StoreSwarmTitle *sum, StoreSwarmFunc found, gpointer data);

// Calls `found` for each title, in no order. Returns FALSE with errno if the store cannot be read.
gboolean store_list (Store *self, StoreFoundFunc found, gpointer data);
