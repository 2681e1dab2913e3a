// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/folder.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gchar *top;

static gchar *
path_of (const gchar *name)
{
  return g_build_filename (top, name, NULL);
}

static void
put (const gchar *name, const gchar *text)
{
  gchar *path = path_of (name), *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  g_free (folder);
  g_free (path);
}

static void
set_up (void)
{
  gchar *path;

  top = g_dir_make_tmp (NULL, NULL);
  put ("films/a.mp4", "12345");
  put ("films/deep/er/b c.ts", "123");
  put ("films/.hidden.mp4", "1");
  put ("films/.git/c.mp4", "1");
  put ("films/back\\slash", "1");
  put ("films/line\nbreak", "1");
  put ("films/latin-1 \xe9", "1");
  put ("secret.mp4", "1");
  path = path_of ("films/near.mp4");
  g_assert_cmpint (symlink ("a.mp4", path), ==, 0);
  g_free (path);
  path = path_of ("films/up");
  g_assert_cmpint (symlink ("..", path), ==, 0);
  g_free (path);
  path = path_of ("films/fifo");
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_free (path);
}

static Store *
films (void)
{
  gchar *path = path_of ("films");
  Store *store = folder_new (path, FALSE);

  g_free (path);
  return store;
}

static gboolean
collect (const gchar *name, guint64 size, gpointer data)
{
  g_ptr_array_add (data, g_strdup_printf ("%s: %" G_GUINT64_FORMAT, name, size));
  return TRUE;
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  return strcmp (*(gchar *const *) a, *(gchar *const *) b);
}

static void
files_with_valid_names_are_listed (void)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (g_free);
  Store *store = films ();

  g_assert_true (store_list (store, collect, all));
  g_ptr_array_sort (all, compare);
  g_assert_cmpuint (all->len, ==, 2);
  g_assert_cmpstr (all->pdata[0], ==, "a.mp4: 5");
  g_assert_cmpstr (all->pdata[1], ==, "deep/er/b c.ts: 3");
  g_ptr_array_unref (all);
  store_unref (store);
}

static gboolean
count_one (const gchar *name, guint64 size, gpointer n)
{
  ++*(guint *) n;
  return FALSE;
}

static void
a_callback_can_end_the_listing (void)
{
  Store *store = films ();
  guint n = 0;

  g_assert_true (store_list (store, count_one, &n));
  g_assert_cmpuint (n, ==, 1);
  store_unref (store);
}

// Links inside the folder are not listed, but can be opened.
static void
only_files_inside_are_opened (void)
{
  static const struct {
    const gchar *name;
    gint64 size; // -1: the name cannot be opened
  } cases[] = {
    { "a.mp4", 5 },
    { "near.mp4", 5 },
    { "deep/er/b c.ts", 3 },
    { "deep", -1 },
    { "fifo", -1 },
    { "none", -1 },
    { "../secret.mp4", -1 },
    { "up/secret.mp4", -1 },
  };
  Store *store = films ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    guint64 size = 0;
    int fd = store_open (store, cases[i].name, &size, NULL);

    g_test_message ("%s", cases[i].name);
    g_assert_cmpint (fd < 0 ? -1 : (gint64) size, ==, cases[i].size);
    if (fd >= 0)
      close (fd);
  }
  store_unref (store);
}

static void
errors_name_the_title_and_the_reason (void)
{
  Store *store = films ();
  GError *error = NULL;

  g_assert_cmpint (store_open (store, "none", NULL, &error), ==, -1);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "none: No such file or directory");
  g_clear_error (&error);
  g_assert_cmpint (store_open (store, "up/secret.mp4", NULL, &error), ==, -1);
  g_assert_cmpstr (
      error->message, ==, "up/secret.mp4: a link leads out of the folder in which it lies");
  g_clear_error (&error);
  store_unref (store);
}

static void
a_folder_may_be_missing (void)
{
  Store *store = folder_new ("/nowhere/to/be/found", FALSE);
  guint n = 0;

  g_assert_false (store_list (store, count_one, &n));
  g_assert_cmpint (errno, ==, ENOENT);
  g_assert_cmpint (store_open (store, "a.mp4", NULL, NULL), ==, -1);
  g_assert_cmpint (errno, ==, ENOENT);
  store_unref (store);
}

static void
names_are_checked (void)
{
  static const gchar *const good[] = { "a", "a/b", "a b/c.mp4", "\xc3\xa9" };
  static const gchar *const bad[] = { "", "/a", "a/", "a//b", ".", "..", "a/../b", ".a", "a/.b",
    "a\\b", "a\nb", "a\x7f", "\xe9" };
  gchar *longest = g_strnfill (255, 'x'), *long_part = g_strnfill (256, 'x');

  for (guint i = 0; i < G_N_ELEMENTS (good); i++) {
    g_test_message ("%s", good[i]);
    g_assert_true (store_is_name (good[i]));
  }
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    gchar *shown = g_strescape (bad[i], NULL); // TAP output must be UTF-8

    g_test_message ("%s", shown);
    g_assert_false (store_is_name (bad[i]));
    g_free (shown);
  }
  g_assert_true (store_is_name (longest));
  g_assert_false (store_is_name (long_part));
  g_free (longest);
  g_free (long_part);
}

static void
clean_up (void)
{
  gchar *words[] = { (gchar *) "rm", (gchar *) "-rf", top, NULL };

  g_spawn_sync (NULL, words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL);
  g_free (top);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  set_up ();
  g_test_add_func ("/store/files-with-valid-names-are-listed", files_with_valid_names_are_listed);
  g_test_add_func ("/store/a-callback-can-end-the-listing", a_callback_can_end_the_listing);
  g_test_add_func ("/store/only-files-inside-are-opened", only_files_inside_are_opened);
  g_test_add_func (
      "/store/errors-name-the-title-and-the-reason", errors_name_the_title_and_the_reason);
  g_test_add_func ("/store/a-folder-may-be-missing", a_folder_may_be_missing);
  g_test_add_func ("/store/names-are-checked", names_are_checked);
  status = g_test_run ();
  clean_up ();
  return status;
}
