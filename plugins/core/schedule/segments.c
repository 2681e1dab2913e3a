// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/segments.h"

#include <errno.h>
#include <stdbool.h>

#define UNITS_MAX 1024 // first segments in a title, for GREEDY, which tries all starts and arrivals

// A cut in progress. Lengths and phases are in units of the first segment.
typedef struct {
  uint64_t length[WEIR_SEGMENTS_MAX], phase[WEIR_SEGMENTS_MAX];
  uint64_t due[WEIR_SEGMENTS_MAX]; // units played before the segment
  int n;
  uint64_t at_once;
} Units;

// ---- greedy ----

// Returns the start of the transmission that a client receives who plays from unit `k`; may be
// before `k`, which the client cannot receive.
static int64_t
start_of (const Units *units, int i, uint64_t k)
{
  const int64_t last = (int64_t) (k + units->due[i]) - (int64_t) units->phase[i];
  const int64_t length = (int64_t) units->length[i];

  if (last < 0)
    return -1;
  return last / length * length + (int64_t) units->phase[i];
}

// Reports whether a client who plays from unit `k` can receive the last segment, and receives no
// more than `at_once` groups at any time.
static bool
can_follow (const Units *units, uint64_t k)
{
  int64_t starts[WEIR_SEGMENTS_MAX];
  const int last = units->n - 1;

  if (start_of (units, last, k) < (int64_t) k)
    return false;
  for (int i = 0; i <= last; i++)
    starts[i] = start_of (units, i, k);
  for (int i = 0; i <= last && units->at_once > 0; i++) {
    uint64_t n = 0;
    for (int j = 0; j <= last; j++)
      n += starts[j] <= starts[i] && starts[i] < starts[j] + (int64_t) units->length[j];
    if (n > units->at_once)
      return false;
  }
  return true;
}

// Each length is a multiple of the lengths before it, so all arrivals repeat after the last one.
static bool
all_can_follow (const Units *units)
{
  for (uint64_t k = 0; k < units->length[units->n - 1]; k++) {
    if (!can_follow (units, k))
      return false;
  }
  return true;
}

static bool
add_greedy (Units *units)
{
  const int i = units->n++;
  const uint64_t before = i > 0 ? units->length[i - 1] : 1;

  for (uint64_t times = (units->due[i] + 1) / before; times > 0; times--) {
    units->length[i] = times * before;
    for (units->phase[i] = 0; units->phase[i] < units->length[i]; units->phase[i]++) {
      if (all_can_follow (units))
        return true;
    }
  }
  return false;
}

// ---- all ----

// The widths of Hua and Sheu: for n from 1, 1, 2, 2, then 2w + 1, w, 2w + 2, w in turn.
static uint64_t
skyscraper_length (const Units *units, uint64_t longest)
{
  const int n = units->n + 1;
  const uint64_t before = units->n > 0 ? units->length[units->n - 1] : 0;
  uint64_t length = before;

  if (n <= 2)
    length = (uint64_t) n;
  else if (n % 4 == 0)
    length = 2 * before + 1;
  else if (n % 4 == 2)
    length = 2 * before + 2;
  return longest > 0 && length > longest ? longest : length;
}

static bool
add (Units *units, WeirCut cut, uint64_t longest)
{
  const int i = units->n;

  units->due[i] = i > 0 ? units->due[i - 1] + units->length[i - 1] : 0;
  if (cut == WEIR_CUT_GREEDY)
    return add_greedy (units);
  units->length[i] = cut == WEIR_CUT_GDB ? UINT64_C (1) << i : skyscraper_length (units, longest);
  units->phase[i] = 0;
  units->n++;
  return true;
}

static int
cut_staggered (uint32_t n_frames, uint32_t first, WeirSegment *segments)
{
  const uint32_t n = (n_frames - 1) / first + 1;

  if (n > WEIR_SEGMENTS_MAX)
    return -E2BIG;
  for (uint32_t i = 0; i < n; i++)
    segments[i] = (WeirSegment) {
      .to = n_frames, .period = (uint64_t) n * first, .phase = (uint64_t) i * first
    };
  return (int) n;
}

int
weir_segments_cut (WeirCut cut, uint32_t n_frames, uint32_t first, uint32_t at_once,
    uint32_t longest, WeirSegment segments[WEIR_SEGMENTS_MAX])
{
  Units units = { .at_once = cut == WEIR_CUT_GREEDY ? at_once : 0 };
  uint64_t from = 0;

  if (first == 0 || first > n_frames || (longest > 0 && longest < first))
    return -EINVAL;
  if (cut == WEIR_CUT_GREEDY && n_frames / first > UNITS_MAX)
    return -E2BIG;
  if (cut == WEIR_CUT_STAGGERED)
    return cut_staggered (n_frames, first, segments);
  while (from < n_frames) {
    const int i = units.n;
    uint64_t to;
    if (i == WEIR_SEGMENTS_MAX || !add (&units, cut, longest / first))
      return -E2BIG;
    to = from + units.length[i] * first;
    segments[i] = (WeirSegment) {
      .from = (uint32_t) from,
      .to = to < n_frames ? (uint32_t) to : n_frames,
      .period = units.length[i] * first,
      .phase = units.phase[i] * first,
    };
    from = to;
  }
  return units.n;
}

double
weir_segments_streams (const WeirSegment *segments, int n_segments, uint32_t cached)
{
  double streams = 0;

  for (int i = 0; i < n_segments; i++) {
    const uint32_t from = segments[i].from > cached ? segments[i].from : cached;
    if (segments[i].to > from)
      streams += (double) (segments[i].to - from) / (double) segments[i].period;
  }
  return streams;
}
