// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Internals shared by the engine's files: fanout.c (the engine as a whole), fanout_readers.c (one
// reader), fanout_shards.c (adding and removing readers), fanout_writer.c (the input),
// fanout_trim.c (when packets are dropped), fanout_pass.c (when readers are served), serve*.c (how
// a reader is served), and the files named below. "Under the lock" means WeirFanout.lock.

#include <pthread.h>
#include <stdatomic.h>

#include "fanout/fanout.h"
#include "fanout/join.h"
#include "fanout/layer_streams.h"
#include "net/poller.h"
#include "rtp/rtp.h"

#define CACHE_LINE 64 // bytes
#define SHARD_READERS 128
#define SPREAD_READERS 16    // of a shard, if passes are spread
#define PLAN_NS 2000000000LL // a plan is valid for this time

typedef struct shard Shard;
typedef struct resends Resends;
typedef struct room Room;

// How a reader's frame is spread: the packets from position `from` to before `to` are sent at a
// rate.
typedef struct {
  int64_t from, to;
  int64_t byte_ns;              // time for a byte; 0: all at once
  int64_t due_ns;               // when the next packet is due
  int64_t rtp_time, arrival_ns; // of the first packet
  int64_t frame_ns;             // duration of the frame
} Spread;

// A probe of a reader's line: how much is sent to it for some time.
typedef struct {
  uint64_t bits; // bit/s
  int64_t from_ns, until_ns;
  uint64_t sent_before; // bytes of the stream that it was sent before
  uint64_t padded;      // bytes that were sent again since
  unsigned n;           // packets that were sent again since
} Probe;

// How far a reader has got: the RTP timestamp of its next packet, or of the newest one if that was
// sent.
typedef struct {
  bool known;
  uint32_t rtp_time;
} WeirReaderTime;

// What each turn uses stands before `join`, with its first field, in as few cache lines as
// possible, as a pass spends most of its own time on waiting for memory. What each turn writes is
// in the first line.
struct weir_reader {
  // Written by the thread that serves the reader (it holds `busy`), read by others.
  _Alignas (CACHE_LINE) atomic_flag busy;
  atomic_bool joining;
  atomic_bool removed;
  // Only for the thread that serves the reader.
  bool late;         // its socket was full for too long
  bool numbered;     // `seq_delta` has the offset that its protection asks for
  bool past_extra;   // it has got the packet inserted at its cursor
  bool steady;       // no change of layers is pending, as long as steady_… stay the same
  bool is_protected; // `protect` is set. Set before the reader is added.
  bool probing;      // `probe` is set
  // Written by the thread that serves the reader, read by others.
  atomic_int state;      // WeirReaderState
  atomic_int wanted;     // WeirReaderState, adopted at the next frame or join point that allows it
  atomic_int restricted; // WeirReaderState: `wanted` by the caller; the stricter of the two holds
  atomic_int clones;     // WeirClones: how its last packets were sent over UDP
  atomic_uint times;
  _Atomic int64_t cursor;
  _Atomic uint64_t due, packets, bytes;
  int64_t time_ahead; // ticks by which its timestamps are ahead of the stream's

  // Delay of each packet after its arrival. While the reader is paused: the delay at the start of
  // the pause; it can be negative if the reader fell behind the window's tail since.
  _Atomic int64_t delay_ns;
  _Atomic int64_t paused_ns; // when it was paused; 0: not paused
  // After a refused segmented send: time before which none is tried again. 0: none was refused.
  _Atomic int64_t gso_again_ns;
  // Only for the thread that serves the reader.
  int64_t next_ns;         // no packet is due before
  int64_t blocked_since;   // when its socket was first full; 0: there was room at the last send
  int64_t well_since;      // when it stopped lagging; 0: it lagged at the last pass
  int64_t clones_again_ns; // after a dropped clone: time before which it gets none
  uint16_t seq_delta;      // its sequence numbers minus the stream's
  uint16_t picture_delta;  // its VP8 picture ids minus the stream's
  int fd;                  // of its UDP socket

  // Changed under the lock.
  _Atomic (LayerStream *) stream; // NULL: the main window, with all layers
  WeirConn *conn;                 // NULL: UDP
  const WeirCloner *cloner;       // NULL: it gets no clones
  WeirCloneRoute *clone_route;
  _Atomic uint32_t wanted_layers; // a layer set, packed
  // Only for the thread that serves the reader.
  uint32_t steady_layers;
  unsigned steady_generation;
  WeirJoin join;
  int64_t skip_to;      // see WeirPlan
  int64_t gso_pause_ns; // pause after the last refusal, if `gso_again_ns` is set
  Room *room;           // its socket's room; NULL until the socket was full
  WeirSwitch layers;
  WeirCodec layers_codec; // codec that `layers` was initialised for

  WeirProtect protect; // for a reader whose packets are protected
  Resends *resends;    // NULL: it gets no retransmissions
  // Only for the thread that serves the reader.
  Probe probe;
  Spread spread;
  WeirAddress address;

  // Written by the thread that serves the reader, read by others.
  _Atomic uint32_t current_layers; // a layer set, packed
  _Atomic uint64_t dropped[WEIR_N_DROPS];
  _Atomic uint64_t moved; // times that it fell behind the window's tail
  _Atomic uint64_t resent, resend_refused, probed;
  atomic_int error;     // errno of failed sends, until it is read
  atomic_int gso_error; // errno of refused segmented sends, until it is reported

  uint32_t splice_ahead; // ticks by which it is ahead of the stream even without a delay
  // Ticks by which it is ahead beside that up to the RTP time `late_from`, and less and less after.
  uint32_t late_by;
  int64_t late_from;
  // The SSRC and payload type of its packets, if they are not those of the stream.
  bool has_guise;
  uint8_t payload_type;
  uint32_t ssrc;
  atomic_uint refs;
  _Atomic (Shard *) shard;
  unsigned n_lists;      // lists that hold it. Under the lock.
  bool awaits_join;      // it waits for the window's first join point. Under the lock.
  WeirFraming framing;   // of `conn`
  uint8_t channel;       // of `conn`
  atomic_int told_state; // WeirReaderState last reported to the owner
  WeirPlan begun;        // the plan with which it began. Under the lock.
  WeirReaderTime left;   // how far it had got when it was removed. Under the lock.
};

_Static_assert (offsetof (WeirReader, join) < 3 * CACHE_LINE, "a turn uses three lines");

// A list of readers. It is not changed while a pass uses it. `refs` is under the lock.
typedef struct {
  unsigned refs;
  size_t n;
  WeirReader *readers[SHARD_READERS]; // references
} ReaderList;

// Sums over all readers that a shard has served, including removed ones, so that totals need no
// walk over the readers.
typedef struct {
  _Atomic uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
} Counts;

struct shard {
  Counts counts; // written by the thread that serves the shard, read by others
  WeirTask task;
  Shard *next;
  WeirFanout *fanout;
  unsigned priority;
  uint32_t layers;       // its readers want these, packed, if there is room. Under the lock.
  bool has_strays;       // some of its readers have changed their layers. Under the lock.
  bool has_new;          // readers came from other shards. Under the lock.
  atomic_uint n_readers; // readers in the list
  atomic_uint n_cloned;  // readers whose last packets were sent by clones, at the last pass
  atomic_bool waiting;   // readers wait for room in their sockets
  ReaderList *list;      // under the lock
  size_t next_first;     // under the lock: reader at which the next pass begins
};

// The packets in hand: the span of one stream that a thread is sending. Readers with the same
// cursor share it.
typedef struct {
  bool valid;
  uint32_t stream;  // id of the stream; 0: all layers
  int64_t from, to; // positions covered; positions without a packet are left out
  bool past_extra;  // see WeirReader
  WeirSpan packets;
} Hand;

// Packets of the span in hand, prepared for the sender.
typedef struct {
  WeirSender sender;
  bool valid;
  bool shifted;                       // its picture ids differ from the stream's
  uint64_t mask;                      // packets chosen, a bit each
  uint8_t picked[WEIR_STAGE_PACKETS]; // their indexes in the span
} Load;

// What is loaded: packets in the window; `copy` with a reader's own numbers; `sealed`, protected
// for one reader.
enum { IN_PLACE, COPIED, SEALED, N_LOADS };

// A thread's working memory, kept from one reader to the next. Initially all zeros.
typedef struct {
  bool ready;
  Hand hand;
  Load loads[N_LOADS];
  uint8_t copy[WEIR_PACKET_MAX];
  uint8_t sealed[WEIR_PACKET_MAX + WEIR_STAGE_PACKETS * WEIR_PROTECT_ROOM];
} Server;

// The last search for packets that nobody needs, and what the window was then.
typedef struct {
  int64_t at_ns, last_join;
  uint64_t n_blocks;
} Trim;

struct weir_fanout {
  WeirWorkers *workers;
  const WeirSendOps *ops;
  atomic_bool failed;      // sends have failed since weir_fanout_has_failed() last returned true
  int64_t told_ns;         // time of that report; 0: never. For the writer only.
  atomic_bool news;        // readers have changed since weir_fanout_has_news() last returned true
  atomic_bool join_wanted; // readers wait for a join point
  int64_t news_ns;         // time of the report of changed readers; 0: never. For the writer only.

  // For the writer, and for the task that publishes packets that waited long enough. Taken before
  // `lock`.
  pthread_mutex_t writer;
  WeirTask flush;
  bool flush_armed, urgent, published;
  uint64_t n_in, bytes_in, n_refused; // since weir_fanout_begin()

  pthread_mutex_t lock;
  pthread_cond_t passed; // signalled when a pass has ended
  unsigned n_draining;
  bool interrupted;
  bool running;
  unsigned n_passes; // passes in progress
  WeirFanoutSettings settings;
  WeirWindow window;
  Layers layers;
  Room *rooms;
  Shard *shards;
  size_t n_readers, n_conns;
  size_t n_resending;  // readers that may get retransmissions
  uint32_t clock_rate; // ticks per second; 0: unknown
  size_t n_await_join; // readers that wait for a join point
  int64_t await_from;  // position at which the last of them began
  Trim trim;
  int64_t planned_until_ns;    // a plan may be used until then
  int64_t left_at;             // newest position of a reader that was removed while paused, or -1
  WeirFanoutCounters counters; // without the shards' sums
};

// A reader's turn in a pass. A pass goes in rounds: each round sends every reader one span. So
// readers that are behind by the same amount share the packets in hand.
typedef struct {
  WeirReader *reader;
  int64_t next_ns; // when its next packet is due
  bool more;       // it has packets for the next round
} Turn;

// One pass over the readers of a shard.
typedef struct {
  WeirFanout *fanout;
  Shard *shard;
  Server *server;
  WeirFanoutSettings settings;
  int64_t head;    // window head at the start of the pass
  int64_t tail;    // window tail at the start of the pass
  bool has_layers; // a reader that lags gets another stream of layers
  bool is_vp8;
  bool is_stacked; // pictures have several spatial or quality layers, which depend on each other
  int64_t now_ns;
  unsigned times;        // copies that the current reader gets of each packet
  unsigned n_blocked[2]; // UDP sends without room, over IPv4 and IPv6
  // Readers of one socket that get exactly the packets in hand, with offsets of numbers, and have
  // not got them yet. Each is kept busy.
  size_t n_batch;
  Turn *batch[SHARD_READERS];
} Pass;

// ---- adding and removing readers (fanout_shards.c) ----

// Sets the window's bounds: the full bounds of the settings only if a reader can ask for old
// packets. Under the lock.
void weir_fanout_set_bounds (WeirFanout *fanout);

// Moves readers of the shard that have changed their layers to those who have the same, if one
// shard does not hold all readers. Sets `has_new` of the other shards, which have to be woken.
// Under the lock.
void weir_shard_gather (Shard *shard);

// Drops a reference to the list. Under the lock.
void weir_shard_list_unref (WeirFanout *fanout, ReaderList *list);

// Stops watching all readers' connections.
void weir_fanout_unwatch_all (WeirFanout *fanout);

// ---- passes (fanout_pass.c) ----

// Runs one pass over the readers of the task's shard.
int64_t weir_shard_run (WeirTask *task, void *scratch, int64_t now_ns);

// Lets all shards be served: in this thread if there are few readers and `here` is set; else by the
// workers, one shard after the other if passes are spread.
void weir_fanout_serve_all (WeirFanout *fanout, bool here, int64_t now_ns);

// ---- the writer (fanout_writer.c) ----

// Returns the cursor of the slowest reader without a delay, or INT64_MAX. Under the lock.
int64_t weir_fanout_slowest (const WeirFanout *fanout);

// Publishes the staged packets. The caller holds the writer's lock.
void weir_fanout_publish (WeirFanout *fanout);

// Publishes packets that have waited long enough for the rest of their frame.
int64_t weir_fanout_run_flush (WeirTask *task, void *scratch, int64_t now_ns);

// ---- retransmissions (resend.c) ----

#define RESEND_NS 1000000000LL // a packet may be sent again this long

// Returns NULL if there is no memory.
Resends *weir_resends_new (void);
void weir_resends_free (Resends *resends);
// For tests: returns how many packets it remembers at most.
size_t weir_resends_room (const Resends *resends);

// Notes that the reader was sent the first `n` packets of the sealed load, made from `loaded`. Only
// for the thread that serves the reader.
void weir_resends_note (Pass *pass, WeirReader *reader, const Load *loaded, size_t n);

// Sends again one of the last packets that the reader was sent, the `i`th modulo some, without a
// budget. Returns its length in bytes, or 0 if it cannot be sent. Only for the thread that serves
// the reader.
size_t weir_resends_pad (WeirFanout *fanout, WeirReader *reader, unsigned i, int64_t now_ns);

// ---- probes (probe.c) ----

// Sends what a probing reader is owed, at the end of its turn.
void weir_serve_probe (Pass *pass, Turn *turn);

// ---- trimming (fanout_trim.c) ----

// Drops the packets of the window that nobody needs, if the settings say so. Searches for them only
// when a join point was published or a block was taken since the last search. The caller holds both
// locks.
void weir_fanout_trim (WeirFanout *fanout);

// Call when a reader is removed: if it is paused, it may be added again at its position, and the
// window keeps all that its bounds allow until that position is out of the window. Under the lock.
void weir_fanout_trim_without (WeirFanout *fanout, const WeirReader *reader);

// ---- streams of layer sets (fanout_layers.c): the writer ----

// Changes the codec; every stream restarts. The caller holds the writer's lock.
void weir_layer_streams_set_codec (WeirFanout *fanout, WeirCodec codec, uint8_t dependency_id);

// Gathers the published packets into frames, and adds each complete frame to every stream.
void weir_layer_streams_take (WeirFanout *fanout);

// Ends the current frame with the packets that came.
void weir_layer_streams_end_frame (WeirFanout *fanout);

// Makes the streams that readers wait for. Returns whether any reader waited.
bool weir_layer_streams_grant (WeirFanout *fanout);

// Call before the window is flushed, under the lock.
void weir_layer_streams_flush (WeirFanout *fanout);

// Call when the window's file has changed, under the lock, after weir_layer_streams_flush().
void weir_layer_streams_set_file (WeirFanout *fanout);

// ---- room (fanout_room.c) ----

// Returns the room of a socket, created if needed; NULL if there is no memory.
Room *weir_room_of (WeirFanout *fanout, int fd);
void weir_rooms_free (Room *rooms);

// Gets and sets the last time at which a waiting reader got room.
int64_t weir_room_moved (const Room *room);
void weir_room_note (Room *room, int64_t now_ns);

// Wakes the shard when there is room. Returns false if it cannot be watched.
bool weir_room_watch (Room *room, Shard *shard);

// Wakes the shards that wait for room.
void weir_fanout_wake_waiting (WeirFanout *fanout);

// ---- serving (serve*.c) ----

// weir_serve_turn() sends a reader one span of the packets due to it; weir_serve_end_round() sends
// the spans that it has postponed. Afterwards the turn says whether the reader has more packets, or
// when the next is due: WEIR_NEVER if it waits for a packet or for room in its connection.
void weir_serve_turn (Pass *pass, Turn *turn);
void weir_serve_end_round (Pass *pass);

// Reports whether no change of the reader's layers is pending.
bool weir_reader_is_steady (const WeirFanout *fanout, const WeirReader *reader);

// Chooses the stream that the reader gets from `cursor` on. Returns the position up to which the
// reader stays in that stream; `cursor` itself if the reader has to wait. Under the lock.
int64_t weir_choose_stream (const Pass *pass, WeirReader *reader, int64_t cursor);

// ---- plans (fanout_plan.c); under the lock ----

// Converts ns to ticks of the stream's clock.
int64_t weir_fanout_ticks (const WeirFanout *fanout, int64_t ns);

// Plans the start of a reader with these layers and this delay (ns).
WeirPlan weir_plan_start (const WeirFanout *fanout, WeirLayerSet layers, bool at_keyframe,
    int64_t delay_ns, int64_t now_ns);

// Returns the position at which a reader continues after the window has dropped its packets.
// `behind`: the reader has a delay or is paused, so it stays away from the live edge.
int64_t weir_overrun_position (const WeirFanout *fanout, bool behind);

// ---- readers' positions (fanout_position.c); under the lock ----

// Moves a reader that is not being served to the plan's position. If `plan` is NULL or too old, a
// new one is made.
void weir_reader_begin (
    WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns);

// Lets a new reader wait for a join point, if it needs one and the window has none. The wait ends
// when a join point is published or the reader is removed. While readers wait, call
// weir_fanout_look_for_join() after each publish.
void weir_reader_await_join (WeirFanout *fanout, WeirReader *reader);
void weir_reader_end_await (WeirFanout *fanout, WeirReader *reader);
void weir_fanout_look_for_join (WeirFanout *fanout);

// Returns how many packets are due to the reader.
uint64_t weir_reader_lag (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns);
WeirReaderTime weir_reader_time (const WeirFanout *fanout, const WeirReader *reader);

// Returns the position where the reader would be without any lag, at the start of a frame.
int64_t weir_reader_target (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns);

// Returns the position at which a reader that fell behind the window's tail continues. Reduces the
// reader's delay if that position is closer to the live edge.
int64_t weir_reader_move_on (const WeirFanout *fanout, WeirReader *reader, int64_t now_ns);

// weir_reader_hold() keeps other threads from serving the reader, until reader_release(). It spins
// for at most the time of a few sends, or of those that weir_fanout_resend() makes in one call.
void weir_reader_hold (WeirReader *reader);

static inline void
reader_set_clones (WeirReader *reader, WeirClones clones)
{
  atomic_store_explicit (&reader->clones, (int) clones, memory_order_relaxed);
}

static inline void
reader_release (WeirReader *reader)
{
  atomic_flag_clear_explicit (&reader->busy, memory_order_release);
}

// Of such a lead, this part of the time that passes is made up for.
#define LATE_PART 16

// Returns by how many ticks the reader's timestamps are ahead of the stream's at an RTP time.
static inline int64_t
reader_ahead (const WeirReader *reader, int64_t rtp_time)
{
  int64_t late = reader->late_by;

  if (late > 0 && rtp_time > reader->late_from)
    late -= (rtp_time - reader->late_from) / LATE_PART;
  return reader->time_ahead + (late > 0 ? late : 0);
}

// Writes the SSRC and payload type of a reader that has its own into a packet.
static inline void
reader_put_guise (const WeirReader *reader, uint8_t *packet)
{
  weir_rtp_set_ssrc (packet, reader->ssrc);
  weir_rtp_set_pt (packet, reader->payload_type);
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

// Puts the reader back on the main window until it chooses a stream again. Under the lock.
void weir_reader_leave_stream (WeirReader *reader);

// Prepares a thread's working memory before its first use.
void weir_server_init (Server *server, const WeirSendOps *ops);
void weir_server_clear (Server *server); // releases the packets in hand

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

// Reports whether pictures have several spatial or quality layers, which depend on each other.
// Under the lock.
static inline bool
has_stacked_layers (const WeirFanout *fanout)
{
  return fanout->layers.top.spatial > 0 || fanout->layers.top.quality > 0;
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
