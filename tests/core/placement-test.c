// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/placement.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

#define NONE WEIR_PLACEMENT_NONE
#define MAX 4000
#define STREAM 0x1234

static WeirPlacementMember members[MAX];
static WeirPlaced placed[MAX];

static void
make (size_t n)
{
  for (size_t i = 0; i < n; i++) {
    char name[32];
    int len = snprintf (name, sizeof name, "hall-%zu", i);

    members[i] = (WeirPlacementMember) { weir_placement_hash (name, (size_t) len), NONE, 0, 0 };
  }
}

static size_t
place (size_t n, size_t fan_out)
{
  return weir_placement_run (members, n, fan_out, STREAM, 100, placed);
}

// Takes what was placed as the present state.
static void
settle (size_t n)
{
  for (size_t i = 0; i < n; i++)
    members[i].parent = placed[i].parent;
}

// Checks that the tree has one root, no loops, right depths and no member above its bound.
// Returns the depth of the tree.
static size_t
check (size_t n, size_t fan_out)
{
  size_t roots = 0, depth = 0;
  static size_t children[MAX];

  memset (children, 0, sizeof children);
  for (size_t i = 0; i < n; i++) {
    size_t parent = placed[i].parent;

    if (members[i].gone_until > 100) {
      CHECK (parent == NONE);
      continue;
    }
    roots += parent == NONE;
    if (parent == NONE)
      continue;
    CHECK (parent < i && members[parent].gone_until <= 100);
    CHECK_INT (placed[i].depth, placed[parent].depth + 1);
    children[parent]++;
    if (placed[i].depth > depth)
      depth = placed[i].depth;
  }
  for (size_t i = 0; i < n; i++)
    CHECK (children[i] <= fan_out && children[i] == placed[i].children);
  CHECK_INT (roots, 1);
  return depth;
}

static void
nobody_needs_a_place (void)
{
  CHECK_INT (place (0, 8), 0);
}

static void
up_to_the_fan_out_all_read_the_root (void)
{
  make (9);
  CHECK_INT (place (9, 8), 9);
  CHECK_INT (check (9, 8), 1);
  CHECK_INT (placed[0].children, 8);
}

static void
the_tree_has_the_least_depth (void)
{
  static const struct {
    size_t n, fan_out, depth;
  } cases[] = { { 1, 8, 0 }, { 2, 8, 1 }, { 10, 8, 2 }, { 73, 8, 2 }, { 74, 8, 3 }, { 585, 8, 3 },
    { 586, 8, 4 }, { 4, 1, 3 }, { 7, 2, 2 }, { 8, 2, 3 } };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make (cases[i].n);
    CHECK_INT (place (cases[i].n, cases[i].fan_out), cases[i].n);
    CHECK_INT (check (cases[i].n, cases[i].fan_out), cases[i].depth);
  }
}

// One that comes or goes moves nobody but its own children.
static void
others_keep_their_parents (void)
{
  size_t moved = 0;

  make (200);
  place (199, 8);
  settle (199);
  place (200, 8);
  for (size_t i = 0; i < 199; i++)
    CHECK (placed[i].parent == members[i].parent);
  settle (200);
  members[3].gone_until = 101;
  CHECK_INT (place (200, 8), 199);
  check (200, 8);
  for (size_t i = 0; i < 200; i++) {
    CHECK (i == 3 || members[i].parent == 3 || placed[i].parent == members[i].parent);
    moved += i != 3 && placed[i].parent != members[i].parent;
  }
  CHECK_INT (moved, 8);
}

static void
the_next_in_order_replaces_the_root (void)
{
  make (20);
  place (20, 8);
  settle (20);
  members[0].gone_until = 101;
  CHECK_INT (place (20, 8), 19);
  CHECK (placed[1].parent == NONE && placed[1].depth == 0);
  check (20, 8);
  // Its time is over: it is there again, and everybody else stays or returns.
  members[0].gone_until = 100;
  CHECK_INT (place (20, 8), 20);
  CHECK (placed[0].parent == NONE && placed[1].parent == 0);
  check (20, 8);
}

static void
a_parent_that_cannot_be_is_replaced (void)
{
  static const size_t wrong[] = { 5, 6, 9, 1000, NONE - 1 };

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    make (10);
    members[5].parent = wrong[i];
    CHECK_INT (place (10, 8), 10);
    check (10, 8);
  }
}

static void
a_bound_holds_against_what_members_say (void)
{
  make (100);
  for (size_t i = 1; i < 100; i++)
    members[i].parent = 0;
  CHECK_INT (place (100, 8), 100);
  CHECK_INT (check (100, 8), 3);
}

// The only room is kept by one that comes later.
static void
all_room_may_be_kept (void)
{
  make (4);
  members[3].parent = 2;
  members[2].parent = 0;
  CHECK_INT (place (4, 1), 4);
  CHECK_INT (check (4, 1), 3);
}

// Members of the first level have unequal loads; the children are for those with less.
static void
loads_above_the_mean_are_avoided (void)
{
  make (30);
  for (size_t i = 1; i < 9; i++)
    members[i].load = i <= 2 ? 1000 : 10;
  place (30, 8);
  check (30, 8);
  CHECK_INT (placed[1].children + placed[2].children, 0);
  // None is above the mean.
  make (30);
  for (size_t i = 0; i < 30; i++)
    members[i].load = UINT64_MAX / 64;
  CHECK_INT (place (30, 8), 30);
  check (30, 8);
}

// Two streams use different members, so that none carries all of them.
static void
streams_spread (void)
{
  size_t same = 0;
  static WeirPlaced other[MAX];

  make (200);
  place (200, 8);
  weir_placement_run (members, 200, 8, STREAM + 1, 100, other);
  for (size_t i = 9; i < 200; i++)
    same += placed[i].parent == other[i].parent;
  CHECK (same < 60);
}

static void
any_tenth_may_go (void)
{
  unsigned seed = 7;

  make (MAX);
  place (MAX, 8);
  CHECK_INT (check (MAX, 8), 4);
  for (unsigned round = 0; round < 5; round++) {
    size_t n_gone = 0;

    settle (MAX);
    for (size_t i = 0; i < MAX; i++) {
      seed = seed * 1103515245 + 12345;
      members[i].gone_until = (seed >> 16) % 10 == 0 ? 101 : 0;
      n_gone += members[i].gone_until != 0;
    }
    CHECK_INT (place (MAX, 8), MAX - n_gone);
    CHECK_INT (check (MAX, 8), 4);
  }
}

// The early ones read late ones in a long chain, by which all that read them would be too deep.
static void
a_deep_tree_gets_flat (void)
{
  make (100);
  for (size_t i = 1; i < 100; i++)
    members[i].parent = i - 1;
  CHECK_INT (place (100, 8), 100);
  CHECK_INT (check (100, 8), 4);
  for (size_t i = 1; i < 5; i++)
    CHECK_INT (placed[i].parent, i - 1);
  // The least depth for them.
  CHECK_INT (place (100, 2), 100);
  CHECK_INT (check (100, 2), 6);
}

// Later ones keep all the room above the highest depth; they move, and the tree stays flat.
static void
room_of_later_ones_is_used (void)
{
  make (31);
  place (31, 2);
  settle (31);
  members[1].parent = NONE;
  for (size_t i = 2; i < 31; i++)
    if (members[i].parent == 1)
      members[i].parent = 0;
  CHECK_INT (place (31, 2), 31);
  CHECK_INT (check (31, 2), 4);
}

static void
the_fan_out_grows_with_the_members (void)
{
  static const struct {
    size_t n, fan_out;
  } cases[] = { { 0, 8 }, { 1, 8 }, { 3745, 8 }, { 3746, 9 }, { 10000, 11 }, { 1000000, 34 } };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    CHECK_INT (weir_placement_fan_out (cases[i].n), cases[i].fan_out);
}

int
main (void)
{
  RUN (nobody_needs_a_place);
  RUN (up_to_the_fan_out_all_read_the_root);
  RUN (the_tree_has_the_least_depth);
  RUN (others_keep_their_parents);
  RUN (the_next_in_order_replaces_the_root);
  RUN (a_parent_that_cannot_be_is_replaced);
  RUN (a_bound_holds_against_what_members_say);
  RUN (all_room_may_be_kept);
  RUN (loads_above_the_mean_are_avoided);
  RUN (streams_spread);
  RUN (any_tenth_may_go);
  RUN (a_deep_tree_gets_flat);
  RUN (room_of_later_ones_is_used);
  RUN (the_fan_out_grows_with_the_members);
  return tap_done ();
}
