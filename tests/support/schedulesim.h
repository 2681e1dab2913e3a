// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Simulates a server that sends titles by their schedules, in rounds of a second, to clients that
// come at random. Counts the bits that it sends and those that it reads through a cache.

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "schedule/scheme.h"
#include "window/policy.h"

#define SIM_SECOND INT64_C (1000000000)
#define SIM_BLOCK 100000 // bytes in a block of the cache (Bradshaw et al., section 6.1.1)
#define SIM_BINS 512

typedef struct {
  WeirSchemeConfig scheme;
  double length_s, frames_a_second, bits_a_second; // of the title
  double arrivals;                                 // clients a second, a Poisson process
  double warm_s, counted_s;                        // time before counting, and counted
  WeirPolicyRule rule;
  double cache; // bytes
  uint64_t seed;
} SimCase;

typedef struct {
  double sent, read; // bits a second, means
  double most;       // bits sent in a second, at most
  uint64_t clients, refused;
  uint64_t sent_bins[SIM_BINS], read_bins[SIM_BINS]; // seconds by 100 kb/s, the last one with more
  size_t channels;                                   // at the end
} SimResult;

typedef struct {
  SimResult *result;
  WeirPolicy policy;
  double frame_bits;
  double round_sent, round_read;
} SimServer;

// xorshift64*
static inline double
sim_random (uint64_t *state)
{
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (double) ((*state * UINT64_C (0x2545f4914f6cdd1d)) >> 11) / 9007199254740992.0;
}

static inline int64_t
sim_gap_ns (double rate, uint64_t *state)
{
  return (int64_t) (-log (1 - sim_random (state)) / rate * 1e9);
}

static inline uint64_t
sim_block (const SimServer *server, uint32_t frame)
{
  return (uint64_t) (frame * server->frame_bits / 8 / SIM_BLOCK);
}

static inline void
sim_read (SimServer *server, uint64_t block)
{
  uint64_t gone;

  if (weir_policy_ask (&server->policy, block) == 1)
    return;
  server->round_read += SIM_BLOCK * 8;
  weir_policy_add (&server->policy, block, SIM_BLOCK);
  while (weir_policy_evict (&server->policy, &gone))
    continue;
}

// A channel reads a block with the first frame that needs it.
static void
sim_send (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  (void) at_ns;
  SimServer *server = data;

  server->round_sent += (to - from) * server->frame_bits;
  for (uint32_t frame = from; frame < to; frame++) {
    const uint64_t block = sim_block (server, frame);
    bool first = frame == 0 || sim_block (server, frame - 1) != block;
    for (size_t i = 0; i < channel->n_works; i++)
      first |= channel->works[i].from == frame;
    if (first)
      sim_read (server, block);
  }
}

static inline void
sim_bin (uint64_t bins[SIM_BINS], double bits)
{
  const double bin = bits / 1e5;

  bins[bin < SIM_BINS - 1 ? (int) bin : SIM_BINS - 1]++;
}

static inline void
sim_count (SimServer *server)
{
  SimResult *result = server->result;

  result->sent += server->round_sent;
  result->read += server->round_read;
  sim_bin (result->sent_bins, server->round_sent);
  sim_bin (result->read_bins, server->round_read);
  if (server->round_sent > result->most)
    result->most = server->round_sent;
}

// Runs a case with a pool of `n_groups` groups. Returns false and prints why if the scheme cannot
// begin.
static inline bool
sim_run (const SimCase *sim, uint32_t n_groups, SimResult *result)
{
  SimServer server = { .result = result, .frame_bits = sim->bits_a_second / sim->frames_a_second };
  const int64_t frame_ns = (int64_t) (1e9 / sim->frames_a_second);
  const int64_t seconds = (int64_t) (sim->warm_s + sim->counted_s);
  uint64_t arrivals = sim->seed * 2 + 1;
  int64_t next_ns = sim_gap_ns (sim->arrivals, &arrivals);
  static WeirReception reception;
  char why[WEIR_SCHEME_WHY];
  WeirGroupPool pool;
  WeirScheme scheme;

  *result = (SimResult) { 0 };
  weir_policy_init (&server.policy, sim->rule, (uint64_t) sim->cache);
  if (weir_group_pool_init (&pool, n_groups) < 0
      || weir_scheme_init (&scheme, &sim->scheme, (uint32_t) (sim->length_s * sim->frames_a_second),
             frame_ns, &pool, 0, why)
             < 0) {
    printf ("# %s\n", why);
    return false;
  }
  for (int64_t i = 0; i < seconds; i++) {
    for (; next_ns < (i + 1) * SIM_SECOND; next_ns += sim_gap_ns (sim->arrivals, &arrivals)) {
      result->clients++;
      result->refused += weir_scheme_admit (&scheme, next_ns, &reception, why) < 0;
    }
    server.round_sent = server.round_read = 0;
    weir_transmission_due (&scheme.transmission, i * SIM_SECOND, (i + 1) * SIM_SECOND, (uint64_t) i,
        sim_send, &server);
    if (i >= (int64_t) sim->warm_s)
      sim_count (&server);
    weir_scheme_advance (&scheme, (i + 1) * SIM_SECOND);
  }
  result->sent /= sim->counted_s;
  result->read /= sim->counted_s;
  result->channels = scheme.transmission.n_channels;
  weir_scheme_free (&scheme, seconds * SIM_SECOND);
  weir_group_pool_free (&pool);
  weir_policy_free (&server.policy);
  return true;
}
