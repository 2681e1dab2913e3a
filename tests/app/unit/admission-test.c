// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/block_admission.h"

#include <glib/gstdio.h>
#include <stdlib.h>

// Disks about which nothing is known count as 17 ms and 60 MB/s.
#define ACCESS_S 0.017
#define DISK_RATE 480e6
#define SLICE_S 5
#define N_DISKS 2
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
  weir_block_store_init (location, disks, WEIR_PLACEMENT_RDA,
      SLICE_S * G_GINT64_CONSTANT (1000000000), &warning, &error);
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

// Enters until a stream is refused. Returns the number that were admitted.
static guint
enter_all (guint64 rate)
{
  GError *error = NULL;
  guint n = 0;

  while (block_admission_enter (store, rate, &error))
    n++;
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  g_error_free (error);
  return n;
}

static void
leave_all (guint64 rate, guint n)
{
  for (guint i = 0; i < n; i++)
    block_admission_leave (store, rate);
}

static guint
expect (gdouble rate)
{
  return (guint) (FREE * N_DISKS * SLICE_S / (ACCESS_S + rate * SLICE_S / DISK_RATE));
}

static void
test_as_many_as_the_disks_can_give (void)
{
  static const guint64 rates[] = { 1000000, 6000000, 25000000 };

  for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
    guint n = enter_all (rates[i]);

    g_assert_cmpint (ABS ((gint) n - (gint) expect ((gdouble) rates[i])), <=, 1);
    leave_all (rates[i], n);
  }
}

static void
test_a_stream_that_leaves_makes_room (void)
{
  guint n = enter_all (6000000);

  block_admission_leave (store, 6000000);
  g_assert_true (block_admission_enter (store, 6000000, NULL));
  g_assert_false (block_admission_enter (store, 6000000, NULL));
  leave_all (6000000, n);
}

static void
test_one_stream_is_always_admitted (void)
{
  g_assert_true (block_admission_enter (store, G_GUINT64_CONSTANT (100000000000), NULL));
  g_assert_false (block_admission_enter (store, 1000, NULL));
  block_admission_leave (store, G_GUINT64_CONSTANT (100000000000));
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  set_up ();
  g_test_add_func ("/admission/as-many-as-the-disks-can-give", test_as_many_as_the_disks_can_give);
  g_test_add_func (
      "/admission/a-stream-that-leaves-makes-room", test_a_stream_that_leaves_makes_room);
  g_test_add_func ("/admission/one-stream-is-always-admitted", test_one_stream_is_always_admitted);
  status = g_test_run ();
  tear_down ();
  return status;
}
