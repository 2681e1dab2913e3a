// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A thread of the engine with its tracks.

#include <pthread.h>

#include "ingest/engine.h"
#include "ingest/udp.h"
#include "run/clock.h"
#include "run/heap.h"

typedef struct ingest_loop IngestLoop;

// A track belongs to the thread that holds it (`busy`); only that thread touches `track` and the
// fields beside it, without the lock.
struct weir_ingest_track {
  WeirTrack track;
  IngestLoop *loop;
  const WeirIngestOps *ops;
  void *data;
  int fds[2]; // for RTP and RTCP; -1: none
  size_t buffer;
  uint64_t drops;
  uint32_t last_drops[2]; // the kernel's counts that `drops` includes
  int64_t second_ns;      // when the second began in which the stream is measured
  uint64_t second_bytes, second_datagrams;

  // Guarded by the loop's lock.
  bool busy, removed, key_asked;
  bool removed_by_owner; // the owner frees it
  pthread_t owner;
  uint32_t slot;
  int64_t due_ns;
  WeirHeapNode due;
  WeirIngestStats shown; // the counts after the last batch
  uint32_t shown_drops[2];
};

typedef struct {
  WeirIngestTrack *track; // NULL: free
  uint32_t generation;
} IngestSlot;

struct ingest_loop {
  pthread_mutex_t lock; // guards all fields but those of the thread
  pthread_cond_t released;
  bool started, stopping;
  pthread_t thread;
  int epoll_fd, timer_fd;
  int64_t timer_ns; // time the timer is set to; WEIR_NEVER: not set
  // Tracks by slot; epoll's events name a slot and its generation.
  IngestSlot *slots;
  size_t n_slots, n_tracks;
  WeirHeap due; // tracks by due_ns, with room for all slots

  int64_t tick_ns;
  unsigned budget;
  // The thread's own.
  WeirReceiver receiver;
  int64_t unix_offset_ns; // CLOCK_REALTIME minus CLOCK_MONOTONIC
  int64_t offset_measured_ns;
};

// Initialises a loop; its thread starts with weir_loop_start().
void weir_loop_init (IngestLoop *loop, int64_t tick_ns, unsigned budget);
// Starts the thread, if it does not run. Returns 0 or a negative errno.
int weir_loop_start (IngestLoop *loop);
// Stops and joins the thread, if it runs, and frees all.
void weir_loop_clear (IngestLoop *loop);

// Adds a track and takes its sockets from now on. Returns 0 or a negative errno.
int weir_loop_add (IngestLoop *loop, WeirIngestTrack *track);
// Takes a track out. With the lock held.
void weir_loop_take_out (WeirIngestTrack *track);

// Makes the caller the owner of a track that is not busy. With the lock held.
void weir_loop_hold (WeirIngestTrack *track);
// Ends the ownership, and frees a track that was removed meanwhile by its owner. Without the lock.
void weir_loop_release (WeirIngestTrack *track);

// Sets when the track is due. With the lock held.
void weir_loop_set_due (WeirIngestTrack *track, int64_t due_ns);

// Receives from a socket of a track that the caller holds. Returns whether there may be more.
bool weir_drain (WeirIngestTrack *track, unsigned which, int64_t now_ns);
// Delivers the packets and sends the RTCP that are due. The caller holds the track.
void weir_run_due (WeirIngestTrack *track, int64_t now_ns);

// Closes the sockets and frees the memory of a track that no thread uses.
void weir_ingest_track_free (WeirIngestTrack *track);
