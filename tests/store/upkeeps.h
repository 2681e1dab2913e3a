// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the tests of upkeep.h share: calls that must not fail, and what they reported.

#include "store/upkeep.h"
#include "stores.h"

#define BLOCK 10000

typedef struct {
  GPtrArray *problems;
  guint64 done, total;
  GCancellable *cancellable; // cancelled after `cancel_after` calls
  guint n_calls, cancel_after;
} Seen;

static inline void
note (guint64 done, guint64 total, const gchar *title, const gchar *problem, gpointer data)
{
  Seen *seen = data;

  seen->done = done;
  seen->total = total;
  if (problem)
    g_ptr_array_add (seen->problems, g_strdup (problem));
  if (++seen->n_calls == seen->cancel_after)
    g_cancellable_cancel (seen->cancellable);
}

static inline Seen
seen_new (void)
{
  return (Seen) { .problems = g_ptr_array_new_with_free_func (g_free) };
}

// Checks that there are `n` problems, the first with this text, and forgets them.
static inline void
expect_problems (Seen *seen, guint n, const gchar *text)
{
  if (seen->problems->len != n || (n > 0 && !strstr (seen->problems->pdata[0], text)))
    g_error ("%u problems, not %u; the first is '%s', not '%s'", seen->problems->len, n,
        seen->problems->len ? (const gchar *) seen->problems->pdata[0] : "", text);
  g_ptr_array_set_size (seen->problems, 0);
}

static inline void
seen_free (Seen *seen)
{
  g_ptr_array_unref (seen->problems);
}

static inline WeirUpkeepResult
verify (WeirBlockStore *store, Seen *seen)
{
  GError *error = NULL;
  WeirUpkeepResult result;

  weir_block_store_verify (store, NULL, note, seen, NULL, &result, &error);
  g_assert_no_error (error);
  return result;
}

static inline WeirUpkeepResult
repair (WeirBlockStore *store, Seen *seen)
{
  GError *error = NULL;
  WeirUpkeepResult result;

  weir_block_store_repair (store, NULL, 0, FALSE, note, seen, NULL, &result, &error);
  g_assert_no_error (error);
  return result;
}

static inline WeirUpkeepResult
balance (WeirBlockStore *store, Seen *seen)
{
  GError *error = NULL;
  WeirUpkeepResult result;

  weir_block_store_balance (store, 0, note, seen, NULL, &result, &error);
  g_assert_no_error (error);
  return result;
}

static inline void
expect_clean (WeirBlockStore *store, Seen *seen, guint titles)
{
  WeirUpkeepResult result = verify (store, seen);

  expect_problems (seen, 0, "");
  g_assert_cmpuint (result.titles, ==, titles);
  g_assert_cmpuint (result.bad_copies + result.lost_blocks + result.leftovers + result.bad_indexes
                        + result.bad_index_copies + result.unknown,
      ==, 0);
  g_assert_cmpuint (seen->done, ==, seen->total);
}

// Returns the path of copy `copy` of a block. (transfer full)
static inline gchar *
path_of (WeirStoredTitle *title, guint number, guint copy)
{
  guint16 disks[2];

  g_assert_cmpuint (weir_stored_title_find_copies (title, number, disks, NULL), >, copy);
  return weir_stored_title_dup_block_path (title, number, disks[copy]);
}

static inline void
damage (WeirStoredTitle *title, guint number, guint copy, gssize length)
{
  g_autofree gchar *path = path_of (title, number, copy), *bytes = NULL;
  gsize n;

  if (length < 0) {
    g_assert_cmpint (g_remove (path), ==, 0);
    return;
  }
  g_assert_true (g_file_get_contents (path, &bytes, &n, NULL));
  bytes[n / 2] ^= 1;
  g_assert_true (g_file_set_contents (path, bytes, length, NULL));
}

// Counts the copies on each disk, as the indexes say.
static inline gboolean
count_copies (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  const WeirIndex *index = weir_stored_title_get_index (title);
  guint *counts = data;

  for (guint i = 0; i < index->n_blocks; i++) {
    for (guint j = 0; j < index->blocks[i].n_copies; j++)
      counts[index->blocks[i].disks[j]]++;
  }
  return TRUE;
}
