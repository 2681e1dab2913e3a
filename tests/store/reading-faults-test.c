// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies that are lost or wrong, and disks that fail, do not answer, or are not there.

#include "reading.h"
#include "store/upkeep.h"

#include <errno.h>
#include <gio/gio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BLOCK 50000

static void
spoil (const gchar *path)
{
  FILE *file = fopen (path, "r+");

  g_assert_nonnull (file);
  fseek (file, 1000, SEEK_SET);
  fputs ("spoilt", file);
  fclose (file);
}

static void
lose (const gchar *path)
{
  g_assert_cmpint (g_remove (path), ==, 0);
}

// ---- copies, read in both ways ----

static void
a_bad_copy_is_made_up_for_and_repaired (gconstpointer way)
{
  void (*const spoilers[]) (const gchar *) = { spoil, lose };

  weir_block_reader_threads_only = way != NULL;
  for (guint i = 0; i < G_N_ELEMENTS (spoilers); i++) {
    TestStore t;
    WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
    WeirStoredTitle *title = test_title (store, "a", 1, BLOCK, 1);
    g_autofree gchar *path = copy_path (title, 0, 0);
    const gint before = g_atomic_int_get (&n_messages);
    GError *error = NULL;

    spoilers[i](path);
    weir_block_store_set_memory (store, 0);
    check_block (title, 0, 1);
    g_assert_false (disk_stats (store, 0).failing || disk_stats (store, 1).failing);
    WAIT_FOR (read_stats (store).repaired == 1);
    g_assert_cmpuint (disk_stats (store, 0).errors + disk_stats (store, 1).errors, ==, 1);
    g_assert_cmpuint (read_stats (store).lost, ==, 0);
    WAIT_FOR (g_atomic_int_get (&n_messages) == before + 1);
    check_block (title, 0, 1);
    // The first copy is whole again.
    {
      WeirUpkeepResult result = { 0 };
      weir_block_store_verify (store, NULL, NULL, NULL, NULL, &result, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (result.copies, ==, 2);
      g_assert_cmpuint (result.bad_copies, ==, 0);
    }
    weir_stored_title_unref (title);
    test_store_free (&t, store);
  }
}

static void
a_block_without_a_good_copy_is_an_error (gconstpointer way)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  const gint before = g_atomic_int_get (&n_messages);
  GError *error = NULL;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", 3, BLOCK, 1);
  for (guint copy = 0; copy < 2; copy++) {
    g_autofree gchar *spoilt = copy_path (title, 1, copy), *lost = copy_path (title, 2, copy);
    spoil (spoilt);
    g_remove (lost);
  }
  check_block (title, 0, 1);
  for (guint number = 1; number < 3; number++) {
    g_assert_null (weir_block_read (title, number, in_ms (100), NULL, &error));
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT);
    g_assert_nonnull (strstr (error->message, "of title 'a' cannot be read: disk "));
    for (guint disk = 0; disk < 2; disk++)
      g_assert_nonnull (strstr (error->message, t.disks[disk]));
    g_assert_nonnull (strstr (error->message, "lost, so remove the title and add it again"));
    g_clear_error (&error);
  }
  g_assert_cmpuint (read_stats (store).lost, ==, 2);
  g_assert_cmpuint (disk_stats (store, 0).errors + disk_stats (store, 1).errors, ==, 4);
  // The second block within 10 s is counted, not told.
  WAIT_FOR (g_atomic_int_get (&n_messages) == before + 1);
  check_block (title, 0, 1);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_title_that_was_removed_is_not_lost (gconstpointer way)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  const gint before = g_atomic_int_get (&n_messages);
  GError *error = NULL;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", 3, BLOCK, 1);
  g_assert_true (weir_block_store_remove_title (store, "a", NULL));
  for (guint again = 0; again < 2; again++) {
    g_assert_null (weir_block_read (title, 1, in_ms (100), NULL, &error));
    g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
    g_assert_cmpstr (error->message, ==, "title 'a' was removed from the store");
    g_clear_error (&error);
    // Another title of the same name is not read in its place.
    if (!again)
      weir_stored_title_unref (test_title (store, "a", 3, BLOCK, 2));
  }
  g_assert_cmpuint (read_stats (store).lost, ==, 0);
  g_assert_cmpuint (disk_stats (store, 0).errors + disk_stats (store, 1).errors, ==, 0);
  g_assert_cmpint (g_atomic_int_get (&n_messages), ==, before);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_shortened_copy_is_wrong (gconstpointer way)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  const off_t lengths[] = { 0, 4096, BLOCK - 1 };

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", G_N_ELEMENTS (lengths), BLOCK, 1);
  for (guint i = 0; i < G_N_ELEMENTS (lengths); i++) {
    g_autofree gchar *path = copy_path (title, i, 0);
    g_assert_cmpint (truncate (path, lengths[i]), ==, 0);
    check_block (title, i, 1);
  }
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
copies_that_were_moved_are_found (gconstpointer way)
{
  enum { N = 20 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  GError *error = NULL;
  g_autofree gchar *fresh = NULL;
  const gint before = g_atomic_int_get (&n_messages);
  WeirUpkeepResult result = { 0 };

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 1, WEIR_PLACEMENT_RANDOM);
  title = test_title (store, "a", N, BLOCK, 1);
  fresh = g_build_filename (t.top, "fresh", NULL);
  g_mkdir (fresh, 0777);
  weir_block_store_add_disk (store, fresh, NULL, &error);
  g_assert_no_error (error);
  weir_block_store_remove_disk (store, t.disks[0], &error);
  g_assert_no_error (error);
  weir_block_store_balance (store, 0, NULL, NULL, NULL, &result, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    check_block (title, i, 1);
  g_assert_cmpuint (read_stats (store).lost, ==, 0);
  g_assert_cmpuint (disk_stats (store, 0).errors, ==, 0);
  g_assert_cmpint (g_atomic_int_get (&n_messages), ==, before);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// ---- disks ----

static void
read_all_at_once (WeirStoredTitle *title)
{
  const guint n = weir_stored_title_get_index (title)->n_blocks;
  g_autofree WeirBlockRequest **requests = g_new (WeirBlockRequest *, n);
  Answers answers = { 0 };

  for (guint i = 0; i < n; i++)
    requests[i] = weir_block_request (title, i, in_ms (2000 + i), count_answer, &answers);
  wait_for_answers (&answers, n);
  g_assert_cmpuint (answers.good, ==, n);
  for (guint i = 0; i < n; i++)
    weir_block_request_free (requests[i]);
}

static void
a_disk_that_is_gone_is_avoided_and_used_when_it_is_back (gconstpointer way)
{
  enum { N = 30 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  g_autofree gchar *elsewhere = NULL;
  guint64 errors;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N, BLOCK, 1);
  weir_block_store_set_memory (store, 0);
  elsewhere = g_strconcat (t.disks[0], "-elsewhere", NULL);
  g_assert_cmpint (rename (t.disks[0], elsewhere), ==, 0);
  g_assert_cmpint (g_mkdir (t.disks[0], 0777), ==, 0); // its empty mount point
  for (guint i = 0; i < N; i++)
    check_block (title, i, 1);
  g_assert_true (disk_stats (store, 0).failing);
  errors = disk_stats (store, 0).errors;
  g_assert_cmpuint (errors, >=, 1);
  g_assert_cmpuint (errors, <=, 5);
  g_assert_cmpuint (read_stats (store).repaired, ==, 0); // it may come back
  g_assert_cmpint (g_rmdir (t.disks[0]), ==, 0);
  g_assert_cmpint (rename (elsewhere, t.disks[0]), ==, 0);
  // Reads of others try it, one a second.
  WAIT_FOR ((check_block (title, 0, 1), !disk_stats (store, 0).failing));
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_disk_with_errors_is_avoided (void)
{
  enum { N = 40 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  guint64 errors;

  gate_install ();
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N, BLOCK, 1);
  weir_block_store_set_memory (store, 0);
  gate_set (0, FALSE, EIO);
  read_all_at_once (title);
  g_assert_true (disk_stats (store, 0).failing);
  errors = disk_stats (store, 0).errors;
  g_assert_cmpuint (errors, >=, 3);
  for (guint i = 0; i < N; i++)
    check_block (title, i, 1);
  g_assert_cmpuint (disk_stats (store, 0).errors, <=, errors + 2);
  g_assert_cmpuint (read_stats (store).lost, ==, 0);
  gate_set (0, FALSE, 0);
  WAIT_FOR ((check_block (title, N - 1, 1), !disk_stats (store, 0).failing));
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

static void
a_disk_that_does_not_answer_is_made_up_for (void)
{
  enum { N = 60 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;

  gate_install ();
  store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N, BLOCK, 1);
  weir_block_store_set_memory (store, 0);
  read_all_at_once (title); // disks are measured
  gate_set (1, TRUE, 0);
  read_all_at_once (title);
  WAIT_FOR (disk_stats (store, 1).failing);
  for (guint i = 0; i < N; i++)
    check_block (title, i, 1);
  gate_set (1, FALSE, 0);
  WAIT_FOR (!disk_stats (store, 1).failing);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

static void
a_store_is_freed_while_a_disk_does_not_answer (void)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  WeirBlockRequest *request;
  Answers answers = { 0 };

  gate_install ();
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  title = test_title (store, "a", 1, BLOCK, 1);
  gate_set (0, TRUE, 0);
  request = weir_block_request (title, 0, in_ms (100), count_answer, &answers);
  WAIT_FOR (gate_came (0) == 1);
  weir_block_request_free (request);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_set (0, FALSE, 0);
  WAIT_FOR (gate_reads () == 1);
  g_assert_cmpuint (answers.good + answers.bad, ==, 0);
  gate_remove ();
}

static void
a_slow_disk_is_learnt_and_avoided (void)
{
  enum { N = 100 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  guint64 before, slow_reads;

  gate_install ();
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N, BLOCK, 1);
  weir_block_store_set_memory (store, 0);
  gate.delay_us[0] = 20000;
  read_all_at_once (title);
  before = disk_stats (store, 0).reads;
  for (guint i = 0; i < N; i++)
    check_block (title, i, 1);
  slow_reads = disk_stats (store, 0).reads - before;
  g_test_message ("%" G_GUINT64_FORMAT " of %d reads went to the slow disk", slow_reads, N);
  g_assert_cmpuint (slow_reads, <, N / 4);
  g_assert_cmpint (disk_stats (store, 0).service_ns, >=, 20 * WEIR_READ_MS);
  gate.delay_us[0] = 0;
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

static void
results_may_be_ignored (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", 2, BLOCK, 1);
  g_autofree gchar *path = copy_path (title, 0, 0);
  WeirBlock *block = weir_block_read (title, 0, in_ms (1000), NULL, NULL);

  g_assert_nonnull (weir_block_get_bytes (block, NULL));
  g_assert_nonnull (weir_block_get_table (block, NULL));
  weir_block_unref (block);
  g_assert_null (weir_block_read (title, 2, in_ms (1000), NULL, NULL));
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_true (weir_block_store_verify (store, NULL, NULL, NULL, NULL, NULL, NULL));
  g_assert_true (weir_block_store_repair (store, NULL, 0, FALSE, NULL, NULL, NULL, NULL, NULL));
  g_assert_true (weir_block_store_balance (store, 0, NULL, NULL, NULL, NULL, NULL));
  g_assert_false (weir_block_store_verify (store, "none", NULL, NULL, NULL, NULL, NULL));
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// Reads every block of a title once for each of `n`, and returns the statistics of its only disk.
static WeirDiskStats
read_times (WeirBlockStore *store, WeirStoredTitle *title, guint n)
{
  const guint n_blocks = weir_stored_title_get_index (title)->n_blocks;

  for (guint i = 0; i < n * n_blocks; i++)
    weir_block_unref (weir_block_read (title, i % n_blocks, in_ms (1000), NULL, NULL));
  return disk_stats (store, 0);
}

static void
a_rate_is_shown_only_if_reads_of_several_sizes_tell_it (void)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *small, *large;
  WeirDiskStats stats;

  gate_install ();
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  small = test_title (store, "small", 8, 100000, 1);
  large = test_title (store, "large", 8, 500000, 2);
  weir_block_store_set_memory (store, 0);
  gate.ns_per_byte = 20; // 50 MB/s
  stats = disk_stats (store, 0);
  g_assert_cmpint (weir_disk_stats_get_time (&stats, 1), ==, 0);
  stats = read_times (store, large, 2);
  g_assert_cmpuint (stats.rate, ==, 0);
  g_assert_cmpuint (stats.read_bytes, ==, 500000);
  g_assert_cmpint (stats.service_ns, >=, 10 * WEIR_READ_MS);
  g_assert_cmpint (weir_disk_stats_get_time (&stats, 500000), ==, stats.service_ns);
  g_assert_cmpint (weir_disk_stats_get_time (&stats, 1000), ==, stats.service_ns);
  g_assert_cmpint (weir_disk_stats_get_time (&stats, 2000000), ==, 4 * stats.service_ns);
  // Not within a set time, as other work on the machine delays some reads.
  for (guint i = 0; i < 1000 && stats.rate == 0; i++) {
    read_times (store, small, 1);
    stats = read_times (store, large, 1);
  }
  g_assert_cmpuint (stats.rate, >, 8 * 20000000);
  g_assert_cmpuint (stats.rate, <, 8 * 80000000);
  g_assert_cmpint (
      weir_disk_stats_get_time (&stats, 1000), <, weir_disk_stats_get_time (&stats, 500000) / 2);
  gate.ns_per_byte = 0;
  weir_stored_title_unref (small);
  weir_stored_title_unref (large);
  test_store_free (&t, store);
  gate_remove ();
}

static void
a_read_that_waits_waits_at_both_disks (void)
{
  enum { N = 20 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  WeirBlockRequest *requests[N];
  Answers answers = { 0 };
  gint64 deadline;

  gate_install ();
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N, BLOCK, 1);
  gate_set (0, TRUE, 0);
  gate_set (1, TRUE, 0);
  deadline = in_ms (60000);
  for (guint i = 0; i < N; i++)
    requests[i] = weir_block_request (title, i, deadline, count_answer, &answers);
  // Of each disk, the first one is at work and the second one may have found no queue.
  g_assert_cmpuint (disk_stats (store, 0).queue + disk_stats (store, 1).queue, >=, 4 + 2 * (N - 4));
  // The disk that can reads what it would not have been given by turns.
  WAIT_FOR (gate_came (0) > 0 && gate_came (1) > 0);
  gate_set (0, FALSE, 0);
  wait_for_answers (&answers, N - 2);
  g_assert_cmpuint (gate_came (1), ==, 1);
  gate_set (1, FALSE, 0);
  wait_for_answers (&answers, N);
  g_assert_cmpuint (answers.bad, ==, 0);
  for (guint i = 0; i < N; i++)
    weir_block_request_free (requests[i]);
  WAIT_FOR (disk_stats (store, 0).queue + disk_stats (store, 1).queue == 0);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

// A disk that was avoided is tried with a read that waits at the other disk.
static void
a_disk_that_is_tried_gets_one_read (void)
{
  enum { N = 4 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  WeirBlockRequest *requests[N];
  Answers answers = { 0 };
  WeirBlockReader *reader;
  WeirDiskLoad *slow;

  gate_install ();
  store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N + 1, BLOCK, 1);
  check_block (title, N, 1);
  reader = weir_block_reader_get (store);
  gate_set (0, TRUE, 0);
  gate_set (1, TRUE, 0);
  g_mutex_lock (&reader->lock);
  slow = &weir_block_reader_get_disk (reader, 1, NULL)->load;
  slow->access_ns = 60e9;
  slow->tried_ns = weir_block_reader_now ();
  g_mutex_unlock (&reader->lock);
  for (guint i = 0; i < N; i++) {
    g_mutex_lock (&reader->lock);
    if (i == N - 1)
      slow->tried_ns -= 3600 * WEIR_READ_SECOND;
    g_mutex_unlock (&reader->lock);
    requests[i] = weir_block_request (title, i, in_ms (60000), count_answer, &answers);
    g_assert_cmpuint (disk_stats (store, 1).queue, ==, i == N - 1);
  }
  gate_set (1, FALSE, 0);
  gate_set (0, FALSE, 0);
  wait_for_answers (&answers, N);
  g_assert_cmpuint (answers.bad, ==, 0);
  for (guint i = 0; i < N; i++)
    weir_block_request_free (requests[i]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

#define ADD(test) g_test_add_func ("/reading-faults/" #test, test)
#define ADD_WAYS(test)                                                                             \
  g_test_add_data_func ("/reading-faults/ring/" #test, NULL, test);                                \
  g_test_add_data_func ("/reading-faults/threads/" #test, "threads", test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  count_messages ();
  ADD_WAYS (a_bad_copy_is_made_up_for_and_repaired);
  ADD_WAYS (a_block_without_a_good_copy_is_an_error);
  ADD_WAYS (a_title_that_was_removed_is_not_lost);
  ADD_WAYS (a_shortened_copy_is_wrong);
  ADD_WAYS (copies_that_were_moved_are_found);
  ADD_WAYS (a_disk_that_is_gone_is_avoided_and_used_when_it_is_back);
  ADD (a_disk_with_errors_is_avoided);
  ADD (a_disk_that_does_not_answer_is_made_up_for);
  ADD (a_store_is_freed_while_a_disk_does_not_answer);
  ADD (a_slow_disk_is_learnt_and_avoided);
  ADD (a_rate_is_shown_only_if_reads_of_several_sizes_tell_it);
  ADD (a_read_that_waits_waits_at_both_disks);
  ADD (a_disk_that_is_tried_gets_one_read);
  ADD (results_may_be_ignored);
  return g_test_run ();
}
