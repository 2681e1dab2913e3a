// SPDX-License-Identifier: LGPL-2.1-or-later
// Indexes that are lost are made anew from their copies on the disks.

#include "upkeeps.h"

#define N_BLOCKS 8

static const gchar *const names[] = { "a", "films/b", "films/c" };

static void
add_titles (WeirBlockStore *store)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    weir_stored_title_unref (test_title (store, names[i], N_BLOCKS, BLOCK, i));
}

static gchar *
titles_of (const TestStore *t)
{
  return g_build_filename (t->dir, "titles", NULL);
}

static void
expect_restored (WeirBlockStore *store, Seen *seen, guint n)
{
  WeirUpkeepResult result = repair (store, seen);

  g_assert_cmpuint (result.restored, ==, n);
  expect_problems (seen, n, "its index was lost, and was made anew");
  g_assert_cmpuint (
      result.bad_copies + result.leftovers + result.unknown + result.bad_indexes, ==, 0);
  expect_clean (store, seen, G_N_ELEMENTS (names));
}

// Checks that the bytes of a title are what was written.
static void
expect_bytes (WeirBlockStore *store, const gchar *name, guint seed)
{
  WeirStoredTitle *title = weir_block_store_open_title (store, name, NULL);
  const WeirIndex *index = weir_stored_title_get_index (title);

  g_assert_cmpuint (index->bytes, ==, N_BLOCKS * BLOCK);
  g_assert_cmpuint ((guint64) index->duration_ns, ==, N_BLOCKS * SECOND);
  for (guint i = 0; i < N_BLOCKS; i++) {
    g_autofree gchar *path = weir_stored_title_dup_block_path (title, i, index->blocks[i].disks[0]);
    g_autofree gchar *bytes = NULL;

    g_assert_true (g_file_get_contents (path, &bytes, NULL, NULL));
    g_assert_cmpint ((guint8) bytes[7], ==, test_byte (seed, i * BLOCK + 7));
    g_assert_cmpint (index->blocks[i].time_ns, ==, i * SECOND);
  }
  weir_stored_title_unref (title);
}

static void
all_indexes_are_made_anew (void)
{
  static const WeirPlacementPolicy policies[] = { WEIR_PLACEMENT_RDA, WEIR_PLACEMENT_RAID1,
    WEIR_PLACEMENT_RANDOM, WEIR_PLACEMENT_RAID0, WEIR_PLACEMENT_NAIVE };

  for (guint c = 0; c < G_N_ELEMENTS (policies); c++) {
    TestStore t;
    WeirBlockStore *store = test_store (&t, 4, policies[c]);
    g_autofree gchar *titles = titles_of (&t), *adding = g_build_filename (t.dir, "adding", NULL);
    WeirUpkeepResult result;
    Seen seen = seen_new ();

    add_titles (store);
    test_remove_tree (titles);
    g_assert_cmpint (g_mkdir (titles, 0777), ==, 0);
    result = verify (store, &seen);
    g_assert_cmpuint (result.unknown, >, 0);
    expect_problems (&seen, 1, "files of 3 titles have no index; repair makes it anew");
    // Without its other folders, too.
    g_remove (titles);
    g_remove (adding);
    expect_restored (store, &seen, G_N_ELEMENTS (names));
    for (guint i = 0; i < G_N_ELEMENTS (names); i++)
      expect_bytes (store, names[i], i);
    seen_free (&seen);
    test_store_free (&t, store);
  }
}

static void
indexes_that_are_not_valid_are_made_anew (void)
{
  static const gssize lengths[] = { 0, 20, 100, -1 };
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  g_autofree gchar *path = g_build_filename (t.dir, "titles", "films", "b.index", NULL);
  Seen seen = seen_new ();

  add_titles (store);
  for (guint i = 0; i < G_N_ELEMENTS (lengths); i++) {
    g_autofree gchar *bytes = NULL;
    gsize length;

    g_assert_true (g_file_get_contents (path, &bytes, &length, NULL));
    bytes[length / 2] ^= 1;
    g_assert_true (
        g_file_set_contents (path, bytes, lengths[i] < 0 ? (gssize) length : lengths[i], NULL));
    expect_restored (store, &seen, 1);
    expect_bytes (store, names[1], 1);
  }
  seen_free (&seen);
  test_store_free (&t, store);
}

// Blocks were moved since the copies of the index were written, a disk was replaced, and a copy is
// lost.
static void
blocks_are_found_where_they_are_now (void)
{
  TestStore t, more = test_folders (2);
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  g_autofree gchar *titles = titles_of (&t);
  WeirStoredTitle *title;
  WeirUpkeepResult result;
  Seen seen = seen_new ();
  GError *error = NULL;

  add_titles (store);
  weir_block_store_add_disk (store, more.disks[0], NULL, &error);
  g_assert_no_error (error);
  balance (store, &seen);
  weir_block_store_remove_disk (store, t.disks[0], &error);
  g_assert_no_error (error);
  balance (store, &seen);
  weir_block_store_replace_disk (
      store, t.disks[1], more.disks[1], 0, note, &seen, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  expect_clean (store, &seen, G_N_ELEMENTS (names));
  title = weir_block_store_open_title (store, "a", NULL);
  damage (title, 3, 0, -1);
  weir_stored_title_unref (title);
  test_remove_tree (titles);
  result = repair (store, &seen);
  g_assert_cmpuint (result.restored, ==, G_N_ELEMENTS (names));
  g_assert_cmpuint (result.bad_copies, ==, 1);
  g_assert_cmpuint (result.repaired, ==, 1);
  g_ptr_array_set_size (seen.problems, 0);
  expect_clean (store, &seen, G_N_ELEMENTS (names));
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    expect_bytes (store, names[i], i);
  seen_free (&seen);
  test_store_free (&t, store);
  test_store_free (&more, NULL);
}

static void
a_removed_title_does_not_come_back (void)
{
  TestStore t, more = test_folders (1);
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  g_autofree gchar *path = g_build_filename (t.dir, "titles", "a.index", NULL);
  g_autofree gchar *away = g_strconcat (t.disks[1], ".away", NULL);
  Seen seen = seen_new ();
  WeirUpkeepResult result;
  GError *error = NULL;

  add_titles (store);
  g_assert_true (weir_block_store_remove_title (store, "a", NULL));
  // Nor does one whose index was not valid, or that was removed while a disk was away.
  g_assert_cmpint (g_rename (t.disks[1], away), ==, 0);
  g_assert_true (weir_block_store_remove_title (store, "films/b", NULL));
  g_assert_cmpint (g_rename (away, t.disks[1]), ==, 0);
  weir_stored_title_unref (test_title (store, "a", 3, BLOCK, 1));
  g_assert_true (g_file_set_contents (path, "half", 4, NULL));
  g_assert_true (weir_block_store_remove_title (store, "a", NULL));
  result = repair (store, &seen);
  g_assert_cmpuint (result.restored, ==, 0);
  g_assert_cmpuint (result.unknown, ==, 0);
  expect_problems (&seen, 0, "");
  expect_clean (store, &seen, 1);
  // Nor one whose blocks are on a disk that was replaced, and comes back.
  weir_block_store_replace_disk (
      store, t.disks[1], more.disks[0], 0, note, &seen, NULL, NULL, NULL, NULL);
  g_assert_true (weir_block_store_remove_title (store, "films/c", NULL));
  g_assert_false (weir_block_store_add_disk (store, t.disks[1], NULL, &error));
  g_assert_nonnull (
      strstr (error->message, "has blocks of a store; remove its folder blocks first"));
  g_clear_error (&error);
  expect_clean (store, &seen, 0);
  seen_free (&seen);
  test_store_free (&t, store);
  test_store_free (&more, NULL);
}

// As in a store that an older version has filled.
static void
copies_that_are_missing_are_written (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", N_BLOCKS, BLOCK, 0);
  g_autofree gchar *titles = titles_of (&t);
  Seen seen = seen_new ();
  WeirUpkeepResult result;

  for (guint copy = 0; copy < 2; copy++) {
    g_autofree gchar *path = path_of (title, 0, copy), *folder = g_path_get_dirname (path);
    g_autofree gchar *index = g_build_filename (folder, "index", NULL);

    if (copy == 0)
      g_assert_cmpint (g_remove (index), ==, 0);
    else
      g_assert_true (g_file_set_contents (index, "half", 4, NULL));
  }
  weir_stored_title_unref (title);
  result = verify (store, &seen);
  g_assert_cmpuint (result.bad_index_copies, ==, 2);
  expect_problems (&seen, 1, "2 disks have no good copy of its index; repair writes it");
  // Without a copy, nothing can be made anew, and nothing is removed.
  test_remove_tree (titles);
  result = repair (store, &seen);
  g_assert_cmpuint (result.unknown, ==, 2 * N_BLOCKS + 1);
  g_assert_cmpuint (result.restored, ==, 0);
  g_ptr_array_set_size (seen.problems, 0);
  seen_free (&seen);
  test_store_free (&t, store);

  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N_BLOCKS, BLOCK, 0);
  {
    g_autofree gchar *path = path_of (title, 0, 0), *folder = g_path_get_dirname (path);
    g_autofree gchar *index = g_build_filename (folder, "index", NULL);

    g_assert_cmpint (g_remove (index), ==, 0);
  }
  weir_stored_title_unref (title);
  seen = seen_new ();
  g_assert_cmpuint (repair (store, &seen).bad_index_copies, ==, 0);
  expect_clean (store, &seen, 1);
  seen_free (&seen);
  test_store_free (&t, store);
}

#define ADD(test) g_test_add_func ("/restoring/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (all_indexes_are_made_anew);
  ADD (indexes_that_are_not_valid_are_made_anew);
  ADD (blocks_are_found_where_they_are_now);
  ADD (a_removed_title_does_not_come_back);
  ADD (copies_that_are_missing_are_written);
  return g_test_run ();
}
