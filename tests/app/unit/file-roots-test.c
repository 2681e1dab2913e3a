// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/file_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gchar *top;

static void
make (const gchar *name, const gchar *target)
{
  gchar *path = g_build_filename (top, name, NULL);

  if (target)
    g_assert_cmpint (symlink (target, path), ==, 0);
  else
    g_assert_cmpint (g_mkdir_with_parents (path, 0700), ==, 0);
  g_free (path);
}

static void
set_roots (const gchar *first, const gchar *second)
{
  gchar *a = first ? g_strconcat (top, first, NULL) : NULL;
  gchar *b = second ? g_strconcat (top, second, NULL) : NULL;

  file_roots_set ((gchar *[]) { a, b, NULL });
  g_free (a);
  g_free (b);
}

// Opens a path below the folder of the test. Returns 0, or errno.
static int
open_error (const gchar *name)
{
  gchar *path = g_strconcat (top, name, NULL);
  int fd = file_roots_open (path, O_PATH);
  int error = fd < 0 ? errno : 0;

  if (fd >= 0)
    close (fd);
  g_test_message ("%s: %s", path, g_strerror (error));
  g_free (path);
  return error;
}

static void
only_what_is_below_a_root_is_opened (void)
{
  static const struct {
    const gchar *name;
    int error;
  } cases[] = {
    { "/in", 0 },
    { "/in/", 0 },
    { "/in/sub", 0 },
    { "/in/sub/", 0 },
    { "//in//sub", 0 },
    { "/in/sub/../sub/.", 0 },
    { "/out/../in/sub", 0 },
    { "/in/near", 0 },
    { "/in/near/deep", 0 },
    { "/in/none", ENOENT },
    { "", EPERM },
    { "/", EPERM },
    { "/i", EPERM },
    { "/inside", EPERM },
    { "/out", EPERM },
    { "/in/../out", EPERM },
    { "/in/sub/../../out", EPERM },
    { "/in/far", EXDEV },
    { "/in/far/x", EXDEV },
    { "/in/absolute", EXDEV },
  };

  set_roots ("/in/", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    g_assert_cmpint (open_error (cases[i].name), ==, cases[i].error);
  g_assert_cmpint (file_roots_open ("in/sub", O_PATH), ==, -1);
  g_assert_cmpint (file_roots_open ("", O_PATH), ==, -1);
  g_assert_cmpint (errno, ==, EPERM);
  file_roots_set ((gchar *[]) { (gchar *) "/", NULL });
  g_assert_cmpint (open_error ("/out"), ==, 0);
}

static void
each_root_counts (void)
{
  set_roots ("/out", "/in/sub");
  g_assert_cmpint (open_error ("/out"), ==, 0);
  g_assert_cmpint (open_error ("/in/sub/deep"), ==, 0);
  g_assert_cmpint (open_error ("/in"), ==, EPERM);
  set_roots ("/none", "/in");
  g_assert_cmpint (open_error ("/none"), ==, ENOENT);
  g_assert_cmpint (open_error ("/in"), ==, 0);
}

static void
errors_say_what_to_do (void)
{
  gchar *wrong;

  file_roots_set (NULL);
  wrong = file_roots_check ("/etc/passwd");
  g_assert_nonnull (strstr (wrong, "list the folders that they may use in `file-roots`"));
  g_free (wrong);
  set_roots ("/in", NULL);
  wrong = file_roots_check ("/etc/passwd");
  g_assert_nonnull (strstr (wrong, "/etc/passwd is below no folder of `file-roots`"));
  g_free (wrong);
}

static void
a_name_means_the_open_folder (void)
{
  gchar *path = g_strconcat (top, "/in/sub", NULL), *moved = g_strconcat (top, "/in/moved", NULL);
  gchar *name, *within;
  int fd;

  set_roots ("/in", NULL);
  fd = file_roots_open (path, O_PATH | O_DIRECTORY);
  name = file_roots_dup_name (fd);
  within = g_build_filename (name, "deep", NULL);
  g_assert_cmpint (rename (path, moved), ==, 0);
  g_assert_true (g_file_test (within, G_FILE_TEST_IS_DIR));
  g_assert_cmpint (rename (moved, path), ==, 0);
  close (fd);
  g_free (name);
  g_free (within);
  name = file_roots_dup_name (-1);
  g_assert_false (g_file_test (name, G_FILE_TEST_EXISTS));
  g_free (name);
  g_free (path);
  g_free (moved);
}

int
main (int argc, char **argv)
{
  int failed;
  gchar *command;

  g_test_init (&argc, &argv, NULL);
  top = g_dir_make_tmp (NULL, NULL);
  make ("in/sub/deep", NULL);
  make ("inside", NULL);
  make ("out/x", NULL);
  make ("in/near", "sub");
  make ("in/far", "../out");
  make ("in/absolute", "/etc");
  g_test_add_func (
      "/file-roots/only-what-is-below-a-root-is-opened", only_what_is_below_a_root_is_opened);
  g_test_add_func ("/file-roots/each-root-counts", each_root_counts);
  g_test_add_func ("/file-roots/errors-say-what-to-do", errors_say_what_to_do);
  g_test_add_func ("/file-roots/a-name-means-the-open-folder", a_name_means_the_open_folder);
  failed = g_test_run ();
  command = g_strdup_printf ("rm -rf %s", top);
  g_spawn_command_line_sync (command, NULL, NULL, NULL, NULL);
  g_free (command);
  g_free (top);
  return failed;
}
