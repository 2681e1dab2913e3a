// SPDX-License-Identifier: LGPL-2.1-or-later
// Balancing in the background, while titles are read.

#include "reading.h"
#include "store/balancing.h"
#include "store/looking.h"
#include "store/upkeep.h"

#include <fcntl.h>
#include <sys/stat.h>

#define BLOCK 5000
#define N_TITLES 4
#define N_BLOCKS 30
#define SLOW 1 // bytes a second: the first copy is the last for an hour

typedef struct {
  TestStore t;
  WeirBlockStore *store;
  WeirStoredTitle *titles[N_TITLES];
} Served;

static void
served_begin (Served *self, guint n_disks, WeirPlacementPolicy policy)
{
  self->store = test_store (&self->t, n_disks, policy);
  weir_block_store_set_memory (self->store, 0);
  for (guint i = 0; i < N_TITLES; i++) {
    g_autofree gchar *name = g_strdup_printf ("t%u", i);
    self->titles[i] = test_title (self->store, name, N_BLOCKS, BLOCK, i);
  }
}

static void
served_end (Served *self)
{
  for (guint i = 0; i < N_TITLES; i++)
    weir_stored_title_unref (self->titles[i]);
  test_store_free (&self->t, self->store);
}

// Makes a folder beside the disks. The test's end removes it.
static gchar *
make_folder (Served *self)
{
  gchar *path = g_build_filename (self->t.top, "added", NULL);

  g_assert_cmpint (g_mkdir (path, 0777), ==, 0);
  return path;
}

static void
add_disk (Served *self)
{
  g_autofree gchar *path = make_folder (self);
  GError *error = NULL;

  weir_block_store_add_disk (self->store, path, NULL, &error);
  g_assert_no_error (error);
}

static void
remove_disk (Served *self)
{
  GError *error = NULL;

  weir_block_store_remove_disk (self->store, self->t.disks[1], &error);
  g_assert_no_error (error);
}

static gboolean
is_due (Served *self)
{
  gint64 stamp[3];

  return balancing_is_due (self->store, stamp);
}

static guint64
n_moved (Served *self)
{
  WeirDiskStats stats[N_DISKS];
  const guint n = weir_block_store_get_stats (self->store, stats, N_DISKS);
  guint64 here = 0;

  for (guint i = 0; i < n; i++)
    here += stats[i].moved_here;
  return here;
}

static void
expect_clean (Served *self)
{
  WeirUpkeepResult result = { 0 };
  GError *error = NULL;

  weir_block_store_verify (self->store, NULL, NULL, NULL, NULL, &result, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (result.titles, ==, N_TITLES);
  g_assert_cmpuint (result.bad_copies + result.lost_blocks + result.leftovers, ==, 0);
}

static gboolean
count_copies (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  const WeirIndex *index = weir_stored_title_get_index (title);

  for (guint32 i = 0; i < index->n_blocks; i++) {
    for (guint j = 0; j < index->blocks[i].n_copies; j++)
      ++((guint *) data)[index->blocks[i].disks[j]];
  }
  return TRUE;
}

// ---- readers ----

typedef struct {
  Served *served;
  gint stop; // atomic
  GThread *thread;
} Reader;

// Reads all titles as they were when they were opened, again and again.
static gpointer
read_titles (gpointer data)
{
  Reader *self = data;

  while (!g_atomic_int_get (&self->stop)) {
    for (guint i = 0; i < N_TITLES * N_BLOCKS; i++)
      check_block (self->served->titles[i % N_TITLES], i / N_TITLES, i % N_TITLES);
  }
  return NULL;
}

static void
change_while_titles_are_read (WeirPlacementPolicy policy, void (*change) (Served *), guint *counts)
{
  Served served;
  Reader reader = { &served };
  WeirStoreBalancer *balancer;
  const gint before = g_atomic_int_get (&n_messages);

  served_begin (&served, 4, policy);
  reader.thread = g_thread_new ("reader", read_titles, &reader);
  balancer = weir_store_balancer_new (served.store, 1 << 20);
  change (&served);
  g_assert_true (is_due (&served));
  WAIT_FOR (!is_due (&served));
  WAIT_FOR (g_atomic_int_get (&n_messages) == before + 2); // begin and end
  g_atomic_int_set (&reader.stop, TRUE);
  g_thread_join (reader.thread);
  weir_store_balancer_free (balancer);
  g_assert_cmpuint (n_moved (&served), >, N_TITLES * N_BLOCKS / 10);
  g_assert_cmpuint (read_stats (served.store).lost, ==, 0);
  for (guint16 i = 0; i < 5; i++)
    g_assert_cmpuint (disk_stats (served.store, i).errors, ==, 0);
  g_assert_cmpint (g_atomic_int_get (&n_messages), ==, before + 2);
  weir_block_store_list (served.store, count_copies, counts, NULL);
  expect_clean (&served);
  served_end (&served);
}

static void
a_disk_that_is_added_gets_its_share_and_readers_notice_nothing (void)
{
  const WeirPlacementPolicy policies[] = { WEIR_PLACEMENT_RDA, WEIR_PLACEMENT_RANDOM };

  for (guint i = 0; i < G_N_ELEMENTS (policies); i++) {
    const guint share = N_TITLES * N_BLOCKS * weir_placement_copies (policies[i]) / 5;
    guint counts[8] = { 0 };

    change_while_titles_are_read (policies[i], add_disk, counts);
    for (guint j = 0; j < 5; j++)
      g_assert_cmpuint (ABS ((gint) counts[j] - (gint) share), <=, 2);
  }
}

static void
a_disk_that_is_removed_is_emptied_and_readers_notice_nothing (void)
{
  guint counts[8] = { 0 };

  change_while_titles_are_read (WEIR_PLACEMENT_RDA, remove_disk, counts);
  g_assert_cmpuint (counts[1], ==, 0);
}

// ---- turns ----

static void
one_balance_at_a_time_works_on_a_store (void)
{
  Served served;
  WeirStoreBalancer *balancers[2];
  GError *error = NULL;
  int turn;

  served_begin (&served, 3, WEIR_PLACEMENT_RDA);
  turn = balancing_begin (served.store, FALSE, NULL, NULL);
  g_assert_cmpint (turn, >=, 0);
  add_disk (&served);
  for (guint i = 0; i < 2; i++)
    balancers[i] = weir_store_balancer_new (served.store, 0);
  g_assert_cmpint (balancing_begin (served.store, TRUE, NULL, &error), ==, -1);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  g_assert_false (weir_block_store_balance (served.store, 0, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  g_usleep (10 * (gulong) weir_balancer_look_us);
  g_assert_cmpuint (n_moved (&served), ==, 0);
  close (turn);
  WAIT_FOR (!is_due (&served));
  g_assert_cmpuint (n_moved (&served), >, 0);
  for (guint i = 0; i < 2; i++)
    weir_store_balancer_free (balancers[i]);
  expect_clean (&served);
  served_end (&served);
}

static void
a_person_takes_over_from_the_background (void)
{
  Served served;
  WeirStoreBalancer *balancer;
  WeirUpkeepResult result = { 0 };
  GError *error = NULL;

  served_begin (&served, 3, WEIR_PLACEMENT_RDA);
  add_disk (&served);
  balancer = weir_store_balancer_new (served.store, BLOCK);
  WAIT_FOR (n_moved (&served) > 0);
  weir_block_store_balance (served.store, 0, NULL, NULL, NULL, &result, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (result.moved, >, 0);
  g_assert_false (is_due (&served));
  weir_store_balancer_free (balancer);
  expect_clean (&served);
  served_end (&served);
}

// ---- giving way, and the end ----

static void
it_waits_while_readers_need_the_disks (void)
{
  Served served;
  WeirStoreBalancer *balancer;
  WeirBlockRequest *requests[N_BLOCKS];
  Answers answers = { 0 };

  gate_install ();
  served_begin (&served, 3, WEIR_PLACEMENT_RANDOM);
  for (guint i = 0; i < 3; i++)
    gate_set (i, TRUE, 0);
  for (guint i = 0; i < N_BLOCKS; i++)
    requests[i] = weir_block_request (served.titles[0], i, in_ms (60000), count_answer, &answers);
  add_disk (&served);
  balancer = weir_store_balancer_new (served.store, 0);
  g_usleep (20 * (gulong) weir_balancer_look_us);
  g_assert_cmpuint (n_moved (&served), ==, 0);
  for (guint i = 0; i < 3; i++)
    gate_set (i, FALSE, 0);
  wait_for_answers (&answers, N_BLOCKS);
  WAIT_FOR (!is_due (&served));
  g_assert_cmpuint (n_moved (&served), >, 0);
  for (guint i = 0; i < N_BLOCKS; i++)
    weir_block_request_free (requests[i]);
  weir_store_balancer_free (balancer);
  served_end (&served);
  gate_remove ();
}

static void
it_ends_at_once_and_goes_on_the_next_time (void)
{
  Served served;
  WeirStoreBalancer *balancer;

  served_begin (&served, 3, WEIR_PLACEMENT_RDA);
  add_disk (&served);
  balancer = weir_store_balancer_new (served.store, SLOW);
  WAIT_FOR (n_moved (&served) == 1);
  weir_store_balancer_free (balancer);
  g_assert_cmpuint (n_moved (&served), ==, 1);
  g_assert_true (is_due (&served));
  expect_clean (&served);
  balancer = weir_store_balancer_new (served.store, 0);
  WAIT_FOR (!is_due (&served));
  weir_store_balancer_free (balancer);
  expect_clean (&served);
  served_end (&served);
}

// A pipe in the place of a block holds who reads it.
static void
a_disk_that_hangs_does_not_hold_the_end (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 1, WEIR_PLACEMENT_NAIVE);
  WeirStoredTitle *title = test_title (store, "a", 1, BLOCK, 0);
  g_autofree gchar *path = copy_path (title, 0, 0);
  g_autofree gchar *fresh = g_build_filename (t.top, "fresh", NULL);
  WeirStoreBalancer *balancer;
  int fd;

  g_assert_cmpint (g_mkdir (fresh, 0777), ==, 0);
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_assert_true (weir_block_store_add_disk (store, fresh, NULL, NULL));
  g_assert_true (weir_block_store_remove_disk (store, t.disks[0], NULL));
  weir_disk_patience_us = 50 * 1000;
  balancer = weir_store_balancer_new (store, 0);
  WAIT_FOR (weir_disk_is_stuck (t.disks[0]));
  weir_store_balancer_free (balancer);
  g_assert_true (weir_disk_is_stuck (t.disks[0]));
  fd = open (path, O_WRONLY | O_NONBLOCK);
  g_assert_cmpint (fd, >=, 0);
  close (fd);
  WAIT_FOR (!weir_disk_is_stuck (t.disks[0]));
  weir_stored_title_unref (title);
  test_store_free (&t, store);
}

static void
a_disk_that_is_not_there_keeps_the_balance_due (void)
{
  Served served;
  g_autofree gchar *added = NULL, *elsewhere = NULL;
  GError *error = NULL;

  served_begin (&served, 3, WEIR_PLACEMENT_RDA);
  add_disk (&served);
  added = g_build_filename (served.t.top, "added", NULL);
  elsewhere = g_strconcat (added, "-elsewhere", NULL);
  g_assert_cmpint (rename (added, elsewhere), ==, 0);
  weir_block_store_balance (served.store, 0, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (is_due (&served));
  g_assert_cmpint (rename (elsewhere, added), ==, 0);
  weir_block_store_balance (served.store, 0, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (is_due (&served));
  expect_clean (&served);
  served_end (&served);
}

#define ADD(test) g_test_add_func ("/balancer/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  count_messages ();
  weir_balancer_look_us = 20 * 1000;
  ADD (a_disk_that_is_added_gets_its_share_and_readers_notice_nothing);
  ADD (a_disk_that_is_removed_is_emptied_and_readers_notice_nothing);
  ADD (one_balance_at_a_time_works_on_a_store);
  ADD (a_person_takes_over_from_the_background);
  ADD (it_waits_while_readers_need_the_disks);
  ADD (it_ends_at_once_and_goes_on_the_next_time);
  ADD (a_disk_that_hangs_does_not_hold_the_end);
  ADD (a_disk_that_is_not_there_keeps_the_balance_due);
  return g_test_run ();
}
