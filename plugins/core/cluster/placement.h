// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which member of a cluster reads a stream from which: a tree whose root runs the upstream. Each
// member computes it from what all of them know, and they come to the same result.
//
// Members stand in an order that does not change while they have the stream: the root first, then
// those that asked earlier. Each reads from one before it, so there is no loop, and one that comes
// or goes moves nobody but its own children. A member keeps its parent while that has the stream
// and room, and is not so deep that the tree gets deeper than it has to. Otherwise it gets the one
// of the lowest depth with room; among these one that is not loaded above its share (bounded loads:
// Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2018), and of those
// the one with the highest hash of both names (rendezvous hashing: Thaler and Ravishankar, 1998),
// so that the members choose differently.

#include <stddef.h>
#include <stdint.h>

#define WEIR_PLACEMENT_FAN_OUT 8     // children of a member, at most, unless there are very many
#define WEIR_PLACEMENT_DEPTH 4       // of the tree, at most
#define WEIR_PLACEMENT_NONE SIZE_MAX // no parent: the root, or a member that is left out

typedef struct {
  uint64_t name;      // weir_placement_hash() of its name
  size_t parent;      // index of its present parent, or WEIR_PLACEMENT_NONE
  uint64_t load;      // of the member, in any unit
  int64_t gone_until; // ns; until then the member counts as gone
} WeirPlacementMember;

typedef struct {
  size_t parent; // index, or WEIR_PLACEMENT_NONE
  size_t depth;  // 0: the root
  size_t children;
} WeirPlaced;

// Places `n` members, in their order, for the stream with the hash `stream`. The first one that is
// not gone at `now_ns` becomes the root. Sets all of `placed`. `fan_out` is 1 or more. No member
// has more children, and none is deeper than WEIR_PLACEMENT_DEPTH or, where that is not enough for
// `n` with this fan-out, the least depth that is. Returns the number of members that are placed.
// Takes O(n) steps for each member that has to choose.
size_t weir_placement_run (const WeirPlacementMember *members, size_t n, size_t fan_out,
    uint64_t stream, int64_t now_ns, WeirPlaced *placed);

// Returns the fan-out for `n` members: the least one from WEIR_PLACEMENT_FAN_OUT on with which a
// quarter more of them fit. It grows from 3745 members on. Takes few steps.
size_t weir_placement_fan_out (size_t n);

// Hashes a text of `len` bytes (FNV-1a with a final mix).
uint64_t weir_placement_hash (const char *text, size_t len);
