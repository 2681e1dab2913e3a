// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/titles.h"

#include "stores/folder.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_S 30 // time limit for the work of a title
#define LONG_MS (60 * 1000)
#define SHORT_MS 20

// An outlet whose media is a plain object.
typedef struct {
  GMutex lock;
  GCond given_up_cond;
  gboolean given_up;
  gboolean blocks, fails;                    // what open_media() does
  gint n_released, n_published, n_withdrawn; // atomic
  GObject *media;                            // the newest, not owned
} Outlet;

static Outlet told;

static GObject *
make (int fd, const gchar *label)
{
  close (fd);
  told.media = g_object_new (G_TYPE_OBJECT, NULL);
  return told.media;
}

static void
wait_until_given_up (void)
{
  g_mutex_lock (&told.lock);
  while (!told.given_up)
    g_cond_wait (&told.given_up_cond, &told.lock);
  g_mutex_unlock (&told.lock);
}

static gboolean
open_media (GObject *media, GError **error)
{
  if (told.blocks)
    wait_until_given_up ();
  if (told.blocks || told.fails)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "no media");
  return !told.blocks && !told.fails;
}

static void
release (GObject *media)
{
  g_atomic_int_inc (&told.n_released);
}

static void
give_up (GObject *media)
{
  g_mutex_lock (&told.lock);
  told.given_up = TRUE;
  g_cond_signal (&told.given_up_cond);
  g_mutex_unlock (&told.lock);
}

static void
publish (GObject *media, const gchar *path, GObject *data)
{
  g_atomic_int_inc (&told.n_published);
}

static void
withdraw (const gchar *path, GObject *data)
{
  g_atomic_int_inc (&told.n_withdrawn);
}

static const TitleOutlet outlet = { make, open_media, release, give_up, publish, withdraw };

// ---- a folder with one title ----

typedef struct {
  gchar *folder, *file;
  Titles *titles;
} Fixture;

static void
set_up (Fixture *f, gconstpointer unused)
{
  GObject *data = g_object_new (G_TYPE_OBJECT, NULL);

  told = (Outlet) { 0 };
  f->folder = g_dir_make_tmp (NULL, NULL);
  f->file = g_build_filename (f->folder, "a.mp4", NULL);
  g_assert_true (g_file_set_contents (f->file, "12345", -1, NULL));
  f->titles = titles_new ("/films", &outlet, data);
  titles_configure (f->titles, folder_new (f->folder, FALSE), 1, LONG_MS);
  g_object_unref (data);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  titles_unref (f->titles);
  g_unlink (f->file);
  g_rmdir (f->folder);
  g_free (f->file);
  g_free (f->folder);
}

static void
on_told (gpointer is_over)
{
  g_atomic_int_set ((gint *) is_over, TRUE);
  g_main_context_wakeup (NULL);
}

static gboolean
on_late (gpointer unused)
{
  g_error ("the work on the title has not ended within %d s", LIMIT_S);
  return G_SOURCE_REMOVE;
}

static void
wait_for (Title *title)
{
  guint late = g_timeout_add_seconds (LIMIT_S, on_late, NULL);
  gint is_over = FALSE;

  title_wait (title, on_told, &is_over);
  while (!g_atomic_int_get (&is_over))
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (late);
}

// Opens the title a.mp4. Tries again while all slots are taken.
static Title *
open_when_a_slot_is_free (Fixture *f)
{
  gint64 limit = g_get_monotonic_time () + LIMIT_S * G_USEC_PER_SEC;
  GError *error = NULL;
  Title *title;

  while (!(title = titles_open (f->titles, "a.mp4", &error))
         && g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY)
         && g_get_monotonic_time () < limit) {
    g_clear_error (&error);
    g_usleep (1000);
  }
  g_assert_no_error (error);
  wait_for (title);
  return title;
}

// Leaves the title, and waits until the worker thread has released it too.
static void
leave_and_wait (Title *title)
{
  gint64 limit = g_get_monotonic_time () + LIMIT_S * G_USEC_PER_SEC;
  gint n = g_atomic_int_get (&told.n_withdrawn);

  title_leave (title);
  while (g_atomic_int_get (&told.n_withdrawn) == n) {
    g_assert_cmpint (g_get_monotonic_time (), <, limit);
    g_usleep (1000);
  }
}

static void
assert_fails (Fixture *f, const gchar *name, gint code)
{
  GError *error = NULL;

  g_assert_null (titles_open (f->titles, name, &error));
  g_assert_error (error, G_IO_ERROR, code);
  g_error_free (error);
}

static void
a_title_is_published_while_it_is_used (Fixture *f, gconstpointer unused)
{
  Title *title = open_when_a_slot_is_free (f);

  g_assert_cmpint (title_ask (title, NULL), ==, TITLE_READY);
  g_assert_cmpstr (title_get_label (title), ==, "/films/a.mp4");
  g_assert_true (title_is (title, f->titles, "a%2Emp4"));
  g_assert_true (title_is (title, f->titles, title_get_path (title) + strlen ("/films/")));
  g_assert_false (title_is (title, f->titles, "b.mp4"));
  g_assert_cmpint (told.n_published, ==, 1);
  g_assert_cmpint (told.n_released, ==, 0);
  title_hand_over (title);
  title_hand_over (title);
  g_assert_cmpint (told.n_released, ==, 1);
  leave_and_wait (title);
  g_assert_cmpint (told.n_released, ==, 1);
}

static void
a_file_that_cannot_be_served_fails_and_leaves_no_slot_taken (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;
  Title *title;

  told.fails = TRUE;
  title = open_when_a_slot_is_free (f);
  g_assert_cmpint (title_ask (title, &error), ==, TITLE_FAILED);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
  g_assert_cmpint (told.n_published, ==, 0);
  g_clear_error (&error);
  title_unref (title);
  title = titles_open (f->titles, "a.mp4", &error);
  g_assert_no_error (error);
  wait_for (title);
  title_unref (title);
}

static void
a_slot_is_taken_until_the_media_is_gone (Fixture *f, gconstpointer unused)
{
  Title *title = open_when_a_slot_is_free (f);
  GObject *media = g_object_ref (told.media);

  assert_fails (f, "a.mp4", G_IO_ERROR_BUSY);
  leave_and_wait (title);
  assert_fails (f, "a.mp4", G_IO_ERROR_BUSY);
  g_object_unref (media);
  leave_and_wait (open_when_a_slot_is_free (f));
}

static void
a_title_that_takes_too_long_is_given_up (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;
  Title *title;

  told.blocks = TRUE;
  titles_configure (f->titles, folder_new (f->folder, FALSE), 1, SHORT_MS);
  title = open_when_a_slot_is_free (f);
  g_assert_cmpint (title_ask (title, &error), ==, TITLE_FAILED);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
  g_error_free (error);
  while (title_works (title))
    g_usleep (1000);
  title_unref (title);
}

static gint
run (gpointer n)
{
  wait_until_given_up ();
  return ++*(gint *) n;
}

static void
note_freed (gpointer n)
{
  *(gint *) n += 10;
}

static void
one_job_runs_at_a_time_and_gives_its_result (Fixture *f, gconstpointer unused)
{
  Title *title = open_when_a_slot_is_free (f);
  gint n = 1, refused = 0, result;

  g_assert_true (title_run (title, told.media, run, &n, note_freed));
  g_assert_true (title_works (title));
  g_assert_false (title_get_result (title, &result));
  g_assert_false (title_run (title, told.media, run, &refused, note_freed));
  g_assert_cmpint (refused, ==, 10);
  give_up (told.media);
  wait_for (title);
  g_assert_false (title_works (title));
  g_assert_true (title_get_result (title, &result));
  g_assert_cmpint (result, ==, 2);
  g_assert_cmpint (n, ==, 12);
  leave_and_wait (title);
}

static void
only_names_of_titles_are_opened (Fixture *f, gconstpointer unused)
{
  static const gchar *const bad[] = { "", "..", "a%2F..", "a%00", ".a", "%zz" };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    assert_fails (f, bad[i], G_IO_ERROR_NOT_FOUND);
  titles_configure (f->titles, NULL, 0, 0);
  assert_fails (f, "a.mp4", G_IO_ERROR_NOT_FOUND);
}

#define ADD(name, test) g_test_add (name, Fixture, NULL, set_up, test, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/title/a-title-is-published-while-it-is-used", a_title_is_published_while_it_is_used);
  ADD ("/title/a-file-that-cannot-be-served-fails-and-leaves-no-slot-taken",
      a_file_that_cannot_be_served_fails_and_leaves_no_slot_taken);
  ADD ("/title/a-slot-is-taken-until-the-media-is-gone", a_slot_is_taken_until_the_media_is_gone);
  ADD ("/title/a-title-that-takes-too-long-is-given-up", a_title_that_takes_too_long_is_given_up);
  ADD ("/title/one-job-runs-at-a-time-and-gives-its-result",
      one_job_runs_at_a_time_and_gives_its_result);
  ADD ("/title/only-names-of-titles-are-opened", only_names_of_titles_are_opened);
  return g_test_run ();
}
