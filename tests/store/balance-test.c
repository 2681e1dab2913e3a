// SPDX-License-Identifier: LGPL-2.1-or-later
// Where a balance leaves the blocks.

#include "store/copies.h"
#include "store/upkeep_private.h"
#include "upkeeps.h"

#define N_TITLES 10
#define N_BLOCKS 16

typedef struct {
  guint16 disk;
  guint n_most, n_all;
} OnDisk;

static gboolean
count_on_disk (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  const WeirIndex *index = weir_stored_title_get_index (title);
  OnDisk *on = data;
  guint n = 0;

  for (guint i = 0; i < index->n_blocks; i++) {
    for (guint j = 0; j < index->blocks[i].n_copies; j++)
      n += index->blocks[i].disks[j] == on->disk;
  }
  on->n_most = MAX (on->n_most, n);
  on->n_all += n;
  return TRUE;
}

// Adds a disk to four with titles of 16 blocks. No title has more than its share and two copies on
// the new disk.
static void
each_title_gives_its_share_to_a_new_disk (void)
{
  static const struct {
    WeirPlacementPolicy policy;
    guint copies;
  } cases[] = { { WEIR_PLACEMENT_RDA, 2 }, { WEIR_PLACEMENT_RANDOM, 1 } };

  for (guint run = 0; run < 6; run++) {
    const guint copies = cases[run % 2].copies, all = N_TITLES * N_BLOCKS * copies;
    TestStore t, more = test_folders (1);
    WeirBlockStore *store = test_store (&t, 4, cases[run % 2].policy);
    OnDisk on = { .disk = 4 };
    Seen seen = seen_new ();
    guint counts[8] = { 0 };

    for (guint i = 0; i < N_TITLES; i++) {
      g_autofree gchar *name = g_strdup_printf ("t%u", i);

      weir_stored_title_unref (test_title (store, name, N_BLOCKS, 100, i));
    }
    g_assert_true (weir_block_store_add_disk (store, more.disks[0], NULL, NULL));
    balance (store, &seen);
    expect_problems (&seen, 0, "");
    weir_block_store_list (store, count_on_disk, &on, NULL);
    weir_block_store_list (store, count_copies, counts, NULL);
    g_assert_cmpuint (on.n_most, <=, N_BLOCKS * copies / 5 + 2);
    for (guint i = 0; i < 5; i++)
      g_assert_cmpint (ABS ((gint) counts[i] - (gint) all / 5), <=, 2);
    expect_clean (store, &seen, N_TITLES);
    // There is nothing more to do.
    g_assert_cmpuint (balance (store, &seen).moved, ==, 0);
    seen_free (&seen);
    test_store_free (&t, store);
    test_store_free (&more, NULL);
  }
}

static void
repair_keeps_the_pairs_of_raid1 (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RAID1);
  Seen seen = seen_new ();
  guint before[8] = { 0 }, after[8] = { 0 };
  WeirUpkeepResult result;

  for (guint i = 0; i < 4; i++) {
    g_autofree gchar *name = g_strdup_printf ("t%u", i);

    weir_stored_title_unref (test_title (store, name, N_BLOCKS, 100, i));
  }
  weir_block_store_list (store, count_copies, before, NULL);
  test_remove_tree (t.disks[1]);
  result = repair (store, &seen);
  g_assert_cmpuint (result.bad_copies, ==, before[1]);
  g_assert_cmpuint (result.repaired, ==, 0);
  // One line says that the disk is missing, another why its copies are not written anew.
  if (before[1] > 0) {
    g_assert_nonnull (strstr (seen.problems->pdata[1], "stays on its pair of disks"));
    expect_problems (&seen, 2, "disk 1");
  }
  weir_block_store_list (store, count_copies, after, NULL);
  g_assert_cmpmem (before, sizeof before, after, sizeof after);
  seen_free (&seen);
  test_store_free (&t, store);
}

// Moves a copy as an older repair did.
static void
move (WeirBlockStore *store, WeirStoredTitle *title, guint number, guint16 to)
{
  const WeirIndexBlock *block = &weir_stored_title_get_index (title)->blocks[number];
  UpkeepMove move = { number, block->disks[number % 2], to };
  g_autofree guint8 *bytes = NULL;
  GError *error = NULL;
  gchar id[33];

  store_print_id (weir_stored_title_get_index (title)->id, id);
  bytes = copies_read (store, id, number, block, move.from, &error);
  g_assert_no_error (error);
  copies_write (store, id, number, to, bytes, block->length, TRUE, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (upkeep_commit (title, &move, 1, &error), ==, 1);
  g_assert_no_error (error);
}

static void
balance_puts_pairs_together_again (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RAID1);
  WeirStoredTitle *title = test_title (store, "a", N_BLOCKS, 100, 1);
  const guint16 pair = weir_stored_title_get_index (title)->blocks[0].disks[0] & 2;
  Seen seen = seen_new ();
  guint counts[8] = { 0 };

  for (guint i = 0; i < 5; i++)
    move (store, title, i, (guint16) ((pair ^ 2) + i / 2 % 2));
  weir_stored_title_unref (title);
  balance (store, &seen);
  expect_problems (&seen, 0, "");
  weir_block_store_list (store, count_copies, counts, NULL);
  g_assert_cmpuint (counts[pair], ==, N_BLOCKS);
  g_assert_cmpuint (counts[pair + 1], ==, N_BLOCKS);
  expect_clean (store, &seen, 1);
  seen_free (&seen);
  test_store_free (&t, store);
}

// Two disks are as many as the policy needs, so a dead one has no substitute.
static void
repair_says_why_copies_are_not_written_anew (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  Seen seen = seen_new ();

  weir_stored_title_unref (test_title (store, "a", 3, 100, 1));
  test_remove_tree (t.disks[1]);
  g_assert_cmpuint (repair (store, &seen).repaired, ==, 0);
  g_assert_nonnull (strstr (seen.problems->pdata[1], "no third disk can be used"));
  expect_problems (&seen, 2, "disk 1");
  seen_free (&seen);
  test_store_free (&t, store);
}

#define ADD(test) g_test_add_func ("/balance/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (each_title_gives_its_share_to_a_new_disk);
  ADD (repair_keeps_the_pairs_of_raid1);
  ADD (balance_puts_pairs_together_again);
  ADD (repair_says_why_copies_are_not_written_anew);
  return g_test_run ();
}
