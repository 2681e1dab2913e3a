// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What fanout.c (who the readers are, and when they are served) and serve.c (how one is) share.

#include <pthread.h>
#include <stdatomic.h>

#include "fanout.h"
#include "join.h"

#define SHARD_READERS 64

typedef struct shard Shard;

struct weir_reader {
  atomic_uint refs;
  atomic_uint times;
  atomic_bool gone;
  atomic_bool no_gso; // a segmented send to it was refused
  _Atomic (Shard *) shard;
  unsigned n_lists; // in which it stands. Under the lock.

  // Where to.
  WeirConn *conn; // NULL: UDP
  WeirFraming framing;
  uint8_t channel;
  int fd;
  WeirAddress address;

  // Of whoever serves it, which `busy` sees to, and read by others.
  atomic_flag busy;
  _Atomic int64_t cursor;
  atomic_int state;  // WeirReaderState
  atomic_int wanted; // taken at the next frame, or join point, that allows it
  atomic_bool joining;
  _Atomic uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];

  // Of whoever serves it.
  WeirJoin join;
  uint16_t seq_delta;    // what its sequence numbers are ahead of the stream's
  int64_t blocked_since; // 0: there was room at the last send
  int64_t well_since;    // 0: it lagged at the last pass
};

// A list that is never changed while a pass goes over it. Counted under the lock.
typedef struct {
  unsigned refs;
  size_t n;
  WeirReader *readers[SHARD_READERS]; // references
} ReaderList;

struct shard {
  WeirTask task;
  Shard *next;
  WeirFanout *fanout;
  unsigned class;
  ReaderList *list;  // under the lock
  size_t next_first; // under the lock: the reader at which the next pass begins
};

// Packets of the span in hand, laid out for the sender.
typedef struct {
  WeirSender sender;
  bool valid;
  uint64_t mask;                      // which packets
  uint8_t picked[WEIR_STAGE_PACKETS]; // their numbers in the span
} Load;

// What a thread needs to serve, and keeps from one reader to the next. Zeroed to begin.
typedef struct {
  bool ready;
  WeirSpan span;
  Load loads[2]; // as they lie in the window, and in the copy
  uint8_t copy[WEIR_PACKET_MAX];
} Server;

struct weir_fanout {
  WeirWorkers *workers;
  const WeirSendOps *ops;
  atomic_bool no_gso[2]; // IPv4, IPv6: no segmented send works

  // The writer's, and the task's that publishes what waited long enough. Taken before `lock`.
  pthread_mutex_t writer;
  WeirTask flush;
  bool flush_armed, urgent, published;
  uint64_t n_in, bytes_in, n_refused; // since weir_fanout_begin()
  Server here;                        // to serve few readers with, in the writer's thread

  pthread_mutex_t lock;
  pthread_cond_t passed; // a pass ended, for drain
  unsigned n_draining;
  bool interrupted;
  bool running;
  unsigned n_passes; // under way
  WeirFanoutSettings settings;
  WeirWindow window;
  Shard *shards;
  size_t n_shards;
  Shard *open[WEIR_CLASSES]; // one with room, if not NULL
  size_t n_readers, n_conns;
  WeirFanoutCounters counters; // without what readers count that are still there
};

// One pass over the readers of a shard.
typedef struct {
  WeirFanout *fanout;
  Server *server;
  WeirFanoutSettings settings;
  int64_t head; // as the pass began
  int64_t now_ns;
  unsigned times;     // how often the reader in hand gets each packet
  unsigned n_blocked; // UDP sends that found no room
} Pass;

// Sends a reader what is due to it. Returns when more is due, or WEIR_NEVER if a packet or room in
// its connection has to come first.
int64_t serve_reader (Pass *pass, WeirReader *reader);

void server_init (Server *server, const WeirSendOps *ops);
void server_clear (Server *server); // what it has in hand

static inline unsigned
reader_times (const WeirReader *reader, const WeirFanoutSettings *settings)
{
  if (reader->conn || !settings->send_duplicates)
    return 1;
  return atomic_load_explicit (&reader->times, memory_order_relaxed);
}

static inline bool
reader_is (const WeirReader *reader, WeirReaderState state)
{
  return atomic_load_explicit (&reader->state, memory_order_relaxed) == (int) state;
}
