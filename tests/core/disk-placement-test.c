// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks/placement.h"

#include <errno.h>

#include "tap.h"

#define N 8
#define MB UINT64_C (1000000)

static WeirPlacementDisk disks[N];

static WeirPlacement
begin (WeirPlacementPolicy policy, uint64_t seed)
{
  WeirPlacement placement;

  CHECK_INT (weir_placement_init (&placement, policy, disks, N, seed), 0);
  return placement;
}

static void
reset (void)
{
  for (uint16_t i = 0; i < N; i++)
    disks[i] = (WeirPlacementDisk) { .number = i, .usable = true, .free_bytes = 1000000 * MB };
}

static void
policies_have_names (void)
{
  CHECK_INT (weir_placement_policy ("naive"), WEIR_PLACEMENT_NAIVE);
  CHECK_INT (weir_placement_policy ("rda"), WEIR_PLACEMENT_RDA);
  CHECK_INT (weir_placement_policy ("RDA"), -1);
  CHECK (strcmp (weir_placement_name (WEIR_PLACEMENT_RAID1), "raid1") == 0);
  CHECK_INT (weir_placement_copies (WEIR_PLACEMENT_RANDOM), 1);
  CHECK_INT (weir_placement_copies (WEIR_PLACEMENT_RAID1), 2);
}

static void
naive_puts_a_title_on_the_emptiest_disk (void)
{
  WeirPlacement placement;
  uint16_t at[2];

  reset ();
  disks[5].free_bytes++;
  placement = begin (WEIR_PLACEMENT_NAIVE, 1);
  for (int i = 0; i < 100; i++) {
    CHECK_INT (weir_placement_next (&placement, MB, at), 1);
    CHECK_INT (at[0], 5);
  }
  CHECK_INT (disks[5].free_bytes, 1000000 * MB + 1 - 100 * MB);
  // The next one goes elsewhere.
  placement = begin (WEIR_PLACEMENT_NAIVE, 1);
  CHECK (placement.first != 5);
}

static void
naive_draws_one_of_disks_that_are_alike (void)
{
  int titles[N] = { 0 };

  reset ();
  for (uint64_t seed = 0; seed < 8000; seed++)
    titles[begin (WEIR_PLACEMENT_NAIVE, seed).first]++;
  for (int i = 0; i < N; i++)
    CHECK (titles[i] > 850 && titles[i] < 1150);
}

static void
raid0_goes_round_from_the_first_disk (void)
{
  WeirPlacement placement;
  uint16_t at[2];

  reset ();
  for (int title = 0; title < 3; title++) {
    placement = begin (WEIR_PLACEMENT_RAID0, (uint64_t) title);
    for (int i = 0; i < 20; i++) {
      CHECK_INT (weir_placement_next (&placement, MB, at), 1);
      CHECK_INT (at[0], i % N);
    }
  }
}

static void
raid0_leaves_out_a_full_disk_and_one_that_is_gone (void)
{
  static const uint16_t expected[] = { 0, 1, 3, 4, 5, 7, 0, 1, 3 };
  WeirPlacement placement;
  uint16_t at[2];

  reset ();
  disks[2].free_bytes = MB - 1;
  disks[6].usable = false;
  placement = begin (WEIR_PLACEMENT_RAID0, 0);
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    CHECK_INT (weir_placement_next (&placement, MB, at), 1);
    CHECK_INT (at[0], expected[i]);
  }
}

static void
raid1_puts_a_title_on_a_mirror_pair (void)
{
  int titles[N] = { 0 };
  uint16_t at[2];

  reset ();
  for (uint64_t seed = 0; seed < 4000; seed++) {
    WeirPlacement placement;

    reset ();
    placement = begin (WEIR_PLACEMENT_RAID1, seed);
    for (int i = 0; i < 3; i++) {
      CHECK_INT (weir_placement_next (&placement, MB, at), 2);
      CHECK_INT (at[0], placement.first);
      CHECK (at[0] % 2 == 0 && at[1] == at[0] + 1);
    }
    titles[at[0]]++;
  }
  for (int i = 0; i < N; i += 2)
    CHECK (titles[i] > 850 && titles[i] < 1150);
}

static void
a_pair_has_the_room_of_its_fuller_disk (void)
{
  WeirPlacement placement;

  reset ();
  for (int i = 0; i < N; i++)
    disks[i].free_bytes = 10 * MB;
  disks[2].free_bytes = 1000 * MB; // its mirror has 10
  disks[6].free_bytes = disks[7].free_bytes = 11 * MB;
  placement = begin (WEIR_PLACEMENT_RAID1, 0);
  CHECK_INT (placement.first, 6);
}

static void
raid1_needs_a_whole_pair (void)
{
  WeirPlacement placement;

  reset ();
  for (int i = 0; i < N; i += 2)
    disks[i].usable = false;
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_RAID1, disks, N, 0), -ENODEV);
  disks[4].usable = true;
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_RAID1, disks, N, 0), 0);
  CHECK_INT (placement.first, 4);
}

static void
random_uses_all_disks_alike (void)
{
  int blocks[N] = { 0 }, follows[N][N] = { 0 };
  WeirPlacement placement;
  uint16_t at[2], last = 0;

  reset ();
  placement = begin (WEIR_PLACEMENT_RANDOM, 42);
  for (int i = 0; i < 64000; i++) {
    CHECK_INT (weir_placement_next (&placement, MB, at), 1);
    blocks[at[0]]++;
    follows[last][at[0]]++;
    last = at[0];
  }
  for (int i = 0; i < N; i++) {
    CHECK (blocks[i] > 7700 && blocks[i] < 8300);
    for (int j = 0; j < N; j++)
      CHECK (follows[i][j] > 850 && follows[i][j] < 1150);
  }
}

static void
rda_draws_two_different_disks (void)
{
  int pairs[N][N] = { 0 };
  WeirPlacement placement;
  uint16_t at[2];

  reset ();
  placement = begin (WEIR_PLACEMENT_RDA, 7);
  for (int i = 0; i < 56000; i++) {
    CHECK_INT (weir_placement_next (&placement, MB, at), 2);
    pairs[at[0]][at[1]]++;
  }
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++)
      CHECK (i == j ? pairs[i][j] == 0 : pairs[i][j] > 850 && pairs[i][j] < 1150);
  }
}

static void
full_disks_get_no_block (void)
{
  WeirPlacement placement;
  uint16_t at[2];

  reset ();
  for (int i = 0; i < N; i++)
    disks[i].free_bytes = i < 2 ? 10 * MB : i == 2 ? 3 * MB : MB - 1;
  placement = begin (WEIR_PLACEMENT_RDA, 3);
  for (int i = 0; i < 10; i++)
    CHECK (weir_placement_next (&placement, MB, at) == 2 && at[0] <= 2 && at[1] <= 2);
  CHECK (disks[0].free_bytes < 6 * MB && disks[1].free_bytes < 6 * MB);
  for (int i = 0; i < 10; i++)
    weir_placement_next (&placement, MB, at);
  CHECK_INT (weir_placement_next (&placement, MB, at), -ENOSPC);
  CHECK_INT (weir_placement_next (&placement, MB - 1, at), 2);
}

static void
every_policy_ends_with_no_space (void)
{
  uint16_t at[2];

  for (int policy = 0; policy <= WEIR_PLACEMENT_RDA; policy++) {
    WeirPlacement placement;
    int n = 0, result;

    reset ();
    for (int i = 0; i < N; i++)
      disks[i].free_bytes = 10 * MB;
    placement = begin ((WeirPlacementPolicy) policy, 1);
    while ((result = weir_placement_next (&placement, MB, at)) > 0)
      n += result;
    CHECK_INT (result, -ENOSPC);
    CHECK (n >= 10 && n <= 80);
    for (int i = 0; i < N; i++)
      CHECK (disks[i].free_bytes <= 10 * MB);
  }
}

static void
too_few_disks_are_refused (void)
{
  WeirPlacement placement;

  reset ();
  for (int i = 1; i < N; i++)
    disks[i].usable = false;
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_RDA, disks, N, 0), -ENODEV);
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_RANDOM, disks, N, 0), 0);
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_NAIVE, disks, 0, 0), -ENODEV);
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_RAID0, NULL, 0, 0), -ENODEV);
}

static void
a_new_copy_goes_to_another_disk (void)
{
  int copies[N] = { 0 };
  WeirPlacement placement;

  reset ();
  disks[1].usable = false;
  placement = begin (WEIR_PLACEMENT_RDA, 5);
  for (int i = 0; i < 6000; i++)
    copies[weir_placement_copy (&placement, MB, 3)]++;
  CHECK (copies[1] == 0 && copies[3] == 0);
  for (int i = 4; i < N; i++)
    CHECK (copies[i] > 850 && copies[i] < 1150);
  CHECK (weir_placement_copy (&placement, MB, UINT16_MAX) >= 0);
  CHECK_INT (weir_placement_copy (&placement, 2000000 * MB, 3), -ENOSPC);
}

static void
a_new_copy_of_raid1_goes_to_the_mirror (void)
{
  WeirPlacement placement;
  int at;

  reset ();
  placement = begin (WEIR_PLACEMENT_RAID1, 5);
  CHECK_INT (weir_placement_copy (&placement, MB, 3), 2);
  CHECK_INT (weir_placement_copy (&placement, MB, 6), 7);
  disks[2].usable = false;
  at = weir_placement_copy (&placement, MB, 3);
  CHECK (at >= 0 && at != 2 && at != 3);
}

static void
numbers_need_not_be_in_order (void)
{
  WeirPlacement placement;
  uint16_t at[2];

  reset ();
  for (uint16_t i = 0; i < N; i++)
    disks[i].number = (uint16_t) (40 - i);
  disks[0].usable = false; // 40, whose mirror is not there
  placement = begin (WEIR_PLACEMENT_RAID1, 5);
  CHECK_INT (weir_placement_next (&placement, MB, at), 2);
  CHECK (at[0] % 2 == 0 && at[0] >= 34 && at[0] <= 38 && at[1] == at[0] + 1);
}

// Places blocks of a quarter of a megabyte on three disks. Returns whether all found room.
static bool
fits (const uint64_t free_bytes[3], uint64_t bytes, uint64_t remainder, uint64_t seed)
{
  const uint64_t block = MB / 4;
  WeirPlacement placement;
  uint16_t at[2];

  for (uint16_t i = 0; i < 3; i++)
    disks[i] = (WeirPlacementDisk) { .number = i, .usable = true, .free_bytes = free_bytes[i] };
  CHECK_INT (weir_placement_init (&placement, WEIR_PLACEMENT_RDA, disks, 3, seed), 0);
  placement.remainder = remainder;
  for (; bytes > 0; bytes -= block) {
    if (weir_placement_next (&placement, block, at) != 2)
      return false;
    CHECK (at[0] != at[1]);
  }
  return true;
}

static void
rda_places_all_that_unequal_disks_have_room_for (void)
{
  static const struct {
    uint64_t free_bytes[3], bytes;
  } cases[] = { { { 3 * MB, 3 * MB, 19 * MB }, 6 * MB }, { { 19 * MB, 2 * MB, 1 * MB }, 3 * MB },
    { { 10 * MB, 10 * MB, 1 * MB }, 10 * MB }, { { 8 * MB, 6 * MB, 4 * MB }, 9 * MB },
    { { 5 * MB, 5 * MB, 5 * MB }, 15 * MB / 2 } };
  int n_random = 0;

  for (uint64_t seed = 0; seed < 100; seed++) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      CHECK (fits (cases[i].free_bytes, cases[i].bytes, cases[i].bytes, seed));
    n_random += fits (cases[0].free_bytes, 6 * MB, 0, seed);
  }
  CHECK (n_random < 50);
}

static void
rda_draws_alike_while_there_is_room_enough (void)
{
  WeirPlacementDisk before[N];

  fits ((uint64_t[]) { 9 * MB, 9 * MB, 19 * MB }, 3 * MB, 0, 3);
  memcpy (before, disks, sizeof before);
  fits ((uint64_t[]) { 9 * MB, 9 * MB, 19 * MB }, 3 * MB, 12 * MB, 3);
  for (int i = 0; i < 3; i++)
    CHECK_INT (disks[i].free_bytes, before[i].free_bytes);
}

int
main (void)
{
  RUN (policies_have_names);
  RUN (naive_puts_a_title_on_the_emptiest_disk);
  RUN (naive_draws_one_of_disks_that_are_alike);
  RUN (raid0_goes_round_from_the_first_disk);
  RUN (raid0_leaves_out_a_full_disk_and_one_that_is_gone);
  RUN (raid1_puts_a_title_on_a_mirror_pair);
  RUN (a_pair_has_the_room_of_its_fuller_disk);
  RUN (raid1_needs_a_whole_pair);
  RUN (random_uses_all_disks_alike);
  RUN (rda_draws_two_different_disks);
  RUN (rda_places_all_that_unequal_disks_have_room_for);
  RUN (rda_draws_alike_while_there_is_room_enough);
  RUN (full_disks_get_no_block);
  RUN (every_policy_ends_with_no_space);
  RUN (too_few_disks_are_refused);
  RUN (a_new_copy_goes_to_another_disk);
  RUN (a_new_copy_of_raid1_goes_to_the_mirror);
  RUN (numbers_need_not_be_in_order);
  return tap_done ();
}
