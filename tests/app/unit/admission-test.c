// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/block_admission.h"

#include <glib/gstdio.h>
#include <string.h>

// Disks about which nothing is known count as 17 ms and 60 MB/s.
#define ACCESS_S 0.017
#define DISK_RATE 480e6
#define SLICE_S 5
#define N_DISKS 2
#define SLICE_NS (SLICE_S * G_GINT64_CONSTANT (1000000000))
#define RATE 6000000
#define FREE 0.9 // share of the disks' time that streams may use

static gchar *top;
static WeirBlockStore *store;

static void
set_up (void)
{
  const gchar *disks[N_DISKS + 1] = { NULL };
  GError *error = NULL;
  gchar *location, *warning = NULL;

  top = g_dir_make_tmp (NULL, NULL);
  location = g_build_filename (top, "store", NULL);
  for (guint i = 0; i < N_DISKS; i++) {
    gchar name[] = { (gchar) ('a' + i), '\0' };

    disks[i] = g_build_filename (top, name, NULL);
    g_assert_cmpint (g_mkdir (disks[i], 0700), ==, 0);
  }
  weir_block_store_init (location, disks, WEIR_PLACEMENT_RDA, SLICE_NS, &warning, &error);
  g_assert_no_error (error);
  store = weir_block_store_open (location, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N_DISKS; i++)
    g_free ((gpointer) disks[i]);
  g_free (location);
  g_free (warning);
}

static void
tear_down (void)
{
  const gchar *rm[] = { "rm", "-rf", top, NULL };

  weir_block_store_unref (store);
  g_assert_true (g_spawn_sync (
      NULL, (gchar **) rm, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL));
  g_free (top);
}

static guint8 titles[1000][16]; // ids
static BlockStream *entered[G_N_ELEMENTS (titles)];

static BlockStream *
enter (guint title, guint64 rate, guint32 block, gint64 now_ns)
{
  return block_admission_enter (
      store, titles[title], rate, rate * SLICE_S / 8, block, now_ns, NULL);
}

// Enters, each time with another title, until a stream is refused. Returns the number that were
// admitted.
static guint
enter_blocks (guint64 rate, guint64 bytes)
{
  GError *error = NULL;
  guint n = 0;

  while ((entered[n] = block_admission_enter (store, titles[n], rate, bytes, 0, 0, &error)))
    n++;
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  g_error_free (error);
  return n;
}

static guint
enter_all (guint64 rate)
{
  return enter_blocks (rate, rate * SLICE_S / 8);
}

static void
leave_all (guint n)
{
  for (guint i = 0; i < n; i++)
    block_admission_leave (entered[i]);
}

// The model, for blocks that last for `slice` seconds.
static guint
expect (gdouble rate, gdouble slice)
{
  return (guint) (FREE * N_DISKS * slice / (ACCESS_S + rate * slice / DISK_RATE));
}

static void
test_as_many_as_the_disks_can_give (void)
{
  static const guint64 rates[] = { 1000000, 6000000, 25000000 };

  for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
    guint n = enter_all (rates[i]);

    g_assert_cmpint (ABS ((gint) n - (gint) expect ((gdouble) rates[i], SLICE_S)), <=, 1);
    leave_all (n);
  }
}

// weir-store makes blocks of 64 KiB at least; an element may make blocks shorter than a slice.
static void
test_blocks_longer_and_shorter_than_a_slice_count_by_their_time (void)
{
  static const struct {
    guint64 rate, bytes;
  } cases[] = { { 60000, 64 << 10 }, { 100000000, 16 << 20 } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gdouble rate = (gdouble) cases[i].rate;
    guint n = enter_blocks (cases[i].rate, cases[i].bytes);

    g_assert_cmpint (
        ABS ((gint) n - (gint) expect (rate, (gdouble) cases[i].bytes * 8 / rate)), <=, 1);
    leave_all (n);
  }
}

static void
test_a_stream_that_leaves_makes_room (void)
{
  guint n = enter_all (RATE);

  block_admission_leave (entered[0]);
  entered[0] = enter (0, RATE, 0, 0);
  g_assert_nonnull (entered[0]);
  g_assert_null (enter (n, RATE, 0, 0));
  leave_all (n);
}

static void
test_one_stream_is_always_admitted (void)
{
  BlockStream *large = enter (0, G_GUINT64_CONSTANT (100000000000), 0, 0);

  g_assert_nonnull (large);
  g_assert_null (enter (1, 1000, 0, 0));
  block_admission_leave (large);
}

static void
test_a_stream_close_behind_another_costs_nothing (void)
{
  guint n = enter_all (RATE);
  BlockStream *behind[50];

  block_admission_note (entered[0], 2, TRUE, 0);
  for (guint i = 0; i < G_N_ELEMENTS (behind); i++) {
    behind[i] = enter (0, RATE, 0, SLICE_NS);
    g_assert_nonnull (behind[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (behind); i++)
    block_admission_leave (behind[i]);
  leave_all (n);
}

static void
test_a_stream_farther_off_costs_as_much_as_any (void)
{
  guint n = enter_all (RATE);

  block_admission_note (entered[0], 3, TRUE, 0);
  g_assert_null (enter (0, RATE, 0, 0)); // three blocks behind
  g_assert_null (enter (0, RATE, 4, 0)); // before it
  leave_all (n);
}

static void
test_a_paused_stream_leads_nobody (void)
{
  guint n = enter_all (RATE);

  g_assert_null (enter (0, RATE, 0, SLICE_NS + 1));
  leave_all (n);
}

static void
test_a_stream_that_loses_its_leader_costs (void)
{
  guint n = enter_all (RATE);
  BlockStream *behind = enter (0, RATE, 0, 0);

  block_admission_leave (entered[0]); // the one behind takes its place
  g_assert_null (enter (n, RATE, 0, 0));
  entered[0] = behind;
  leave_all (n);
}

static void
test_a_stream_that_makes_a_disk_read_costs (void)
{
  guint n = enter_all (RATE);
  BlockStream *behind = enter (0, RATE, 0, 0);

  block_admission_note (behind, 100, TRUE, 0);
  block_admission_leave (entered[1]);
  g_assert_null (enter (1, RATE, 0, 0));
  entered[1] = behind;
  leave_all (n);
}

static void
test_a_stream_that_gets_its_blocks_from_memory_costs_nothing (void)
{
  guint n = enter_all (RATE);

  for (guint block = 1; block <= 3; block++)
    block_admission_note (entered[0], block, FALSE, 0);
  block_admission_note (entered[0], 3, FALSE, 0); // again
  g_assert_null (enter (n, RATE, 0, 0));
  for (guint block = 4; block <= 7; block++)
    block_admission_note (entered[0], block, FALSE, 0);
  entered[n] = enter (n, RATE, 0, 0);
  g_assert_nonnull (entered[n]);
  leave_all (n + 1);
}

static void
test_the_line_bounds_all_streams (void)
{
  block_admission_set_line (3 * RATE);
  for (guint i = 0; i < 3; i++) {
    entered[i] = enter (0, RATE, 0, 0); // of one title: they cost the disks one stream
    g_assert_nonnull (entered[i]);
  }
  g_assert_null (enter (0, 1, 0, 0));
  leave_all (3);
  block_admission_set_line (0);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  set_up ();
  for (guint i = 0; i < G_N_ELEMENTS (titles); i++)
    memcpy (titles[i], &i, sizeof i);
  g_test_add_func ("/admission/as-many-as-the-disks-can-give", test_as_many_as_the_disks_can_give);
  g_test_add_func ("/admission/blocks-longer-and-shorter-than-a-slice-count-by-their-time",
      test_blocks_longer_and_shorter_than_a_slice_count_by_their_time);
  g_test_add_func (
      "/admission/a-stream-that-leaves-makes-room", test_a_stream_that_leaves_makes_room);
  g_test_add_func ("/admission/one-stream-is-always-admitted", test_one_stream_is_always_admitted);
  g_test_add_func ("/admission/a-stream-close-behind-another-costs-nothing",
      test_a_stream_close_behind_another_costs_nothing);
  g_test_add_func ("/admission/a-stream-farther-off-costs-as-much-as-any",
      test_a_stream_farther_off_costs_as_much_as_any);
  g_test_add_func ("/admission/a-paused-stream-leads-nobody", test_a_paused_stream_leads_nobody);
  g_test_add_func (
      "/admission/a-stream-that-loses-its-leader-costs", test_a_stream_that_loses_its_leader_costs);
  g_test_add_func ("/admission/a-stream-that-makes-a-disk-read-costs",
      test_a_stream_that_makes_a_disk_read_costs);
  g_test_add_func ("/admission/a-stream-that-gets-its-blocks-from-memory-costs-nothing",
      test_a_stream_that_gets_its_blocks_from_memory_costs_nothing);
  g_test_add_func ("/admission/the-line-bounds-all-streams", test_the_line_bounds_all_streams);
  status = g_test_run ();
  tear_down ();
  return status;
}
