// SPDX-License-Identifier: LGPL-2.1-or-later
// Disks that hang. A pipe in the place of a disk's file weir-disk holds who reads it.

#include "reading.h"
#include "store/looking.h"
#include "store/upkeep.h"

#include <fcntl.h>
#include <sys/stat.h>

#define BLOCK 5000
#define HOUR_US (3600 * (gint64) G_USEC_PER_SEC)

static void
hang (const gchar *disk)
{
  g_autofree gchar *mark = g_build_filename (disk, "weir-disk", NULL);

  weir_disk_patience_us = 50 * 1000;
  g_assert_cmpint (g_remove (mark), ==, 0);
  g_assert_cmpint (mkfifo (mark, 0600), ==, 0);
}

// Lets go who waits for the disk.
static void
release (const gchar *disk)
{
  g_autofree gchar *mark = g_build_filename (disk, "weir-disk", NULL);
  int fd = open (mark, O_WRONLY | O_NONBLOCK);

  g_assert_cmpint (fd, >=, 0);
  close (fd);
}

static void
a_disk_that_hangs_is_waited_for_only_once (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoreDisk disks[8];

  hang (t.disks[1]);
  for (guint i = 0; i < 2; i++) {
    g_assert_cmpuint (weir_block_store_get_disks (store, disks, 8), ==, 3);
    g_assert_true (disks[0].present && disks[0].free_bytes > 0);
    g_assert_false (disks[1].present);
    g_assert_cmpint (disks[1].state, ==, WEIR_DISK_SILENT);
    g_assert_true (disks[2].present);
    g_assert_true (weir_disk_is_stuck (t.disks[1]) && !weir_disk_is_stuck (t.disks[0]));
    weir_disk_patience_us = HOUR_US;
  }
  release (t.disks[1]);
  while (weir_disk_is_stuck (t.disks[1]))
    g_thread_yield ();
  test_store_free (&t, store);
}

static void
count_hanging (guint64 done, guint64 total, const gchar *title, const gchar *problem, gpointer data)
{
  if (problem && strstr (problem, "no answer"))
    ++*(guint *) data;
}

static void
titles_are_verified_while_a_disk_hangs (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 30, BLOCK, 0);
  const WeirIndex *index = weir_stored_title_get_index (title);
  WeirUpkeepResult result;
  guint n_problems = 0, n_there = 0;

  for (guint i = 0; i < index->n_blocks; i++)
    n_there += index->blocks[i].disks[0] == 0 || index->blocks[i].disks[1] == 0;
  hang (t.disks[0]);
  g_assert_true (
      weir_block_store_verify (store, NULL, count_hanging, &n_problems, NULL, &result, NULL));
  g_assert_cmpuint (n_problems, ==, 1);
  g_assert_cmpuint (result.bad_copies, ==, n_there);
  g_assert_cmpuint (result.lost_blocks, ==, 0);
  release (t.disks[0]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// Repairs the first copy of block 0: it is written on the third disk, and the first is not touched.
static void
check_repair (WeirBlockStore *store, WeirStoredTitle *title)
{
  const WeirIndexBlock *block = &weir_stored_title_get_index (title)->blocks[0];
  g_autofree gchar *path = weir_stored_title_dup_block_path (title, 0, block->disks[0]);
  GError *error = NULL;
  guint16 disks[2];

  weir_block_store_repair_block (title, 0, block->disks[0], &error);
  g_assert_no_error (error);
  g_assert_cmpuint (weir_stored_title_find_copies (title, 0, disks, NULL), ==, 2);
  g_assert_cmpuint (disks[0] + disks[1] + block->disks[0], ==, 0 + 1 + 2);
  g_assert_true (g_file_test (path, G_FILE_TEST_EXISTS));
}

static void
copies_of_a_disk_that_hangs_are_written_elsewhere (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 1, BLOCK, 0);
  guint bad = weir_stored_title_get_index (title)->blocks[0].disks[0];

  hang (t.disks[bad]);
  check_repair (store, title);
  release (t.disks[bad]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
copies_of_a_disk_that_the_reader_avoids_are_written_elsewhere (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 1, BLOCK, 0);
  guint16 bad = weir_stored_title_get_index (title)->blocks[0].disks[0];
  WeirBlockReader *reader = weir_block_reader_get (store);

  g_mutex_lock (&reader->lock);
  weir_block_reader_get_disk (reader, bad, t.disks[bad])->load.failing = TRUE;
  g_mutex_unlock (&reader->lock);
  check_repair (store, title);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// ---- repairs in the background ----

// Returns the number of the next block from `from` on with copies on the disks `a` and `b`.
static guint32
find_block (WeirStoredTitle *title, guint32 from, guint16 a, guint16 b)
{
  const WeirIndexBlock *blocks = weir_stored_title_get_index (title)->blocks;

  while (MIN (blocks[from].disks[0], blocks[from].disks[1]) != MIN (a, b)
         || MAX (blocks[from].disks[0], blocks[from].disks[1]) != MAX (a, b))
    g_assert_cmpuint (++from, <, weir_stored_title_get_index (title)->n_blocks);
  return from;
}

static void
ask_for_repair (
    WeirBlockReader *reader, WeirStoredTitle *title, guint32 number, guint16 disk, const gchar *why)
{
  const WeirIndex *index = weir_stored_title_get_index (title);
  WeirBlockRead read = { .block = index->blocks[number], .title = index->name };
  WeirCopyProblem problem = { .why = (gchar *) why };

  weir_blocks_name (&read.name, index, number);
  g_mutex_lock (&reader->lock);
  for (guint16 i = 0; i < 3; i++)
    weir_block_reader_get_disk (reader, i, weir_block_store_get_disk_path (title->store, i));
  g_assert_true (weir_block_reader_repair (reader, &read, disk, &problem));
  g_mutex_unlock (&reader->lock);
}

static guint
n_held (WeirBlockReader *reader)
{
  guint n;

  g_mutex_lock (&reader->lock);
  n = reader->n_held;
  g_mutex_unlock (&reader->lock);
  return n;
}

// Puts a pipe in the place of the file that a repair of the block reads from disk 0, or writes
// there, and asks for that repair. Returns the pipe's path.
static gchar *
begin_held_repair (
    WeirBlockReader *reader, WeirStoredTitle *title, guint32 number, gboolean writing)
{
  g_autofree gchar *path = weir_stored_title_dup_block_path (title, number, 0);
  gchar *pipe = g_strconcat (path, writing ? ".part" : NULL, NULL);

  g_remove (pipe);
  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  ask_for_repair (reader, title, number, writing ? 0 : 1, "held");
  return pipe;
}

static void
a_disk_that_holds_a_repair_holds_no_other (gconstpointer way)
{
  const gboolean writing = way != NULL;
  TestStore t;
  WeirBlockStore *store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 60, BLOCK, 0);
  WeirBlockReader *reader = weir_block_reader_get (store);
  const guint32 held = find_block (title, 0, 0, 1), same = find_block (title, held + 1, 0, 1);
  const guint32 good = find_block (title, 0, 1, 2);
  g_autofree gchar *pipe = NULL, *lost = weir_stored_title_dup_block_path (title, good, 2);
  g_autofree gchar *other = weir_stored_title_dup_block_path (title, same, 1);
  const gint before = g_atomic_int_get (&n_messages);
  guint16 disks[2];
  int fd;

  weir_disk_patience_us = 50 * 1000;
  pipe = begin_held_repair (reader, title, held, writing);
  g_remove (lost);
  ask_for_repair (reader, title, good, 2, "another disk's");
  WAIT_FOR (n_held (reader) == 1);
  WAIT_FOR (read_stats (store).repaired == 1);
  g_assert_true (g_file_test (lost, G_FILE_TEST_EXISTS));
  // The disk is stuck now: nothing is read from it, and what is to be there is written elsewhere.
  g_remove (other);
  ask_for_repair (reader, title, same, 1, "its source does not answer");
  WAIT_FOR (g_atomic_int_get (&n_messages) == before + 2);
  g_assert_false (g_file_test (other, G_FILE_TEST_EXISTS));
  ask_for_repair (reader, title, find_block (title, 0, 0, 2), 0, "its disk does not answer");
  WAIT_FOR (read_stats (store).repaired == 2);
  g_assert_cmpuint (
      weir_stored_title_find_copies (title, find_block (title, 0, 0, 2), disks, NULL), ==, 2);
  g_assert_cmpuint (disks[0] + disks[1], ==, 1 + 2);
  g_assert_cmpuint (n_held (reader), ==, 1);
  fd = open (pipe, (writing ? O_RDONLY : O_WRONLY) | O_NONBLOCK);
  g_assert_cmpint (fd, >=, 0);
  if (!writing)
    close (fd);
  WAIT_FOR (n_held (reader) == 0);
  if (writing)
    close (fd);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

#define ADD(test) g_test_add_func ("/hanging/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  count_messages ();
  ADD (a_disk_that_hangs_is_waited_for_only_once);
  ADD (titles_are_verified_while_a_disk_hangs);
  ADD (copies_of_a_disk_that_hangs_are_written_elsewhere);
  ADD (copies_of_a_disk_that_the_reader_avoids_are_written_elsewhere);
  g_test_add_data_func ("/hanging/reading/a_disk_that_holds_a_repair_holds_no_other", NULL,
      a_disk_that_holds_a_repair_holds_no_other);
  g_test_add_data_func ("/hanging/writing/a_disk_that_holds_a_repair_holds_no_other", "writing",
      a_disk_that_holds_a_repair_holds_no_other);
  return g_test_run ();
}
