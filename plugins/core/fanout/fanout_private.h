// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of the engine share: fanout.c (the engine as a whole), fanout_readers.c (one
// reader), fanout_shards.c (who comes and goes), fanout_writer.c (what comes in), fanout_pass.c
// (when readers are served), serve*.c (how one is), and those named below.

#include <pthread.h>
#include <stdatomic.h>

#include "fanout/fanout.h"
#include "fanout/join.h"
#include "fanout/layer_streams.h"
#include "net/poller.h"

#define SHARD_READERS 64

typedef struct shard Shard;
typedef struct room Room;

struct weir_reader {
  atomic_uint refs;
  atomic_uint times;
  atomic_bool gone;
  // A segmented send to it was refused, and none is tried before then; 0: as far as is known, they
  // go.
  _Atomic int64_t gso_again_ns;
  atomic_int error;     // with which sends to it failed, until that is asked for
  atomic_int gso_error; // with which segmented ones were refused, until that is told
  _Atomic (Shard *) shard;
  unsigned n_lists; // in which it stands. Under the lock.
  bool awaits_join; // it began where the window had no join point, and none came. Under the lock.

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
  _Atomic uint32_t wanted_layers; // a set, packed
  _Atomic uint32_t current_layers;
  _Atomic uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
  // What it gets, it gets so long after that came. While it is paused: as of then, and maybe less
  // than 0 where the window's edge moved it.
  _Atomic int64_t delay_ns;
  _Atomic int64_t paused_ns; // since when; 0: it is not
  _Atomic uint64_t moved;    // times, by the window's edge

  // Of whoever serves it.
  int64_t next_ns;    // nothing is due to it before
  int64_t time_ahead; // what its timestamps are ahead of the stream's
  WeirJoin join;
  uint16_t seq_delta;     // what its sequence numbers are ahead of the stream's
  uint16_t picture_delta; // the same for the picture ids of VP8
  int64_t gso_pause_ns;   // of the last refusal, if one is remembered
  Room *room;             // of its socket, once that was full
  bool late;              // it found none there for too long
  int64_t blocked_since;  // 0: there was room at the last send
  int64_t well_since;     // 0: it lagged at the last pass
  WeirSwitch layers;
  WeirCodec layers_codec; // for which `layers` was begun
  bool past_extra;        // it has the packet that was put in at its cursor
  bool steady;            // nothing more to change, for these:
  uint32_t steady_layers;
  unsigned steady_generation;

  atomic_int told_state; // WeirReaderState, as the owner took it last
  WeirPlan begun;        // what it began with. Under the lock.

  // Of whoever serves it; changed under the lock.
  _Atomic (LayerStream *) stream; // NULL: everything
};

// A list that is never changed while a pass goes over it. Counted under the lock.
typedef struct {
  unsigned refs;
  size_t n;
  WeirReader *readers[SHARD_READERS]; // references
} ReaderList;

// What was counted for all readers whom a shard has served, also those who left: sums need not ask
// every reader.
typedef struct {
  _Atomic uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
} Counts;

struct shard {
  Counts counts; // of whoever serves it, and read by others
  WeirTask task;
  Shard *next;
  WeirFanout *fanout;
  unsigned class;
  atomic_uint n_readers; // in the list
  atomic_bool waiting;   // readers are, for room in their sockets
  ReaderList *list;      // under the lock
  size_t next_first;     // under the lock: the reader at which the next pass begins
};

// The packets in hand of the stream of some layers, or of all.
typedef struct {
  bool valid;
  uint32_t stream;  // its id; 0: all layers
  int64_t from, to; // positions: what is not among the packets is left out
  bool past_extra;  // see WeirReader
  WeirSpan packets;
} Hand;

// Packets of the span in hand, laid out for the sender.
typedef struct {
  WeirSender sender;
  bool valid;
  bool shifted;                       // its picture ids are not those of the stream
  uint64_t mask;                      // which packets
  uint8_t picked[WEIR_STAGE_PACKETS]; // their numbers in the span
} Load;

// What a thread needs to serve, and keeps from one reader to the next. Zeroed to begin.
typedef struct {
  bool ready;
  Hand hand;
  Load loads[2]; // as they lie in the window, and in the copy
  uint8_t copy[WEIR_PACKET_MAX];
} Server;

struct weir_fanout {
  WeirWorkers *workers;
  const WeirSendOps *ops;
  atomic_bool failed;      // sends have, since weir_fanout_has_failed() said so
  int64_t told_ns;         // when it did; 0: never. The writer's.
  atomic_bool news;        // there are, since weir_fanout_has_news() said so
  atomic_bool join_wanted; // by readers that wait for a join point
  int64_t news_ns;         // when it did; 0: never. The writer's.

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
  Layers layers;
  Room *rooms;
  Shard *shards;
  Shard *open[WEIR_CLASSES]; // one with room, if not NULL
  size_t n_readers, n_conns;
  uint32_t clock_rate;         // of the stream's timestamps; 0: unknown
  size_t n_await_join;         // readers that wait for a join point
  int64_t await_from;          // where the last of them began
  WeirFanoutCounters counters; // without what shards count
};

// A reader in a pass, which goes in rounds: in each, every reader has one span sent to it. So those
// who are behind together share the packets in hand.
typedef struct {
  WeirReader *reader;
  int64_t next_ns; // when more is due to it
  bool more;       // more is, in the next round
} Turn;

// One pass over the readers of a shard.
typedef struct {
  WeirFanout *fanout;
  Shard *shard;
  Server *server;
  WeirFanoutSettings settings;
  int64_t head;    // as the pass began
  int64_t tail;    // as well
  bool has_layers; // a reader that lags gets another stream of them
  bool is_vp8;
  bool is_stacked; // pictures are of several layers: one is needed by the others of its picture
  int64_t now_ns;
  unsigned times;        // how often the reader in hand gets each packet
  unsigned n_blocked[2]; // UDP sends that found no room, over IPv4 and IPv6
  // Readers of one socket who get just what is in hand, and have not got it yet. Each is kept busy.
  size_t n_batch;
  Turn *batch[SHARD_READERS];
} Pass;

// ---- who comes and goes (fanout_shards.c) ----

// What is kept: all that the settings say only if somebody can ask for it. With the lock held.
void weir_fanout_set_bounds (WeirFanout *fanout);

// Drops a reference to the list. With the lock held.
void weir_shard_list_unref (WeirFanout *fanout, ReaderList *list);

// Readers' connections wake nobody any more.
void weir_fanout_unwatch_all (WeirFanout *fanout);

// ---- passes (fanout_pass.c) ----

// One pass over the readers of the shard whose task it is.
int64_t weir_shard_run (WeirTask *task, void *scratch, int64_t now_ns);

// Has all shards served: here, if there are few readers and `here` is somewhere to work; else by
// the workers, one after the other where passes are spread.
void weir_fanout_serve_all (WeirFanout *fanout, void *here, int64_t now_ns);

// ---- the writer (fanout_writer.c) ----

// Where the slowest reader at the live edge is. With the lock held.
int64_t weir_fanout_slowest (const WeirFanout *fanout);

// Puts what is staged into the window. With the writer's lock held.
void weir_fanout_publish (WeirFanout *fanout);

// Publishes what has waited long enough for the rest of its frame.
int64_t weir_fanout_run_flush (WeirTask *task, void *scratch, int64_t now_ns);

// ---- streams of layers (fanout_layers.c): the writer ----

void weir_layer_streams_set_codec (WeirFanout *fanout, WeirCodec codec, uint8_t dependency_id);

// After packets were published.
void weir_layer_streams_take (WeirFanout *fanout);

// What has come of the frame in hand is all of it.
void weir_layer_streams_end_frame (WeirFanout *fanout);

// Makes the streams that readers wait for. True if there were any.
bool weir_layer_streams_grant (WeirFanout *fanout);

// The window is about to be flushed. With the lock held too.
void weir_layer_streams_flush (WeirFanout *fanout);

// The window lies in another file, or in memory. Flushed, and with the lock held too.
void weir_layer_streams_set_file (WeirFanout *fanout);

// ---- room (fanout_room.c) ----

// The room of a socket, which is made if there is none; NULL: no memory.
Room *weir_room_of (WeirFanout *fanout, int fd);
void weir_rooms_free (Room *rooms);

// When a reader that had waited for it got some.
int64_t weir_room_moved (const Room *room);
void weir_room_note (Room *room, int64_t now_ns);

// Has the shard woken when there is some. False if nobody will.
bool weir_room_watch (Room *room, Shard *shard);

// Wakes the shards that wait for room.
void weir_fanout_wake_waiting (WeirFanout *fanout);

// Sends a reader a span of what is due to it, at the latest when the round is over. Then its turn
// tells whether there is more, or when: WEIR_NEVER if a packet or room in its connection has to
// come first.
void weir_serve_turn (Pass *pass, Turn *turn);
void weir_serve_end_round (Pass *pass);

// Nothing is to be changed about the reader's layers.
bool weir_reader_is_steady (const WeirFanout *fanout, const WeirReader *reader);

// Up to where the reader goes on in the stream that it is in, or changes to: to the cursor itself
// if it has to wait. With the lock held.
int64_t weir_choose_stream (const Pass *pass, WeirReader *reader, int64_t cursor);

// ---- places (fanout_places.c). With the lock held. ----

// Where a newcomer begins who is to have this delay.
WeirPlan weir_places_plan (
    const WeirFanout *fanout, bool at_keyframe, int64_t delay_ns, int64_t now_ns);

// Puts a reader there that nobody serves. NULL: a plan made now.
void weir_places_put (WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns);

// A newcomer that is to begin at a join point waits for one, if the window has none, until it goes
// or the window has one: that is looked for in what was published, while anybody waits.
void weir_places_await_join (WeirFanout *fanout, WeirReader *reader);
void weir_places_await_no_more (WeirFanout *fanout, WeirReader *reader);
void weir_places_look_for_join (WeirFanout *fanout);

// How many packets are due to it.
uint64_t weir_places_lag (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns);

// The edge of its frames: where it would be if it had got everything in time.
int64_t weir_places_edge (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns);

// Where a reader that the window's edge has come past goes on. Who is far behind is not any more
// than that.
int64_t weir_places_move_on (const WeirFanout *fanout, WeirReader *reader, int64_t now_ns);

// Keeps all others from serving it, who do that for no longer than some sends take.
void weir_reader_hold (WeirReader *reader);

static inline void
reader_let_go (WeirReader *reader)
{
  atomic_flag_clear_explicit (&reader->busy, memory_order_release);
}

static inline int64_t
reader_delay (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->delay_ns, memory_order_relaxed);
}

static inline int64_t
reader_paused (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->paused_ns, memory_order_relaxed);
}

static inline bool
reader_joining (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->joining, memory_order_relaxed);
}

// The reader gets all layers, until it chooses anew. With the lock held.
void weir_reader_leave_stream (WeirReader *reader);

void weir_server_init (Server *server, const WeirSendOps *ops);
void weir_server_clear (Server *server); // what it has in hand

#define ALL_LAYERS UINT32_C (0xffffff)
#define BASE_LAYERS UINT32_C (0)

static inline uint32_t
pack_layers (WeirLayerSet set)
{
  return (uint32_t) (uint8_t) set.spatial << 16 | (uint32_t) (uint8_t) set.quality << 8
         | (uint8_t) set.temporal;
}

static inline WeirLayerSet
unpack_layers (uint32_t packed)
{
  return (WeirLayerSet) {
    .spatial = (int8_t) (packed >> 16),
    .quality = (int8_t) (packed >> 8),
    .temporal = (int8_t) packed,
  };
}

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

static inline uint64_t
get_count (const _Atomic uint64_t *counter)
{
  return atomic_load_explicit (counter, memory_order_relaxed);
}
