// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores whose titles are read elsewhere: which place is asked, what the cache is for, and what
// readers get when a place fails.

#include <errno.h>
#include <stdlib.h>

#include "store/reading.h"
#include "store/remote.h"
#include "stores.h"

#define BLOCK_BYTES 10000u
#define N_BLOCKS 4u

// What the imitated title does. Its blocks consist of bytes with the number of the block.
typedef struct {
  GMutex lock;
  GCond changed;
  gint refuses[3];    // errno of the cache and of the places; 0: they answer
  gboolean closed[3]; // they do not answer until this is changed
  gboolean cached;
  guint asked[3];
  gboolean freed;
} Far;

static gboolean
far_is_cached (gpointer data, guint32 number)
{
  return ((Far *) data)->cached;
}

static gint
far_read (gpointer data, guint disk, guint32 number, guint64 offset, guint8 *bytes, gsize length,
    gchar **why)
{
  Far *far = data;
  gint error;

  g_assert_cmpuint (offset, ==, number * BLOCK_BYTES);
  g_mutex_lock (&far->lock);
  far->asked[disk]++;
  g_cond_broadcast (&far->changed);
  while (far->closed[disk])
    g_cond_wait (&far->changed, &far->lock);
  error = far->refuses[disk];
  g_mutex_unlock (&far->lock);
  if (error)
    *why = g_strdup ("it says no");
  else
    memset (bytes, (int) number, length);
  return error;
}

static void
far_free (gpointer data)
{
  Far *far = data;

  g_mutex_lock (&far->lock);
  far->freed = TRUE;
  g_cond_broadcast (&far->changed);
  g_mutex_unlock (&far->lock);
}

static const WeirRemoteKind kind = { far_is_cached, far_read, far_free };

static WeirBlockStore *
new_store (void)
{
  const gchar *places[] = { "first", "second", NULL };

  return weir_block_store_new_remote (places, "cache", SECOND);
}

static WeirStoredTitle *
open_title (WeirBlockStore *store, Far *far, guint8 n_places)
{
  WeirIndex index = { .rate = 8 * BLOCK_BYTES,
    .slice_ns = SECOND,
    .duration_ns = WEIR_INDEX_NO_TIME,
    .bytes = N_BLOCKS * BLOCK_BYTES,
    .n_blocks = N_BLOCKS };

  index.name = strdup ("film.mp4");
  index.caps = strdup ("");
  index.blocks = calloc (N_BLOCKS, sizeof *index.blocks);
  for (guint i = 0; i < N_BLOCKS; i++)
    index.blocks[i] = (WeirIndexBlock) {
      .offset = i * BLOCK_BYTES, .length = BLOCK_BYTES, .n_copies = n_places, .disks = { 1, 2 }
    };
  return weir_block_store_open_remote (store, &index, &kind, far);
}

static void
check_read (WeirStoredTitle *title, guint32 number)
{
  GError *error = NULL;
  WeirBlock *block = weir_block_read (title, number, g_get_monotonic_time () * 1000, NULL, &error);
  const guint8 *bytes;
  gsize length;

  g_assert_no_error (error);
  bytes = weir_block_get_bytes (block, &length);
  g_assert_cmpuint (length, ==, BLOCK_BYTES);
  g_assert_cmpuint (bytes[0], ==, number);
  g_assert_cmpuint (bytes[length - 1], ==, number);
  weir_block_unref (block);
}

static void
end (WeirBlockStore *store, WeirStoredTitle *title, Far *far)
{
  weir_stored_title_unref (title);
  weir_block_store_unref (store);
  g_mutex_lock (&far->lock);
  while (!far->freed)
    g_cond_wait (&far->changed, &far->lock);
  g_mutex_unlock (&far->lock);
}

static void
a_block_is_read_once (void)
{
  Far far = { 0 };
  WeirBlockStore *store = new_store ();
  WeirStoredTitle *title = open_title (store, &far, 1);

  for (guint32 i = 0; i < N_BLOCKS; i++)
    check_read (title, i);
  for (guint32 i = 0; i < N_BLOCKS; i++)
    check_read (title, i);
  g_assert_cmpuint (far.asked[1], ==, N_BLOCKS);
  g_assert_cmpuint (far.asked[0], ==, 0);
  end (store, title, &far);
}

static void
the_other_place_makes_up_for_one_that_fails (void)
{
  Far far = { .refuses = { 0, EIO, 0 } };
  WeirBlockStore *store = new_store ();
  WeirStoredTitle *title = open_title (store, &far, 2);

  g_test_expect_message ("weir-store", G_LOG_LEVEL_WARNING, "*disk 1 (first)*it says no*");
  for (guint32 i = 0; i < N_BLOCKS; i++)
    check_read (title, i);
  g_assert_cmpuint (far.asked[1], >, 0);
  end (store, title, &far);
  g_test_assert_expected_messages ();
}

static void
the_other_place_is_asked_when_one_does_not_answer (void)
{
  Far far = { .closed = { FALSE, TRUE, FALSE } };
  WeirBlockStore *store = new_store ();
  WeirStoredTitle *title = open_title (store, &far, 2);

  check_read (title, 1);
  g_assert_cmpuint (far.asked[1], ==, 1);
  g_assert_cmpuint (far.asked[2], ==, 1);
  g_mutex_lock (&far.lock);
  far.closed[1] = FALSE;
  g_cond_broadcast (&far.changed);
  g_mutex_unlock (&far.lock);
  end (store, title, &far);
}

static void
the_cache_is_read_first_and_replaced_by_a_place_if_it_fails (void)
{
  Far far = { .cached = TRUE };
  WeirBlockStore *store = new_store ();
  WeirStoredTitle *title = open_title (store, &far, 1);

  check_read (title, 0);
  g_assert_cmpuint (far.asked[0], ==, 1);
  g_assert_cmpuint (far.asked[1], ==, 0);
  far.refuses[0] = ENOENT;
  check_read (title, 1);
  g_assert_cmpuint (far.asked[0], ==, 2);
  g_assert_cmpuint (far.asked[1], ==, 1);
  end (store, title, &far);
}

static void
a_title_that_has_changed_at_all_places_cannot_be_read (void)
{
  Far far = { .refuses = { 0, ESTALE, ESTALE } };
  WeirBlockStore *store = new_store ();
  WeirStoredTitle *title = open_title (store, &far, 2);
  GError *error = NULL;

  g_test_expect_message ("weir-store", G_LOG_LEVEL_WARNING,
      "*block 2 of title 'film.mp4'*(first): it says no; disk 2 (second): it says no");
  g_assert_null (weir_block_read (title, 2, g_get_monotonic_time () * 1000, NULL, &error));
  g_assert_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT);
  g_clear_error (&error);
  end (store, title, &far);
  g_test_assert_expected_messages ();
}

static void
users_of_a_title_share_it (void)
{
  Far far = { 0 }, other = { 0 };
  WeirBlockStore *store = new_store ();
  WeirStoredTitle *title = open_title (store, &far, 2), *again = open_title (store, &other, 2);

  g_assert_true (title == again);
  g_assert_true (other.freed);
  weir_stored_title_unref (again);
  end (store, title, &far);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/remote/once", a_block_is_read_once);
  g_test_add_func ("/remote/fails", the_other_place_makes_up_for_one_that_fails);
  g_test_add_func ("/remote/hangs", the_other_place_is_asked_when_one_does_not_answer);
  g_test_add_func ("/remote/cache", the_cache_is_read_first_and_replaced_by_a_place_if_it_fails);
  g_test_add_func ("/remote/changed", a_title_that_has_changed_at_all_places_cannot_be_read);
  g_test_add_func ("/remote/shared", users_of_a_title_share_it);
  return g_test_run ();
}
