// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/origin_cache.h"

#include <glib/gstdio.h>
#include <string.h>

#include "base/log.h"

#define BLOCK_BYTES 1000u
#define FILE_BYTES (BLOCK_BYTES + 32)

static const guint8 id[ORIGIN_ID_BYTES] = { 1, 2, 3 };

static gchar *
make_folder (void)
{
  gchar *folder = g_dir_make_tmp ("weir-cache-XXXXXX", NULL);

  g_assert_nonnull (folder);
  return folder;
}

// Calls `visit` for each file of a block. Returns the bytes of all.
static guint64
walk (const gchar *folder, void (*visit) (const gchar *path))
{
  GDir *dir = g_dir_open (folder, 0, NULL);
  const gchar *name;
  guint64 bytes = 0;

  while ((name = g_dir_read_name (dir))) {
    gchar *path = g_build_filename (folder, name, NULL);
    GStatBuf st;

    if (!g_str_equal (name, "lock")) {
      g_assert_cmpint (g_stat (path, &st), ==, 0);
      bytes += (guint64) st.st_size;
      if (visit)
        visit (path);
    }
    g_free (path);
  }
  g_dir_close (dir);
  return bytes;
}

static void
remove_file (const gchar *path)
{
  g_unlink (path);
}

static void
remove_folder (gchar *folder)
{
  gchar *lock = g_build_filename (folder, "lock", NULL);

  walk (folder, remove_file);
  g_unlink (lock);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
  g_free (lock);
  g_free (folder);
}

static OriginCache *
open_cache (const gchar *folder, guint64 bytes)
{
  OriginCache *cache = origin_cache_new (folder, bytes);

  origin_cache_open (cache);
  return cache;
}

static void
keep (OriginCache *cache, guint32 number)
{
  guint8 bytes[BLOCK_BYTES];

  memset (bytes, (int) number, sizeof bytes);
  origin_cache_write (cache, id, number, bytes, sizeof bytes);
}

static gboolean
has (OriginCache *cache, guint32 number)
{
  guint8 bytes[BLOCK_BYTES];

  if (!origin_cache_ask (cache, id, number)
      || !origin_cache_read (cache, id, number, bytes, sizeof bytes))
    return FALSE;
  g_assert_cmpuint (bytes[0], ==, number);
  g_assert_cmpuint (bytes[BLOCK_BYTES - 1], ==, number);
  return TRUE;
}

static void
popular_blocks_are_kept_within_the_bound (void)
{
  gchar *folder = make_folder ();
  OriginCache *cache = open_cache (folder, 4 * FILE_BYTES);

  for (guint round = 0; round < 5; round++) {
    for (guint32 i = 0; i < 3; i++) {
      if (!has (cache, i))
        keep (cache, i);
    }
  }
  for (guint32 i = 10; i < 50; i++) {
    g_assert_false (has (cache, i));
    keep (cache, i);
    g_assert_cmpuint (walk (folder, NULL), <=, 4 * FILE_BYTES);
  }
  for (guint32 i = 0; i < 3; i++)
    g_assert_true (has (cache, i));
  origin_cache_unref (cache);
  remove_folder (folder);
}

static void
blocks_outlive_the_program_within_a_smaller_bound (void)
{
  gchar *folder = make_folder ();
  OriginCache *cache = open_cache (folder, 4 * FILE_BYTES);

  for (guint32 i = 0; i < 4; i++)
    keep (cache, i);
  origin_cache_unref (cache);
  cache = open_cache (folder, 4 * FILE_BYTES);
  for (guint32 i = 0; i < 4; i++)
    g_assert_true (has (cache, i));
  origin_cache_unref (cache);
  cache = open_cache (folder, 2 * FILE_BYTES);
  g_assert_cmpuint (walk (folder, NULL), ==, 2 * FILE_BYTES);
  origin_cache_unref (cache);
  remove_folder (folder);
}

static void
damage (const gchar *path)
{
  gchar *text;
  gsize length;

  g_assert_true (g_file_get_contents (path, &text, &length, NULL));
  text[length / 2] ^= 1;
  g_assert_true (g_file_set_contents (path, text, (gssize) length, NULL));
  g_free (text);
}

static void
cut (const gchar *path)
{
  g_assert_true (g_file_set_contents (path, "", 0, NULL));
}

static void
damaged_blocks_are_forgotten (void)
{
  void (*const ways[]) (const gchar *) = { damage, cut, remove_file };

  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    gchar *folder = make_folder ();
    OriginCache *cache = open_cache (folder, 4 * FILE_BYTES);

    keep (cache, 7);
    g_assert_true (has (cache, 7));
    walk (folder, ways[i]);
    g_assert_false (has (cache, 7));
    keep (cache, 7);
    g_assert_true (has (cache, 7));
    origin_cache_unref (cache);
    remove_folder (folder);
  }
}

static void
a_folder_has_one_user (void)
{
  gchar *folder = make_folder ();
  OriginCache *first = open_cache (folder, 4 * FILE_BYTES);
  OriginCache *second = open_cache (folder, 4 * FILE_BYTES);

  keep (second, 1);
  g_assert_false (has (second, 1));
  origin_cache_unref (first);
  origin_cache_open (second);
  keep (second, 1);
  g_assert_true (has (second, 1));
  origin_cache_unref (second);
  remove_folder (folder);
}

static void
a_folder_that_cannot_be_made_keeps_nothing (void)
{
  OriginCache *cache = open_cache ("/nowhere/at/all", 4 * FILE_BYTES);

  keep (cache, 1);
  g_assert_false (has (cache, 1));
  origin_cache_unref (cache);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  log_init ();
  g_test_add_func ("/origin-cache/bound", popular_blocks_are_kept_within_the_bound);
  g_test_add_func ("/origin-cache/restart", blocks_outlive_the_program_within_a_smaller_bound);
  g_test_add_func ("/origin-cache/damage", damaged_blocks_are_forgotten);
  g_test_add_func ("/origin-cache/lock", a_folder_has_one_user);
  g_test_add_func ("/origin-cache/nowhere", a_folder_that_cannot_be_made_keeps_nothing);
  return g_test_run ();
}
