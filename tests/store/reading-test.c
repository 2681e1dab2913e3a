// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reading.h"

#include <gio/gio.h>
#include <sys/sendfile.h>

#define BLOCK 100000

// ---- both ways to read ----

static void
blocks_are_what_was_written (gconstpointer way)
{
  const gsize lengths[] = { 1, 4095, 4096, 4097, 8192, 100001, (1 << 20) + 3, 5000000, 0 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  for (guint i = 0; lengths[i] > 0; i++) {
    g_autofree gchar *name = g_strdup_printf ("title %u", i);
    title = test_title (store, name, 4, lengths[i], i);
    for (guint j = 0; j < 4; j++)
      check_block (title, j, i);
    weir_stored_title_unref (title);
  }
  test_store_free (&t, store);
}

static void
a_table_follows_the_bytes (gconstpointer way)
{
  TestStore t;
  WeirBlockStore *store;
  guint8 bytes[BLOCK + 640];
  WeirTitleWriter *writer;
  WeirStoredTitle *title;
  WeirBlock *block;
  const guint8 *got;
  gsize length;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  test_fill (bytes, sizeof bytes, 7, 0);
  writer = weir_title_writer_new (store, "a", NULL, 0, NULL);
  weir_title_writer_add_block (writer, bytes, BLOCK, 640, 0, WEIR_BLOCK_KEYFRAME, NULL);
  weir_title_writer_finish (writer, 0, SECOND, NULL);
  weir_title_writer_free (writer);
  title = weir_block_store_open_title (store, "a", NULL);
  block = weir_block_read (title, 0, in_ms (100), NULL, NULL);
  got = weir_block_get_bytes (block, &length);
  g_assert_cmpmem (got, length, bytes, BLOCK);
  got = weir_block_get_table (block, &length);
  g_assert_cmpmem (got, length, bytes + BLOCK, 640);
  weir_block_unref (block);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// Counts the threads that read for the store and, in `all`, those of the program: also the test's,
// those that have just begun, and those that GLib keeps idle after disks were looked at.
static guint
count_threads (guint *all)
{
  GDir *dir = g_dir_open ("/proc/self/task", 0, NULL);
  const gchar *task;
  guint n = 0;

  *all = 0;
  while ((task = g_dir_read_name (dir))) {
    gchar *path = g_strdup_printf ("/proc/self/task/%s/comm", task), *name = NULL;

    if (g_file_get_contents (path, &name, NULL, NULL)) { // else it has ended
      *all += 1;
      n += g_str_has_prefix (name, "weir-store");
    }
    g_free (name);
    g_free (path);
  }
  g_dir_close (dir);
  return n;
}

static void
five_thousand_requests_need_few_threads (gconstpointer way)
{
  enum { N_BLOCKS = 200, N_REQUESTS = 5000 };
  TestStore t;
  WeirBlockStore *store;
  WeirBlockRequest *requests[N_REQUESTS];
  Answers answers = { 0 };
  WeirStoredTitle *title;
  guint n_threads = 0, n_before, n_all, most = 0;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 4, WEIR_PLACEMENT_RDA);
  title = test_title (store, "a", N_BLOCKS, 20000, 1);
  count_threads (&n_before);
  for (guint i = 0; i < N_REQUESTS; i++) {
    requests[i] =
        weir_block_request (title, i * 7 % N_BLOCKS, in_ms (1000 + i), count_answer, &answers);
    if (i % 100 == 0) {
      n_threads = MAX (n_threads, count_threads (&n_all));
      most = MAX (most, n_all);
    }
  }
  wait_for_answers (&answers, N_REQUESTS);
  g_assert_cmpuint (answers.good, ==, N_REQUESTS);
  g_test_message ("%u threads", n_threads);
  g_assert_cmpuint (n_threads, <=, 7); // 8 with that of the program
  g_assert_cmpuint (most, <=, n_before + 7);
  for (guint i = 0; i < N_REQUESTS; i++)
    weir_block_request_free (requests[i]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// All disks of the largest store have two reads at work, each of which is an entry of the ring.
static void
as_many_disks_as_a_store_can_have_read_at_once (gconstpointer way)
{
  enum { N_BLOCKS = 1024 };
  TestStore t;
  WeirBlockStore *store;
  WeirBlockRequest *requests[N_BLOCKS];
  Answers answers = { 0 };
  WeirStoredTitle *title;

  weir_block_reader_threads_only = way != NULL;
  // A disk may take half a slice to answer: with a thread for each disk, a busy machine needs time.
  store = test_store_of (&t, WEIR_STORE_DISKS_MAX, WEIR_PLACEMENT_RANDOM, 60 * SECOND);
  title = test_title (store, "a", N_BLOCKS, 5000, 1);
  for (guint i = 0; i < N_BLOCKS; i++)
    requests[i] = weir_block_request (title, i, in_ms (1000), count_answer, &answers);
  wait_for_answers (&answers, N_BLOCKS);
  g_assert_cmpuint (answers.good, ==, N_BLOCKS);
  for (guint i = 0; i < N_BLOCKS; i++)
    weir_block_request_free (requests[i]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
blocks_can_be_sent_from_their_file (gconstpointer way)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  guint8 got[BLOCK], expected[BLOCK];
  int pipes[2], fd;
  gsize n = 0;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  title = test_title (store, "a", 3, BLOCK, 1);
  g_assert_cmpint (pipe (pipes), ==, 0);
  for (guint i = 0; i < 3; i++) {
    WeirBlock *block = weir_block_read (title, i, in_ms (100), NULL, NULL);
    off_t offset;

    fd = weir_block_get_fd (block, &offset);
    for (n = 0; n < BLOCK;) {
      const gssize sent = sendfile (pipes[1], fd, &offset, MIN (BLOCK - n, 16384));
      g_assert_cmpint (sent, >, 0);
      g_assert_cmpint (read (pipes[0], got + n, (gsize) sent), ==, sent);
      n += (gsize) sent;
    }
    test_fill (expected, BLOCK, 1, i * BLOCK);
    g_assert_cmpmem (got, BLOCK, expected, BLOCK);
    weir_block_unref (block);
  }
  close (pipes[0]);
  close (pipes[1]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// A pipe holds the pages of a block that was sent, as a socket does until its peer has got them.
static void
bytes_that_were_sent_do_not_change (gconstpointer way)
{
  enum { SENT = 32768 };
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  WeirBlock *block;
  guint8 got[SENT], expected[SENT];
  int pipes[2];
  off_t offset;

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  weir_block_store_set_memory (store, 2 * BLOCK);
  title = test_title (store, "a", 30, BLOCK, 1);
  g_assert_cmpint (pipe (pipes), ==, 0);
  block = weir_block_read (title, 0, in_ms (100), NULL, NULL);
  g_assert_cmpint (
      sendfile (pipes[1], weir_block_get_fd (block, &offset), &offset, SENT), ==, SENT);
  weir_block_unref (block);
  for (guint i = 1; i < 30; i++)
    check_block (title, i, 1);
  g_assert_cmpint (read (pipes[0], got, SENT), ==, SENT);
  test_fill (expected, SENT, 1, 0);
  g_assert_cmpmem (got, SENT, expected, SENT);
  close (pipes[0]);
  close (pipes[1]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

// ---- order and sharing ----

static void
the_earliest_deadline_is_read_first (void)
{
  enum { N = 50 };
  TestStore t;
  WeirBlockStore *store;
  WeirBlockRequest *requests[N], *hurry;
  WeirStoredTitle *title;
  Answers answers = { 0 };

  gate_install ();
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  title = test_title (store, "a", N, 1000, 1);
  gate_set (0, TRUE, 0);
  // Block 0 is at work while the others wait in an order of their own. Block 40 is needed last,
  // until a second request needs it first.
  requests[0] = weir_block_request (title, 0, in_ms (100), count_answer, &answers);
  WAIT_FOR (gate_came (0) == 1);
  for (guint i = 1; i < N; i++) {
    const guint number = i * 7 % N;
    const gint64 deadline = number == 40 ? 90000 : 10000 + number * 100;
    requests[i] = weir_block_request (title, number, in_ms (deadline), count_answer, &answers);
  }
  hurry = weir_block_request (title, 40, in_ms (5000), count_answer, &answers);
  gate_set (0, FALSE, 0);
  wait_for_answers (&answers, N + 1);
  g_assert_cmpuint (answers.good, ==, N + 1);
  for (guint i = 0, number = 1; i < N; i++) {
    const guint32 got = g_array_index (gate.order, guint32, i);
    number += number == 40;
    g_assert_cmpuint (got, ==, i == 0 ? 0 : i == 1 ? 40 : number++);
  }
  for (guint i = 0; i < N; i++)
    weir_block_request_free (requests[i]);
  weir_block_request_free (hurry);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

static void
requests_for_one_block_share_one_read (void)
{
  enum { N = 100 };
  TestStore t;
  WeirBlockStore *store;
  WeirBlockRequest *requests[N];
  WeirStoredTitle *title;
  Answers answers = { 0 };
  WeirReadStats stats;

  gate_install ();
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  title = test_title (store, "a", 2, BLOCK, 1);
  gate_set (0, TRUE, 0);
  for (guint i = 0; i < N; i++)
    requests[i] = weir_block_request (title, 1, in_ms (1000), count_answer, &answers);
  gate_set (0, FALSE, 0);
  wait_for_answers (&answers, N);
  check_block (title, 1, 1);
  g_assert_cmpuint (gate_reads (), ==, 1);
  stats = read_stats (store);
  g_assert_cmpuint (stats.asked, ==, N + 1);
  g_assert_cmpuint (stats.shared, ==, N - 1);
  g_assert_cmpuint (stats.hits, ==, 1);
  for (guint i = 0; i < N; i++)
    weir_block_request_free (requests[i]);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

static void
a_request_that_is_freed_gets_no_answer (void)
{
  TestStore t;
  WeirBlockStore *store;
  WeirBlockRequest *first, *second;
  WeirStoredTitle *title;
  Answers gone = { 0 }, answers = { 0 };

  gate_install ();
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  title = test_title (store, "a", 3, BLOCK, 1);
  gate_set (0, TRUE, 0);
  // One at work, one that waits, one that another request needs, too.
  first = weir_block_request (title, 0, in_ms (1000), count_answer, &gone);
  WAIT_FOR (gate_came (0) == 1);
  weir_block_request_free (weir_block_request (title, 1, in_ms (1000), count_answer, &gone));
  g_assert_cmpuint (disk_stats (store, 0).queue, ==, 1);
  second = weir_block_request (title, 2, in_ms (1000), count_answer, &answers);
  weir_block_request_free (weir_block_request (title, 2, in_ms (1000), count_answer, &gone));
  weir_block_request_free (first);
  gate_set (0, FALSE, 0);
  wait_for_answers (&answers, 1);
  weir_block_request_free (second);
  g_assert_cmpuint (gate_reads (), ==, 2);
  g_assert_cmpuint (gone.good + gone.bad, ==, 0);
  check_block (title, 0, 1); // it was read for nobody, and is in memory
  g_assert_cmpuint (gate_reads (), ==, 2);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

static void
late_answers_are_counted (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  WeirStoredTitle *title = test_title (store, "a", 2, BLOCK, 1);

  weir_block_unref (weir_block_read (title, 0, in_ms (60000), NULL, NULL));
  g_assert_cmpuint (read_stats (store).late, ==, 0);
  weir_block_unref (weir_block_read (title, 1, in_ms (-1), NULL, NULL));
  g_assert_cmpuint (read_stats (store).late, ==, 1);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_wait_can_be_cancelled (void)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  GCancellable *cancellable = g_cancellable_new ();
  GError *error = NULL;

  gate_install ();
  store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  title = test_title (store, "a", 1, BLOCK, 1);
  gate_set (0, TRUE, 0);
  g_cancellable_cancel (cancellable);
  g_assert_null (weir_block_read (title, 0, in_ms (1000), cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  gate_set (0, FALSE, 0);
  g_object_unref (cancellable);
  g_assert_null (weir_block_read (title, 1, in_ms (1000), NULL, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  gate_remove ();
}

// ---- memory ----

static void
frequent_blocks_stay_in_memory (void)
{
  enum { N = 40, HOT = 5 };
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RANDOM);
  WeirStoredTitle *title = test_title (store, "a", N, BLOCK, 1);
  WeirReadStats before, after;

  weir_block_store_set_memory (store, 10 * (BLOCK + 5000));
  for (guint round = 0; round < 5; round++) {
    for (guint i = 0; i < HOT; i++)
      check_block (title, i, 1);
  }
  for (guint i = HOT; i < N; i++)
    check_block (title, i, 1);
  before = read_stats (store);
  g_assert_cmpuint (before.bytes, <=, 10 * (BLOCK + 5000));
  for (guint i = 0; i < HOT; i++)
    check_block (title, i, 1);
  after = read_stats (store);
  g_assert_cmpuint (after.hits - before.hits, ==, HOT);
  weir_block_store_set_memory (store, 0);
  WAIT_FOR (read_stats (store).bytes == 0);
  check_block (title, 0, 1);
  g_assert_cmpuint (read_stats (store).hits, ==, after.hits);
  WAIT_FOR (read_stats (store).bytes == 0);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
blocks_in_use_stay_beyond_the_bound (void)
{
  enum { N = 20 };
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RANDOM);
  WeirStoredTitle *title = test_title (store, "a", N, BLOCK, 1);
  WeirBlock *blocks[N];
  gsize length;

  weir_block_store_set_memory (store, 2 * BLOCK);
  for (guint i = 0; i < N; i++)
    blocks[i] = weir_block_read (title, i, in_ms (100), NULL, NULL);
  g_assert_cmpuint (read_stats (store).bytes, >=, N * BLOCK);
  for (guint i = 0; i < N; i++) {
    const guint8 *bytes = weir_block_get_bytes (blocks[i], &length);
    for (gsize j = 0; j < BLOCK; j += 997)
      g_assert_cmpint (bytes[j], ==, test_byte (1, i * BLOCK + j));
  }
  // A block in use is not read again.
  check_block (title, 0, 1);
  g_assert_cmpuint (read_stats (store).hits, ==, 1);
  weir_stored_title_unref (title);
  weir_block_store_unref (store);
  // Blocks outlive their store.
  g_assert_cmpint (weir_block_get_bytes (blocks[3], &length)[5], ==, test_byte (1, 3 * BLOCK + 5));
  for (guint i = 0; i < N; i++)
    weir_block_unref (blocks[i]);
  test_store_free (&t, NULL);
}

// ---- threads ----

typedef struct {
  WeirStoredTitle *title;
  guint seed;
} Asker;

#define ASKER_ROUNDS 300
#define ASKER_REQUESTS 8

static gpointer
ask_and_free (gpointer data)
{
  Asker *handler = data;
  GRand *random = g_rand_new_with_seed (handler->seed);
  const guint n_blocks = weir_stored_title_get_index (handler->title)->n_blocks;

  for (guint i = 0; i < ASKER_ROUNDS; i++) {
    WeirBlockRequest *requests[ASKER_REQUESTS];
    Answers *answers = g_new0 (Answers, ASKER_REQUESTS);

    for (guint j = 0; j < ASKER_REQUESTS; j++)
      requests[j] = weir_block_request (handler->title,
          (guint32) g_rand_int_range (random, 0, (gint32) n_blocks), in_ms (j), count_answer,
          &answers[j]);
    if (g_rand_boolean (random))
      g_usleep ((gulong) g_rand_int_range (random, 0, 300));
    if (i % 10 == 0)
      wait_for_answers (&answers[i % ASKER_REQUESTS], 1);
    for (guint j = 0; j < ASKER_REQUESTS; j++)
      weir_block_request_free (requests[j]);
    g_free (answers); // an answer from now on would be found by a sanitizer
  }
  g_rand_free (random);
  return NULL;
}

static void
requests_are_freed_at_any_moment (gconstpointer way)
{
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *title;
  GThread *threads[4];
  Asker handlers[4];

  weir_block_reader_threads_only = way != NULL;
  store = test_store (&t, 3, WEIR_PLACEMENT_RDA);
  weir_block_store_set_memory (store, 100000);
  title = test_title (store, "a", 50, 5000, 1);
  for (guint i = 0; i < 4; i++) {
    handlers[i] = (Asker) { title, i };
    threads[i] = g_thread_new ("handler", ask_and_free, &handlers[i]);
  }
  for (guint i = 0; i < 4; i++)
    g_thread_join (threads[i]);
  check_block (title, 3, 1);
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

#define ADD(test) g_test_add_func ("/reading/" #test, test)
#define ADD_WAYS(test)                                                                             \
  g_test_add_data_func ("/reading/ring/" #test, NULL, test);                                       \
  g_test_add_data_func ("/reading/threads/" #test, "threads", test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD_WAYS (blocks_are_what_was_written);
  ADD_WAYS (a_table_follows_the_bytes);
  ADD_WAYS (five_thousand_requests_need_few_threads);
  ADD_WAYS (as_many_disks_as_a_store_can_have_read_at_once);
  ADD_WAYS (blocks_can_be_sent_from_their_file);
  ADD_WAYS (bytes_that_were_sent_do_not_change);
  ADD_WAYS (requests_are_freed_at_any_moment);
  ADD (the_earliest_deadline_is_read_first);
  ADD (requests_for_one_block_share_one_read);
  ADD (a_request_that_is_freed_gets_no_answer);
  ADD (late_answers_are_counted);
  ADD (a_wait_can_be_cancelled);
  ADD (frequent_blocks_stay_in_memory);
  ADD (blocks_in_use_stay_beyond_the_bound);
  return g_test_run ();
}
