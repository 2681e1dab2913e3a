// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The fan-out engine: one stream, kept in a window, to many readers over UDP and TCP, each with a
// cursor of its own.
//
// What it costs: a packet is copied once, into the window. Then a reader costs a send for a frame,
// whatever its packets, and a share of a system call (send.h); numbers of its own cost a copy of
// the frame for each pass over a shard and 6 bytes a packet; a reader that is thinned costs a copy
// for each choice of packets. Nothing is allocated for a packet but a block of the window once in a
// while.
//
// Readers stand in shards of up to 64. A shard is served by one thread at a time: by the writer's
// own while there are few readers, else by the workers. One lock guards the window's index and the
// lists of readers; it is never held across a system call.
//
// For every reader: due = sent + dropped, where due is how far its cursor has gone (times how often
// it is to get each packet), and the rest of the window is still before it.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "net/conn.h"
#include "net/drops.h"
#include "net/send.h"
#include "run/workers.h"
#include "svc/layerset.h"
#include "svc/rates.h"
#include "window/window.h"

typedef enum {
  WEIR_OVERRUN_TO_JOIN,  // slowest-sink-drop: a reader that falls out goes to the next join point
  WEIR_OVERRUN_TO_TAIL,  // head drop: it goes to the oldest packet there is
  WEIR_OVERRUN_TAIL_DROP // tail drop: packets that would push a reader out are refused
} WeirOverrun;

// What keeps a reader from getting everything, from mild to final.
typedef enum {
  WEIR_READER_OK,
  WEIR_READER_NO_UPPER_LAYERS, // only spatial, quality and temporal layer 0
  WEIR_READER_REFERENCES,      // nor discardable frames
  WEIR_READER_KEYFRAMES,       // key frames only
  WEIR_READER_CLOSED           // its connection broke, or took nothing for too long
} WeirReaderState;

typedef struct {
  WeirGso gso;
  bool send_duplicates;    // to a reader that was added n times, n times
  bool join_at_keyframe;   // a newcomer begins at the newest join point, else at the live edge
  bool catch_up_live;      // with compressed timestamps (join.h), else with those of the stream
  unsigned catch_up_rate;  // at least 2
  unsigned inline_readers; // so many are served in the writer's thread
  int64_t spread_ns;       // a pass over all readers is spread over this time
  int64_t coalesce_ns;     // how long a packet may wait for the rest of its frame
  bool keep_window;        // what the bounds allow is kept even if nobody can ask for it yet
  WeirWindowBounds bounds;
  WeirOverrun overrun;
} WeirFanoutSettings;

typedef struct {
  uint64_t packets_in, bytes_in; // all that came
  uint64_t packets_refused;      // of them: too large, no memory, or tail drop
  uint64_t packets_opaque;       // neither RTP nor RTCP
  uint64_t bursts;               // published
  // Sums over all readers, also those who left.
  uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
  WeirSendCounters sends;
} WeirFanoutCounters;

typedef struct {
  uint64_t due, packets, bytes, dropped[WEIR_N_DROPS];
  uint64_t lag_packets;
  int64_t lag_ns; // behind its place; 0 at it
  int64_t delay_ns;
  bool paused;
  uint64_t moved; // times that the window's edge moved it
  WeirReaderState state;
  unsigned class;
  bool catching_up;
  WeirLayerSet wanted_layers, current_layers;
} WeirReaderCounters;

// What nobody was told of a reader yet.
typedef struct {
  int gso_error;                 // 0, or the errno with which segmented sends to it are refused
  WeirReaderState before, state; // what was told last, and what is
  int closed_by;                 // once it is closed: the errno by which its connection broke
} WeirReaderNews;

typedef struct weir_fanout WeirFanout;
typedef struct weir_reader WeirReader;

// The place of the oldest join point that is not about to be let go.
#define WEIR_DELAY_OLDEST INT64_MAX

// What a reader will begin with who is about to be added, or was put elsewhere.
typedef struct {
  int64_t position;
  int64_t made_ns;
  int64_t delay_ns;   // that it will have: less than was asked for, where the window is shorter
  int64_t time_ahead; // of its timestamps, in ticks
  int64_t paused_ns;  // since when it is paused; 0: it is not
  bool goes_on;       // its sequence numbers do
  bool moved;         // the window's edge came past it
  int64_t live_time;
  bool known; // whether the rest is anything
  uint16_t seq;
  bool rtp_time_known;
  uint32_t rtp_time;
} WeirPlan;

const char *weir_reader_state_name (WeirReaderState state);

// What weir_workers_new() is to give each thread.
size_t weir_fanout_scratch_size (void);

// `workers` NULL: nothing is sent but by weir_fanout_run(). `ops` NULL is the system itself. NULL
// if there is no memory. Calls from many threads, unless it says otherwise.
WeirFanout *weir_fanout_new (
    WeirWorkers *workers, const WeirSendOps *ops, const WeirFanoutSettings *settings);
void weir_fanout_free (WeirFanout *fanout); // stopped

void weir_fanout_set (WeirFanout *fanout, const WeirFanoutSettings *settings);
// Asks no reader, and costs some ns for every 64 of them.
void weir_fanout_counters (WeirFanout *fanout, WeirFanoutCounters *counters);
size_t weir_fanout_n_readers (WeirFanout *fanout);

// Stopped, nothing is sent. Stopping waits for sends under way, and counts what readers had still
// before them as flushed. Starting sets all counters to 0.
void weir_fanout_start (WeirFanout *fanout);

// Stopped: where the window lies (window.h) once it is started. NULL: in memory.
void weir_fanout_set_file (WeirFanout *fanout, WeirBlockFile *file);

// The bytes that the window may have since its file had no room for more; SIZE_MAX if it has.
size_t weir_fanout_limit (WeirFanout *fanout);

void weir_fanout_stop (WeirFanout *fanout);

// ---- the writer: one thread ----

// What a packet's payload is, from the next packet on, and under which number its header extensions
// hold a dependency descriptor (0: none).
void weir_fanout_set_codec (WeirFanout *fanout, WeirCodec codec, uint8_t dependency_id);

// Between begin and end: room for a packet of `len` bytes (NULL: it is refused, and counted), and
// taking the packet when it has been written there. begin gives false, and then nothing else is
// called, if nobody needs packets now. A packet that does not end its frame waits for the rest of
// it; end serves the readers here if there are few.
bool weir_fanout_begin (WeirFanout *fanout);
uint8_t *weir_fanout_reserve (WeirFanout *fanout, size_t len);
void weir_fanout_commit (WeirFanout *fanout, size_t len, int64_t now_ns);
// The same with the layer that the packet was found to be of; NULL: it has to be read.
void weir_fanout_commit_layer (
    WeirFanout *fanout, size_t len, const WeirLayer *layer, int64_t now_ns);
void weir_fanout_end (WeirFanout *fanout, int64_t now_ns);

// True when a reader waits for a keyframe, to begin with or to change its layers; at most once a
// second. One that begins does so from the second frame on that it gets.
bool weir_fanout_wants_key (WeirFanout *fanout, int64_t now_ns);

// True when sends over UDP have failed, at most once in 10 s; weir_reader_take_error() says to
// whom.
bool weir_fanout_has_failed (WeirFanout *fanout, int64_t now_ns);

// True when there are news of readers, at most once in 10 s; weir_reader_take_news() says of whom:
// segmented sends to it are refused, or its state is another.
bool weir_fanout_has_news (WeirFanout *fanout, int64_t now_ns);

// Waits until all readers have all that there is; false if the deadline (CLOCK_MONOTONIC) comes
// first. Readers whose connection has no room are not waited for beyond `deadline_ns` either.
bool weir_fanout_drain (WeirFanout *fanout, int64_t deadline_ns);

// Wakes whoever waits in weir_fanout_drain(), which then gives up; until set to false.
void weir_fanout_interrupt (WeirFanout *fanout, bool interrupted);

// ---- readers ----

// NULL if there is no memory. Of the owner's reference; the engine takes its own.
WeirReader *weir_reader_new_udp (void);
WeirReader *weir_reader_new_conn (WeirConn *conn, WeirFraming framing, uint8_t channel);
WeirReader *weir_reader_ref (WeirReader *reader);
void weir_reader_unref (WeirReader *reader);

// Where a UDP reader is and the socket that reaches it (-1: none does). Only while it is in no
// running engine. The address is in the family of the socket.
void weir_reader_set_route (WeirReader *reader, int fd, const WeirAddress *address);

// Every packet goes to it so many times, if duplicates are sent. Not over a connection.
void weir_reader_set_times (WeirReader *reader, unsigned times);

// A reader has a place: at the live edge, or behind it by a delay. Then it gets each packet so long
// after that came; it begins at the join point before its place, and catches up with it as others
// do with the live edge. Its lag is what it is behind its place. Timestamps of a delayed reader are
// as much ahead of the stream's: those of what it gets now are those that are live now, whatever
// its place and however often that changes, so reports of the stream's clock, sent to it without a
// delay, hold for it. Sequence numbers go on through every change.
//
// For one that is not added yet.
void weir_reader_set_delay (WeirReader *reader, int64_t delay_ns);

// The ticks of the stream's clock in a second; 0 if it is not known: then timestamps stay.
void weir_fanout_set_clock_rate (WeirFanout *fanout, uint32_t clock_rate);

// Where a reader added now with this delay would begin. False if there is nothing yet.
bool weir_fanout_plan (WeirFanout *fanout, int64_t delay_ns, int64_t now_ns, WeirPlan *plan);

// For readers that were added. -EINVAL: a group stays where it is. What they skip or get again is
// not due to them. A reader that is paused keeps its place, and has more delay by the time that it
// was paused for; if the window's edge comes past it, that moves it to the next join point. The
// first two say what comes next (NULL: nobody asks).
int weir_fanout_set_delay (
    WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns, WeirPlan *plan);
int weir_fanout_resume (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan);
int weir_fanout_pause (WeirFanout *fanout, WeirReader *reader, int64_t now_ns);

// While the window is empty: the reader's place is that far behind what is to come, all of it.
// Later it does nothing.
void weir_fanout_await (WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns);

// What a reader gets next; within 2 s of when it began, or was put elsewhere: what it began with
// there.
void weir_fanout_next (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan);

// What a reader goes on with that comes again: `kept` is what it was to get next when it was paused
// and removed. At its place, or with this delay, if that is not negative.
bool weir_fanout_plan_again (
    WeirFanout *fanout, const WeirPlan *kept, int64_t delay_ns, int64_t now_ns, WeirPlan *plan);

// `plan` may be NULL, or one that was made earlier: the reader begins with what it told, if that is
// still there. A multicast group begins at the live edge. A reader is added once. 0, or -ENOMEM.
int weir_fanout_add (
    WeirFanout *fanout, WeirReader *reader, unsigned class, const WeirPlan *plan, int64_t now_ns);

// Nothing is sent to it when this returns. What is before it is not due to it any more. Not from
// within a send.
void weir_fanout_remove (WeirFanout *fanout, WeirReader *reader);

int weir_fanout_set_class (WeirFanout *fanout, WeirReader *reader, unsigned class);

// The layers that a reader wants, from the next frame on where a decoder survives it. Before it is
// added, it begins with them. What is left out takes no sequence number. Readers of one set share
// its making; a stream has at most 64 sets at a time, and beyond that readers keep what they have.
void weir_reader_set_layers (WeirReader *reader, WeirLayerSet wanted);
WeirLayerSet weir_reader_get_layers (const WeirReader *reader);

// The layers that were seen, and their bitrates.
void weir_fanout_rates (WeirFanout *fanout, WeirRates *rates);

// The errno with which a send over UDP failed since the last call; 0: none did.
int weir_reader_take_error (WeirReader *reader);

// False if there are none since the last call.
bool weir_reader_take_news (WeirReader *reader, WeirReaderNews *news);

void weir_reader_counters (
    WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirReaderCounters *counters);

// For tests: one pass over all readers, in this thread, at that time. Returns when there would be
// more to do, or WEIR_NEVER.
int64_t weir_fanout_run (WeirFanout *fanout, int64_t now_ns);
