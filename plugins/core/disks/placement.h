// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses the disks of a title's blocks (Choe 2007, section 4.1):
//
// NAIVE   all blocks of a title on one disk
// RAID0   blocks in turn on all disks; each title begins on the first disk, so that readers who
//         start together load the same disks, as in the dissertation
// RAID1   disks are mirror pairs by their numbers (0 and 1, 2 and 3, ...); a title is on one pair
// RANDOM  each block on a disk chosen at random
// RDA     each block on two different disks chosen at random: random duplicate assignment
//
// A disk that is full or gone gets no block.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "disks/index.h"

typedef enum {
  WEIR_PLACEMENT_NAIVE,
  WEIR_PLACEMENT_RAID0,
  WEIR_PLACEMENT_RAID1,
  WEIR_PLACEMENT_RANDOM,
  WEIR_PLACEMENT_RDA,
} WeirPlacementPolicy;

typedef struct {
  uint16_t number;     // of the disk in the store
  bool usable;         // present, not failing, not about to be removed
  uint64_t free_bytes; // reduced by weir_placement_next()
} WeirPlacementDisk;

typedef struct {
  WeirPlacementPolicy policy;
  WeirPlacementDisk *disks; // the caller's
  size_t n_disks;
  // Bytes that are still to be placed, of this title and of others after it. Reduced by
  // weir_placement_next(). As long as the disks have room for them, RDA draws no disks that would
  // leave too little. 0: not known.
  uint64_t remainder;
  uint64_t random; // state of the generator; any value
  uint32_t first;  // place in `disks` of a NAIVE title's disk, or of the first of a RAID1 pair
  uint32_t next;   // place in `disks` of the next RAID0 block
} WeirPlacement;

// Returns the policy that `name` names ("naive", "raid0", "raid1", "random", "rda"), or -1.
int weir_placement_policy (const char *name);
const char *weir_placement_name (WeirPlacementPolicy policy);

// Returns how many copies of each block the policy makes.
unsigned weir_placement_copies (WeirPlacementPolicy policy);

// Prepares to place a title's blocks. A NAIVE or RAID1 title goes to the disk or pair with the most
// free bytes. Returns 0, or -ENODEV if the policy needs more usable disks: a pair for RAID1, two
// for RDA.
int weir_placement_init (WeirPlacement *placement, WeirPlacementPolicy policy,
    WeirPlacementDisk *disks, size_t n_disks, uint64_t seed);

// Chooses the disks of the next block, whose file has `bytes` bytes, and stores their numbers in
// `disks`. Returns the number of copies, or -ENOSPC.
int weir_placement_next (
    WeirPlacement *placement, uint64_t bytes, uint16_t disks[WEIR_INDEX_COPIES_MAX]);

// Chooses a disk for a new copy of a block whose other copy is on disk `other`, or is lost
// (UINT16_MAX). With RAID1 this is the other disk of the pair, if it can be used. Returns the
// disk's number, or -ENOSPC.
int weir_placement_copy (WeirPlacement *placement, uint64_t bytes, uint16_t other);
