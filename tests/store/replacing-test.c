// SPDX-License-Identifier: LGPL-2.1-or-later
// A disk is replaced.

#include "upkeeps.h"

#define N_TITLES 4
#define N_BLOCKS 12

static WeirBlockStore *
make (TestStore *t, guint n_disks, WeirPlacementPolicy policy)
{
  WeirBlockStore *store = test_store (t, n_disks, policy);

  for (guint i = 0; i < N_TITLES; i++) {
    g_autofree gchar *name = g_strdup_printf ("t%u", i);

    weir_stored_title_unref (test_title (store, name, N_BLOCKS, BLOCK, i));
  }
  return store;
}

// Counts the files of blocks below a folder.
static guint
count_files (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  const gchar *name;
  guint n = 0;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *below = g_build_filename (path, name, NULL);

    n += g_file_test (below, G_FILE_TEST_IS_DIR) ? count_files (below) : strlen (name) == 8;
  }
  if (dir)
    g_dir_close (dir);
  return n;
}

static WeirUpkeepResult
replace (WeirBlockStore *store, const gchar *old, const gchar *path, Seen *seen)
{
  WeirUpkeepResult result;
  GError *error = NULL;

  weir_block_store_replace_disk (store, old, path, 0, note, seen, NULL, &result, NULL, &error);
  g_assert_no_error (error);
  return result;
}

// Empties the folder of a disk, as if another one were mounted there.
static void
empty (const gchar *path)
{
  test_remove_tree (path);
  g_assert_cmpint (g_mkdir (path, 0777), ==, 0);
}

static const WeirPlacementPolicy two_copies[] = { WEIR_PLACEMENT_RDA, WEIR_PLACEMENT_RAID1 };

// Of two disks and of four; at the path of the dead one and at another.
static void
a_dead_disk_is_replaced (void)
{
  for (guint c = 0; c < 8; c++) {
    TestStore t, more = test_folders (1);
    WeirBlockStore *store = make (&t, c & 1 ? 2 : 4, two_copies[c >> 1 & 1]);
    const gchar *path = c & 4 ? more.disks[0] : t.disks[1];
    guint before[8] = { 0 }, after[8] = { 0 };
    WeirStoreDisk disks[8];
    Seen seen = seen_new ();
    WeirUpkeepResult result;

    weir_block_store_list (store, count_copies, before, NULL);
    empty (t.disks[1]);
    result = replace (store, t.disks[1], path, &seen);
    expect_problems (&seen, 0, "");
    // Each copy was written once, on the new disk, and none elsewhere.
    g_assert_cmpuint (result.moved, ==, before[1]);
    g_assert_cmpuint (count_files (path), ==, before[1]);
    weir_block_store_list (store, count_copies, after, NULL);
    g_assert_cmpmem (before, sizeof before, after, sizeof after);
    weir_block_store_get_disks (store, disks, 8);
    g_assert_cmpstr (disks[1].path, ==, path);
    g_assert_true (disks[1].present);
    expect_clean (store, &seen, N_TITLES);
    // Again, there is nothing to do, by the old path and by the new one.
    g_assert_cmpuint (replace (store, t.disks[1], path, &seen).moved, ==, 0);
    g_assert_cmpuint (replace (store, path, path, &seen).moved, ==, 0);
    seen_free (&seen);
    test_store_free (&t, store);
    test_store_free (&more, NULL);
  }
}

static void
a_disk_that_is_there_is_used_until_its_copies_are_on_the_new_one (void)
{
  static const WeirPlacementPolicy policies[] = { WEIR_PLACEMENT_RDA, WEIR_PLACEMENT_RAID1,
    WEIR_PLACEMENT_RANDOM, WEIR_PLACEMENT_RAID0, WEIR_PLACEMENT_NAIVE };

  for (guint c = 0; c < G_N_ELEMENTS (policies); c++) {
    TestStore t, more = test_folders (1);
    WeirBlockStore *store = make (&t, 4, policies[c]);
    WeirTitleWriter *writer = test_begin (store, "late", 8, BLOCK, 9);
    g_autofree gchar *mark = g_build_filename (t.disks[0], "weir-disk", NULL);
    guint counts[8] = { 0 };
    GCancellable *cancellable = g_cancellable_new ();
    Seen seen = seen_new ();
    GError *error = NULL;

    weir_block_store_list (store, count_copies, counts, NULL);
    // While a title is being added, the old disk stays: the call waits, and is ended here.
    seen.cancellable = cancellable;
    seen.cancel_after = counts[0] + 1;
    g_assert_false (weir_block_store_replace_disk (
        store, t.disks[0], more.disks[0], 0, note, &seen, cancellable, NULL, NULL, &error));
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_clear_error (&error);
    g_object_unref (cancellable);
    seen.cancel_after = 0;
    g_assert_true (g_file_test (mark, G_FILE_TEST_EXISTS));
    weir_title_writer_finish (writer, 0, 8 * SECOND, &error);
    g_assert_no_error (error);
    weir_title_writer_free (writer);
    g_ptr_array_set_size (seen.problems, 0);

    replace (store, t.disks[0], more.disks[0], &seen);
    expect_problems (&seen, 0, "");
    memset (counts, 0, sizeof counts);
    weir_block_store_list (store, count_copies, counts, NULL);
    g_assert_cmpuint (count_files (more.disks[0]), ==, counts[0]);
    g_assert_false (g_file_test (mark, G_FILE_TEST_EXISTS));
    expect_clean (store, &seen, N_TITLES + 1);
    seen_free (&seen);
    test_store_free (&t, store);
    test_store_free (&more, NULL);
  }
}

static void
what_the_old_disk_cannot_give_comes_from_the_other_copies (void)
{
  TestStore t, more = test_folders (1);
  WeirBlockStore *store = make (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = weir_block_store_open_title (store, "t1", NULL);
  const WeirIndex *index = weir_stored_title_get_index (title);
  Seen seen = seen_new ();

  for (guint i = 0; i < index->n_blocks; i += 2) {
    for (guint j = 0; j < 2; j++) {
      if (index->blocks[i].disks[j] == 0)
        damage (title, i, j, i % 4 ? -1 : BLOCK);
    }
  }
  weir_stored_title_unref (title);
  g_assert_cmpuint (replace (store, t.disks[0], more.disks[0], &seen).lost_blocks, ==, 0);
  expect_problems (&seen, 0, "");
  expect_clean (store, &seen, N_TITLES);
  seen_free (&seen);
  test_store_free (&t, store);
  test_store_free (&more, NULL);
}

static void
blocks_without_another_copy_are_counted (void)
{
  TestStore t;
  WeirBlockStore *store = make (&t, 3, WEIR_PLACEMENT_RAID0);
  Seen seen = seen_new ();
  guint counts[8] = { 0 };

  weir_block_store_list (store, count_copies, counts, NULL);
  empty (t.disks[1]);
  g_assert_cmpuint (replace (store, t.disks[1], t.disks[1], &seen).lost_blocks, ==, counts[1]);
  expect_problems (&seen, N_TITLES, "blocks have no good copy");
  seen_free (&seen);
  test_store_free (&t, store);
}

static void
what_is_no_place_for_a_disk_is_refused (void)
{
  TestStore t, other, more = test_folders (1);
  WeirBlockStore *store = make (&t, 3, WEIR_PLACEMENT_RDA);
  WeirBlockStore *others = test_store (&other, 2, WEIR_PLACEMENT_RDA);
  g_autofree gchar *inside = g_build_filename (t.disks[0], "blocks", NULL);
  g_autofree gchar *none = g_build_filename (t.top, "none", NULL);
  const struct {
    const gchar *old, *path, *text;
  } cases[] = {
    { "/nowhere", more.disks[0], "has no disk /nowhere" },
    { t.disks[1], none,
        "does not exist; a disk is the path of a folder on it: make it (mkdir -p " },
    { t.disks[1], t.disks[0], "is a disk of a store already" },
    { t.disks[1], other.disks[0], "is a disk of a store already" },
    { t.disks[1], t.dir, "lies in the store's own folder" },
    { t.disks[1], inside, "a disk cannot lie in another one" },
  };
  Seen seen = seen_new ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GError *error = NULL;

    g_assert_false (weir_block_store_replace_disk (
        store, cases[i].old, cases[i].path, 0, NULL, NULL, NULL, NULL, NULL, &error));
    if (!strstr (error->message, cases[i].text))
      g_error ("%s", error->message);
    g_error_free (error);
  }
  expect_clean (store, &seen, N_TITLES);
  seen_free (&seen);
  test_store_free (&other, others);
  test_store_free (&more, NULL);
  test_store_free (&t, store);
}

#define ADD(test) g_test_add_func ("/replacing/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_dead_disk_is_replaced);
  ADD (a_disk_that_is_there_is_used_until_its_copies_are_on_the_new_one);
  ADD (what_the_old_disk_cannot_give_comes_from_the_other_copies);
  ADD (blocks_without_another_copy_are_counted);
  ADD (what_is_no_place_for_a_disk_is_refused);
  return g_test_run ();
}
