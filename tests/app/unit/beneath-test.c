// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

static gchar *top, *folder;

static void
put (const gchar *name, const gchar *text)
{
  gchar *path = g_build_filename (top, name, NULL);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  g_free (path);
}

static void
link_to (const gchar *name, const gchar *target)
{
  gchar *path = g_build_filename (folder, name, NULL);

  g_assert_cmpint (symlink (target, path), ==, 0);
  g_free (path);
}

static void
set_up (void)
{
  gchar *path, *outside;

  top = g_dir_make_tmp (NULL, NULL);
  folder = g_build_filename (top, "films", NULL);
  path = g_build_filename (folder, "sub", NULL);
  g_assert_cmpint (g_mkdir_with_parents (path, 0700), ==, 0);
  g_free (path);
  put ("secret", "outside");
  put ("films/a", "inside");
  put ("films/sub/b", "inside");
  link_to ("near", "sub/b");
  link_to ("folder", "sub");
  link_to ("sub/back", "../a");
  link_to ("sub/round", "../sub/b");
  link_to ("far", "../secret");
  link_to ("up", "..");
  link_to ("sub/up", "../..");
  link_to ("loop", "loop");
  link_to ("root", "/");
  link_to ("magic", "/proc/self/cwd");
  outside = g_build_filename (top, "secret", NULL);
  link_to ("absolute", outside);
  g_free (outside);
  path = g_build_filename (folder, "fifo", NULL);
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_free (path);
}

static const struct {
  const gchar *path;
  gboolean open, walk; // whether the file can be opened so
} cases[] = {
  { "a", TRUE, TRUE },
  { "sub/b", TRUE, TRUE },
  { "near", TRUE, FALSE },
  { "folder/b", TRUE, FALSE },
  { "sub/back", FALSE, FALSE }, // a permission for `sub` is none for `a`
  { "folder/back", FALSE, FALSE },
  { "sub/round", FALSE, FALSE },
  { "far", FALSE, FALSE },
  { "absolute", FALSE, FALSE },
  { "up/secret", FALSE, FALSE },
  { "up/films/a", FALSE, FALSE },
  { "sub/up/secret", FALSE, FALSE },
  { "root/etc/passwd", FALSE, FALSE },
  { "magic/a", FALSE, FALSE },
  { "loop", FALSE, FALSE },
  { "../secret", FALSE, FALSE },
  { "sub/../../secret", FALSE, FALSE },
  { "/etc/passwd", FALSE, FALSE },
  { "sub", FALSE, FALSE },
  { "", FALSE, FALSE },
  { ".", FALSE, FALSE },
  { "..", FALSE, FALSE },
  { "fifo", FALSE, FALSE },
  { "a/b", FALSE, FALSE },
  { "nothing", FALSE, FALSE },
};

static void
is_inside (int fd, const gchar *path)
{
  gchar text[8] = "";

  g_test_message ("%s", path);
  g_assert_cmpint (read (fd, text, sizeof text - 1), ==, 6);
  g_assert_cmpstr (text, ==, "inside");
}

static void
only_files_inside_the_folder_are_opened (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    int fd = beneath_open (folder, cases[i].path);

    g_test_message ("%s: %d", cases[i].path, fd);
    g_assert_cmpint (fd >= 0, ==, cases[i].open);
    if (fd < 0)
      continue;
    is_inside (fd, cases[i].path);
    close (fd);
  }
}

static gboolean
is_file (int fd)
{
  struct stat st;

  return fd >= 0 && fstat (fd, &st) == 0 && S_ISREG (st.st_mode);
}

static void
the_walk_follows_no_links (void)
{
  int dir = open (folder, O_PATH | O_DIRECTORY);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    int fd = beneath_walk (dir, cases[i].path);

    g_test_message ("%s: %d", cases[i].path, fd);
    g_assert_cmpint (is_file (fd), ==, cases[i].walk);
    if (fd >= 0)
      close (fd);
  }
  close (dir);
}

static void
a_missing_folder_is_an_error (void)
{
  gchar *file = g_build_filename (folder, "a", NULL);

  g_assert_cmpint (beneath_open (file, "a"), ==, -1);
  g_assert_cmpint (beneath_open ("/nowhere/to/be/found", "a"), ==, -1);
  g_free (file);
}

static void
clean_up (void)
{
  gchar *words[] = { (gchar *) "rm", (gchar *) "-rf", top, NULL };

  g_spawn_sync (NULL, words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL);
  g_free (top);
  g_free (folder);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  set_up ();
  g_test_add_func (
      "/beneath/only-files-inside-the-folder-are-opened", only_files_inside_the_folder_are_opened);
  g_test_add_func ("/beneath/the-walk-follows-no-links", the_walk_follows_no_links);
  g_test_add_func ("/beneath/a-missing-folder-is-an-error", a_missing_folder_is_an_error);
  status = g_test_run ();
  clean_up ();
  return status;
}
