// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests intervalcache with a file for data that does not fit in memory.
#include "intervalcache-feed.h"

#include <gst/check/gstharness.h>
#include <gst/gst.h>

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#define CAPS "application/octet-stream"
#define MB ((gsize) 1 << 20)
#define SIZE 10000
#define MS GST_MSECOND
#define PATIENCE (20 * GST_SECOND)

static gboolean may_mount; // the process has its own mount namespace

// As in intervalcache-test.c: makes the harness's synchronisation visible to ThreadSanitizer.
static GMutex handed_over;

static GstPadProbeReturn
hand_over (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_mutex_lock (&handed_over);
  g_mutex_unlock (&handed_over);
  return GST_PAD_PROBE_OK;
}

static GstBuffer *
pull (GstHarness *h)
{
  GstBuffer *buffer = gst_harness_pull (h);

  g_mutex_lock (&handed_over);
  g_mutex_unlock (&handed_over);
  g_assert_nonnull (buffer);
  return buffer;
}

static GstHarness *
publish (const gchar *dir, guint64 max_bytes, guint64 spill_bytes)
{
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL);
  GstHarness *h;

  g_object_set (cache, "channel", "spill", "max-time", (guint64) 0, "max-bytes", max_bytes,
      "spill-dir", dir, "spill-bytes", spill_bytes, NULL);
  h = gst_harness_new_with_element (cache, "sink", NULL);
  gst_object_unref (cache);
  gst_harness_set_src_caps_str (h, CAPS);
  return h;
}

static GstHarness *
read_all (void)
{
  GstElement *source = gst_element_factory_make ("intervalcachesrc", NULL);
  GstHarness *h;

  gst_util_set_object_arg (G_OBJECT (source), "start", "oldest");
  g_object_set (source, "channel", "spill", NULL);
  h = gst_harness_new_with_element (source, NULL, "src");
  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, hand_over, NULL, NULL);
  gst_object_unref (source);
  gst_harness_play (h);
  return h;
}

static guint64
stat_of (GstHarness *h, const gchar *name)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (h->element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, name, &value));
  gst_structure_free (stats);
  return value;
}

static GstBuffer *
make_buffer (guint number, gsize size)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);

  gst_buffer_memset (buffer, 0, (guint8) (number * 7), size);
  GST_BUFFER_PTS (buffer) = number * MS;
  return buffer;
}

static void
push (GstHarness *h, guint first, guint n, gsize size)
{
  for (guint i = first; i < first + n; i++)
    g_assert_cmpint (feed (h, make_buffer (i, size)), ==, GST_FLOW_OK);
}

static void
check (GstBuffer *buffer, guint number, gsize size)
{
  GstMapInfo map;

  g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, number * MS);
  g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_assert_cmpuint (map.size, ==, size);
  for (gsize i = 0; i < size; i++) {
    if (map.data[i] != (guint8) (number * 7))
      g_error ("byte %" G_GSIZE_FORMAT " of buffer %u differs", i, number);
  }
  gst_buffer_unmap (buffer, &map);
}

static void
expect (GstHarness *h, guint number, gsize size)
{
  GstBuffer *buffer = pull (h);

  check (buffer, number, size);
  gst_buffer_unref (buffer);
}

// Returns the number of the first buffer that arrives.
static guint
pull_first (GstHarness *h)
{
  GstBuffer *buffer = pull (h);
  guint number;

  number = (guint) (GST_BUFFER_PTS (buffer) / MS);
  gst_buffer_unref (buffer);
  return number;
}

static gchar *
make_dir (void)
{
  gchar *dir = g_dir_make_tmp ("weir-spill-XXXXXX", NULL);

  g_assert_nonnull (dir);
  return dir;
}

static void
remove_dir (gchar *dir)
{
  g_assert_cmpint (rmdir (dir), ==, 0);
  g_free (dir);
}

static void
test_data_returns_unchanged (void)
{
  gchar *dir = make_dir ();
  GstHarness *p = publish (dir, 10 * SIZE, 8 * MB), *r;
  GstBufferList *list = gst_buffer_list_new ();
  GstBuffer *first = make_buffer (0, SIZE), *second, *got;
  GstCaps *reference = gst_caps_new_empty_simple ("timestamp/x-ntp");

  gst_buffer_add_reference_timestamp_meta (first, reference, 42, GST_CLOCK_TIME_NONE);
  GST_BUFFER_FLAG_SET (first, GST_BUFFER_FLAG_MARKER);
  feed (p, first);
  gst_buffer_list_add (list, make_buffer (1, SIZE));
  gst_buffer_list_add (list, make_buffer (2, SIZE));
  gst_pad_push_list (p->srcpad, list);
  second = make_buffer (3, SIZE);
  GST_BUFFER_DTS (second) = 3 * MS - 5;
  GST_BUFFER_DURATION (second) = MS;
  GST_BUFFER_OFFSET (second) = 12345;
  GST_BUFFER_FLAG_SET (second, GST_BUFFER_FLAG_DELTA_UNIT | GST_BUFFER_FLAG_CORRUPTED);
  feed (p, second);
  feed (p, make_buffer (4, 0));
  push (p, 5, 495, SIZE);
  g_assert_cmpuint (stat_of (p, "held"), ==, 500);
  g_assert_cmpuint (stat_of (p, "spilled-bytes"), ==, 489 * SIZE);
  r = read_all ();
  got = pull (r);
  check (got, 0, SIZE);
  g_assert_nonnull (gst_buffer_get_reference_timestamp_meta (got, reference));
  g_assert_true (GST_BUFFER_FLAG_IS_SET (got, GST_BUFFER_FLAG_MARKER));
  gst_buffer_unref (got);
  expect (r, 1, SIZE);
  expect (r, 2, SIZE);
  got = pull (r);
  check (got, 3, SIZE);
  g_assert_cmpuint (GST_BUFFER_DTS (got), ==, 3 * MS - 5);
  g_assert_cmpuint (GST_BUFFER_DURATION (got), ==, MS);
  g_assert_cmpuint (GST_BUFFER_OFFSET (got), ==, 12345);
  g_assert_true (
      GST_BUFFER_FLAG_IS_SET (got, GST_BUFFER_FLAG_DELTA_UNIT | GST_BUFFER_FLAG_CORRUPTED));
  g_assert_false (GST_BUFFER_FLAG_IS_SET (got, GST_BUFFER_FLAG_DISCONT));
  gst_buffer_unref (got);
  expect (r, 4, 0);
  for (guint i = 5; i < 500; i++)
    expect (r, i, SIZE);
  gst_caps_unref (reference);
  gst_harness_teardown (p);
  gst_harness_teardown (r);
  remove_dir (dir);
}

static void
test_a_buffer_may_exceed_a_piece (void)
{
  const gsize size = 3 * MB + 77;
  gchar *dir = make_dir ();
  GstHarness *p = publish (dir, size, 20 * MB), *r;

  push (p, 0, 5, size);
  r = read_all ();
  for (guint i = 0; i < 5; i++)
    expect (r, i, size);
  gst_harness_teardown (p);
  gst_harness_teardown (r);
  remove_dir (dir);
}

// A reader's buffers keep their bytes, however often the file is overwritten.
static void
test_readers_keep_their_bytes_when_the_file_wraps (void)
{
  gchar *dir = make_dir ();
  GstHarness *p = publish (dir, 10 * SIZE, 4 * MB), *r;
  GstBuffer *kept;
  guint first;

  push (p, 0, 100, SIZE);
  r = read_all ();
  kept = pull (r);
  gst_harness_teardown (r);
  push (p, 100, 10000, SIZE);
  check (kept, 0, SIZE);
  gst_buffer_unref (kept);
  g_assert_cmpuint (stat_of (p, "held-bytes"), <=, 10 * SIZE + 4 * MB);
  g_assert_cmpuint (stat_of (p, "held-bytes"), >=, 2 * MB);
  r = read_all ();
  first = pull_first (r);
  for (guint i = first + 1; i < 10100; i++)
    expect (r, i, SIZE);
  gst_harness_teardown (p);
  gst_harness_teardown (r);
  remove_dir (dir);
}

// The file has no name, so its directory is empty and can even be removed.
static void
test_the_folder_may_be_removed (void)
{
  gchar *dir = make_dir ();
  GstHarness *p = publish (dir, 10 * SIZE, 8 * MB), *r;

  push (p, 0, 100, SIZE);
  remove_dir (dir);
  push (p, 100, 100, SIZE);
  r = read_all ();
  for (guint i = 0; i < 200; i++)
    expect (r, i, SIZE);
  gst_harness_teardown (p);
  gst_harness_teardown (r);
}

static void
test_a_full_disk_shortens_the_window (void)
{
  gchar *dir = make_dir ();
  GstBus *bus = gst_bus_new ();
  GstHarness *p, *r;
  GstMessage *message;
  guint64 capacity;
  guint first;

  if (!may_mount || mount ("weir", dir, "tmpfs", 0, "size=3m") < 0) {
    g_test_skip ("cannot mount a tmpfs");
    remove_dir (dir);
    return;
  }
  p = publish (dir, 10 * SIZE, 64 * MB);
  gst_element_set_bus (p->element, bus);
  push (p, 0, 1000, SIZE);
  message = gst_bus_timed_pop_filtered (bus, PATIENCE, GST_MESSAGE_ELEMENT);
  g_assert_true (gst_message_has_name (message, "cache-spill-full"));
  g_assert_true (
      gst_structure_get_uint64 (gst_message_get_structure (message), "capacity", &capacity));
  g_assert_cmpuint (capacity, >=, 2 * MB);
  g_assert_cmpuint (capacity, <=, 3 * MB);
  gst_message_unref (message);
  push (p, 1000, 1000, SIZE);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_ANY & ~GST_MESSAGE_STATE_CHANGED));
  g_assert_cmpuint (stat_of (p, "held-bytes"), <=, capacity + 10 * SIZE);
  g_assert_cmpuint (stat_of (p, "held-bytes"), >=, capacity / 2);
  r = read_all ();
  first = pull_first (r);
  g_assert_cmpuint (first, ==, 2000 - stat_of (p, "held"));
  for (guint i = first + 1; i < 2000; i++)
    expect (r, i, SIZE);
  gst_element_set_bus (p->element, NULL);
  gst_harness_teardown (p);
  gst_harness_teardown (r);
  gst_object_unref (bus);
  g_assert_cmpint (umount (dir), ==, 0);
  remove_dir (dir);
}

static void
test_without_spill_bytes_all_data_is_in_memory (void)
{
  gchar *dir = make_dir ();
  GstHarness *p = publish (dir, 10 * SIZE, 0);

  push (p, 0, 100, SIZE);
  g_assert_cmpuint (stat_of (p, "held"), ==, 10);
  gst_harness_teardown (p);
  remove_dir (dir);
}

static void
test_a_missing_folder_is_an_error (void)
{
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL);

  g_object_set (cache, "spill-dir", "/nowhere/at/all", NULL);
  g_assert_cmpint (gst_element_set_state (cache, GST_STATE_PAUSED), ==, GST_STATE_CHANGE_FAILURE);
  gst_element_set_state (cache, GST_STATE_NULL);
  gst_object_unref (cache);
}

/* Data that stays in memory */

typedef struct {
  GMutex lock;
  GCond changed;
  guint left;
  gboolean ended;
} Counter;

// Accepts `left` buffers, then returns EOS.
static GstPadProbeReturn
count_down (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Counter *counter = user_data;

  g_mutex_lock (&counter->lock);
  GST_PAD_PROBE_INFO_FLOW_RETURN (info) = counter->left > 0 ? GST_FLOW_OK : GST_FLOW_EOS;
  if (counter->left > 0) {
    counter->left--;
  } else {
    counter->ended = TRUE;
    g_cond_broadcast (&counter->changed);
  }
  g_mutex_unlock (&counter->lock);
  gst_buffer_unref (GST_PAD_PROBE_INFO_BUFFER (info));
  return GST_PAD_PROBE_HANDLED;
}

static void
read_again (GstHarness *r, Counter *counter, guint n)
{
  g_mutex_lock (&counter->lock);
  counter->left = n;
  counter->ended = FALSE;
  g_mutex_unlock (&counter->lock);
  g_assert_true (gst_harness_push_upstream_event (
      r, gst_event_new_seek (1.0, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, 0,
             GST_SEEK_TYPE_NONE, 0)));
  g_mutex_lock (&counter->lock);
  while (!counter->ended)
    g_cond_wait (&counter->changed, &counter->lock);
  g_mutex_unlock (&counter->lock);
}

// Returns the hit ratio if, before each read of all 16 MB, the first 2 MB are read twice. Memory
// holds 4 MB.
static gdouble
hit_ratio_of (const gchar *policy)
{
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL);
  gchar *dir = make_dir ();
  Counter counter = { .left = 0 };
  GstHarness *p, *r;
  GstStructure *stats;
  gdouble ratio;

  g_mutex_init (&counter.lock);
  g_cond_init (&counter.changed);
  g_object_set (cache, "channel", "spill", "max-time", (guint64) 0, "max-bytes", (guint64) 4 * MB,
      "spill-dir", dir, NULL);
  gst_util_set_object_arg (G_OBJECT (cache), "policy", policy);
  p = gst_harness_new_with_element (cache, "sink", NULL);
  gst_object_unref (cache);
  gst_harness_set_src_caps_str (p, CAPS);
  push (p, 0, 1600, SIZE);
  g_assert_cmpuint (stat_of (p, "spilled-bytes"), ==, 1599 * SIZE);
  r = read_all ();
  gst_pad_add_probe (r->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, count_down, &counter, NULL);
  for (guint i = 0; i < 20; i++) {
    read_again (r, &counter, 200);
    read_again (r, &counter, 200);
    read_again (r, &counter, 1590);
  }
  g_object_get (p->element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_double (stats, "hit-ratio", &ratio));
  gst_structure_free (stats);
  gst_harness_teardown (p);
  gst_harness_teardown (r);
  remove_dir (dir);
  g_test_message ("%s: %.3f", policy, ratio);
  return ratio;
}

static void
test_policies_differ_in_hit_ratio (void)
{
  gdouble prefix = hit_ratio_of ("prefix"), lru = hit_ratio_of ("lru"), lfu = hit_ratio_of ("lfu");

  g_assert_cmpfloat (lru, <, 0.25);
  g_assert_cmpfloat (lfu, >, 0.35);
  g_assert_cmpfloat (prefix, >, 0.35);
}

// Gives the process its own mount namespace, which goes away with the process.
static gboolean
enter_own_mount_namespace (void)
{
  if (unshare (CLONE_NEWNS) < 0 && unshare (CLONE_NEWUSER | CLONE_NEWNS) < 0)
    return FALSE;
  return mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static const Test tests[] = {
  { "data-returns-unchanged", test_data_returns_unchanged },
  { "a-buffer-may-exceed-a-piece", test_a_buffer_may_exceed_a_piece },
  { "readers-keep-their-bytes-when-the-file-wraps",
      test_readers_keep_their_bytes_when_the_file_wraps },
  { "the-folder-may-be-removed", test_the_folder_may_be_removed },
  { "a-full-disk-shortens-the-window", test_a_full_disk_shortens_the_window },
  { "without-spill-bytes-all-data-is-in-memory", test_without_spill_bytes_all_data_is_in_memory },
  { "a-missing-folder-is-an-error", test_a_missing_folder_is_an_error },
  { "policies-differ-in-hit-ratio", test_policies_differ_in_hit_ratio },
};

int
main (int argc, char **argv)
{
  may_mount = enter_own_mount_namespace ();
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  add_tests ("intervalcache-spill", tests, G_N_ELEMENTS (tests));
  return g_test_run ();
}
