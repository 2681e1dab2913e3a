// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_writer.h"

#include <glib/gstdio.h>

#include "recording-parts.h"

#define SECOND G_GINT64_CONSTANT (1000000) // us
#define T (G_GINT64_CONSTANT (1800000000) * SECOND)
#define SMALL 100
#define BIG (15 * 1024 * 1024) // four of these fit into the queue

// Stops the writer when its first segment is complete, as a slow disk would.
typedef struct {
  GMutex lock;
  GCond changed;
  guint n_complete;
  gboolean may_go_on;
} Brake;

static void
on_complete (const gchar *path, const RecordingFacts *facts, gpointer data)
{
  Brake *brake = data;

  g_mutex_lock (&brake->lock);
  brake->n_complete++;
  g_cond_broadcast (&brake->changed);
  while (!brake->may_go_on)
    g_cond_wait (&brake->changed, &brake->lock);
  g_mutex_unlock (&brake->lock);
  g_assert_cmpint (g_remove (path), ==, 0);
}

static void
wait_until_stopped (Brake *brake, guint n)
{
  g_mutex_lock (&brake->lock);
  while (brake->n_complete < n)
    g_cond_wait (&brake->changed, &brake->lock);
  g_mutex_unlock (&brake->lock);
}

static void
go_on (Brake *brake)
{
  g_mutex_lock (&brake->lock);
  brake->may_go_on = TRUE;
  g_cond_broadcast (&brake->changed);
  g_mutex_unlock (&brake->lock);
}

static void
add (SegmentOutput *output, guint32 n, guint32 length)
{
  output->ops->add_part (output, make_recording_part (n, length), 1000 * SECOND, TRUE);
}

// Adds a part with which a segment begins.
static void
begin (SegmentOutput *output, GBytes *init, guint32 n, guint32 length)
{
  output->ops->begin_segment (output, init, NULL, T + n * SECOND, init != NULL);
  add (output, n, length);
}

static guint
count_parts (RecordingList *list, guint32 n)
{
  RecordingFacts facts;

  g_assert_true (recording_list_find (list, T + n * SECOND, &facts));
  g_assert_true (facts.complete);
  return (guint) (recording_facts_get_duration_ns (&facts) / (1000 * SECOND));
}

static void
leave (gpointer brake)
{
}

static void
a_full_queue_drops_parts_up_to_the_next_beginning (void)
{
  gchar *top = g_dir_make_tmp ("recording-XXXXXX", NULL),
        *cam = g_build_filename (top, "cam", NULL);
  const RecordingSettings settings = { g_strdup (top), 1000 * SECOND, 0, 0 };
  Brake brake = { 0 };
  RecordingWriter *writer = recording_writer_new ("/cam", &settings, on_complete, &brake, leave);
  SegmentOutput *output = recording_writer_get_output (writer);
  RecordingList *list = recording_list_ref (recording_writer_get_list (writer));
  GBytes *init = make_recording_init (), *small = make_recording_part (0, SMALL);
  gsize head = g_bytes_get_size (small) - SMALL;
  RecordingCounts counts;

  begin (output, init, 0, SMALL);
  begin (output, NULL, 1, SMALL); // ends the first segment
  wait_until_stopped (&brake, 1);
  begin (output, NULL, 2, BIG);
  for (guint32 n = 3; n < 6; n++)
    add (output, n, BIG);
  recording_writer_get_counts (writer, &counts);
  g_assert_cmpuint (counts.dropped, ==, 0);
  g_assert_cmpuint (counts.queued_bytes, ==, 5 * head + SMALL + 4 * (gsize) BIG);
  add (output, 6, BIG);
  add (output, 7, SMALL); // has room, but does not continue what is queued
  recording_writer_get_counts (writer, &counts);
  g_assert_cmpuint (counts.dropped, ==, 2);
  g_assert_cmpuint (counts.dropped_bytes, ==, 2 * head + BIG + SMALL);
  begin (output, NULL, 8, SMALL);
  add (output, 9, SMALL);
  recording_writer_get_counts (writer, &counts);
  g_assert_cmpuint (counts.dropped, ==, 2);

  go_on (&brake);
  recording_writer_end (writer);
  g_assert_true (recording_writer_wait_all (60000));
  recording_writer_get_counts (writer, &counts);
  g_assert_cmpuint (counts.written.parts, ==, 8);
  g_assert_cmpuint (counts.dropped, ==, 2);
  g_assert_cmpuint (counts.queued_bytes, ==, 0);
  g_assert_cmpuint (counts.failures, ==, 0);
  g_assert_cmpuint (brake.n_complete, ==, 4);
  g_assert_cmpuint (count_parts (list, 0), ==, 1);
  g_assert_cmpuint (count_parts (list, 1), ==, 1);
  g_assert_cmpuint (count_parts (list, 2), ==, 4);
  g_assert_cmpuint (count_parts (list, 8), ==, 2); // a file of its own, behind the gap
  output->ops->begin_segment (output, NULL, NULL, T, FALSE);
  add (output, 10, SMALL); // after the end
  recording_writer_get_counts (writer, &counts);
  g_assert_cmpuint (counts.dropped, ==, 3);

  recording_writer_unref (writer);
  recording_list_unref (list);
  g_bytes_unref (init);
  g_bytes_unref (small);
  g_assert_cmpint (g_rmdir (cam), ==, 0);
  g_assert_cmpint (g_rmdir (top), ==, 0);
  g_free (cam);
  g_free (top);
}

// Returns how many threads write recordings.
static guint
count_threads (void)
{
  GDir *tasks = g_dir_open ("/proc/self/task", 0, NULL);
  const gchar *task;
  guint n = 0;

  while ((task = g_dir_read_name (tasks))) {
    gchar *path = g_strdup_printf ("/proc/self/task/%s/comm", task), *name = NULL;

    // A thread may have ended.
    if (g_file_get_contents (path, &name, NULL, NULL))
      n += g_str_equal (name, "record\n");
    g_free (name);
    g_free (path);
  }
  g_dir_close (tasks);
  return n;
}

typedef struct {
  gchar *folder;
  RecordingWriter *writer;
} Recorded;

static Recorded
record (const gchar *top, const gchar *mount, Brake *brake)
{
  const RecordingSettings settings = { g_strdup (top), 1000 * SECOND, 0, 0 };
  const Recorded self = { g_build_filename (top, mount + 1, NULL),
    recording_writer_new (mount, &settings, on_complete, brake, leave) };
  SegmentOutput *output = recording_writer_get_output (self.writer);
  GBytes *init = make_recording_init ();

  begin (output, init, 0, SMALL);
  begin (output, NULL, 1, SMALL); // ends the first segment
  g_bytes_unref (init);
  return self;
}

static void
check_ended (Recorded *self)
{
  recording_writer_unref (self->writer);
  g_assert_cmpint (g_rmdir (self->folder), ==, 0);
  g_free (self->folder);
}

static void
a_slow_folder_keeps_four_threads_and_no_other_folder (void)
{
  gchar *slow_top = g_dir_make_tmp ("recording-XXXXXX", NULL);
  gchar *other_top = g_dir_make_tmp ("recording-XXXXXX", NULL);
  Brake slow = { 0 }, none = { .may_go_on = TRUE };
  Recorded all[10], other;

  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    gchar *mount = g_strdup_printf ("/cam%u", i);

    all[i] = record (slow_top, mount, &slow);
    g_free (mount);
  }
  wait_until_stopped (&slow, 4);
  other = record (other_top, "/cam", &none);
  wait_until_stopped (&none, 1);
  g_assert_cmpuint (count_threads (), ==, 5);
  g_assert_cmpuint (slow.n_complete, ==, 4);
  go_on (&slow);
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    recording_writer_end (all[i].writer);
  recording_writer_end (other.writer);
  g_assert_true (recording_writer_wait_all (60000));
  g_assert_cmpuint (slow.n_complete, ==, 2 * G_N_ELEMENTS (all));
  g_assert_cmpuint (none.n_complete, ==, 2);
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    check_ended (&all[i]);
  check_ended (&other);
  g_assert_cmpint (g_rmdir (slow_top), ==, 0);
  g_assert_cmpint (g_rmdir (other_top), ==, 0);
  g_free (slow_top);
  g_free (other_top);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/recording-writer/full-queue", a_full_queue_drops_parts_up_to_the_next_beginning);
  g_test_add_func ("/recording-writer/a-slow-folder-keeps-four-threads-and-no-other-folder",
      a_slow_folder_keeps_four_threads_and_no_other_folder);
  return g_test_run ();
}
