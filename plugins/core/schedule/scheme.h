// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Schedules one title for clients that come at any time. The scheme decides what is sent when, and
// gives each client a reception schedule. All schemes send at the title's rate.
//
// GDB, GREEDY, SKYSCRAPER, STAGGERED   a periodic broadcast (schedule/segments.h); a client waits
//            for up to `first` frames, and costs nothing
// BATCHING   the first client waits for `first` frames; all who come until then share a stream
// PATCHING   threshold patching (schedule/theory.h); no client waits
// AUTO       PATCHING, and GDB while clients come at a rate at which GDB costs less
//
// Schemes that share a pool of groups must be called with one clock. For one thread at a time.

#include <stdbool.h>
#include <stdint.h>

#include "schedule/arrivals.h"
#include "schedule/pool.h"
#include "schedule/reception.h"
#include "schedule/segments.h"
#include "schedule/stagger.h"
#include "schedule/work.h"

#define WEIR_SCHEME_WHY 160   // bytes of an error text
#define WEIR_SCHEME_LEAD 1.25 // AUTO changes this much above and below the crossing

typedef enum {
  WEIR_SCHEME_GDB,
  WEIR_SCHEME_GREEDY,
  WEIR_SCHEME_SKYSCRAPER,
  WEIR_SCHEME_STAGGERED,
  WEIR_SCHEME_BATCHING,
  WEIR_SCHEME_PATCHING,
  WEIR_SCHEME_AUTO,
} WeirSchemeKind;

typedef struct {
  WeirSchemeKind kind;
  uint32_t first;     // frames in the first segment, the longest wait; not used for PATCHING
  uint32_t at_once;   // GREEDY: groups that a client receives at a time; 0: any number
  uint32_t longest;   // SKYSCRAPER: frames in the longest segment; 0: any number
  uint32_t threshold; // PATCHING, AUTO: frames; 0: the best one for the estimated arrival rate
  uint32_t cached;    // AUTO: frames that a cache keeps: compare what is read with such a cache. 0:
                      // compare what is sent
  uint32_t delay;     // periodic broadcasts: frames by which all transmissions are later, see
                      // weir_scheme_pulse()
  uint64_t rate;      // of the title, bits a second, for the limit of the pool
} WeirSchemeConfig;

typedef struct {
  WeirTransmission transmission;
  bool broadcasting; // clients get a periodic broadcast
  WeirArrivals arrivals;
  double crossing; // AUTO: clients a second

  // Private.
  WeirSchemeConfig config;
  WeirGroupPool *pool;
  WeirSegment *segments;
  int n_segments;
  uint32_t *numbers; // of the segments' groups
  int64_t *last_ns;  // start of the last transmission of each segment that a client receives
  int64_t base_ns;
  bool has_stream;
  int64_t stream_ns; // start of the newest complete stream
  uint32_t stream;   // its group
  uint32_t n_patches;
} WeirScheme;

// Starts to schedule a title of `n_frames` frames of `frame_ns` each, with groups of `pool`, which
// must outlive the scheme. A periodic broadcast takes its groups here and keeps them. Returns 0;
// -EINVAL for a number out of range, -E2BIG for too many segments, -EBUSY if too few groups are
// free, -EDQUOT if too little is left of the pool's rate, or -ENOMEM. On error `why` says what is
// missing.
int weir_scheme_init (WeirScheme *self, const WeirSchemeConfig *config, uint32_t n_frames,
    int64_t frame_ns, WeirGroupPool *pool, int64_t now_ns, char why[WEIR_SCHEME_WHY]);

// Ends all transmissions and returns the groups.
void weir_scheme_free (WeirScheme *self, int64_t now_ns);

// Gives a client that comes now its reception schedule. Returns 0; -EBUSY or -EDQUOT if the
// client needs a complete stream, and no group is free for it or too little is left of the rate; or
// -ENOMEM. On error `why` says what is missing.
int weir_scheme_admit (
    WeirScheme *self, int64_t now_ns, WeirReception *reception, char why[WEIR_SCHEME_WHY]);

// Forgets what has been sent; AUTO ends a broadcast that costs more than patching. To be called at
// least once in a while, such as once a round.
void weir_scheme_advance (WeirScheme *self, int64_t now_ns);

// Computes when the last segment of a periodic broadcast is sent. Times are equal for all starts of
// the scheme, so titles with different delays stay apart. Returns false if the configuration has no
// periodic broadcast of at least two segments, or is not valid.
bool weir_scheme_pulse (
    const WeirSchemeConfig *config, uint32_t n_frames, int64_t frame_ns, WeirPulse *pulse);

// Returns the name of a scheme in configuration, such as "gdb"; the scheme of a name, or -1.
const char *weir_scheme_name (WeirSchemeKind kind);
int weir_scheme_kind (const char *name);
