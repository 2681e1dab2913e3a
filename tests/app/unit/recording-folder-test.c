// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording-parts.h"

#define SECOND G_GINT64_CONSTANT (1000000) // us
#define HOUR (3600 * SECOND)
#define YEAR (365 * 24 * HOUR)
#define T (G_GINT64_CONSTANT (1800000000) * SECOND) // 2027-01-15 08:00:00
#define T_NAME "2027-01-15T08-00-00.000000Z.mp4"
#define BEFORE_NAME "2027-01-15T07-00-00.000000Z.mp4"
#define DATA 100 // bytes of a frame

typedef struct {
  gchar *top, *cam;
  RecordingSettings settings;
  RecordingList *list;
  RecordingFolder *folder;
  GBytes *init;
  guint32 n; // parts
  guint n_complete;
} Fixture;

static void
on_complete (const gchar *path, const RecordingFacts *facts, gpointer data)
{
  g_assert_true (g_file_test (path, G_FILE_TEST_IS_REGULAR));
  ((Fixture *) data)->n_complete++;
}

static void
begin (Fixture *f)
{
  f->list = recording_list_new ();
  f->folder = recording_folder_new ("/cam", &f->settings, f->list, on_complete, f);
}

static void
end (Fixture *f)
{
  recording_folder_free (f->folder);
  recording_list_unref (f->list);
}

static void
open_folder (Fixture *f)
{
  GError *error = NULL;

  recording_folder_open (f->folder, &error);
  g_assert_no_error (error);
}

static void
set_up (Fixture *f, gconstpointer unused)
{
  f->top = g_dir_make_tmp ("recording-XXXXXX", NULL);
  f->cam = g_build_filename (f->top, "cam", NULL);
  f->settings = (RecordingSettings) { f->top, 1000 * SECOND, 0, 0 };
  f->init = make_recording_init ();
  begin (f);
  open_folder (f);
}

static void
remove_all (const gchar *path)
{
  GDir *dir = g_file_test (path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open (path, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir))) {
    gchar *inner = g_build_filename (path, name, NULL);

    remove_all (inner);
    g_free (inner);
  }
  g_clear_pointer (&dir, g_dir_close);
  g_assert_cmpint (g_remove (path), ==, 0);
}

static void
tear_down (Fixture *f, gconstpointer unused)
{
  end (f);
  remove_all (f->top);
  g_bytes_unref (f->init);
  g_free (f->cam);
  g_free (f->top);
}

// Adds a part of 1 s that begins a file, or goes on with the one that is being written.
static RecordingWritten
try_to_add (Fixture *f, gint64 wall_us, gboolean breaks, GError **error)
{
  GBytes *data = make_recording_part (f->n++, DATA);
  const RecordingPart part = { f->init, data, wall_us, 1000 * SECOND, TRUE, breaks };
  RecordingWritten written = recording_folder_add (f->folder, &part, error);

  g_bytes_unref (data);
  return written;
}

static void
add (Fixture *f, gint64 wall_us)
{
  GError *error = NULL;

  g_assert_cmpint (try_to_add (f, wall_us, FALSE, &error), ==, RECORDING_WRITTEN);
  g_assert_no_error (error);
}

static gboolean
is_there (const Fixture *f, gint64 start_us)
{
  gchar *name = recording_file_dup_name (start_us);
  gchar *path = g_build_filename (f->cam, name, NULL);
  gboolean there = g_file_test (path, G_FILE_TEST_IS_REGULAR);

  g_free (path);
  g_free (name);
  return there;
}

static guint
count_files (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir))
    n++;
  g_dir_close (dir);
  return n;
}

// Deletes every 10 s, as the writer does.
static void
prune_until (Fixture *f, gint64 from_us, gint64 to_us)
{
  for (gint64 now_us = from_us; now_us < to_us; now_us += 10 * SECOND)
    recording_folder_prune (f->folder, now_us);
  recording_folder_prune (f->folder, to_us);
}

// ---- by age and size ----

static void
segments_older_than_keep_are_deleted (Fixture *f, gconstpointer unused)
{
  f->settings.keep_us = 30 * SECOND;
  for (gint64 i = 0; i < 4; i++)
    add (f, T + i * SECOND); // the last one is being written
  prune_until (f, T + 4 * SECOND, T + 31 * SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 4);
  recording_folder_prune (f->folder, T + 31 * SECOND + 1);
  g_assert_cmpuint (count_files (f->cam), ==, 3);
  g_assert_false (is_there (f, T));
  prune_until (f, T + 32 * SECOND, T + 100 * SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 1);
  g_assert_true (is_there (f, T + 3 * SECOND));
  g_assert_cmpuint (recording_folder_get_counts (f->folder)->deleted, ==, 3);
}

static guint64
count_bytes (Fixture *f)
{
  guint64 bytes;

  recording_list_count (f->list, &bytes);
  return bytes;
}

static void
the_oldest_segments_are_deleted_beyond_the_limit (Fixture *f, gconstpointer unused)
{
  RecordingFacts first;

  for (gint64 i = 0; i < 4; i++)
    add (f, T + i * SECOND);
  f->settings.limit = count_bytes (f);
  recording_folder_prune (f->folder, T + 4 * SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 4);
  g_assert_true (recording_list_find (f->list, T, &first));
  f->settings.limit -= first.size;
  recording_folder_prune (f->folder, T + 4 * SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 3);
  g_assert_false (is_there (f, T));
  f->settings.limit = 1;
  recording_folder_prune (f->folder, T + 4 * SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 1); // the one that is being written
  g_assert_true (is_there (f, T + 3 * SECOND));
}

// ---- nothing else ----

static void
put (const gchar *folder, const gchar *name, const void *bytes, gsize size)
{
  gchar *path = g_build_filename (folder, name, NULL);

  g_assert_true (g_file_set_contents (path, bytes, (gssize) size, NULL));
  g_free (path);
}

static GByteArray *
make_file (const Fixture *f, guint n_parts)
{
  GByteArray *file = g_byte_array_new ();
  gsize size;
  const guint8 *bytes = g_bytes_get_data (f->init, &size);

  g_byte_array_append (file, bytes, (guint) size);
  for (guint32 i = 0; i < n_parts; i++) {
    GBytes *part = make_recording_part (i, DATA);

    bytes = g_bytes_get_data (part, &size);
    g_byte_array_append (file, bytes, (guint) size);
    g_bytes_unref (part);
  }
  return file;
}

static void
check_same (const gchar *folder, const gchar *name, const void *bytes, gsize size)
{
  gchar *path = g_build_filename (folder, name, NULL), *now;
  gsize now_size;

  g_assert_true (g_file_get_contents (path, &now, &now_size, NULL));
  g_assert_cmpmem (now, now_size, bytes, size);
  g_free (now);
  g_free (path);
}

// Whatever lies in the folder stays as it is, if it is no segment that the recording wrote.
static void
nothing_else_is_deleted (Fixture *f, gconstpointer unused)
{
  static const gchar *const other_names[] = { "notes.txt", ".hidden", T_NAME ".bak", "x" T_NAME,
    "2027-01-15T08-00-00.00000Z.mp4", "2027-02-30T08-00-00.000000Z.mp4",
    "2027-01-15T08-00-00,000000Z.mp4", "2027-01-15t08-00-00.000000Z.mp4",
    "2027-01-15T 8-00-00.000000Z.mp4" };
  static const guint8 mdat[] = { 0, 0, 0, 12, 'm', 'd', 'a', 't', 1, 2, 3, 4 };
  GByteArray *whole = make_file (f, 2), *plain = make_file (f, 0), *damaged = make_file (f, 2);
  gchar *outside = g_build_filename (f->top, "outside.mp4", NULL);
  gchar *link = g_build_filename (f->cam, "2027-01-15T07-00-01.000000Z.mp4", NULL);
  gchar *fifo = g_build_filename (f->cam, "2027-01-15T07-00-02.000000Z.mp4", NULL);
  gchar *dir = g_build_filename (f->cam, "2027-01-15T07-00-03.000000Z.mp4", NULL);
  gchar *sub = g_build_filename (f->cam, "sub", NULL);

  end (f);
  for (guint i = 0; i < G_N_ELEMENTS (other_names); i++)
    put (f->cam, other_names[i], whole->data, whole->len);
  put (f->top, "outside.mp4", whole->data, whole->len);
  g_assert_cmpint (symlink (outside, link), ==, 0);
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  g_assert_cmpint (g_mkdir (dir, 0700), ==, 0);
  g_assert_cmpint (g_mkdir (sub, 0700), ==, 0); // of the mount /cam/sub
  put (sub, T_NAME, whole->data, whole->len);
  // Of a name that the recording gives: text, MP4 without fragments, and a damaged first part.
  put (f->cam, "2027-01-15T07-00-04.000000Z.mp4", "text", 4);
  g_byte_array_append (plain, mdat, sizeof mdat);
  put (f->cam, "2027-01-15T07-00-05.000000Z.mp4", plain->data, plain->len);
  memset (damaged->data + g_bytes_get_size (f->init) + 40, 0xff, 4);
  put (f->cam, "2027-01-15T07-00-06.000000Z.mp4", damaged->data, damaged->len);

  begin (f);
  open_folder (f);
  f->settings.keep_us = SECOND;
  f->settings.limit = 1;
  add (f, T);
  add (f, T + SECOND);
  prune_until (f, T + 2 * SECOND, T + 3 * HOUR);
  g_assert_false (is_there (f, T));
  g_assert_true (is_there (f, T + SECOND));
  g_assert_cmpuint (count_files (f->cam), ==, G_N_ELEMENTS (other_names) + 8);
  for (guint i = 0; i < G_N_ELEMENTS (other_names); i++)
    check_same (f->cam, other_names[i], whole->data, whole->len);
  check_same (f->top, "outside.mp4", whole->data, whole->len);
  check_same (sub, T_NAME, whole->data, whole->len);
  check_same (f->cam, "2027-01-15T07-00-04.000000Z.mp4", "text", 4);
  check_same (f->cam, "2027-01-15T07-00-05.000000Z.mp4", plain->data, plain->len);
  check_same (f->cam, "2027-01-15T07-00-06.000000Z.mp4", damaged->data, damaged->len);
  g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  g_assert_true (g_file_test (fifo, G_FILE_TEST_EXISTS));
  g_assert_true (g_file_test (dir, G_FILE_TEST_IS_DIR));
  g_byte_array_unref (whole);
  g_byte_array_unref (plain);
  g_byte_array_unref (damaged);
  g_free (outside);
  g_free (link);
  g_free (fifo);
  g_free (dir);
  g_free (sub);
}

// A segment that was put aside for a link, is a link that is deleted, and not what it points to.
static void
a_link_in_the_place_of_a_segment_is_not_followed (Fixture *f, gconstpointer unused)
{
  gchar *outside = g_build_filename (f->top, "outside.mp4", NULL);
  gchar *link = g_build_filename (f->cam, T_NAME, NULL);

  add (f, T);
  add (f, T + SECOND);
  g_assert_cmpint (g_rename (link, outside), ==, 0);
  g_assert_cmpint (symlink (outside, link), ==, 0);
  f->settings.limit = 1;
  recording_folder_prune (f->folder, T + 2 * SECOND);
  g_assert_false (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  g_assert_true (g_file_test (outside, G_FILE_TEST_IS_REGULAR));
  g_free (outside);
  g_free (link);
}

// ---- what was cut off ----

static void
check_cut_off (Fixture *f, const GByteArray *file, gsize length, gsize hole)
{
  const gsize init = g_bytes_get_size (f->init), part = (file->len - init) / 3;
  const guint n_whole = length < init ? 0 : (guint) ((length - init) / part);
  guint8 *bytes = g_malloc0 (length + hole + 1);
  gchar *path = g_build_filename (f->cam, BEFORE_NAME, NULL);
  RecordingFacts facts;
  struct stat st;

  memcpy (bytes, file->data, length);
  put (f->cam, BEFORE_NAME, bytes, length + hole);
  g_free (bytes);
  begin (f);
  open_folder (f);
  if (recording_list_find (f->list, T - HOUR, &facts)) {
    g_assert_true (facts.complete);
    g_assert_true (stat (path, &st) == 0 && (guint64) st.st_size == facts.size);
    g_assert_cmpuint (facts.end, ==, init + n_whole * part);
    g_assert_cmpint (recording_facts_get_duration_ns (&facts), ==, n_whole * 1000 * SECOND);
    g_assert_cmpuint (recording_folder_get_counts (f->folder)->trimmed, ==,
        length + hole - init - n_whole * part);
  } else {
    g_assert_cmpuint (n_whole, ==, 0);
    g_assert_true (g_file_test (path, G_FILE_TEST_EXISTS) == (length + hole > 0 && length < init));
  }
  end (f);
  g_unlink (path);
  g_free (path);
}

static void
a_file_that_was_cut_off_ends_at_its_last_whole_part (Fixture *f, gconstpointer unused)
{
  GByteArray *file = make_file (f, 3);

  end (f);
  for (gsize length = 0; length < file->len; length += 13)
    check_cut_off (f, file, length, 0);
  check_cut_off (f, file, g_bytes_get_size (f->init), 0);
  check_cut_off (f, file, file->len, 0);
  check_cut_off (f, file, file->len, 4096); // the machine died before these bytes were written
  g_byte_array_unref (file);
  begin (f);
}

// ---- the clock ----

static void
a_clock_that_steps_forward_does_not_wipe_the_recordings (Fixture *f, gconstpointer unused)
{
  gint64 far = T + 10 * YEAR;

  f->settings.keep_us = 24 * HOUR;
  for (gint64 i = 0; i < 5; i++)
    add (f, T + i * SECOND);
  recording_folder_prune (f->folder, T + 5 * SECOND);
  add (f, far);
  add (f, far + SECOND);
  prune_until (f, far + 2 * SECOND, far + HOUR / 2);
  g_assert_cmpuint (count_files (f->cam), ==, 7);
  // It is set right again, and wrong again.
  prune_until (f, T + HOUR / 2, T + 2 * HOUR);
  recording_folder_prune (f->folder, far + 3 * HOUR);
  g_assert_cmpuint (count_files (f->cam), ==, 7);
  // It goes on from there: then it was right.
  prune_until (f, far + 3 * HOUR, far + 4 * HOUR - SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 7);
  prune_until (f, far + 4 * HOUR, far + 4 * HOUR + SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 2);
  g_assert_true (is_there (f, far) && is_there (f, far + SECOND));
}

static void
a_clock_that_is_ahead_at_the_start_does_not_wipe_the_recordings (Fixture *f, gconstpointer unused)
{
  f->settings.keep_us = 24 * HOUR;
  add (f, T);
  end (f);
  begin (f);
  open_folder (f);
  prune_until (f, T + YEAR, T + YEAR + HOUR - SECOND);
  g_assert_true (is_there (f, T));
  prune_until (f, T + YEAR + HOUR, T + YEAR + HOUR + SECOND);
  g_assert_false (is_there (f, T));
}

static void
a_clock_that_steps_back_costs_no_file (Fixture *f, gconstpointer unused)
{
  gint64 past = T - YEAR;

  for (gint64 i = 0; i < 3; i++)
    add (f, T + i * SECOND);
  add (f, T); // the same time again
  g_assert_true (is_there (f, T) && is_there (f, T + 1));
  for (gint64 i = 0; i < 3; i++)
    add (f, past + i * SECOND);
  g_assert_cmpuint (count_files (f->cam), ==, 7);
  f->settings.keep_us = 24 * HOUR;
  prune_until (f, past + 3 * SECOND, past + 2 * HOUR);
  g_assert_cmpuint (count_files (f->cam), ==, 7);
  // Those from the future were written before those from now.
  f->settings.limit = count_bytes (f) - 1;
  recording_folder_prune (f->folder, past + 2 * HOUR);
  g_assert_cmpuint (count_files (f->cam), ==, 6);
  g_assert_false (is_there (f, T));
  f->settings.limit = 1;
  add (f, past + 2 * HOUR);
  f->settings.limit = count_bytes (f) / 8 * 3;
  recording_folder_prune (f->folder, past + 2 * HOUR + SECOND);
  g_assert_true (is_there (f, past + 2 * SECOND) && is_there (f, past + 2 * HOUR));
  g_assert_false (is_there (f, T + 2 * SECOND));
}

// A publisher that sends its first half second at once is ahead of the clock when it leaves.
static void
what_follows_begins_no_earlier_than_what_was_before_ends (Fixture *f, gconstpointer unused)
{
  g_assert_cmpint (try_to_add (f, T, TRUE, NULL), ==, RECORDING_WRITTEN);
  g_assert_cmpint (try_to_add (f, T + SECOND / 2, TRUE, NULL), ==, RECORDING_WRITTEN);
  g_assert_true (is_there (f, T) && is_there (f, T + SECOND));
  // The run nears the clock by 1 ms a second.
  for (gint64 i = 1; i < 600; i++) {
    add (f, T + SECOND / 2 + i * SECOND);
    g_assert_true (is_there (f, T + SECOND / 2 + i * SECOND + MAX (SECOND / 2 - i * 1000, 0)));
  }
  // After a step of the clock it has the new time.
  add (f, T + 597 * SECOND);
  g_assert_true (is_there (f, T + 597 * SECOND));
  // A run that comes later begins at its time, and so does one after a greater step.
  g_assert_cmpint (try_to_add (f, T + HOUR, TRUE, NULL), ==, RECORDING_WRITTEN);
  g_assert_cmpint (try_to_add (f, T + HOUR - 20 * SECOND, TRUE, NULL), ==, RECORDING_WRITTEN);
  g_assert_true (is_there (f, T + HOUR) && is_there (f, T + HOUR - 20 * SECOND));
}

// Whoever deletes the file that is being written, or puts another one in its place, costs no part
// of the next one.
static void
a_file_that_is_replaced_costs_no_other (Fixture *f, gconstpointer unused)
{
  gchar *path = g_build_filename (f->cam, T_NAME, NULL), *content;

  add (f, T);
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_true (g_file_set_contents (path, "other", -1, NULL));
  add (f, T + SECOND);
  g_assert_true (is_there (f, T + SECOND));
  g_assert_true (g_file_get_contents (path, &content, NULL, NULL));
  g_assert_cmpstr (content, ==, "other");
  g_free (content);
  g_free (path);
}

// ---- one process ----

static void
only_one_records_to_a_folder (Fixture *f, gconstpointer unused)
{
  RecordingFolder *same = recording_folder_new ("/cam", &f->settings, f->list, on_complete, f);
  RecordingFolder *other = recording_folder_new ("/other", &f->settings, f->list, on_complete, f);
  GError *error = NULL;

  g_assert_false (recording_folder_open (same, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  recording_folder_open (other, &error);
  g_assert_no_error (error);
  recording_folder_free (other);
  add (f, T);
  recording_folder_free (f->folder);
  f->folder = same;
  open_folder (f);
}

// ---- full disks ----

static void
a_file_that_cannot_begin_leaves_nothing (Fixture *f, gconstpointer unused)
{
  GError *error = NULL;
  struct rlimit was, small;

  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &was), ==, 0);
  small = (struct rlimit) { 10, was.rlim_max };
  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &small), ==, 0);
  g_assert_cmpint (try_to_add (f, T, TRUE, &error), ==, RECORDING_FAILED);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &was), ==, 0);
  g_assert_nonnull (strstr (error->message, "File too large"));
  g_error_free (error);
  g_assert_cmpuint (count_files (f->cam), ==, 0);
  open_folder (f);
  add (f, T);
}

static void
a_disk_without_space_costs_no_part_that_was_written (Fixture *f, gconstpointer unused)
{
  guint n = 0;
  GError *error = NULL;
  RecordingWritten written;
  RecordingFacts facts;

  if (unshare (CLONE_NEWNS) < 0 || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
      || mount ("tmpfs", f->top, "tmpfs", 0, "size=64k") < 0) {
    g_test_skip ("may not mount a file system");
    return;
  }
  end (f);
  begin (f);
  open_folder (f);
  f->settings.segment_ns = 3600 * 1000 * SECOND;
  while ((written = try_to_add (f, T + n * SECOND, FALSE, &error)) == RECORDING_WRITTEN)
    n++;
  g_assert_cmpint (written, ==, RECORDING_FAILED);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  g_clear_error (&error);
  g_assert_cmpuint (n, >, 50);
  // The index has no room either. The file stays as it is, with all its parts.
  if (recording_folder_open (f->folder, &error))
    g_assert_no_error (error);
  g_clear_error (&error);
  g_assert_true (recording_list_find (f->list, T, &facts));
  g_assert_cmpint (recording_facts_get_duration_ns (&facts), ==, n * 1000 * SECOND);
  g_assert_cmpint (mount ("tmpfs", f->top, "tmpfs", MS_REMOUNT, "size=1m"), ==, 0);
  open_folder (f);
  g_assert_true (recording_list_find (f->list, T, &facts) && facts.complete);
  g_assert_cmpint (recording_facts_get_duration_ns (&facts), ==, n * 1000 * SECOND);
  add (f, T + HOUR);
  g_assert_cmpuint (count_files (f->cam), ==, 2);
  end (f);
  g_assert_cmpint (umount2 (f->top, MNT_DETACH), ==, 0);
  begin (f);
}

#define ADD(path, name) g_test_add (path, Fixture, NULL, set_up, name, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/recording-folder/keep", segments_older_than_keep_are_deleted);
  ADD ("/recording-folder/limit", the_oldest_segments_are_deleted_beyond_the_limit);
  ADD ("/recording-folder/nothing-else", nothing_else_is_deleted);
  ADD ("/recording-folder/link", a_link_in_the_place_of_a_segment_is_not_followed);
  ADD ("/recording-folder/cut-off", a_file_that_was_cut_off_ends_at_its_last_whole_part);
  ADD ("/recording-folder/forward", a_clock_that_steps_forward_does_not_wipe_the_recordings);
  ADD ("/recording-folder/ahead", a_clock_that_is_ahead_at_the_start_does_not_wipe_the_recordings);
  ADD ("/recording-folder/back", a_clock_that_steps_back_costs_no_file);
  ADD ("/recording-folder/ahead-of-the-clock",
      what_follows_begins_no_earlier_than_what_was_before_ends);
  ADD ("/recording-folder/replaced", a_file_that_is_replaced_costs_no_other);
  ADD ("/recording-folder/lock", only_one_records_to_a_folder);
  ADD ("/recording-folder/cannot-begin", a_file_that_cannot_begin_leaves_nothing);
  ADD ("/recording-folder/no-space", a_disk_without_space_costs_no_part_that_was_written);
  return g_test_run ();
}
