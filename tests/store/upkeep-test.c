// SPDX-License-Identifier: LGPL-2.1-or-later
#include "upkeeps.h"

static void
a_good_store_verifies_clean (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  Seen seen = seen_new ();
  WeirUpkeepResult result;

  weir_stored_title_unref (test_title (store, "a", 10, BLOCK, 0));
  weir_stored_title_unref (test_title (store, "b/c", 5, BLOCK, 0));
  expect_clean (store, &seen, 2);
  result = verify (store, &seen);
  g_assert_cmpuint (result.blocks, ==, 15);
  g_assert_cmpuint (result.copies, ==, 30);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
bad_copies_are_found_and_repaired (void)
{
  static const gssize lengths[] = { -1, 0, BLOCK - 1, BLOCK, BLOCK + 0 };
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 10, BLOCK, 0);
  Seen seen = seen_new ();
  WeirUpkeepResult result;

  for (guint i = 0; i < G_N_ELEMENTS (lengths); i++)
    damage (title, i, i % 2, lengths[i]);
  result = verify (store, &seen);
  g_assert_cmpuint (result.bad_copies, ==, 5);
  g_assert_cmpuint (result.lost_blocks, ==, 0);
  expect_problems (&seen, 5, "No such file or directory; the other copy is good");
  result = repair (store, &seen);
  g_assert_cmpuint (result.repaired, ==, 5);
  expect_problems (&seen, 5, "; written anew");
  expect_clean (store, &seen, 1);
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
a_block_without_a_good_copy_is_lost_and_the_rest_repaired (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 10, BLOCK, 0);
  Seen seen = seen_new ();
  WeirUpkeepResult result;

  damage (title, 3, 0, BLOCK);
  damage (title, 3, 1, BLOCK);
  damage (title, 4, 1, BLOCK);
  result = repair (store, &seen);
  g_assert_cmpuint (result.bad_copies, ==, 3);
  g_assert_cmpuint (result.lost_blocks, ==, 1);
  g_assert_cmpuint (result.repaired, ==, 1);
  expect_problems (&seen, 3, "the hash of its bytes is wrong; no good copy is left");
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
copies_of_a_disk_that_is_gone_are_written_elsewhere (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 40, BLOCK, 0);
  Seen seen = seen_new ();
  WeirUpkeepResult result;
  guint before[8] = { 0 }, after[8] = { 0 };

  weir_block_store_list (store, count_copies, before, NULL);
  test_remove_tree (t.disks[2]);
  g_assert_cmpint (g_mkdir (t.disks[2], 0777), ==, 0); // as an empty mount point
  result = repair (store, &seen);
  expect_problems (&seen, 1, "disk 2");
  g_assert_cmpuint (result.repaired, ==, before[2]);
  weir_block_store_list (store, count_copies, after, NULL);
  g_assert_cmpuint (after[2], ==, 0);
  g_assert_cmpuint (after[0] + after[1] + after[3], ==, 80);
  result = verify (store, &seen);
  expect_problems (&seen, 1, "disk 2"); // which is missing still
  g_assert_cmpuint (result.bad_copies, ==, 0);
  g_assert_cmpuint (result.missing_disks, ==, 1);
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
one_block_is_repaired_for_a_reader (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 3, BLOCK, 0);
  const WeirIndexBlock *block = &weir_stored_title_get_index (title)->blocks[1];
  Seen seen = seen_new ();
  GError *error = NULL;

  damage (title, 1, 1, BLOCK);
  g_assert_true (weir_block_store_repair_block (title, 1, block->disks[1], &error));
  g_assert_no_error (error);
  expect_clean (store, &seen, 1);
  // A disk without a copy of the block needs no repair.
  g_assert_true (weir_block_store_repair_block (
      title, 1, (guint16) (3 - block->disks[0] - block->disks[1]), &error));
  damage (title, 1, 0, BLOCK);
  damage (title, 1, 1, BLOCK);
  g_assert_false (weir_block_store_repair_block (title, 1, block->disks[1], &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT);
  g_error_free (error);
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
leftovers_are_found_and_removed (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 3, BLOCK, 0);
  WeirTitleWriter *writer = test_begin (store, "b", 3, BLOCK, 0);
  const WeirIndexBlock *block = &weir_stored_title_get_index (title)->blocks[1];
  guint16 third = (guint16) (3 - block->disks[0] - block->disks[1]);
  g_autofree gchar *stray = g_build_filename (t.disks[1], "blocks", "0badid", NULL);
  g_autofree gchar *file = g_build_filename (stray, "00000000", NULL);
  g_autofree gchar *moved = weir_stored_title_dup_block_path (title, 1, third);
  g_autofree gchar *part = g_strconcat (moved, ".part", NULL);
  g_autofree gchar *folder = g_path_get_dirname (moved);
  Seen seen = seen_new ();
  WeirUpkeepResult result;

  g_assert_cmpint (g_mkdir (stray, 0777), ==, 0);
  g_assert_true (g_file_set_contents (file, "x", 1, NULL));
  g_mkdir (folder, 0777); // the disk may have another block of the title
  g_assert_true (g_file_set_contents (moved, "x", 1, NULL));
  g_assert_true (g_file_set_contents (part, "x", 1, NULL));
  result = verify (store, &seen);
  g_assert_cmpuint (result.leftovers, ==, 2);
  g_assert_cmpuint (result.unknown, ==, 1);
  expect_problems (&seen, 1, "1 files of 1 titles have no index; repair makes it anew");
  // The index of a title may be lost, so its blocks stay.
  result = repair (store, &seen);
  g_assert_cmpuint (result.leftovers, ==, 2);
  g_assert_cmpuint (result.unknown, ==, 1);
  expect_problems (
      &seen, 1, "no disk has a copy of it, so they stay; repair --forget removes them");
  g_assert_true (g_file_test (file, G_FILE_TEST_EXISTS));
  weir_block_store_repair (store, NULL, 0, TRUE, note, &seen, NULL, &result, NULL);
  g_assert_cmpuint (result.leftovers, ==, 1);
  g_assert_false (g_file_test (stray, G_FILE_TEST_EXISTS));
  expect_problems (&seen, 0, "");
  // The blocks of a title that is being added are none.
  g_assert_true (weir_title_writer_finish (writer, 1, SECOND, NULL));
  weir_title_writer_free (writer);
  expect_clean (store, &seen, 2);
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
a_removed_title_leaves_nothing (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "x/y/a", 3, BLOCK, 0);
  g_autofree gchar *folder = g_build_filename (t.dir, "titles", "x", NULL);
  Seen seen = seen_new ();
  guint16 disks[2];
  GError *error = NULL;

  weir_stored_title_unref (test_title (store, "b", 3, BLOCK, 0));
  g_assert_true (weir_block_store_remove_title (store, "x/y/a", &error));
  g_assert_false (g_file_test (folder, G_FILE_TEST_EXISTS));
  g_assert_cmpuint (weir_stored_title_find_copies (title, 0, disks, &error), ==, 0);
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  expect_clean (store, &seen, 1);
  g_assert_false (weir_block_store_remove_title (store, "x/y/a", &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  // One of the same name is another title.
  weir_stored_title_unref (test_title (store, "x/y/a", 3, BLOCK, 1));
  g_assert_cmpuint (weir_stored_title_find_copies (title, 0, disks, &error), ==, 0);
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
expect_even (WeirBlockStore *store, guint n_disks, guint n_copies, guint most_apart)
{
  guint counts[8] = { 0 }, least = G_MAXUINT, most = 0, sum = 0;

  weir_block_store_list (store, count_copies, counts, NULL);
  for (guint i = 0; i < n_disks; i++) {
    least = MIN (least, counts[i]);
    most = MAX (most, counts[i]);
    sum += counts[i];
  }
  g_assert_cmpuint (sum, ==, n_copies);
  g_assert_cmpuint (most - least, <=, most_apart);
}

static void
a_new_disk_gets_its_share (void)
{
  static const struct {
    WeirPlacementPolicy policy;
    guint copies, apart;
  } cases[] = { { WEIR_PLACEMENT_RDA, 480, 2 }, { WEIR_PLACEMENT_RANDOM, 240, 2 },
    { WEIR_PLACEMENT_RAID0, 240, 8 }, { WEIR_PLACEMENT_NAIVE, 240, 60 } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    TestStore t, more = test_folders (1);
    WeirBlockStore *store = test_store (&t, 3, cases[i].policy);
    WeirStoredTitle *title = test_title (store, "a", 30, BLOCK, 5);
    g_autofree gchar *warning = NULL, *path = NULL, *bytes = NULL;
    Seen seen = seen_new ();
    guint16 disks[2];
    gsize length;

    for (guint j = 1; j < 8; j++) {
      g_autofree gchar *name = g_strdup_printf ("t%u", j);
      weir_stored_title_unref (test_title (store, name, 30, BLOCK, j));
    }
    g_assert_true (weir_block_store_add_disk (store, more.disks[0], &warning, NULL));
    g_assert_nonnull (strstr (warning, "on one device"));
    balance (store, &seen);
    expect_problems (&seen, 0, "");
    expect_even (store, 4, cases[i].copies, cases[i].apart);
    expect_clean (store, &seen, 8);
    // Who opened the title before finds each block.
    for (guint j = 0; j < 30; j++) {
      g_assert_cmpuint (weir_stored_title_find_copies (title, j, disks, NULL), >, 0);
      path = weir_stored_title_dup_block_path (title, j, disks[0]);
      g_assert_true (g_file_get_contents (path, &bytes, &length, NULL));
      g_assert_cmpint ((guint8) bytes[9], ==, test_byte (5, j * BLOCK + 9));
      g_clear_pointer (&path, g_free);
      g_clear_pointer (&bytes, g_free);
    }
    weir_stored_title_unref (title);
    seen_free (&seen);
    test_store_free (&t, store);
    test_store_free (&more, NULL);
  }
}

static void
a_disk_that_is_removed_is_emptied_and_leaves (void)
{
  static const WeirPlacementPolicy policies[] = { WEIR_PLACEMENT_RDA, WEIR_PLACEMENT_RAID0,
    WEIR_PLACEMENT_NAIVE };

  for (guint i = 0; i < G_N_ELEMENTS (policies); i++) {
    TestStore t;
    WeirBlockStore *store = test_store (&t, 4, policies[i]);
    Seen seen = seen_new ();
    WeirStoreDisk disks[8];
    g_autofree gchar *mark = g_build_filename (t.disks[1], "weir-disk", NULL);
    guint counts[8] = { 0 };

    for (guint j = 0; j < 8; j++) {
      g_autofree gchar *name = g_strdup_printf ("t%u", j);
      weir_stored_title_unref (test_title (store, name, 10, BLOCK, j));
    }
    g_assert_true (weir_block_store_remove_disk (store, t.disks[1], NULL));
    g_assert_cmpuint (weir_block_store_get_disks (store, disks, 8), ==, 4);
    g_assert_true (disks[1].removing);
    balance (store, &seen);
    expect_problems (&seen, 0, "");
    weir_block_store_list (store, count_copies, counts, NULL);
    g_assert_cmpuint (counts[1], ==, 0);
    g_assert_cmpuint (weir_block_store_get_disks (store, disks, 8), ==, 3);
    g_assert_cmpuint (disks[1].number, ==, 2);
    g_assert_false (g_file_test (mark, G_FILE_TEST_EXISTS));
    expect_clean (store, &seen, 8);
    seen_free (&seen);
    test_store_free (&t, store);
  }
}

static void
a_dead_disk_is_removed_by_copies_of_its_blocks (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  Seen seen = seen_new ();
  WeirStoreDisk disks[8];

  weir_stored_title_unref (test_title (store, "a", 30, BLOCK, 0));
  test_remove_tree (t.disks[3]);
  g_assert_true (weir_block_store_remove_disk (store, t.disks[3], NULL));
  balance (store, &seen);
  g_assert_cmpuint (weir_block_store_get_disks (store, disks, 8), ==, 3);
  expect_clean (store, &seen, 1);
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
raid1_titles_move_as_pairs (void)
{
  TestStore t, more = test_folders (2);
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RAID1);
  Seen seen = seen_new ();
  guint counts[8] = { 0 };

  for (guint j = 0; j < 8; j++) {
    g_autofree gchar *name = g_strdup_printf ("t%u", j);
    weir_stored_title_unref (test_title (store, name, 10, BLOCK, j));
  }
  for (guint j = 0; j < 2; j++)
    g_assert_true (weir_block_store_add_disk (store, more.disks[j], NULL, NULL));
  balance (store, &seen);
  weir_block_store_list (store, count_copies, counts, NULL);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpuint (counts[i], ==, 40);
  expect_clean (store, &seen, 8);
  seen_free (&seen);
  test_store_free (&t, store);
  test_store_free (&more, NULL);
}

static void
a_disk_that_the_policy_needs_is_not_removed (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  GError *error = NULL;

  g_assert_false (weir_block_store_remove_disk (store, t.disks[0], &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK);
  g_assert_nonnull (strstr (error->message, "policy rda needs more disks"));
  g_clear_error (&error);
  g_assert_false (weir_block_store_remove_disk (store, "/nowhere", &error));
  g_assert_nonnull (strstr (error->message, "has no disk /nowhere"));
  g_clear_error (&error);
  g_assert_false (weir_block_store_add_disk (store, t.disks[0], NULL, &error));
  g_assert_nonnull (strstr (error->message, "is a disk of a store already"));
  g_clear_error (&error);
  test_store_free (&t, store);
}

static void
work_that_is_cancelled_loses_nothing (void)
{
  TestStore t, more = test_folders (1);
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RANDOM);
  WeirUpkeepResult result;
  GError *error = NULL;

  weir_stored_title_unref (test_title (store, "a", 60, BLOCK, 0));
  g_assert_true (weir_block_store_add_disk (store, more.disks[0], NULL, NULL));
  for (guint n = 1; n < 8; n++) {
    Seen seen = seen_new ();

    seen.cancellable = g_cancellable_new ();
    seen.cancel_after = n;
    weir_block_store_balance (store, 0, note, &seen, seen.cancellable, &result, &error);
    if (error)
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_clear_error (&error);
    g_object_unref (seen.cancellable);
    seen.cancel_after = 0;
    expect_clean (store, &seen, 1);
    seen_free (&seen);
  }
  test_store_free (&t, store);
  test_store_free (&more, NULL);
}

static void
repair_keeps_its_rate (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 10, BLOCK, 0);
  Seen seen = seen_new ();
  gint64 before;
  WeirUpkeepResult result;

  for (guint i = 0; i < 10; i++)
    damage (title, i, 0, -1);
  before = g_get_monotonic_time ();
  g_assert_true (weir_block_store_repair (
      store, NULL, 10 * BLOCK * 4, FALSE, note, &seen, NULL, &result, NULL));
  g_assert_cmpint (g_get_monotonic_time () - before, >=, 250000);
  g_assert_cmpuint (result.repaired, ==, 10);
  weir_stored_title_unref (title);
  seen_free (&seen);
  test_store_free (&t, store);
}

// The other disk takes the copy, but the index cannot be written.
static void
a_repair_that_fails_says_so_without_an_error (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 1, BLOCK, 1);
  const guint16 bad = weir_stored_title_get_index (title)->blocks[0].disks[0];
  g_autofree gchar *lock = g_build_filename (t.dir, "lock", NULL);

  test_remove_tree (t.disks[bad]);
  g_assert_cmpint (g_remove (lock), ==, 0);
  g_assert_cmpint (g_mkdir (lock, 0777), ==, 0);
  g_assert_false (weir_block_store_repair_block (title, 0, bad, NULL));
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

#define ADD(test) g_test_add_func ("/upkeep/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_good_store_verifies_clean);
  ADD (bad_copies_are_found_and_repaired);
  ADD (a_block_without_a_good_copy_is_lost_and_the_rest_repaired);
  ADD (copies_of_a_disk_that_is_gone_are_written_elsewhere);
  ADD (one_block_is_repaired_for_a_reader);
  ADD (leftovers_are_found_and_removed);
  ADD (a_removed_title_leaves_nothing);
  ADD (a_new_disk_gets_its_share);
  ADD (a_disk_that_is_removed_is_emptied_and_leaves);
  ADD (a_dead_disk_is_removed_by_copies_of_its_blocks);
  ADD (raid1_titles_move_as_pairs);
  ADD (a_disk_that_the_policy_needs_is_not_removed);
  ADD (work_that_is_cancelled_loses_nothing);
  ADD (repair_keeps_its_rate);
  ADD (a_repair_that_fails_says_so_without_an_error);
  return g_test_run ();
}
