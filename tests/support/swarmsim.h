// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Simulates viewers of one title who send each other its pieces, in rounds of a second, and an
// origin for what is missing. Each viewer sends to four peers at a time, which it chooses every 10
// s: three from whom it gets most, and one drawn anew every 30 s. Pieces take no time but that of
// the sender's line. Lengths of media are in seconds of the title.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "swarm/picker.h"
#include "swarm/storage.h"
#include "swarm/watcher.h"

#define SIM_SECOND INT64_C (1000000000)
#define SIM_SLOTS 4
#define SIM_WANTED_MAX 8
#define SIM_PEERS 50      // peers that a viewer connects to when it comes
#define SIM_PEERS_MAX 100 // and those that connect to it
#define SIM_NOBODY UINT32_MAX
#define SIM_FETCH_S 1 // time of a fetch from the origin
#define SIM_LEAD_S 3  // of the stream watcher

typedef enum { SIM_DOWNLOAD, SIM_STREAM, SIM_SEED } SimLeave;
typedef enum { SIM_UNIFORM, SIM_POISSON, SIM_TOGETHER } SimArrivals;

typedef struct {
  WeirPicker picker;
  SimLeave leave;
  SimArrivals arrivals;
  unsigned n_viewers;
  double gap_s; // mean time between arrivals
  double length_s;
  uint32_t n_pieces;
  double upload;      // of a viewer, in rates of the title
  double seed_upload; // of a seed beside the origin, which counts as the origin; 0: none
  double window_s;    // of the pickers
  double spread_s;    // of the stream watcher
  double storage;     // share of the title
  bool blind;         // chooses peers without regard to what they send
  uint64_t seed;
} SimCase;

typedef struct {
  double saved;      // share of what a unicast server would send
  double wasted;     // share of all traffic that came twice
  double played;     // lengths of the title
  uint64_t late;     // pieces missing when they were due
  uint64_t too_late; // pieces chosen that could not arrive in time
} SimResult;

typedef struct {
  uint32_t who, back; // index of this viewer among the peers of `who`
  double got, gave;   // of late
} SimPeer;

typedef struct {
  uint32_t peer; // index in peers, or SIM_NOBODY
  uint32_t piece;
} SimSlot;

typedef struct {
  bool here;
  double comes_s;
  uint8_t *pieces;
  uint16_t *availability;
  uint32_t *arrived;  // bytes
  int32_t *fetched_s; // when a piece of the origin arrives
  uint32_t n_stored, n_held, n_under_way, playing, last_held;
  uint64_t viewer;
  double rate, round_bytes; // from peers
  double peer_rate;
  SimPeer peers[SIM_PEERS_MAX];
  uint32_t n_peers;
  SimSlot slots[SIM_SLOTS];
  uint32_t drawn; // index of the peer in the last slot
} SimViewer;

typedef struct {
  const SimCase *sim;
  SimResult *result;
  WeirSwarmTitle title;
  SimViewer *viewers; // the seed is behind them
  uint32_t n;
  uint16_t *offered;
  uint32_t keep; // pieces that a storage holds
  int64_t now_s;
  double origin_bytes, peer_bytes, wasted_bytes;
  uint64_t random;
} Sim;

// xorshift64*
static inline double
sim_random (Sim *sim)
{
  sim->random ^= sim->random >> 12;
  sim->random ^= sim->random << 25;
  sim->random ^= sim->random >> 27;
  return (double) ((sim->random * UINT64_C (0x2545f4914f6cdd1d)) >> 11) / 9007199254740992.0;
}

static inline bool
sim_is_seed (const Sim *sim, uint32_t who)
{
  return who == sim->sim->n_viewers;
}

static inline WeirPlayhead
sim_playhead (const SimViewer *self)
{
  return (WeirPlayhead) { .at_ns = (int64_t) ((self->comes_s + SIM_LEAD_S) * SIM_SECOND) };
}

static inline void
sim_tell (Sim *sim, SimViewer *self, uint32_t piece, int change)
{
  for (uint32_t i = 0; i < self->n_peers; i++)
    sim->viewers[self->peers[i].who].availability[piece] += (uint16_t) change;
}

static inline bool
sim_let_leave (Sim *sim, SimViewer *self, uint32_t arriving)
{
  const WeirStorageView view = { self->pieces, self->availability, sim->sim->n_pieces,
    self->playing };
  const uint32_t piece = weir_storage_leave (&view, arriving);

  if (piece == WEIR_NO_PIECE)
    return false;
  self->pieces[piece] = WEIR_PIECE_MISSING;
  self->arrived[piece] = 0;
  self->n_stored--;
  sim_tell (sim, self, piece, -1);
  return true;
}

static inline void
sim_hold (Sim *sim, SimViewer *self, uint32_t piece)
{
  while (self->n_stored >= sim->keep && sim_let_leave (sim, self, piece))
    continue;
  if (self->pieces[piece] == WEIR_PIECE_WANTED)
    self->n_under_way--;
  self->pieces[piece] = WEIR_PIECE_HELD;
  self->n_stored++;
  self->n_held++;
  self->last_held = piece > self->last_held ? piece : self->last_held;
  sim_tell (sim, self, piece, 1);
}

static inline void
sim_connect (Sim *sim, uint32_t a, uint32_t b)
{
  SimViewer *x = &sim->viewers[a], *y = &sim->viewers[b];

  if (x->n_peers == SIM_PEERS_MAX || y->n_peers == SIM_PEERS_MAX)
    return;
  x->peers[x->n_peers] = (SimPeer) { .who = b, .back = y->n_peers };
  y->peers[y->n_peers++] = (SimPeer) { .who = a, .back = x->n_peers++ };
  for (uint32_t i = 0; i < sim->sim->n_pieces; i++) {
    x->availability[i] += y->pieces[i] == WEIR_PIECE_HELD;
    y->availability[i] += x->pieces[i] == WEIR_PIECE_HELD;
  }
}

static inline void
sim_come (Sim *sim, uint32_t who)
{
  uint32_t n_here = 0, n_wanted = SIM_PEERS;
  SimViewer *self = &sim->viewers[who];

  for (uint32_t i = 0; i < sim->n; i++)
    n_here += sim->viewers[i].here;
  for (uint32_t i = sim->n; i-- > 0 && n_wanted > 0;) {
    if (!sim->viewers[i].here)
      continue;
    // Each of those here is equally likely.
    if (sim_random (sim) * n_here < n_wanted) {
      sim_connect (sim, who, i);
      n_wanted--;
    }
    n_here--;
  }
  self->here = true;
}

static inline void
sim_stop_slot (Sim *sim, SimViewer *self, SimSlot *slot)
{
  SimViewer *to;

  if (slot->peer != SIM_NOBODY && slot->piece != WEIR_NO_PIECE) {
    to = &sim->viewers[self->peers[slot->peer].who];
    if (to->pieces[slot->piece] == WEIR_PIECE_WANTED) {
      to->pieces[slot->piece] = WEIR_PIECE_MISSING;
      to->n_under_way--;
    }
  }
  *slot = (SimSlot) { SIM_NOBODY, WEIR_NO_PIECE };
}

// Takes peer `at` out, and moves the last one there.
static inline void
sim_forget (Sim *sim, SimViewer *self, uint32_t at)
{
  const uint32_t last = --self->n_peers;

  for (int i = 0; i < SIM_SLOTS; i++) {
    if (self->slots[i].peer == at)
      sim_stop_slot (sim, self, &self->slots[i]);
    else if (self->slots[i].peer == last)
      self->slots[i].peer = at;
  }
  if (self->drawn == at)
    self->drawn = SIM_NOBODY;
  else if (self->drawn == last)
    self->drawn = at;
  if (at < last) {
    self->peers[at] = self->peers[last];
    sim->viewers[self->peers[at].who].peers[self->peers[at].back].back = at;
  }
}

static inline void
sim_go (Sim *sim, SimViewer *self)
{
  for (int i = 0; i < SIM_SLOTS; i++)
    sim_stop_slot (sim, self, &self->slots[i]);
  while (self->n_peers > 0) {
    const SimPeer peer = self->peers[self->n_peers - 1];
    for (uint32_t i = 0; i < sim->sim->n_pieces; i++)
      sim->viewers[peer.who].availability[i] -= self->pieces[i] == WEIR_PIECE_HELD;
    sim_forget (sim, &sim->viewers[peer.who], peer.back);
    sim_forget (sim, self, self->n_peers - 1);
  }
  self->here = false;
}

// Returns a piece that `from` sends to `to` next, or WEIR_NO_PIECE.
static inline uint32_t
sim_choose (Sim *sim, const SimViewer *from, SimViewer *to)
{
  const int64_t now_ns = sim->now_s * SIM_SECOND;
  const uint32_t n = sim->sim->n_pieces;
  WeirPickerView view = { .title = sim->title,
    .playhead = sim_playhead (to),
    .pieces = to->pieces,
    .availability = sim->offered,
    .peer_rate = to->peer_rate,
    .swarm_rate = to->rate,
    .lead_ns = SIM_LEAD_S * SIM_SECOND,
    .window_ns = (int64_t) (sim->sim->window_s * SIM_SECOND),
    .ahead = sim->keep < n ? sim->keep : 0 };
  uint32_t piece = weir_picker_first (&view, now_ns);

  if (to->n_held == n || to->n_under_way >= SIM_WANTED_MAX
      || (to->n_stored + to->n_under_way >= sim->keep && !sim_let_leave (sim, to, WEIR_NO_PIECE)))
    return WEIR_NO_PIECE;
  for (uint32_t i = piece; i < n; i++) {
    sim->offered[i] = from->pieces[i] == WEIR_PIECE_HELD ? to->availability[i] : 0;
    // A piece that has begun is finished first.
    if (to->arrived[i] > 0 && to->pieces[i] == WEIR_PIECE_MISSING && sim->offered[i] > 0)
      return i;
  }
  piece = weir_picker_pick (sim->sim->picker, &view, now_ns, sim_random (sim));
  if (piece != WEIR_NO_PIECE
      && weir_playhead_due_ns (&view.playhead, &sim->title, piece)
             < now_ns + (int64_t) (8e9 * sim->title.piece_bytes / to->peer_rate))
    sim->result->too_late++;
  return piece;
}

static inline bool
sim_begin (Sim *sim, SimViewer *self, SimSlot *slot)
{
  SimViewer *to;

  if (slot->peer == SIM_NOBODY)
    return false;
  to = &sim->viewers[self->peers[slot->peer].who];
  if (slot->piece != WEIR_NO_PIECE && to->pieces[slot->piece] == WEIR_PIECE_WANTED
      && self->pieces[slot->piece] == WEIR_PIECE_HELD)
    return true;
  if (slot->piece != WEIR_NO_PIECE && to->pieces[slot->piece] == WEIR_PIECE_WANTED) {
    to->pieces[slot->piece] = WEIR_PIECE_MISSING; // the piece has left the sender
    to->n_under_way--;
  }
  slot->piece = sim_is_seed (sim, (uint32_t) (to - sim->viewers)) ? WEIR_NO_PIECE
                                                                  : sim_choose (sim, self, to);
  if (slot->piece == WEIR_NO_PIECE)
    return false;
  to->pieces[slot->piece] = WEIR_PIECE_WANTED;
  to->n_under_way++;
  return true;
}

static inline void
sim_send (Sim *sim, SimViewer *self, SimSlot *slot, double bytes)
{
  SimPeer *peer = &self->peers[slot->peer];
  SimViewer *to = &sim->viewers[peer->who];
  const bool seed = sim_is_seed (sim, (uint32_t) (self - sim->viewers));

  while (bytes >= 1 && sim_begin (sim, self, slot)) {
    const uint32_t rest = sim->title.piece_bytes - to->arrived[slot->piece];
    const uint32_t sent = bytes < rest ? (uint32_t) bytes : rest;
    bytes -= sent;
    to->arrived[slot->piece] += sent;
    to->round_bytes += sent;
    peer->gave += sent;
    to->peers[peer->back].got += sent;
    *(seed ? &sim->origin_bytes : &sim->peer_bytes) += sent;
    if (sent == rest)
      sim_hold (sim, to, slot->piece);
  }
}

static inline void
sim_serve (Sim *sim, SimViewer *self, double upload)
{
  bool busy[SIM_SLOTS];
  int n = 0;

  for (int i = 0; i < SIM_SLOTS; i++)
    n += busy[i] = sim_begin (sim, self, &self->slots[i]);
  for (int i = 0; i < SIM_SLOTS; i++) {
    if (busy[i])
      sim_send (sim, self, &self->slots[i], upload * sim->title.bit_rate / 8 / n);
  }
}

static inline bool
sim_interests (const Sim *sim, const SimViewer *self, const SimViewer *to)
{
  const WeirPlayhead playhead = sim_playhead (to);
  const uint32_t from = weir_playhead_first_due (&playhead, &sim->title, sim->now_s * SIM_SECOND);

  if (to->n_held == sim->sim->n_pieces)
    return false;
  for (uint32_t i = from; i <= self->last_held; i++) {
    if (self->pieces[i] == WEIR_PIECE_HELD
        && (to->pieces[i] == WEIR_PIECE_MISSING || to->pieces[i] == WEIR_PIECE_WANTED))
      return true;
  }
  return false;
}

// Chooses whom a viewer sends to: those from whom it got most; in order of what they were given, if
// it is blind or wants nothing. Those with the same are in a random order.
static inline void
sim_unchoke (Sim *sim, SimViewer *self)
{
  const bool blind = sim->sim->blind || self->n_held == sim->sim->n_pieces;
  uint32_t chosen[SIM_SLOTS], n = 0, candidates[SIM_PEERS_MAX], n_candidates = 0;
  double values[SIM_PEERS_MAX];

  for (uint32_t i = 0; i < self->n_peers; i++) {
    SimPeer *peer = &self->peers[i];
    SimViewer *to = &sim->viewers[peer->who];
    if (!sim_is_seed (sim, peer->who) && sim_interests (sim, self, to)) {
      values[n_candidates] = blind ? peer->gave - to->rate / 8 * 10 : peer->got;
      values[n_candidates] += sim_random (sim);
      candidates[n_candidates++] = i;
    }
    peer->got /= 2;
    peer->gave /= 2;
  }
  if (sim->now_s % 30 < 10 || self->drawn == SIM_NOBODY)
    self->drawn =
        n_candidates ? candidates[(uint32_t) (sim_random (sim) * n_candidates)] : SIM_NOBODY;
  if (self->drawn != SIM_NOBODY)
    chosen[n++] = self->drawn;
  while (n < SIM_SLOTS) {
    uint32_t best = SIM_NOBODY;
    for (uint32_t i = 0; i < n_candidates; i++) {
      if (candidates[i] != SIM_NOBODY && candidates[i] != self->drawn
          && (best == SIM_NOBODY || values[i] > values[best]))
        best = i;
    }
    if (best == SIM_NOBODY)
      break;
    chosen[n++] = candidates[best];
    candidates[best] = SIM_NOBODY;
  }
  for (int i = 0; i < SIM_SLOTS; i++) {
    bool stays = false;
    for (uint32_t k = 0; k < n; k++) {
      if (self->slots[i].peer != SIM_NOBODY && self->slots[i].peer == chosen[k]) {
        chosen[k] = chosen[--n];
        stays = true;
      }
    }
    if (!stays)
      sim_stop_slot (sim, self, &self->slots[i]);
  }
  for (int i = 0; i < SIM_SLOTS && n > 0; i++) {
    if (self->slots[i].peer == SIM_NOBODY)
      self->slots[i].peer = chosen[--n];
  }
}

static inline void
sim_watch (Sim *sim, SimViewer *self)
{
  const int64_t now_ns = sim->now_s * SIM_SECOND;
  const WeirPlayhead playhead = sim_playhead (self);
  const WeirWatcherView view = { sim->title, playhead, self->pieces, self->availability,
    (SIM_LEAD_S - 1) * SIM_SECOND, (int64_t) (sim->sim->spread_s * SIM_SECOND), self->viewer,
    sim->keep < sim->sim->n_pieces ? sim->keep / 2 : 0 };
  const uint32_t n = sim->sim->n_pieces, before = self->playing;
  uint32_t piece;
  int64_t again_ns;

  self->playing =
      now_ns < playhead.at_ns ? 0 : weir_playhead_piece (&playhead, &sim->title, now_ns);
  for (uint32_t i = before; i < n; i++) {
    if (weir_playhead_due_ns (&playhead, &sim->title, i)
        > now_ns + (int64_t) (sim->sim->spread_s + SIM_LEAD_S) * SIM_SECOND)
      break;
    if (self->pieces[i] == WEIR_PIECE_ORIGIN && self->fetched_s[i] <= sim->now_s)
      sim_hold (sim, self, i);
    if (i > before && i <= self->playing)
      sim->result->late += self->pieces[i] != WEIR_PIECE_HELD;
  }
  while ((piece = weir_watcher_next (&view, now_ns, &again_ns)) != WEIR_NO_PIECE) {
    self->n_under_way -= self->pieces[piece] == WEIR_PIECE_WANTED;
    self->pieces[piece] = WEIR_PIECE_ORIGIN;
    self->fetched_s[piece] = (int32_t) sim->now_s + SIM_FETCH_S;
    sim->origin_bytes += sim->title.piece_bytes;
    sim->wasted_bytes += self->arrived[piece];
  }
}

static inline bool
sim_leaves (const Sim *sim, const SimViewer *self)
{
  const bool played = (double) sim->now_s >= self->comes_s + SIM_LEAD_S + sim->sim->length_s;

  return sim->sim->leave == SIM_STREAM     ? played
         : sim->sim->leave == SIM_DOWNLOAD ? self->n_held >= sim->sim->n_pieces
                                           : false;
}

static inline void
sim_round (Sim *sim)
{
  const uint32_t first = (uint32_t) (sim_random (sim) * sim->n);

  for (uint32_t i = 0; i < sim->sim->n_viewers; i++) {
    SimViewer *self = &sim->viewers[i];
    if (!self->here && self->n_held == 0 && self->comes_s <= (double) sim->now_s)
      sim_come (sim, i);
    if (self->here)
      sim_watch (sim, self);
  }
  for (uint32_t k = 0; k < sim->n; k++) {
    const uint32_t i = (first + k) % sim->n;
    SimViewer *self = &sim->viewers[i];
    if (!self->here)
      continue;
    if ((sim->now_s + i) % 10 == 0)
      sim_unchoke (sim, self);
    sim_serve (sim, self, sim_is_seed (sim, i) ? sim->sim->seed_upload : sim->sim->upload);
  }
  for (uint32_t i = 0; i < sim->sim->n_viewers; i++) {
    sim->viewers[i].rate += (sim->viewers[i].round_bytes * 8 - sim->viewers[i].rate) / 20;
    sim->viewers[i].round_bytes = 0;
    if (sim->viewers[i].here && sim_leaves (sim, &sim->viewers[i]))
      sim_go (sim, &sim->viewers[i]);
  }
}

static inline double
sim_comes_s (Sim *sim, uint32_t who)
{
  switch (sim->sim->arrivals) {
    case SIM_UNIFORM:
      return who * sim->sim->gap_s;
    case SIM_POISSON:
      return (who ? sim->viewers[who - 1].comes_s : 0)
             - log (1 - sim_random (sim)) * sim->sim->gap_s;
    case SIM_TOGETHER:
      break;
  }
  return sim_random (sim); // within a second
}

static inline void
sim_free (Sim *sim)
{
  for (uint32_t i = 0; sim->viewers && i < sim->n; i++) {
    free (sim->viewers[i].pieces);
    free (sim->viewers[i].availability);
    free (sim->viewers[i].arrived);
    free (sim->viewers[i].fetched_s);
  }
  free (sim->viewers);
  free (sim->offered);
}

static inline bool
sim_init (Sim *sim, const SimCase *config, SimResult *result)
{
  *result = (SimResult) { 0 };
  *sim =
      (Sim) { .sim = config, .result = result, .random = config->seed, .n = config->n_viewers + 1 };
  sim->title.piece_bytes = 1 << 20;
  sim->title.bytes = (uint64_t) config->n_pieces << 20;
  sim->title.bit_rate = (double) sim->title.bytes * 8 / config->length_s;
  sim->keep = (uint32_t) (config->storage * config->n_pieces);
  sim->viewers = calloc (sim->n, sizeof *sim->viewers);
  sim->offered = calloc (config->n_pieces, sizeof *sim->offered);
  if (!sim->viewers || !sim->offered)
    return false;
  for (uint32_t i = 0; i < sim->n; i++) {
    SimViewer *self = &sim->viewers[i];
    self->pieces = calloc (config->n_pieces, 1);
    self->availability = calloc (config->n_pieces, sizeof *self->availability);
    self->arrived = calloc (config->n_pieces, sizeof *self->arrived);
    self->fetched_s = calloc (config->n_pieces, sizeof *self->fetched_s);
    if (!self->pieces || !self->availability || !self->arrived || !self->fetched_s)
      return false;
    for (int k = 0; k < SIM_SLOTS; k++)
      self->slots[k] = (SimSlot) { SIM_NOBODY, WEIR_NO_PIECE };
    self->drawn = SIM_NOBODY;
    self->viewer = (uint64_t) (sim_random (sim) * 1e18);
    self->peer_rate = config->upload * sim->title.bit_rate / SIM_SLOTS;
    self->comes_s = sim_comes_s (sim, i);
  }
  return true;
}

// Returns false without memory.
static inline bool
sim_run (const SimCase *config, SimResult *result)
{
  const double all = (double) config->n_viewers * config->n_pieces * (1 << 20);
  double last_s = 0;
  Sim sim;

  if (!sim_init (&sim, config, result)) {
    sim_free (&sim);
    return false;
  }
  if (config->seed_upload > 0) {
    SimViewer *seed = &sim.viewers[config->n_viewers];
    memset (seed->pieces, WEIR_PIECE_HELD, config->n_pieces);
    seed->n_held = config->n_pieces;
    seed->last_held = config->n_pieces - 1;
    seed->here = true;
  }
  for (uint32_t i = 0; i < config->n_viewers; i++)
    last_s = fmax (last_s, sim.viewers[i].comes_s + SIM_LEAD_S + config->length_s);
  for (; (double) sim.now_s <= last_s; sim.now_s++)
    sim_round (&sim);
  for (uint32_t i = 0; i < config->n_viewers; i++)
    result->played += sim.viewers[i].n_held >= config->n_pieces;
  result->saved = 1 - sim.origin_bytes / all;
  result->wasted = sim.wasted_bytes / (sim.origin_bytes + sim.peer_bytes);
  sim_free (&sim);
  return true;
}
