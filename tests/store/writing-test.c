// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/writing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <xxhash.h>

#include "stores.h"

#define BLOCK 10000

// Counts the files below a folder, without the copies of indexes.
static guint
count_files (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  const gchar *name;
  guint n = 0;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *below = g_build_filename (path, name, NULL);

    n += g_file_test (below, G_FILE_TEST_IS_DIR) ? count_files (below)
                                                 : !g_str_equal (name, "index");
  }
  if (dir)
    g_dir_close (dir);
  return n;
}

static guint
count_blocks (const TestStore *t)
{
  guint n = 0;

  for (guint i = 0; t->disks[i]; i++) {
    g_autofree gchar *blocks = g_build_filename (t->disks[i], "blocks", NULL);

    n += count_files (blocks);
  }
  return n;
}

static guint
count_adding (const TestStore *t)
{
  g_autofree gchar *adding = g_build_filename (t->dir, "adding", NULL);

  return count_files (adding);
}

static void
expect_bytes (const gchar *path, guint seed, guint64 at, gsize length)
{
  g_autofree gchar *bytes = NULL;
  gsize n;

  g_assert_true (g_file_get_contents (path, &bytes, &n, NULL));
  g_assert_cmpuint (n, ==, length);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpint ((guint8) bytes[i], ==, test_byte (seed, at + i));
}

static void
a_title_is_written_and_its_files_are_there (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "films/one.ts", 20, BLOCK, 7);
  const WeirIndex *index = weir_stored_title_get_index (title);

  g_assert_cmpstr (index->name, ==, "films/one.ts");
  g_assert_cmpstr (index->caps, ==, "video/test");
  g_assert_cmpuint (index->rate, ==, BLOCK * 8);
  g_assert_cmpint (index->duration_ns, ==, 20 * SECOND);
  g_assert_cmpint (index->slice_ns, ==, SECOND);
  g_assert_cmpuint (index->bytes, ==, 20 * BLOCK);
  g_assert_cmpuint (index->n_blocks, ==, 20);
  for (guint i = 0; i < index->n_blocks; i++) {
    g_assert_cmpuint (index->blocks[i].n_copies, ==, 2);
    for (guint j = 0; j < 2; j++) {
      g_autofree gchar *path =
          weir_stored_title_dup_block_path (title, i, index->blocks[i].disks[j]);

      g_assert_true (g_str_has_prefix (path, t.disks[index->blocks[i].disks[j]]));
      expect_bytes (path, 7, i * BLOCK, BLOCK);
    }
  }
  g_assert_cmpuint (count_blocks (&t), ==, 40);
  g_assert_cmpuint (count_adding (&t), ==, 0);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_table_follows_the_bytes_of_a_block (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  WeirTitleWriter *writer = weir_title_writer_new (store, "a", NULL, 0, NULL);
  g_autofree gchar *path = NULL;
  guint8 bytes[100 + 64];
  WeirStoredTitle *title;
  const WeirIndexBlock *block;

  test_fill (bytes, sizeof bytes, 1, 0);
  g_assert_true (weir_title_writer_add_block (writer, bytes, 100, 64, -5, 0, NULL));
  g_assert_true (weir_title_writer_finish (writer, 12345, WEIR_INDEX_NO_TIME, NULL));
  weir_title_writer_free (writer);
  title = weir_block_store_open_title (store, "a", NULL);
  block = weir_stored_title_get_index (title)->blocks;
  g_assert_cmpuint (block->length, ==, 100);
  g_assert_cmpuint (block->table_length, ==, 64);
  g_assert_cmpint (block->time_ns, ==, -5);
  g_assert_cmpuint (block->hash, ==, XXH3_64bits (bytes, sizeof bytes));
  g_assert_cmpuint (weir_stored_title_get_index (title)->rate, ==, 12345);
  path = weir_stored_title_dup_block_path (title, 0, block->disks[0]);
  expect_bytes (path, 1, 0, sizeof bytes);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_title_is_not_seen_before_it_is_finished (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirTitleWriter *writer = test_begin (store, "a", 5, BLOCK, 0);
  GError *error = NULL;

  g_assert_null (weir_block_store_open_title (store, "a", &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
  g_error_free (error);
  g_assert_cmpuint (count_blocks (&t), ==, 10);
  weir_title_writer_free (writer);
  g_assert_cmpuint (count_blocks (&t), ==, 0);
  g_assert_cmpuint (count_adding (&t), ==, 0);
  test_store_free (&t, store);
}

static void
of_two_writers_of_a_name_the_second_to_finish_fails (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirTitleWriter *one = test_begin (store, "a", 5, BLOCK, 1);
  WeirTitleWriter *two = test_begin (store, "a", 5, BLOCK, 2);
  GError *error = NULL;
  WeirStoredTitle *title;
  g_autofree gchar *path = NULL;

  g_assert_true (weir_title_writer_finish (two, 1, SECOND, NULL));
  g_assert_false (weir_title_writer_finish (one, 1, SECOND, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_EXISTS);
  g_clear_error (&error);
  weir_title_writer_free (one);
  weir_title_writer_free (two);
  g_assert_cmpuint (count_blocks (&t), ==, 10);
  title = weir_block_store_open_title (store, "a", NULL);
  path = weir_stored_title_dup_block_path (title, 4, 1);
  expect_bytes (path, 2, 4 * BLOCK, BLOCK);
  weir_stored_title_unref (title);
  g_assert_null (weir_title_writer_new (store, "a", NULL, 0, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_EXISTS);
  g_error_free (error);
  test_store_free (&t, store);
}

// What a killed writer leaves: a file in adding/ that nobody has locked, and blocks.
static void
what_a_killed_writer_left_is_removed_by_the_next (void)
{
  static const gchar id[] = "00112233445566778899aabbccddeeff";
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirTitleWriter *other = test_begin (store, "other", 3, BLOCK, 0);
  g_autofree gchar *adding = g_build_filename (t.dir, "adding", id, NULL);
  g_autofree gchar *part = g_strconcat (adding, ".index", NULL);
  g_autofree gchar *folder = g_build_filename (t.disks[1], "blocks", id, NULL);
  g_autofree gchar *block = g_build_filename (folder, "00000000.part", NULL);

  g_assert_true (g_file_set_contents (adding, "name", -1, NULL));
  g_assert_true (g_file_set_contents (part, "half", -1, NULL));
  g_assert_cmpint (g_mkdir (folder, 0777), ==, 0);
  g_assert_true (g_file_set_contents (block, "half", -1, NULL));
  weir_stored_title_unref (test_title (store, "a", 1, BLOCK, 0));
  g_assert_false (g_file_test (folder, G_FILE_TEST_EXISTS));
  g_assert_false (g_file_test (adding, G_FILE_TEST_EXISTS));
  g_assert_false (g_file_test (part, G_FILE_TEST_EXISTS));
  // The writer that lives has lost nothing.
  g_assert_true (weir_title_writer_finish (other, 1, SECOND, NULL));
  weir_title_writer_free (other);
  g_assert_cmpuint (count_blocks (&t), ==, 8);
  test_store_free (&t, store);
}

static void
a_writer_killed_after_its_index_was_written_loses_nothing (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 3, BLOCK, 0);
  g_autofree gchar *block = weir_stored_title_dup_block_path (title, 0, 0);
  g_autofree gchar *folder = g_path_get_dirname (block), *id = g_path_get_basename (folder);
  g_autofree gchar *adding = g_build_filename (t.dir, "adding", id, NULL);

  g_assert_true (g_file_set_contents (adding, "a", -1, NULL));
  weir_stored_title_unref (test_title (store, "b", 3, BLOCK, 0));
  g_assert_cmpuint (count_adding (&t), ==, 0);
  g_assert_cmpuint (count_blocks (&t), ==, 12);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
too_large_a_title_is_refused_before_anything_is_written (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  GError *error = NULL;

  g_assert_null (weir_title_writer_new (store, "a", NULL, G_GUINT64_CONSTANT (1) << 55, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE);
  g_clear_error (&error);
  g_assert_null (weir_title_writer_new (store, "a", NULL, G_MAXUINT64, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE);
  g_clear_error (&error);
  g_assert_cmpuint (count_adding (&t) + count_blocks (&t), ==, 0);
  test_store_free (&t, store);
}

static void
names_that_leave_the_store_are_refused (void)
{
  static const gchar *const names[] = { "../a", "a/../../b", "/etc/a", "", "a//b", "\xff" };
  TestStore t;
  WeirBlockStore *store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GError *error = NULL;

    g_assert_null (weir_title_writer_new (store, names[i], NULL, 0, &error));
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NAME);
    g_clear_error (&error);
    g_assert_null (weir_block_store_open_title (store, names[i], &error));
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NAME);
    g_error_free (error);
  }
  test_store_free (&t, store);
}

static void
a_disk_that_fails_gets_no_more_blocks (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  g_autofree gchar *blocks = g_build_filename (t.disks[2], "blocks", NULL);
  WeirStoredTitle *title;
  const WeirIndex *index;

  // A file in the place of the folder: all writes fail, for root, too.
  g_assert_cmpint (g_rmdir (blocks), ==, 0);
  g_assert_true (g_file_set_contents (blocks, "", 0, NULL));
  title = test_title (store, "a", 30, BLOCK, 0);
  index = weir_stored_title_get_index (title);
  for (guint i = 0; i < index->n_blocks; i++)
    g_assert_true (index->blocks[i].disks[0] != 2 && index->blocks[i].disks[1] != 2);
  g_assert_cmpuint (count_blocks (&t), ==, 60);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_missing_disk_is_no_error_unless_it_is_needed (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  g_autofree gchar *mark = g_build_filename (t.disks[0], "weir-disk", NULL);
  g_autofree gchar *mark2 = g_build_filename (t.disks[1], "weir-disk", NULL);
  WeirStoreDisk disks[8];
  GError *error = NULL;

  g_assert_cmpint (g_remove (mark), ==, 0);
  g_assert_cmpuint (weir_block_store_get_disks (store, disks, 8), ==, 3);
  g_assert_false (disks[0].present);
  g_assert_true (disks[1].present && disks[1].free_bytes > 0);
  weir_stored_title_unref (test_title (store, "a", 3, BLOCK, 0));
  g_assert_cmpint (g_remove (mark2), ==, 0);
  g_assert_null (weir_title_writer_new (store, "b", NULL, 0, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK);
  g_error_free (error);
  test_store_free (&t, store);
}

static void
users_of_one_store_share_it_and_its_titles (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA), *other;
  WeirStoredTitle *title = test_title (store, "a", 3, BLOCK, 0), *again;
  g_autofree gchar *link = g_build_filename (t.top, "link", NULL);

  g_assert_cmpint (symlink (t.dir, link), ==, 0);
  other = weir_block_store_open (link, NULL);
  g_assert_true (other == store);
  again = weir_block_store_open_title (other, "a", NULL);
  g_assert_true (again == title);
  weir_stored_title_unref (again);
  weir_block_store_unref (other);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

typedef struct {
  guint n, n_errors;
} Listed;

static gboolean
count_title (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  Listed *listed = data;

  listed->n++;
  if (!title) {
    g_assert_cmpstr (name, ==, "b/c");
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT);
    listed->n_errors++;
  }
  return TRUE;
}

static void
an_index_that_was_changed_is_an_error_of_its_title_alone (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  g_autofree gchar *path = g_build_filename (t.dir, "titles", "b", "c.index", NULL);
  g_autofree gchar *copy = g_build_filename (t.dir, "titles", "d.index", NULL), *bytes = NULL;
  Listed listed = { 0 };
  GError *error = NULL;
  gsize length;

  weir_stored_title_unref (test_title (store, "a", 3, BLOCK, 0));
  weir_stored_title_unref (test_title (store, "b/c", 3, BLOCK, 0));
  g_assert_true (g_file_get_contents (path, &bytes, &length, NULL));
  g_assert_true (g_file_set_contents (copy, bytes, (gssize) length, NULL));
  g_assert_null (weir_block_store_open_title (store, "d", &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT);
  g_assert_nonnull (strstr (error->message, "title 'b/c'"));
  g_clear_error (&error);
  g_assert_cmpint (g_remove (copy), ==, 0);
  for (gsize cut = 0; cut < length; cut++) {
    g_assert_true (g_file_set_contents (path, bytes, (gssize) cut, NULL));
    g_assert_null (weir_block_store_open_title (store, "b/c", &error));
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT);
    g_clear_error (&error);
  }
  bytes[60] ^= 1; // of a number: only the hash tells
  g_assert_true (g_file_set_contents (path, bytes, (gssize) length, NULL));
  g_assert_true (weir_block_store_list (store, count_title, &listed, NULL));
  g_assert_cmpuint (listed.n, ==, 2);
  g_assert_cmpuint (listed.n_errors, ==, 1);
  bytes[9] = 9;
  g_assert_true (g_file_set_contents (path, bytes, (gssize) length, NULL));
  g_assert_null (weir_block_store_open_title (store, "b/c", &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NEWER);
  g_error_free (error);
  test_store_free (&t, store);
}

static void
init_refuses_what_is_no_disk (void)
{
  TestStore t = test_folders (4);
  g_autofree gchar *below = g_build_filename (t.disks[0], "blocks", NULL);
  const gchar *twice[] = { t.disks[0], t.disks[1], t.disks[0], NULL };
  const gchar *missing[] = { t.disks[0], "/nowhere/at/all", NULL };
  const gchar *three[] = { t.disks[0], t.disks[1], t.disks[2], NULL };
  const gchar *one[] = { t.disks[0], NULL };
  const gchar *last[] = { t.disks[3], t.disks[0], NULL };
  const gchar *inside[] = { t.disks[0], below, NULL };
  const gchar *around[] = { below, t.disks[0], NULL };
  const struct {
    const gchar *const *disks;
    WeirPlacementPolicy policy;
    const gchar *problem;
  } cases[] = {
    { twice, WEIR_PLACEMENT_RDA, "is given twice" },
    { missing, WEIR_PLACEMENT_RDA, "do not exist; make them: mkdir -p /nowhere/at/all" },
    { three, WEIR_PLACEMENT_RAID1, "an even number of disks, not 3" },
    { one, WEIR_PLACEMENT_RDA, "two disks or more, not 1" },
    { last, WEIR_PLACEMENT_RDA, "is a disk of a store already" },
    { inside, WEIR_PLACEMENT_RDA, "a disk cannot lie in another one" },
    { around, WEIR_PLACEMENT_RDA, "a disk cannot lie in another one" },
  };
  gchar *warning = NULL;
  GError *error = NULL;
  g_autofree gchar *used = g_build_filename (t.top, "used", NULL);

  g_assert_true (weir_block_store_init (
      used, (const gchar *const *) t.disks + 3, WEIR_PLACEMENT_NAIVE, SECOND, NULL, NULL));
  g_assert_cmpint (g_mkdir (below, 0777), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_assert_false (
        weir_block_store_init (t.dir, cases[i].disks, cases[i].policy, SECOND, NULL, &error));
    g_assert_nonnull (strstr (error->message, cases[i].problem));
    g_clear_error (&error);
    g_assert_false (g_file_test (t.dir, G_FILE_TEST_EXISTS));
  }
  g_assert_false (weir_block_store_init (
      t.disks[1], (const gchar *const *) t.disks, WEIR_PLACEMENT_RDA, SECOND, NULL, &error));
  g_assert_nonnull (strstr (error->message, "lies in the store's own folder"));
  g_clear_error (&error);
  g_assert_false (
      weir_block_store_init (t.dir, three, WEIR_PLACEMENT_RDA, 61 * SECOND, NULL, &error));
  g_clear_error (&error);
  g_assert_true (
      weir_block_store_init (t.dir, three, WEIR_PLACEMENT_RDA, SECOND, &warning, &error));
  g_assert_nonnull (strstr (warning, "are on one device"));
  g_free (warning);
  g_assert_false (weir_block_store_init (t.dir, one, WEIR_PLACEMENT_NAIVE, SECOND, NULL, &error));
  g_assert_nonnull (strstr (error->message, "there is a store already"));
  g_clear_error (&error);
  g_assert_false (weir_block_store_init (t.top, one, WEIR_PLACEMENT_NAIVE, SECOND, NULL, &error));
  g_assert_nonnull (strstr (error->message, "not an empty folder"));
  g_clear_error (&error);
  g_assert_null (weir_block_store_open (t.top, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_STORE);
  g_clear_error (&error);
  test_store_free (&t, NULL);
}

#define ADD(test) g_test_add_func ("/writing/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_title_is_written_and_its_files_are_there);
  ADD (a_table_follows_the_bytes_of_a_block);
  ADD (a_title_is_not_seen_before_it_is_finished);
  ADD (of_two_writers_of_a_name_the_second_to_finish_fails);
  ADD (what_a_killed_writer_left_is_removed_by_the_next);
  ADD (a_writer_killed_after_its_index_was_written_loses_nothing);
  ADD (too_large_a_title_is_refused_before_anything_is_written);
  ADD (names_that_leave_the_store_are_refused);
  ADD (a_disk_that_fails_gets_no_more_blocks);
  ADD (a_missing_disk_is_no_error_unless_it_is_needed);
  ADD (users_of_one_store_share_it_and_its_titles);
  ADD (an_index_that_was_changed_is_an_error_of_its_title_alone);
  ADD (init_refuses_what_is_no_disk);
  return g_test_run ();
}
