// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Internals shared by the files that serve one reader: serve.c (its turn, and the choice of
// packets), serve_send.c (the send), serve_batch.c (one send to several readers), serve_protect.c
// (protected readers), serve_spread.c (their large frames) and resend.c (what they are sent again).

#include "fanout/fanout_private.h"

#define MS 1000000LL

// UDP_PATIENCE: a reader that has waited this long for room in a UDP socket skips to its target;
// while other readers of the socket get room, it waits up to UDP_PATIENCE_MOST. UDP_RETRY: how
// often the socket is tried if it cannot be watched.
#define UDP_RETRY (1 * MS)
#define UDP_PATIENCE (100 * MS)
#define UDP_PATIENCE_MOST (1000 * MS)
#define UDP_BLOCKED_MOST 4 // sends without room after which a pass stops trying

static inline int64_t
get_cursor (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->cursor, memory_order_relaxed);
}

static inline void
add_to (_Atomic uint64_t *counter, uint64_t n)
{
  // One thread writes, others read: no atomic addition is needed.
  atomic_store_explicit (
      counter, atomic_load_explicit (counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void
count_due (const Pass *pass, WeirReader *reader, uint64_t n)
{
  add_to (&reader->due, n);
  add_to (&pass->shard->counts.due, n);
}

static inline void
count_dropped (const Pass *pass, WeirReader *reader, uint64_t n, WeirDrop reason)
{
  add_to (&reader->dropped[reason], n);
  add_to (&pass->shard->counts.dropped[reason], n);
}

static inline void
drop (const Pass *pass, WeirReader *reader, uint64_t n, WeirDrop reason)
{
  if (n > 0)
    count_dropped (pass, reader, n * pass->times, reason);
}

static inline void
tell_news (const Pass *pass)
{
  atomic_store_explicit (&pass->fanout->news, true, memory_order_release);
}

static inline void
set_state (const Pass *pass, WeirReader *reader, WeirReaderState state)
{
  atomic_store_explicit (&reader->state, (int) state, memory_order_relaxed);
  tell_news (pass);
}

// Moves the cursor to `position`: every packet before it is settled.
static inline void
advance (const Pass *pass, WeirReader *reader, int64_t position)
{
  count_due (pass, reader, (uint64_t) (position - get_cursor (reader)) * pass->times);
  atomic_store_explicit (&reader->cursor, position, memory_order_relaxed);
  reader->past_extra = false;
}

// Returns the state that the reader's lag asks for.
static inline WeirReaderState
get_wanted_by_lag (const WeirReader *reader)
{
  return (WeirReaderState) atomic_load_explicit (&reader->wanted, memory_order_relaxed);
}

static inline WeirReaderState
get_wanted (const WeirReader *reader)
{
  WeirReaderState lag = get_wanted_by_lag (reader);
  int restricted = atomic_load_explicit (&reader->restricted, memory_order_relaxed);

  return (int) lag > restricted ? lag : (WeirReaderState) restricted;
}

#define NOT_HERE SIZE_MAX

typedef struct {
  size_t n;      // packets of the span whose time has come
  uint64_t mask; // packets among them that the reader gets, a bit each
  int64_t next_ns;
  uint64_t n_catch_up; // packets left out of the first n, by reason
  uint64_t n_thinned;
  size_t adopt_at; // index at which the reader adopts the wanted state, or NOT_HERE
  size_t live_at;  // index at which it reaches the live edge, or NOT_HERE
} Choice;

static inline uint64_t
first_bits (size_t n)
{
  return n >= 64 ? UINT64_MAX : (UINT64_C (1) << n) - 1;
}

static inline Choice
all_in_hand (const Pass *pass)
{
  const size_t n = pass->server->hand.packets.n;

  return (Choice) {
    .n = n,
    .mask = first_bits (n),
    .next_ns = WEIR_NEVER,
    .adopt_at = NOT_HERE,
    .live_at = NOT_HERE,
  };
}

static inline bool
gets_all (const Pass *pass, const Choice *choice)
{
  return choice->n == pass->server->hand.packets.n && choice->mask == first_bits (choice->n)
         && choice->next_ns == WEIR_NEVER && choice->adopt_at == NOT_HERE
         && choice->live_at == NOT_HERE;
}

static inline size_t
family_of (const WeirReader *reader)
{
  return reader->address.any.sa_family == AF_INET6;
}

static inline void
end_turn (Turn *turn, int64_t next_ns)
{
  turn->more = false;
  turn->next_ns = next_ns;
}

// Reports whether so many readers of the reader's socket found no room in this pass that the reader
// need not try: it is woken together with them.
static inline bool
is_full (const Pass *pass, const WeirReader *reader)
{
  // As a rule, the reader's address is not looked at: it is in another cache line.
  if (pass->n_blocked[0] < UDP_BLOCKED_MOST && pass->n_blocked[1] < UDP_BLOCKED_MOST)
    return false;
  return !reader->conn && !reader->late && pass->n_blocked[family_of (reader)] >= UDP_BLOCKED_MOST;
}

// Call when the reader was sent a packet.
static inline void
end_wait_for_room (const Pass *pass, WeirReader *reader)
{
  if (reader->blocked_since == 0)
    return;
  if (reader->room)
    weir_room_note (reader->room, pass->now_ns);
  reader->blocked_since = 0;
}

// ---- the send (serve_send.c) ----

// Prepares the chosen packets in hand for the sender, with the reader's numbers: in place, or in
// the copy if they have to be changed.
Load *weir_serve_load_for (Pass *pass, const WeirReader *reader, const Choice *choice);

// Returns where the loaded packets have numbers. For VP8, the result refers to `picture_at`, with
// room for a burst.
WeirBurstNumbers weir_serve_find_numbers (
    const Pass *pass, const Load *loaded, uint16_t *picture_at);

// Sends the chosen packets in hand to the reader. Returns false if there was no room for all.
bool weir_serve_send (Pass *pass, WeirReader *reader, const Choice *choice);

// Remembers that a segmented send to the reader was refused with this errno.
void weir_serve_remember_refusal (const Pass *pass, WeirReader *reader, int error);

// Adds the result of a send to the counters.
void weir_serve_book (const Pass *pass, WeirReader *reader, const WeirSendResult *result);

// Moves the reader past the first `settled` prepared packets. Returns false if there was no room
// for all.
bool weir_serve_end_send (
    const Pass *pass, WeirReader *reader, const Choice *choice, const Load *loaded, size_t settled);

// ---- protection (serve_protect.c) ----

// Gives a protected reader its sequence numbers, before the packets in `mask` are sent: at its
// first packet, and after a jump of the stream's numbers.
void weir_serve_number (const Pass *pass, WeirReader *reader, uint64_t mask);

// Protects the loaded packets for the reader, without those that cannot be protected. `picked` of
// the result has their indexes in `loaded`.
Load *weir_serve_protect (Pass *pass, const WeirReader *reader, const Load *loaded);

// Tells the reader's protection that the first `n` packets of the sealed load were sent, made from
// `loaded`.
void weir_serve_note_sent (const Pass *pass, WeirReader *reader, const Load *loaded, size_t n);

// ---- spreading (serve_spread.c) ----

// Cuts the choice of a protected reader, if a frame is to be spread, to the packets that may be
// sent now, and sets when the next are due.
void weir_serve_spread (const Pass *pass, WeirReader *reader, Choice *choice);

// ---- batches (serve_batch.c) ----

// Adds the reader to the batch if it gets exactly the packets in hand, with constant offsets of
// numbers, in one segmented send. Returns whether it was added: it then waits for the batch to be
// sent.
bool weir_serve_join_batch (Pass *pass, Turn *turn, const Choice *choice);

// Reports whether the reader can get clones if it gets the same packets as others.
bool weir_serve_may_clone (const Pass *pass, const WeirReader *reader);

// Sends the packets in hand to the batch: by clones to those that clones reach, to the others by
// sends, group by group.
void weir_serve_send_batch (Pass *pass);

// ---- turns (serve.c) ----

// Ends the turn of a reader whose socket has no room.
void weir_serve_wait_for_room (Pass *pass, Turn *turn);
