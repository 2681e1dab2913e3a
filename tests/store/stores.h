// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A store with disks in a folder of its own, for tests.

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "store/blockstore.h"
#include "store/writing.h"

#define SECOND G_GINT64_CONSTANT (1000000000)

typedef struct {
  gchar *top, *dir;
  gchar *disks[WEIR_STORE_DISKS_MAX + 1]; // NULL-terminated
} TestStore;

// Makes folders for a store and `n` disks, but no store.
static inline TestStore
test_folders (guint n)
{
  TestStore t = { .top = g_dir_make_tmp ("weir-store-XXXXXX", NULL) };

  g_assert_nonnull (t.top);
  t.dir = g_build_filename (t.top, "store", NULL);
  for (guint i = 0; i < n; i++) {
    t.disks[i] = g_strdup_printf ("%s/disk%u", t.top, i);
    g_assert_cmpint (g_mkdir (t.disks[i], 0777), ==, 0);
  }
  return t;
}

// Makes a store of slices of this length, and opens it.
static inline WeirBlockStore *
test_store_of (TestStore *t, guint n, WeirPlacementPolicy policy, gint64 slice_ns)
{
  GError *error = NULL;
  WeirBlockStore *store;

  *t = test_folders (n);
  weir_block_store_init (t->dir, (const gchar *const *) t->disks, policy, slice_ns, NULL, &error);
  g_assert_no_error (error);
  store = weir_block_store_open (t->dir, &error);
  g_assert_no_error (error);
  return store;
}

static inline WeirBlockStore *
test_store (TestStore *t, guint n, WeirPlacementPolicy policy)
{
  return test_store_of (t, n, policy, SECOND);
}

static inline void
test_remove_tree (const gchar *path)
{
  GDir *dir = g_file_test (path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open (path, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *below = g_build_filename (path, name, NULL);

    test_remove_tree (below);
  }
  if (dir)
    g_dir_close (dir);
  g_remove (path);
}

static inline void
test_store_free (TestStore *t, WeirBlockStore *store)
{
  if (store)
    weir_block_store_unref (store);
  test_remove_tree (t->top);
  for (guint i = 0; t->disks[i]; i++)
    g_free (t->disks[i]);
  g_free (t->dir);
  g_free (t->top);
}

// Returns byte `at` of the content that `seed` stands for.
static inline guint8
test_byte (guint seed, guint64 at)
{
  return (guint8) (((at + seed) * 2654435761u) >> 24 ^ at);
}

static inline void
test_fill (guint8 *bytes, gsize length, guint seed, guint64 at)
{
  for (gsize i = 0; i < length; i++)
    bytes[i] = test_byte (seed, at + i);
}

// Begins a title and writes `n_blocks` blocks of `length` bytes each, one a second, all with a
// keyframe and without a table.
static inline WeirTitleWriter *
test_begin (WeirBlockStore *store, const gchar *name, guint n_blocks, gsize length, guint seed)
{
  g_autofree guint8 *bytes = g_malloc (length);
  GError *error = NULL;
  WeirTitleWriter *writer =
      weir_title_writer_new (store, name, "video/test", n_blocks * length, &error);

  g_assert_no_error (error);
  for (guint i = 0; i < n_blocks; i++) {
    test_fill (bytes, length, seed, i * length);
    weir_title_writer_add_block (writer, bytes, length, 0, i * SECOND, WEIR_BLOCK_KEYFRAME, &error);
    g_assert_no_error (error);
  }
  return writer;
}

// Writes such a title and opens it.
static inline WeirStoredTitle *
test_title (WeirBlockStore *store, const gchar *name, guint n_blocks, gsize length, guint seed)
{
  WeirTitleWriter *writer = test_begin (store, name, n_blocks, length, seed);
  GError *error = NULL;
  WeirStoredTitle *title;

  weir_title_writer_finish (writer, 0, n_blocks * SECOND, &error);
  g_assert_no_error (error);
  weir_title_writer_free (writer);
  title = weir_block_store_open_title (store, name, &error);
  g_assert_no_error (error);
  return title;
}
