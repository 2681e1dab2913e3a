// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/placement.h"

#include <errno.h>
#include <string.h>

static const char *const names[] = { "naive", "raid0", "raid1", "random", "rda" };

#define N_POLICIES (sizeof names / sizeof *names)
#define NONE SIZE_MAX

int
weir_placement_policy (const char *name)
{
  for (size_t i = 0; i < N_POLICIES; i++) {
    if (strcmp (names[i], name) == 0)
      return (int) i;
  }
  return -1;
}

const char *
weir_placement_name (WeirPlacementPolicy policy)
{
  return names[policy];
}

unsigned
weir_placement_copies (WeirPlacementPolicy policy)
{
  return policy == WEIR_PLACEMENT_RAID1 || policy == WEIR_PLACEMENT_RDA ? 2 : 1;
}

// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014).
static uint64_t
draw (WeirPlacement *placement)
{
  uint64_t z = placement->random += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static bool
has_room (const WeirPlacementDisk *disk, uint64_t bytes)
{
  return disk->usable && disk->free_bytes >= bytes;
}

// Returns the place of disk `number` in the caller's array, or NONE.
static size_t
find (const WeirPlacement *placement, uint16_t number)
{
  for (size_t i = 0; i < placement->n_disks; i++) {
    if (placement->disks[i].number == number)
      return i;
  }
  return NONE;
}

// Returns the other disk of a mirror pair, or NONE.
static size_t
find_mirror (const WeirPlacement *placement, size_t at)
{
  return find (placement, placement->disks[at].number ^ 1);
}

// Returns the free bytes of the disk, or of the mirror pair that it begins, that can be used; -1 if
// the disk or the pair cannot be used.
static int64_t
room_of (const WeirPlacement *placement, size_t at)
{
  const WeirPlacementDisk *disk = &placement->disks[at], *mirror;
  uint64_t bytes = disk->free_bytes;
  size_t second;

  if (!disk->usable)
    return -1;
  if (placement->policy == WEIR_PLACEMENT_RAID1) {
    second = disk->number % 2 == 0 ? find_mirror (placement, at) : NONE;
    mirror = second == NONE ? NULL : &placement->disks[second];
    if (!mirror || !mirror->usable)
      return -1;
    bytes = mirror->free_bytes < bytes ? mirror->free_bytes : bytes;
  }
  return bytes > INT64_MAX ? INT64_MAX : (int64_t) bytes;
}

// Chooses the disk or pair with the most free bytes. One of several with the same is drawn, as
// disks that are folders of one device have the same.
static bool
choose_first (WeirPlacement *placement)
{
  int64_t most = -1;
  uint64_t n_same = 0;

  for (size_t i = 0; i < placement->n_disks; i++) {
    int64_t room = room_of (placement, i);

    if (room > most) {
      most = room;
      n_same = 0;
    }
    if (room == most && room >= 0 && draw (placement) % ++n_same == 0)
      placement->first = (uint32_t) i;
  }
  return most >= 0;
}

int
weir_placement_init (WeirPlacement *placement, WeirPlacementPolicy policy, WeirPlacementDisk *disks,
    size_t n_disks, uint64_t seed)
{
  size_t n_usable = 0;

  *placement =
      (WeirPlacement) { .policy = policy, .disks = disks, .n_disks = n_disks, .random = seed };
  for (size_t i = 0; i < n_disks; i++)
    n_usable += disks[i].usable;
  if (n_usable < weir_placement_copies (policy))
    return -ENODEV;
  if ((policy == WEIR_PLACEMENT_NAIVE || policy == WEIR_PLACEMENT_RAID1)
      && !choose_first (placement))
    return -ENODEV;
  return 0;
}

// Draws a disk with room, other than the disk at `but`. Returns NONE if there is none.
static size_t
draw_disk (WeirPlacement *placement, uint64_t bytes, size_t but)
{
  uint64_t n = 0, k;

  for (size_t i = 0; i < placement->n_disks; i++)
    n += i != but && has_room (&placement->disks[i], bytes);
  if (n == 0)
    return NONE;
  k = draw (placement) % n;
  for (size_t i = 0; i < placement->n_disks; i++) {
    if (i != but && has_room (&placement->disks[i], bytes) && k-- == 0)
      return i;
  }
  return NONE;
}

// Returns the disk with the most free bytes, other than that at `but`, which has the first copy of
// the block, if the remainder has no room for two copies unless this disk gets one; otherwise NONE.
// Two copies have the room of half of all bytes, but not more than all disks but the largest have.
static size_t
must_take (const WeirPlacement *placement, uint64_t bytes, size_t but)
{
  uint64_t rest = placement->remainder > bytes ? placement->remainder - bytes : 0;
  uint64_t taken = but == NONE ? 2 * bytes : bytes, sum = 0, most = 0;
  size_t largest = NONE;

  for (size_t i = 0; i < placement->n_disks; i++) {
    const WeirPlacementDisk *disk = &placement->disks[i];
    uint64_t room = disk->free_bytes;

    if (!has_room (disk, i == but ? 2 * bytes : bytes))
      continue; // for another block
    if (i == but)
      room -= bytes;
    else if (largest == NONE || room > placement->disks[largest].free_bytes)
      largest = i;
    room -= room % bytes + bytes; // the last block may be longer, and finds no place in the rest
    most = room > most ? room : most;
    sum += room;
  }
  sum -= taken < sum ? taken : sum;
  if (sum / 2 >= rest && sum >= most && sum - most >= rest)
    return NONE;
  return largest;
}

// Draws two disks with room.
static void
draw_two (WeirPlacement *placement, uint64_t bytes, size_t at[WEIR_INDEX_COPIES_MAX])
{
  for (unsigned i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    size_t but = i > 0 ? at[0] : NONE;

    at[i] = placement->remainder > 0 ? must_take (placement, bytes, but) : NONE;
    if (at[i] == NONE)
      at[i] = draw_disk (placement, bytes, but);
    if (at[i] == NONE)
      return;
  }
}

// Returns the next disk in turn that has room, or NONE.
static size_t
next_in_turn (WeirPlacement *placement, uint64_t bytes)
{
  for (size_t n = 0; n < placement->n_disks; n++) {
    size_t at = (placement->next + n) % placement->n_disks;

    if (has_room (&placement->disks[at], bytes)) {
      placement->next = (uint32_t) ((at + 1) % placement->n_disks);
      return at;
    }
  }
  return NONE;
}

static uint16_t
take (WeirPlacement *placement, size_t at, uint64_t bytes)
{
  placement->disks[at].free_bytes -= bytes;
  return placement->disks[at].number;
}

int
weir_placement_next (
    WeirPlacement *placement, uint64_t bytes, uint16_t disks[WEIR_INDEX_COPIES_MAX])
{
  size_t at[WEIR_INDEX_COPIES_MAX] = { NONE, NONE };
  unsigned n = weir_placement_copies (placement->policy);

  switch (placement->policy) {
    case WEIR_PLACEMENT_NAIVE:
    case WEIR_PLACEMENT_RAID1:
      at[0] = placement->first;
      at[1] = n > 1 ? find_mirror (placement, at[0]) : NONE;
      break;
    case WEIR_PLACEMENT_RAID0:
      at[0] = next_in_turn (placement, bytes);
      break;
    case WEIR_PLACEMENT_RANDOM:
      at[0] = draw_disk (placement, bytes, NONE);
      break;
    case WEIR_PLACEMENT_RDA:
      draw_two (placement, bytes, at);
      break;
  }
  for (unsigned i = 0; i < n; i++) {
    if (at[i] == NONE || !has_room (&placement->disks[at[i]], bytes))
      return -ENOSPC;
  }
  for (unsigned i = 0; i < n; i++)
    disks[i] = take (placement, at[i], bytes);
  placement->remainder -= bytes < placement->remainder ? bytes : placement->remainder;
  return (int) n;
}

int
weir_placement_copy (WeirPlacement *placement, uint64_t bytes, uint16_t other)
{
  size_t but = find (placement, other), at = NONE;

  if (placement->policy == WEIR_PLACEMENT_NAIVE)
    at = placement->first;
  else if (placement->policy == WEIR_PLACEMENT_RAID1)
    at = find (placement, other ^ 1);
  if (at == NONE || at == but || !has_room (&placement->disks[at], bytes))
    at = draw_disk (placement, bytes, but);
  return at == NONE ? -ENOSPC : take (placement, at, bytes);
}
