// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The fan-out engine: sends one stream, kept in a window, to many readers over UDP and TCP. Each
// reader has its own cursor: the position of its next packet.
//
// Cost: a packet is copied once, into the window. After that a reader costs one send per frame,
// whatever the number of packets, and a share of a system call (send.h). For readers with their own
// sequence numbers or timestamps, each pass over a shard copies the frame once, and each reader
// costs 6 written bytes per packet. For readers that are thinned, each different choice of packets
// costs a copy. The only allocation is an occasional block of the window.
//
// Readers are grouped in shards of up to 128. One thread at a time serves a shard: the writer's own
// thread while there are few readers, else the workers. One lock guards the window's index and the
// lists of readers; it is never held across a system call.
//
// For every reader, due = sent + dropped. `due` is the number of packets that its cursor has
// passed, times the number of copies that it gets of each.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "net/clones.h"
#include "net/conn.h"
#include "net/drops.h"
#include "net/protect.h"
#include "net/send.h"
#include "run/workers.h"
#include "svc/layerset.h"
#include "svc/rates.h"
#include "window/window.h"

// The treatment of a reader that falls behind the window.
typedef enum {
  WEIR_OVERRUN_TO_JOIN,  // slowest-sink-drop: the reader moves to the next join point
  WEIR_OVERRUN_TO_TAIL,  // head drop: the reader moves to the oldest packet
  WEIR_OVERRUN_TAIL_DROP // tail drop: new packets are refused, so that no reader falls behind
} WeirOverrun;

// The restrictions on a reader, from mild to final.
typedef enum {
  WEIR_READER_OK,
  WEIR_READER_NO_UPPER_LAYERS, // spatial, quality and temporal layer 0 only
  WEIR_READER_REFERENCES,      // the same, without discardable frames
  WEIR_READER_KEYFRAMES,       // keyframes only
  WEIR_READER_CLOSED           // its connection broke, or took no data for 10 s
} WeirReaderState;

typedef struct {
  WeirGso gso;
  bool send_duplicates;    // a reader that was added n times gets n copies
  bool join_at_keyframe;   // new readers begin at the newest join point; false: at the live edge
  bool catch_up_live;      // readers that catch up get compressed timestamps (join.h)
  unsigned catch_up_rate;  // speed factor while catching up, at least 2
  unsigned inline_readers; // up to this many readers are served in the writer's thread
  int64_t spread_ns;       // time in ns over which a pass over all readers is spread; 0: at once
  int64_t coalesce_ns;     // longest time in ns that a packet waits for the rest of its frame
  bool keep_window;        // keep all that the bounds allow, even if no reader can ask for it yet
  bool trim;               // unless keep_window is set, drop packets as soon as nobody needs them
  WeirWindowBounds bounds;
  WeirOverrun overrun;
} WeirFanoutSettings;

typedef struct {
  uint64_t packets_in, bytes_in; // all incoming packets
  uint64_t packets_refused;      // incoming packets refused: too large, no memory, or tail drop
  uint64_t packets_opaque;       // incoming packets that are neither RTP nor RTCP
  uint64_t bursts;               // bursts published
  size_t kernel_readers;         // readers whose last packets were sent by clones
  // Sums over all readers, including removed ones.
  uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
  WeirSendCounters sends;
} WeirFanoutCounters;

typedef struct {
  uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
  uint64_t lag_packets;
  int64_t lag_ns; // how far behind its target it is; 0 if it is there
  // RTP timestamp in the stream of its next packet, or of the newest one if that was sent; for a
  // reader that was removed, as it was then.
  bool rtp_time_known;
  uint32_t rtp_time;
  int64_t delay_ns;
  bool paused;
  WeirClones clones; // how its last packets were sent; says nothing if it has no route for clones
  uint64_t moved;    // times that it fell behind the window's tail and was moved
  // Packets sent again, and asked for but not sent again. They are in no other counter.
  uint64_t resent, resend_refused;
  uint64_t probed; // packets sent again for probes; in no other counter, either
  WeirReaderState state, restricted;
  unsigned priority;
  bool catching_up;
  WeirLayerSet wanted_layers, current_layers;
} WeirReaderCounters;

// Changes of a reader that have not been reported yet.
typedef struct {
  int gso_error;                 // 0, or the errno with which segmented sends to it are refused
  WeirReaderState before, state; // the state reported last, and the state now
  int closed_by;                 // for WEIR_READER_CLOSED: the errno that broke its connection
} WeirReaderNews;

typedef struct weir_fanout WeirFanout;
typedef struct weir_reader WeirReader;

// A delay that means the oldest join point that is not about to be dropped.
#define WEIR_DELAY_OLDEST INT64_MAX

// A plan: where a reader begins after it is added or moved, and with which numbers.
typedef struct {
  int64_t position;
  int64_t made_ns;
  int64_t delay_ns;   // delay that it gets: less than requested if the window is shorter
  int64_t time_ahead; // ticks by which its timestamps are ahead of the stream's
  int64_t paused_ns;  // when it was paused; 0: not paused
  bool continues;     // its sequence numbers continue from `seq`
  bool moved;         // it fell behind the window's tail
  bool spliced;       // weir_fanout_splice(): it gets all at once up to the live edge
  int64_t live_time;  // see WeirJoin
  // A reader that catches up does not get the discardable packets before `skip_to`. Its sequence
  // numbers and VP8 picture ids begin ahead of the input's by `seq_ahead` and `pictures_ahead`,
  // modulo 2^16, so that from `skip_to` on it has the numbers of other readers of its layers.
  int64_t skip_to;
  uint16_t seq_ahead, pictures_ahead;
  bool known;   // `seq` is valid
  uint16_t seq; // of its next packet
  bool rtp_time_known;
  uint32_t rtp_time; // of its next packet
} WeirPlan;

// Returns the state's name in statistics, such as "ok".
const char *weir_reader_state_name (WeirReaderState state);

// Returns the `scratch_size` for weir_workers_new() in bytes.
size_t weir_fanout_scratch_size (void);

// Creates a stopped engine. With `workers` NULL, packets are sent only by weir_fanout_run(). `ops`
// is NULL for the real system calls. `settings` is copied. Returns NULL if there is no memory.
// Unless a function says otherwise, call it from any thread.
WeirFanout *weir_fanout_new (
    WeirWorkers *workers, const WeirSendOps *ops, const WeirFanoutSettings *settings);
void weir_fanout_free (WeirFanout *fanout); // the engine must be stopped

// Changes the settings.
void weir_fanout_set (WeirFanout *fanout, const WeirFanoutSettings *settings);

// Copies the counters. Takes a few ns for every 128 readers.
void weir_fanout_counters (WeirFanout *fanout, WeirFanoutCounters *counters);
size_t weir_fanout_n_readers (WeirFanout *fanout);

// Start and stop the engine. While it is stopped, nothing is sent. Stopping waits for sends in
// progress and counts the packets that readers had ahead of them as flushed. Starting sets all
// counters to 0.
void weir_fanout_start (WeirFanout *fanout);
void weir_fanout_stop (WeirFanout *fanout);

// Forgets all packets, as after a seek. Waits for sends in progress and counts the packets that
// readers had ahead of them as flushed. The readers stay, and continue with the next packet.
void weir_fanout_flush (WeirFanout *fanout);

// Sets the file of the window (window.h); NULL: memory. Only while stopped.
void weir_fanout_set_file (WeirFanout *fanout, WeirBlockFile *file);

// Returns the window's limit in bytes since its file ran out of room; SIZE_MAX if it did not.
size_t weir_fanout_limit (WeirFanout *fanout);

// ---- the writer: one thread ----

// Sets the codec of the payloads from the next packet on, and the id of the dependency descriptor
// header extension (0: none).
void weir_fanout_set_codec (WeirFanout *fanout, WeirCodec codec, uint8_t dependency_id);

// Call reserve and commit for each packet, between weir_fanout_begin() and weir_fanout_end(). If
// begin returns false, the fan-out is stopped: do not call the others. Packets are kept without
// readers too: the next one begins with the whole frame in progress. reserve returns room for
// a packet of `len` bytes; it returns NULL, and counts the packet, if the packet is refused. commit
// adds the packet written there, which arrived at `now_ns`. A packet that does not end its frame
// waits for the rest of the frame. end serves the readers in this thread if there are few.
bool weir_fanout_begin (WeirFanout *fanout);
uint8_t *weir_fanout_reserve (WeirFanout *fanout, size_t len);
void weir_fanout_commit (WeirFanout *fanout, size_t len, int64_t now_ns);
// Commits a packet whose layer is known; with `layer` NULL the layer is read from the packet.
void weir_fanout_commit_layer (
    WeirFanout *fanout, size_t len, const WeirLayer *layer, int64_t now_ns);
void weir_fanout_end (WeirFanout *fanout, int64_t now_ns);

// Reports, at most once a second, that a reader waits for a keyframe, to begin or to change layers.
// A reader that begins between keyframes counts as waiting only from its second frame on.
bool weir_fanout_wants_key (WeirFanout *fanout, int64_t now_ns);

// Reports, at most once in 10 s, that sends over UDP have failed; weir_reader_take_error() says for
// which readers.
bool weir_fanout_has_failed (WeirFanout *fanout, int64_t now_ns);

// Reports, at most once in 10 s, that a reader's state has changed or that its segmented sends are
// refused. weir_reader_take_news() says for which readers.
bool weir_fanout_has_news (WeirFanout *fanout, int64_t now_ns);

// Waits until all readers at the live edge have everything. Returns false at the deadline
// (CLOCK_MONOTONIC), also if a reader's connection has no room.
bool weir_fanout_drain (WeirFanout *fanout, int64_t deadline_ns);

// Makes weir_fanout_drain() return at once, until called with false.
void weir_fanout_interrupt (WeirFanout *fanout, bool interrupted);

// ---- readers ----

// Create a reader, over UDP or over a connection. The reader takes a reference to the connection;
// `channel` is for interleaved framing. Return NULL if there is no memory. The caller owns the
// result; the engine takes its own reference.
WeirReader *weir_reader_new_udp (void);
WeirReader *weir_reader_new_conn (WeirConn *conn, WeirFraming framing, uint8_t channel);
WeirReader *weir_reader_ref (WeirReader *reader);
void weir_reader_unref (WeirReader *reader);

// Sets the address of a UDP reader and the socket to send from, which the caller keeps open. `fd`
// is -1 if no socket reaches the address. The address must have the socket's family. Only while the
// reader is in no running engine.
void weir_reader_set_route (WeirReader *reader, int fd, const WeirAddress *address);

// Sets the route of a UDP reader's clones; NULL: none, so that it is served by sends. The reader
// releases it. Clones are made for readers that get the same bytes. May be called at any time.
void weir_reader_set_clone_route (
    WeirReader *reader, const WeirCloner *cloner, WeirCloneRoute *route);

// Makes the engine protect each packet that it sends to the reader. The reader then has sequence
// numbers of its own: they begin with the first next_seq() of `protect`, and continue when a reader
// with the same `protect` is added again, and through jumps of the stream's numbers. Packets that
// cannot be protected count as dropped, reason WEIR_DROP_ERROR. `protect` is copied; the reader
// releases it. Only before the reader is added.
void weir_reader_set_protect (WeirReader *reader, const WeirProtect *protect);

// Sends packets again that a protected reader over UDP reports lost: by their numbers as the reader
// knows them, as its protection's protect_again() writes them. Each must have been sent within the
// last second, again at most 3 times, and not again within the last `round_trip_ns` or 20 ms, the
// longer of both: the reader may ask for a packet that is on its way. Together they may take 20 %
// of the bytes that the reader was sent in the last second. Sends from the caller's thread, and
// does not wait for room. Returns how many were sent. The reader must be of this engine, or have
// been removed from it.
unsigned weir_fanout_resend (WeirFanout *fanout, WeirReader *reader, const uint16_t *seqs, size_t n,
    int64_t round_trip_ns, int64_t now_ns);

// Fills the line of a protected reader over UDP, to learn whether it carries `bits` bit/s (up to
// 10^9): for `duration_ns` (at most 5 s), the last packets are sent again beside the
// stream, as many as are missing to that rate. It ends early if none can be sent: the window has
// none, the socket is full, or the protection refuses. A new probe takes the place of one that
// runs, and one of 0 bit/s for 0 ns ends it. Returns 0, -EINVAL, or -ENOTSUP if the reader gets no
// retransmissions, or would not take them for new packets: such ones teach nothing about the line.
int weir_fanout_probe (
    WeirFanout *fanout, WeirReader *reader, uint64_t bits, int64_t duration_ns, int64_t now_ns);

// Sets how many copies of each packet a UDP reader gets if `send_duplicates` is set.
void weir_reader_set_times (WeirReader *reader, unsigned times);

// Sets the delay of a reader that is not added yet.
//
// A reader's target is the live edge, or a delay behind it. A reader with a delay gets each packet
// that long after the packet arrived. It begins at the join point before its target and catches up
// with the target; its lag is the distance to the target. Its timestamps are ahead of the stream's
// by the delay, so that the packets it gets now have the timestamps of the live edge. Sender
// reports are therefore valid for it although they are not delayed. Sequence numbers continue
// through every change of delay.
void weir_reader_set_delay (WeirReader *reader, int64_t delay_ns);

// Sets the ticks of the stream's clock per second; 0 if unknown: timestamps then stay unchanged.
void weir_fanout_set_clock_rate (WeirFanout *fanout, uint32_t clock_rate);

// Plans where a reader that is added now with these layers and this delay begins. Returns false if
// the window has no RTP packet yet.
bool weir_fanout_plan (
    WeirFanout *fanout, WeirLayerSet layers, int64_t delay_ns, int64_t now_ns, WeirPlan *plan);

// Change the delay of a reader that was added, resume it, or pause it. Return 0, or -EINVAL for a
// multicast group, which always stays at the live edge. Packets that the reader skips or gets again
// by this do not count as due. A paused reader keeps its position, and its delay grows by the
// duration of the pause. If it falls behind the window's tail, it moves to the next join point.
// `plan` says what the reader gets next; it may be NULL.
int weir_fanout_set_delay (
    WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns, WeirPlan *plan);
int weir_fanout_resume (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan);
int weir_fanout_pause (WeirFanout *fanout, WeirReader *reader, int64_t now_ns);

// Lets a reader that was added begin again at the join point before its target, and catch up from
// there: it may have lost a part of that keyframe. Its sequence numbers and timestamps go on.
// Returns false if it is paused, or a multicast group, or the window has no join point.
bool weir_fanout_rejoin (WeirFanout *fanout, WeirReader *reader, int64_t now_ns);

// Gives the reader the full delay `delay_ns` for the packets to come, if the window is empty and
// the reader is not paused. Otherwise does nothing.
void weir_fanout_await (WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns);

// Fills in what the reader gets next; within 2 s after its start or last move, the plan with which
// it began.
void weir_fanout_next (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan);

// weir_fanout_find() returns the position of the newest join point in the window with -1, else that
// of the first RTP packet whose sequence number is not before `seq`; the live edge if there is
// none. weir_fanout_span() fills `span` with packets from `position` on, or from the oldest one if
// those have left the window. Returns false at the live edge. Release the span with
// weir_span_clear().
int64_t weir_fanout_find (WeirFanout *fanout, int seq);
bool weir_fanout_span (WeirFanout *fanout, int64_t position, WeirSpan *span);

// Plans the return of a reader that was paused and removed. `kept` is the plan that
// weir_fanout_next() gave before the removal. The reader continues at its old position, or with the
// delay `delay_ns` if that is not negative. Returns false if the next sequence number is unknown.
bool weir_fanout_plan_again (
    WeirFanout *fanout, const WeirPlan *kept, int64_t delay_ns, int64_t now_ns, WeirPlan *plan);

// Adds a reader. It begins at `plan` if that is still in the window; `plan` may be NULL. A
// multicast group begins at the live edge. Add a reader once only. `priority` is from 0, the most
// urgent, to 7. Returns 0 or -ENOMEM.
int weir_fanout_add (WeirFanout *fanout, WeirReader *reader, unsigned priority,
    const WeirPlan *plan, int64_t now_ns);

// Removes a reader. After the return nothing is sent to it; packets that it has not got do not
// count as due. Do not call it from within a send.
void weir_fanout_remove (WeirFanout *fanout, WeirReader *reader);

// Lets a reader of `from` go on in `to`, which has the same pictures, coded otherwise. `fresh`
// takes the place of `old`, with its counters, layers and priority, and must have the same
// protection and route; it is in no engine yet. It begins at the newest join point of `to`, if that
// came within the last 300 ms and `old` has got whole frames only. Sequence numbers go on; SSRC and
// payload type stay. Timestamps are those of the stream of `to` plus `time_ahead`, modulo 2^32, by
// which the caller lets a picture have the same timestamp in all streams. Where they would go back,
// because the stream of `to` is later, they are ahead by what is missing, of which a sixteenth of
// the time that passes is made up for. The new reader has no restriction. `old` is removed as by
// weir_fanout_remove(). Returns 0; -EAGAIN if that is not possible now, also while `old` is paused
// or catches up; -EINVAL if `from` is `to` or the reader has a delay; -ENOTSUP if it is not
// protected, so that it has no numbers of its own, or if a codec's pictures have numbers; -ENOMEM.
// Unless it returns 0, nothing has changed.
int weir_fanout_splice (WeirFanout *from, WeirReader *old, WeirFanout *to, WeirReader *fresh,
    uint32_t time_ahead, int64_t now_ns);

// Changes the priority of a reader that was added. Returns 0 or -ENOMEM.
int weir_fanout_set_priority (WeirFanout *fanout, WeirReader *reader, unsigned priority);

// Sets the layers that a reader wants. The change takes effect at the next frame at which a decoder
// survives it; a reader that is not added yet begins with these layers. Packets that are left out
// take no sequence number. Readers with the same layer set share its stream. At most 64 sets are in
// use at a time; beyond that, readers keep their layers.
void weir_reader_set_layers (WeirReader *reader, WeirLayerSet wanted);

// Restricts a reader to `least`, up to WEIR_READER_KEYFRAMES, whatever its lag; WEIR_READER_OK ends
// that. A stricter state begins with the next frame, a milder one with the next keyframe. Call from
// any thread.
void weir_reader_restrict (WeirReader *reader, WeirReaderState least);
WeirLayerSet weir_reader_get_layers (const WeirReader *reader);

// Copies the bitrates of all layers seen.
void weir_fanout_rates (WeirFanout *fanout, WeirRates *rates);

// Returns the errno of a send over UDP that failed since the last call; 0: none failed.
int weir_reader_take_error (WeirReader *reader);

// Gives the changes since the last call. Returns false if there are none.
bool weir_reader_take_news (WeirReader *reader, WeirReaderNews *news);

// Copies a reader's counters. Its lag, and the delay of a paused reader, are those at `now_ns`.
void weir_reader_counters (
    WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirReaderCounters *counters);

// For tests: serves all readers once, in this thread, at time `now_ns`. Returns the time of the
// next work, or WEIR_NEVER.
int64_t weir_fanout_run (WeirFanout *fanout, int64_t now_ns);
