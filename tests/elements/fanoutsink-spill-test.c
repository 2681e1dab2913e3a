// SPDX-License-Identifier: LGPL-2.1-or-later
// fanoutsink with its window in a file. tests/core/delays-test.c tests reading from it.
#include <signal.h>
#include <sys/resource.h>

#include <gst/check/gstharness.h>
#include <gst/gst.h>

#define MB ((guint64) 1 << 20)
#define SIZE 60000

static GstHarness *
begin (const gchar *dir, GstBus *bus)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GstHarness *h;

  g_object_set (sink, "window-bytes", 64 * MB, "window-time", 3600 * GST_SECOND, "spill-dir", dir,
      "sync", FALSE, NULL);
  gst_element_set_bus (sink, bus);
  h = gst_harness_new_with_element (sink, "sink", NULL);
  gst_harness_set_src_caps_str (h, "application/octet-stream");
  gst_object_unref (sink);
  return h;
}

static void
push (GstHarness *h, guint n)
{
  for (guint i = 0; i < n; i++)
    g_assert_cmpint (
        gst_harness_push (h, gst_buffer_new_allocate (NULL, SIZE, NULL)), ==, GST_FLOW_OK);
}

static guint64
get_refused (GstHarness *h)
{
  GstStructure *stats;
  guint64 refused = 1;

  g_object_get (h->element, "fanout-stats", &stats, NULL);
  gst_structure_get_uint64 (stats, "packets-refused", &refused);
  gst_structure_free (stats);
  return refused;
}

static void
end (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
  gst_object_unref (bus);
}

static void
test_reuses_the_file (void)
{
  GstBus *bus = gst_bus_new ();
  GstHarness *h = begin (g_get_tmp_dir (), bus);

  push (h, 3000); // 180 MB through a window of 64 MB
  g_assert_cmpuint (get_refused (h), ==, 0);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_ELEMENT | GST_MESSAGE_ERROR));
  end (h, bus);
}

// A limit on the file size stands for a full disk.
static void
test_a_full_disk_shortens_the_window (void)
{
  const struct rlimit small = { 12 * MB, RLIM_INFINITY };
  GstBus *bus = gst_bus_new ();
  GstHarness *h = begin (g_get_tmp_dir (), bus);
  GstMessage *message;
  struct rlimit before;
  guint64 capacity = 0;

  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &before), ==, 0);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &small), ==, 0);
  push (h, 2000);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &before), ==, 0);
  g_assert_cmpuint (get_refused (h), ==, 0);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ELEMENT);
  g_assert_nonnull (message);
  g_assert_true (gst_message_has_name (message, "fanout-spill-full"));
  gst_structure_get_uint64 (gst_message_get_structure (message), "capacity", &capacity);
  g_assert_cmpuint (capacity, >, 10 * MB);
  g_assert_cmpuint (capacity, <, 12 * MB);
  gst_message_unref (message);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_ELEMENT | GST_MESSAGE_ERROR)); // once
  end (h, bus);
}

static void
test_a_missing_folder_is_an_error (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  GError *error;

  gst_element_set_bus (sink, bus);
  g_object_set (sink, "spill-dir", "/nowhere/at/all", NULL);
  g_assert_cmpint (gst_element_set_state (sink, GST_STATE_PAUSED), ==, GST_STATE_CHANGE_FAILURE);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  g_assert_cmpstr (error->message, ==, "cannot create a file in spill-dir=/nowhere/at/all");
  g_error_free (error);
  gst_message_unref (message);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_element_set_bus (sink, NULL);
  gst_object_unref (bus);
  gst_object_unref (sink);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  signal (SIGXFSZ, SIG_IGN);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/fanoutsink-spill/reuses-the-file", test_reuses_the_file);
  g_test_add_func (
      "/fanoutsink-spill/a-full-disk-shortens-the-window", test_a_full_disk_shortens_the_window);
  g_test_add_func (
      "/fanoutsink-spill/a-missing-folder-is-an-error", test_a_missing_folder_is_an_error);
  return g_test_run ();
}
