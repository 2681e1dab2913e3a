// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/placement.h"

#include <stdbool.h>

// A member's share is this part above the mean of those that could be the parent.
#define ABOVE_MEAN_NUMERATOR 5
#define ABOVE_MEAN_DENOMINATOR 4

static uint64_t
mix (uint64_t hash)
{
  hash ^= hash >> 33;
  hash *= UINT64_C (0xff51afd7ed558ccd);
  hash ^= hash >> 33;
  hash *= UINT64_C (0xc4ceb9fe1a85ec53);
  return hash ^ hash >> 33;
}

uint64_t
weir_placement_hash (const char *text, size_t len)
{
  uint64_t hash = UINT64_C (0xcbf29ce484222325);

  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (uint8_t) text[i]) * UINT64_C (0x100000001b3);
  return mix (hash);
}

// The tree while it grows: members are placed in their order.
typedef struct {
  const WeirPlacementMember *members;
  WeirPlaced *placed; // `children` also counts those that come later and keep their parent
  size_t n, fan_out;
  uint64_t stream;
  int64_t now_ns;
  size_t root;
  size_t depth; // no placed member of a lower depth has room
  size_t depth_max;
} Tree;

// Returns for how many members a full tree has places, at least up to `enough`.
static size_t
count_places (size_t fan_out, size_t depth, size_t enough)
{
  size_t level = 1, places = 1;

  while (depth-- > 0 && places < enough) {
    level = level > enough / fan_out ? enough : level * fan_out;
    places += level;
  }
  return places;
}

size_t
weir_placement_fan_out (size_t n)
{
  size_t fan_out = WEIR_PLACEMENT_FAN_OUT;

  while (count_places (fan_out, WEIR_PLACEMENT_DEPTH, n + n / 4) < n + n / 4)
    fan_out++;
  return fan_out;
}

static size_t
get_depth_max (size_t fan_out, size_t n)
{
  size_t depth = WEIR_PLACEMENT_DEPTH;

  while (count_places (fan_out, depth, n) < n)
    depth++;
  return depth;
}

static bool
is_gone (const Tree *self, size_t i)
{
  return self->now_ns < self->members[i].gone_until;
}

// Reports whether a placed member may be the parent of one more.
static bool
is_open (const Tree *self, size_t i)
{
  return !is_gone (self, i) && self->placed[i].depth == self->depth
         && self->placed[i].children < self->fan_out;
}

// Keeps the parents that still can be.
static void
keep_parents (Tree *self)
{
  for (size_t i = self->root + 1; i < self->n; i++) {
    const size_t parent = self->members[i].parent;

    if (is_gone (self, i) || parent < self->root || parent >= i || is_gone (self, parent)
        || self->placed[parent].children >= self->fan_out)
      continue;
    self->placed[i].parent = parent;
    self->placed[parent].children++;
  }
}

// Lets a member choose anew.
static void
release (Tree *self, size_t i)
{
  WeirPlaced *parent;

  if (self->placed[i].parent == WEIR_PLACEMENT_NONE)
    return;
  parent = &self->placed[self->placed[i].parent];
  parent->children--;
  if (parent->depth < self->depth)
    self->depth = parent->depth;
  self->placed[i].parent = WEIR_PLACEMENT_NONE;
}

// Lets all members after `i` choose anew, as they keep all the room.
static void
release_after (Tree *self, size_t i)
{
  for (size_t k = i + 1; k < self->n; k++)
    release (self, k);
  self->depth = 0;
}

// What the open members have together.
typedef struct {
  size_t n;
  uint64_t load;
} Sum;

static Sum
sum_open (const Tree *self, size_t end)
{
  Sum sum = { 0 };

  for (size_t i = self->root; i < end; i++) {
    if (is_open (self, i)) {
      sum.n++;
      sum.load += self->members[i].load;
    }
  }
  return sum;
}

static Sum
find_depth (Tree *self, size_t child)
{
  Sum sum;

  while ((sum = sum_open (self, child)).n == 0) {
    // Once nobody keeps a place for later, there is room above the highest depth.
    if (++self->depth >= self->depth_max)
      release_after (self, child);
  }
  return sum;
}

static size_t
choose (Tree *self, size_t child)
{
  const Sum sum = find_depth (self, child);
  size_t best = WEIR_PLACEMENT_NONE;
  uint64_t highest = 0;

  for (size_t i = self->root; i < child; i++) {
    const uint64_t load = self->members[i].load;
    const uint64_t hash =
        mix (self->members[i].name ^ mix (self->stream ^ mix (self->members[child].name)));

    // One that is not above the mean is among them.
    if (!is_open (self, i)
        || load / ABOVE_MEAN_NUMERATOR > sum.load / sum.n / ABOVE_MEAN_DENOMINATOR)
      continue;
    if (best == WEIR_PLACEMENT_NONE || hash > highest) {
      best = i;
      highest = hash;
    }
  }
  return best;
}

static void
put (Tree *self, size_t child)
{
  WeirPlaced *placed = &self->placed[child];

  if (placed->parent != WEIR_PLACEMENT_NONE
      && self->placed[placed->parent].depth >= self->depth_max)
    release (self, child);
  if (placed->parent == WEIR_PLACEMENT_NONE) {
    placed->parent = choose (self, child);
    self->placed[placed->parent].children++;
  }
  placed->depth = self->placed[placed->parent].depth + 1;
  if (placed->depth < self->depth)
    self->depth = placed->depth;
}

size_t
weir_placement_run (const WeirPlacementMember *members, size_t n, size_t fan_out, uint64_t stream,
    int64_t now_ns, WeirPlaced *placed)
{
  Tree self = { members, placed, n, fan_out, stream, now_ns, WEIR_PLACEMENT_NONE, 0,
    get_depth_max (fan_out, n) };
  size_t n_placed = 0;

  for (size_t i = n; i-- > 0;) {
    placed[i] = (WeirPlaced) { .parent = WEIR_PLACEMENT_NONE };
    if (is_gone (&self, i))
      continue;
    self.root = i;
    n_placed++;
  }
  if (n_placed == 0)
    return 0;
  keep_parents (&self);
  for (size_t i = self.root + 1; i < n; i++) {
    if (!is_gone (&self, i))
      put (&self, i);
  }
  return n_placed;
}
