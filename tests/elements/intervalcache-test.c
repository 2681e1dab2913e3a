// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests intervalcache and its readers, at its pads and in other pipelines by its channel. The clock
// that gives arrival and due times moves only when a test moves it.
#include "intervalcache-feed.h"

#include <gst/check/gstharness.h>
#include <gst/check/gsttestclock.h>
#include <gst/gst.h>

#define RAW_CAPS "video/x-raw,format=GRAY8,width=4,height=4,framerate=10/1"
#define RTP_CAPS "application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=96"
#define MS GST_MSECOND
#define FRAME (100 * MS)
#define PATIENCE (20 * GST_SECOND)

static GstTestClock *test_clock;

// Makes the hand-over from push to pull visible to ThreadSanitizer, which does not see the
// harness's own synchronisation.
static GMutex handed_over;

static GstPadProbeReturn
hand_over (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_mutex_lock (&handed_over);
  g_mutex_unlock (&handed_over);
  return GST_PAD_PROBE_OK;
}

/* Writers and readers */

static GstHarness *
publish (const gchar *caps, const gchar *first_property, ...)
{
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL);
  va_list properties;
  GstHarness *h;

  va_start (properties, first_property);
  g_object_set_valist (G_OBJECT (cache), first_property, properties);
  va_end (properties);
  h = gst_harness_new_with_element (cache, "sink", NULL);
  gst_object_unref (cache);
  gst_harness_set_src_caps_str (h, caps);
  return h;
}

static GstHarness *
make_reader (const gchar *first_property, ...)
{
  GstElement *source = gst_element_factory_make ("intervalcachesrc", NULL);
  va_list properties;
  GstHarness *h;

  va_start (properties, first_property);
  g_object_set_valist (G_OBJECT (source), first_property, properties);
  va_end (properties);
  h = gst_harness_new_with_element (source, NULL, "src");
  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, hand_over, NULL, NULL);
  gst_object_unref (source);
  return h;
}

// A buffer's size identifies it.
static GstBuffer *
make_buffer (guint number, gboolean join)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, number + 1, NULL);

  GST_BUFFER_PTS (buffer) = number * FRAME;
  GST_BUFFER_DURATION (buffer) = FRAME;
  if (!join)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  return buffer;
}

// Pushes frames at their clock times. Every `gop`th is a join point.
static void
push_frames (GstHarness *h, guint first, guint n, guint gop)
{
  for (guint i = first; i < first + n; i++) {
    gst_test_clock_advance_time (test_clock, FRAME);
    g_assert_cmpint (feed (h, make_buffer (i, i % gop == 0)), ==, GST_FLOW_OK);
  }
}

static GstBuffer *
pull (GstHarness *h, guint number)
{
  GstBuffer *buffer = gst_harness_pull (h);

  g_mutex_lock (&handed_over);
  g_mutex_unlock (&handed_over);
  g_assert_nonnull (buffer);
  g_assert_cmpuint (gst_buffer_get_size (buffer), ==, number + 1);
  return buffer;
}

static void
expect (GstHarness *h, guint number)
{
  gst_buffer_unref (pull (h, number));
}

static void
expect_discont (GstHarness *h, guint number, gboolean discont)
{
  GstBuffer *buffer = pull (h, number);

  g_assert_cmpint (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DISCONT) != 0, ==, discont);
  gst_buffer_unref (buffer);
}

static guint64
stat_of (gpointer object, const gchar *name)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (object, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, name, &value));
  gst_structure_free (stats);
  return value;
}

static GstEvent *
next_event (GstHarness *h, GstEventType type)
{
  GstEvent *event;

  while ((event = gst_harness_pull_event (h)) && GST_EVENT_TYPE (event) != type)
    gst_event_unref (event);
  g_assert_nonnull (event);
  return event;
}

static void
end (GstHarness *publisher, GstHarness *reader)
{
  guint64 in = stat_of (publisher->element, "in");

  g_assert_cmpuint (
      in, ==, stat_of (publisher->element, "evicted") + stat_of (publisher->element, "held"));
  if (reader)
    gst_harness_teardown (reader);
  gst_harness_teardown (publisher);
}

/* Data */

static void
test_buffers_arrive_unchanged (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "intact", NULL);
  GstHarness *r = make_reader ("channel", "intact", "start", 2, NULL);
  GstBuffer *buffer = make_buffer (0, TRUE), *got;
  GstBufferList *list = gst_buffer_list_new ();
  GstReferenceTimestampMeta *meta;
  GstCaps *reference = gst_caps_new_empty_simple ("timestamp/x-ntp");
  GstEvent *event;
  GstTagList *tags;

  gst_buffer_add_reference_timestamp_meta (buffer, reference, 42, GST_CLOCK_TIME_NONE);
  feed (p, buffer);
  gst_harness_push_event (p, gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "one", NULL)));
  gst_harness_push_event (p, gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "two", NULL)));
  gst_buffer_list_add (list, make_buffer (1, FALSE));
  gst_buffer_list_add (list, make_buffer (2, FALSE));
  g_assert_cmpint (gst_pad_push_list (p->srcpad, list), ==, GST_FLOW_OK);
  gst_harness_push_event (p, gst_event_new_gap (3 * FRAME, FRAME));
  gst_harness_push_event (p, gst_event_new_eos ());

  gst_harness_play (r);
  got = pull (r, 0);
  meta = gst_buffer_get_reference_timestamp_meta (got, reference);
  g_assert_nonnull (meta);
  g_assert_cmpuint (meta->timestamp, ==, 42);
  g_assert_true (gst_buffer_peek_memory (got, 0) != NULL);
  gst_buffer_unref (got);
  expect (r, 1);
  expect (r, 2);
  gst_event_unref (next_event (r, GST_EVENT_STREAM_START));
  gst_event_unref (next_event (r, GST_EVENT_CAPS));
  gst_event_unref (next_event (r, GST_EVENT_SEGMENT));
  for (guint i = 0; i < 2; i++) {
    gchar *title;

    event = next_event (r, GST_EVENT_TAG);
    gst_event_parse_tag (event, &tags);
    gst_tag_list_get_string (tags, GST_TAG_TITLE, &title);
    g_assert_cmpstr (title, ==, i == 0 ? "one" : "two");
    g_free (title);
    gst_event_unref (event);
  }
  gst_event_unref (next_event (r, GST_EVENT_GAP));
  gst_event_unref (next_event (r, GST_EVENT_EOS));
  gst_caps_unref (reference);
  end (p, r);
}

static void
test_buffers_are_not_copied (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "copy", NULL);
  GstHarness *one = make_reader ("channel", "copy", NULL);
  GstHarness *two = make_reader ("channel", "copy", NULL);
  GstBuffer *first, *second;

  gst_harness_play (one);
  gst_harness_play (two);
  push_frames (p, 0, 2, 1);
  expect (one, 0);
  expect (two, 0);
  first = pull (one, 1);
  second = pull (two, 1);
  g_assert_true (first == second);
  gst_buffer_unref (first);
  gst_buffer_unref (second);
  gst_harness_teardown (one);
  end (p, two);
}

static void
test_readers_follow_a_caps_change (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "caps", NULL);
  GstHarness *r = make_reader ("channel", "caps", "start", 2, NULL);
  GstCaps *caps;

  push_frames (p, 0, 1, 1);
  gst_harness_set_src_caps_str (p, "video/x-vp8");
  push_frames (p, 1, 1, 1);
  gst_harness_play (r);
  expect (r, 0);
  expect (r, 1);
  gst_event_unref (next_event (r, GST_EVENT_CAPS));
  caps = gst_pad_get_current_caps (r->sinkpad);
  g_assert_true (gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-vp8"));
  gst_caps_unref (caps);
  end (p, r);
}

/* Start and end */

static void
test_a_source_waits_for_its_channel (void)
{
  GstHarness *r = make_reader ("channel", "first", NULL), *p;

  gst_harness_play (r);
  p = publish (RAW_CAPS, "channel", "first", NULL);
  push_frames (p, 0, 2, 1);
  expect_discont (r, 0, TRUE);
  expect_discont (r, 1, FALSE);
  end (p, r);
}

static void
test_a_new_publisher_takes_over (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "replaced", NULL);
  GstHarness *r = make_reader ("channel", "replaced", NULL);

  gst_harness_play (r);
  push_frames (p, 0, 2, 1);
  expect (r, 0);
  expect (r, 1);
  gst_event_unref (next_event (r, GST_EVENT_STREAM_START));
  gst_event_unref (next_event (r, GST_EVENT_CAPS));
  gst_event_unref (next_event (r, GST_EVENT_SEGMENT));
  gst_harness_push_event (p, gst_event_new_eos ());
  gst_harness_teardown (p);
  gst_event_unref (next_event (r, GST_EVENT_EOS));

  p = publish (RAW_CAPS, "channel", "replaced", NULL);
  push_frames (p, 5, 2, 1);
  expect_discont (r, 5, TRUE);
  expect_discont (r, 6, FALSE);
  gst_event_unref (next_event (r, GST_EVENT_STREAM_START));
  gst_event_unref (next_event (r, GST_EVENT_CAPS));
  gst_event_unref (next_event (r, GST_EVENT_SEGMENT));
  g_assert_cmpuint (stat_of (p->element, "publishers"), ==, 2);
  end (p, r);
}

static void
test_a_channel_has_one_publisher (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "one", NULL);
  GstElement *other = gst_element_factory_make ("intervalcache", NULL);

  g_object_set (other, "channel", "one", NULL);
  g_assert_cmpint (gst_element_set_state (other, GST_STATE_PAUSED), ==, GST_STATE_CHANGE_FAILURE);
  gst_element_set_state (other, GST_STATE_NULL);
  gst_object_unref (other);
  end (p, NULL);
}

static void
test_the_source_is_live (void)
{
  GstElement *source = gst_element_factory_make ("intervalcachesrc", NULL);
  GstPad *pad = gst_element_get_static_pad (source, "src");
  GstQuery *query = gst_query_new_latency ();
  gboolean live;

  g_assert_cmpint (gst_element_set_state (source, GST_STATE_PAUSED), ==, GST_STATE_CHANGE_FAILURE);
  gst_element_set_state (source, GST_STATE_NULL);
  g_object_set (source, "channel", "live", NULL);
  g_assert_cmpint (
      gst_element_set_state (source, GST_STATE_PAUSED), ==, GST_STATE_CHANGE_NO_PREROLL);
  g_assert_true (gst_pad_query (pad, query));
  gst_query_parse_latency (query, &live, NULL, NULL);
  g_assert_true (live);
  gst_element_set_state (source, GST_STATE_NULL);
  gst_query_unref (query);
  gst_object_unref (pad);
  gst_object_unref (source);
}

static void
test_a_program_can_send_eos (void)
{
  GstHarness *r = make_reader ("channel", "ended", NULL);

  gst_harness_play (r);
  g_assert_true (gst_element_send_event (r->element, gst_event_new_eos ()));
  gst_event_unref (next_event (r, GST_EVENT_EOS));
  gst_harness_teardown (r);
}

// A program flushes the reader, as it would flush a pipeline. The data pushed meanwhile still
// arrives.
static void
test_a_program_can_flush_a_reader (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "flushed", NULL);
  GstHarness *r = make_reader ("channel", "flushed", NULL);

  gst_harness_play (r);
  push_frames (p, 0, 1, 1);
  expect_discont (r, 0, TRUE);
  g_assert_true (gst_element_send_event (r->element, gst_event_new_flush_start ()));
  push_frames (p, 1, 1, 1);
  g_assert_true (gst_element_send_event (r->element, gst_event_new_flush_stop (TRUE)));
  push_frames (p, 2, 1, 1);
  expect_discont (r, 1, TRUE);
  expect_discont (r, 2, FALSE);
  end (p, r);
}

/* Positions */

static void
expect_start (const gchar *start, guint64 position, guint first)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "starts", NULL);
  GstHarness *r = make_reader ("channel", "starts", "position", position, NULL);

  gst_util_set_object_arg (G_OBJECT (r->element), "start", start);
  push_frames (p, 0, 35, 10);
  gst_harness_play (r);
  push_frames (p, 35, 1, 10);
  expect_discont (r, first, TRUE);
  for (guint i = first + 1; i < 36; i++)
    expect_discont (r, i, FALSE);
  end (p, r);
}

static void
test_start_selects_the_first_buffer (void)
{
  expect_start ("live", 0, 35);
  expect_start ("join-point", 0, 30);
  expect_start ("oldest", 0, 0);
  expect_start ("position", 25 * FRAME, 20);
  expect_start ("position", 30 * FRAME, 30);
  expect_start ("position", 100 * FRAME, 35);
}

static guint8 vp8_key[] = { 0x80, 96, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0x10, 0x00 };

static GstBuffer *
make_vp8 (guint number, guint8 frame, gboolean start, gboolean key)
{
  GstBuffer *buffer;
  const gsize size = sizeof vp8_key + number + 1;

  vp8_key[7] = frame;
  vp8_key[12] = start ? 0x10 : 0x00;
  vp8_key[13] = key ? 0x00 : 0x01;
  buffer = gst_buffer_new_allocate (NULL, size, NULL);
  gst_buffer_memset (buffer, 0, 0, size);
  gst_buffer_fill (buffer, 0, vp8_key, sizeof vp8_key);
  GST_BUFFER_PTS (buffer) = frame * FRAME;
  return buffer;
}

// Frames of three packets without any flags.
static void
test_rtp_keyframes_are_join_points (void)
{
  GstHarness *p = publish (RTP_CAPS, "channel", "rtp", NULL);
  GstHarness *r = make_reader ("channel", "rtp", "start", 1, NULL);

  for (guint i = 0; i < 30; i++)
    feed (p, make_vp8 (i, (guint8) (i / 3), i % 3 == 0, i / 3 % 4 == 0));
  gst_harness_play (r);
  for (guint i = 24; i < 30; i++)
    expect (r, (guint) sizeof vp8_key + i);
  end (p, r);
}

// Each whole frame in a list.
static void
test_rtp_keyframes_in_lists_are_join_points (void)
{
  GstHarness *p = publish (RTP_CAPS, "channel", "rtp", NULL);
  GstHarness *r = make_reader ("channel", "rtp", "start", 1, NULL);

  for (guint i = 0; i < 30; i += 3) {
    GstBufferList *list = gst_buffer_list_new ();

    for (guint k = i; k < i + 3; k++)
      gst_buffer_list_add (list, make_vp8 (k, (guint8) (i / 3), k == i, i / 3 % 4 == 0));
    g_assert_cmpint (gst_pad_push_list (p->srcpad, list), ==, GST_FLOW_OK);
  }
  gst_harness_play (r);
  for (guint i = 24; i < 30; i++)
    expect (r, (guint) sizeof vp8_key + i);
  end (p, r);
}

static GstBuffer *
make_h264 (guint number, guint8 frame, guint8 nal_type)
{
  GstBuffer *buffer = make_vp8 (number, frame, TRUE, TRUE);

  gst_buffer_memset (buffer, 12, 0x60 | nal_type, 1);
  gst_buffer_memset (buffer, 13, 0x88, 1); // a slice that begins the picture
  return buffer;
}

// The access unit delimiter belongs to the keyframe but comes before the slice that marks it.
static void
test_a_join_point_is_the_start_of_the_frame (void)
{
  GstHarness *p = publish (
      "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264", "channel", "rtp", NULL);
  GstHarness *r = make_reader ("channel", "rtp", "start", 1, NULL);

  for (guint i = 0; i < 30; i++)
    feed (p, make_h264 (i, (guint8) (i / 2), i % 2 == 0 ? 9 : i / 2 % 5 == 0 ? 5 : 1));
  gst_harness_play (r);
  for (guint i = 20; i < 30; i++)
    expect (r, (guint) sizeof vp8_key + i);
  end (p, r);
}

/* Limits */

static void
expect_held (const gchar *property, guint64 bound, guint64 held)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "bounds", "max-time", (guint64) 0, NULL);
  gchar *text = g_strdup_printf ("%" G_GUINT64_FORMAT, bound);

  gst_util_set_object_arg (G_OBJECT (p->element), property, text);
  push_frames (p, 0, 100, 10);
  g_assert_cmpuint (stat_of (p->element, "in"), ==, 100);
  g_assert_cmpuint (stat_of (p->element, "held"), ==, held);
  g_free (text);
  end (p, NULL);
}

static void
test_limits_bound_the_window (void)
{
  expect_held ("max-time", 0, 100);
  expect_held ("max-time", 20 * FRAME, 20);
  expect_held ("max-buffers", 7, 7);
  expect_held ("max-bytes", 100 + 99 + 98, 3);
  expect_held ("max-bytes", 1, 1);
}

static GstMessage *
next_miss (GstBus *bus)
{
  GstMessage *message;

  while ((message = gst_bus_timed_pop_filtered (bus, PATIENCE, GST_MESSAGE_ELEMENT))) {
    if (gst_message_has_name (message, "cache-miss"))
      return message;
    gst_message_unref (message);
  }
  g_assert_not_reached ();
}

static void
expect_miss (GstBus *bus, guint64 from, guint64 to, guint64 skipped)
{
  GstMessage *message = next_miss (bus);
  const GstStructure *s = gst_message_get_structure (message);
  guint64 value;

  g_assert_true (gst_structure_get_uint64 (s, "from", &value));
  g_assert_cmpuint (value, ==, from);
  g_assert_true (gst_structure_get_uint64 (s, "to", &value));
  g_assert_cmpuint (value, ==, to);
  g_assert_true (gst_structure_get_uint64 (s, "skipped", &value));
  g_assert_cmpuint (value, ==, skipped);
  gst_message_unref (message);
}

static GstBus *
give_bus (GstHarness *h)
{
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  return bus;
}

static void
drop_bus (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
}

// In PAUSED the reader keeps its position until the window has moved past it.
static void
test_a_reader_left_behind_skips_ahead (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "overrun", "max-buffers", 25, NULL);
  GstHarness *r = make_reader ("channel", "overrun", NULL);
  GstBus *bus = give_bus (r);

  gst_harness_play (r);
  push_frames (p, 0, 2, 10);
  expect (r, 0);
  expect (r, 1);
  gst_element_set_state (r->element, GST_STATE_PAUSED);
  push_frames (p, 2, 10, 10);
  gst_element_set_state (r->element, GST_STATE_PLAYING);
  for (guint i = 2; i < 12; i++)
    expect_discont (r, i, FALSE);
  gst_element_set_state (r->element, GST_STATE_PAUSED);
  push_frames (p, 12, 100, 10);
  gst_element_set_state (r->element, GST_STATE_PLAYING);
  expect_discont (r, 90, TRUE);
  expect_miss (bus, 12 * FRAME, 90 * FRAME, 78);
  for (guint i = 91; i < 112; i++)
    expect_discont (r, i, FALSE);
  g_assert_cmpuint (stat_of (r->element, "misses"), ==, 1);
  g_assert_cmpuint (stat_of (r->element, "skipped"), ==, 78);
  g_assert_cmpuint (stat_of (r->element, "out"), ==, 112 - 78);
  drop_bus (r, bus);
  end (p, r);
}

static void
push_list (GstHarness *h, guint first, guint n)
{
  GstBufferList *list = gst_buffer_list_new ();

  gst_test_clock_advance_time (test_clock, FRAME);
  for (guint i = first; i < first + n; i++)
    gst_buffer_list_add (list, make_buffer (i, i == first));
  g_assert_cmpint (gst_pad_push_list (h->srcpad, list), ==, GST_FLOW_OK);
}

static void
test_the_buffers_of_skipped_lists_are_counted (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "lists", "max-buffers", 20, NULL);
  GstHarness *r = make_reader ("channel", "lists", NULL);
  GstBus *bus = give_bus (r);

  gst_harness_play (r);
  push_list (p, 0, 3);
  for (guint i = 0; i < 3; i++)
    expect (r, i);
  gst_element_set_state (r->element, GST_STATE_PAUSED);
  push_list (p, 3, 7);
  push_frames (p, 10, 2, 1);
  push_list (p, 12, 20);
  gst_element_set_state (r->element, GST_STATE_PLAYING);
  expect_discont (r, 12, TRUE);
  expect_miss (bus, 3 * FRAME, 12 * FRAME, 9);
  g_assert_cmpuint (stat_of (r->element, "skipped"), ==, 9);
  drop_bus (r, bus);
  end (p, r);
}

static void
test_a_position_before_the_window_moves_up (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "gone", "max-buffers", 25, NULL);
  GstHarness *r = make_reader ("channel", "gone", "start", 3, "position", 2 * FRAME, NULL);
  GstBus *bus = give_bus (r);

  push_frames (p, 0, 50, 10);
  gst_harness_play (r);
  expect_discont (r, 30, TRUE);
  expect_miss (bus, 2 * FRAME, 30 * FRAME, 5);
  drop_bus (r, bus);
  end (p, r);
}

// A full window without a join point: there may never be one.
static void
test_a_full_window_without_a_join_point_starts_anyway (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "never", "max-buffers", 5, NULL);
  GstHarness *r = make_reader ("channel", "never", "start", 1, NULL);

  push_frames (p, 1, 5, 100);
  gst_harness_play (r);
  push_frames (p, 6, 5, 100);
  g_assert_cmpint (gst_harness_buffers_in_queue (r), ==, 0);
  push_frames (p, 11, 1, 100);
  gst_buffer_unref (gst_harness_pull (r));
  end (p, r);
}

/* Waiting and not waiting */

typedef struct {
  GMutex lock;
  GCond changed;
  gboolean reached, open;
} Gate;

static GstPadProbeReturn
wait_at_gate (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Gate *gate = user_data;

  g_mutex_lock (&gate->lock);
  gate->reached = TRUE;
  g_cond_broadcast (&gate->changed);
  while (!gate->open)
    g_cond_wait (&gate->changed, &gate->lock);
  g_mutex_unlock (&gate->lock);
  return GST_PAD_PROBE_OK;
}

static void
test_a_blocked_reader_never_blocks_the_writer (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "waits", "max-buffers", 25, NULL);
  GstHarness *r = make_reader ("channel", "waits", NULL);
  Gate gate = { .open = FALSE };

  g_mutex_init (&gate.lock);
  g_cond_init (&gate.changed);
  gst_pad_add_probe (r->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, wait_at_gate, &gate, NULL);
  gst_harness_play (r);
  push_frames (p, 0, 1, 10);
  g_mutex_lock (&gate.lock);
  while (!gate.reached)
    g_cond_wait (&gate.changed, &gate.lock);
  g_mutex_unlock (&gate.lock);
  push_frames (p, 1, 1000, 10);
  g_assert_cmpuint (stat_of (p->element, "held"), ==, 25);
  g_mutex_lock (&gate.lock);
  gate.open = TRUE;
  g_cond_broadcast (&gate.changed);
  g_mutex_unlock (&gate.lock);
  expect (r, 0);
  expect_discont (r, 980, TRUE);
  end (p, r);
}

/* Pads, each with its own position */

// Adds a pad to a running cache.
static GstHarness *
add_pad (GstHarness *publisher, const gchar *start, guint64 delay)
{
  GstPad *pad = gst_element_request_pad_simple (publisher->element, "src_%u");
  GstHarness *h;

  g_object_set (pad, "delay", delay, NULL);
  gst_util_set_object_arg (G_OBJECT (pad), "start", start);
  h = gst_harness_new_with_element (publisher->element, NULL, GST_PAD_NAME (pad));
  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, hand_over, NULL, NULL);
  gst_object_unref (pad);
  return h;
}

static void
remove_pad (GstHarness *publisher, GstHarness *h)
{
  GstPad *pad = gst_pad_get_peer (h->sinkpad);

  gst_pad_unlink (pad, h->sinkpad);
  gst_element_release_request_pad (publisher->element, pad);
  gst_object_unref (pad);
  gst_harness_teardown (h);
}

// Imitates downstream elements that are not linked until a test links them.
typedef struct {
  GMutex lock;
  GCond changed;
  gboolean linked;
  guint n_refused;
  gsize newest; // size of the newest buffer that passed
} Downstream;

static GstPadProbeReturn
take_or_refuse (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Downstream *downstream = user_data;
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

  g_mutex_lock (&downstream->lock);
  GST_PAD_PROBE_INFO_FLOW_RETURN (info) = downstream->linked ? GST_FLOW_OK : GST_FLOW_NOT_LINKED;
  if (downstream->linked)
    downstream->newest = gst_buffer_get_size (buffer);
  else
    downstream->n_refused++;
  g_cond_broadcast (&downstream->changed);
  g_mutex_unlock (&downstream->lock);
  gst_buffer_unref (buffer);
  return GST_PAD_PROBE_HANDLED;
}

// Checks that after one refused buffer the reader pushes no other until it is linked.
static void
expect_to_wait_for_link (GstHarness *p, GstHarness *h)
{
  Downstream downstream = { .linked = FALSE };
  const gint64 until = g_get_monotonic_time () + 50 * G_TIME_SPAN_MILLISECOND;
  gulong probe;

  g_mutex_init (&downstream.lock);
  g_cond_init (&downstream.changed);
  probe =
      gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, take_or_refuse, &downstream, NULL);
  push_frames (p, 0, 6, 1);
  g_mutex_lock (&downstream.lock);
  while (downstream.n_refused < 1)
    g_cond_wait (&downstream.changed, &downstream.lock);
  while (
      downstream.n_refused < 2 && g_cond_wait_until (&downstream.changed, &downstream.lock, until))
    ;
  g_assert_cmpuint (downstream.n_refused, ==, 1);
  downstream.linked = TRUE;
  g_mutex_unlock (&downstream.lock);
  gst_harness_push_upstream_event (h, gst_event_new_reconfigure ());
  push_frames (p, 6, 1, 1);
  g_mutex_lock (&downstream.lock);
  while (downstream.newest < 7)
    g_cond_wait (&downstream.changed, &downstream.lock);
  g_mutex_unlock (&downstream.lock);
  gst_pad_remove_probe (h->sinkpad, probe);
}

static void
test_an_unlinked_reader_waits_for_a_link (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "links", NULL);
  GstHarness *pad = add_pad (p, "live", 0), *r = make_reader ("channel", "links", NULL);

  expect_to_wait_for_link (p, pad);
  remove_pad (p, pad);
  end (p, NULL);
  p = publish (RAW_CAPS, "channel", "links", NULL);
  gst_harness_play (r);
  expect_to_wait_for_link (p, r);
  end (p, r);
}

static void
test_each_pad_has_its_own_position (void)
{
  GstHarness *p = publish (RAW_CAPS, "max-buffers", 100, NULL);
  GstHarness *one = add_pad (p, "live", 0), *two, *three;

  push_frames (p, 0, 35, 10);
  two = add_pad (p, "oldest", 0);
  three = add_pad (p, "join-point", 0);
  push_frames (p, 35, 1, 10);
  for (guint i = 0; i < 36; i++)
    expect_discont (one, i, i == 0);
  for (guint i = 0; i < 36; i++)
    expect_discont (two, i, i == 0);
  for (guint i = 30; i < 36; i++)
    expect_discont (three, i, i == 30);
  remove_pad (p, two);
  push_frames (p, 36, 1, 10);
  expect (one, 36);
  expect (three, 36);
  remove_pad (p, one);
  remove_pad (p, three);
  end (p, NULL);
}

static void
test_the_cache_is_a_sink_without_pads (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL), *h;

  g_assert_true (GST_OBJECT_FLAG_IS_SET (p->element, GST_ELEMENT_FLAG_SINK));
  h = add_pad (p, "live", 0);
  g_assert_false (GST_OBJECT_FLAG_IS_SET (p->element, GST_ELEMENT_FLAG_SINK));
  remove_pad (p, h);
  g_assert_true (GST_OBJECT_FLAG_IS_SET (p->element, GST_ELEMENT_FLAG_SINK));
  end (p, NULL);
}

// A pipeline ends when all its sinks have; the cache is a sink if it has no source pads.
static void
test_only_a_sink_posts_eos (void)
{
  for (guint n_pads = 0; n_pads < 2; n_pads++) {
    GstHarness *p = publish (RAW_CAPS, NULL);
    GstHarness *h = n_pads > 0 ? add_pad (p, "live", 0) : NULL;
    GstBus *bus = give_bus (p);
    GstMessage *message;

    gst_harness_push_event (p, gst_event_new_eos ());
    message = gst_bus_pop_filtered (bus, GST_MESSAGE_EOS);
    g_assert_cmpint (message != NULL, ==, n_pads == 0);
    g_clear_pointer (&message, gst_message_unref);
    drop_bus (p, bus);
    if (h)
      remove_pad (p, h);
    end (p, NULL);
  }
}

// Moves the clock to the time for which a reader waits.
static GstClockTime
move_clock (void)
{
  GstClockTime before = gst_clock_get_time (GST_CLOCK (test_clock)), due;
  GstClockID id;

  gst_test_clock_wait_for_next_pending_id (test_clock, &id);
  due = gst_clock_id_get_time (id);
  gst_clock_id_unref (id);
  g_assert_true (gst_test_clock_crank (test_clock));
  return due - before;
}

// Checks by how much sinks that synchronise show buffers later.
static void
expect_shift (GstHarness *h, gint64 shift)
{
  GstPad *pad = gst_pad_get_peer (h->sinkpad);

  g_assert_cmpint (gst_pad_get_offset (pad), ==, shift);
  gst_object_unref (pad);
}

static void
test_a_delay_can_change_while_playing (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 20 * FRAME);
  GstPad *pad = gst_pad_get_peer (h->sinkpad);

  expect_shift (h, 20 * FRAME);
  push_frames (p, 0, 5, 10);
  g_assert_cmpint (gst_harness_buffers_in_queue (h), ==, 0);
  g_assert_cmpuint (move_clock (), ==, 16 * FRAME);
  expect (h, 0);
  for (guint i = 1; i < 5; i++) {
    g_assert_cmpuint (move_clock (), ==, FRAME);
    expect (h, i);
  }
  push_frames (p, 5, 1, 10);
  gst_test_clock_wait_for_next_pending_id (test_clock, NULL);
  push_frames (p, 6, 29, 10);
  gst_test_clock_crank (test_clock); // the reader is already that late
  for (guint i = 5; i < 15; i++)
    expect (h, i);
  g_assert_cmpuint (stat_of (pad, "behind"), ==, 19 * FRAME);
  g_object_set (pad, "delay", (guint64) 0, NULL);
  for (guint i = 15; i < 35; i++)
    expect (h, i);
  gst_object_unref (pad);
  remove_pad (p, h);
  end (p, NULL);
}

// A new reader begins at the join point before its position.
static void
test_a_delayed_reader_starts_at_a_join_point (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL), *h;

  push_frames (p, 0, 50, 10);
  h = add_pad (p, "live", 15 * FRAME);
  for (guint i = 30; i < 35; i++)
    expect_discont (h, i, i == 30);
  g_assert_cmpuint (move_clock (), ==, FRAME);
  expect (h, 35);
  remove_pad (p, h);
  end (p, NULL);
}

// A delay is limited so that an eighth of the window of 40 frames stays free.
static void
test_a_delay_is_limited_by_the_window (void)
{
  GstHarness *p = publish (RAW_CAPS, "max-buffers", 40, NULL);
  GstHarness *h = add_pad (p, "live", 100 * FRAME);

  push_frames (p, 0, 1, 1);
  gst_test_clock_wait_for_next_pending_id (test_clock, NULL);
  push_frames (p, 1, 99, 1);
  move_clock (); // to the time at which the first buffer was due
  expect_discont (h, 65, TRUE);
  expect_shift (h, 35 * FRAME);
  gst_test_clock_wait_for_next_pending_id (test_clock, NULL);
  for (guint i = 66; i < 90; i++) {
    push_frames (p, i + 34, 1, 1);
    gst_test_clock_crank (test_clock);
    expect_discont (h, i, FALSE);
    gst_test_clock_wait_for_next_pending_id (test_clock, NULL);
  }
  remove_pad (p, h);
  end (p, NULL);
}

// With fit-delay, a window of 40 frames holds a delay of 100 frames.
static void
test_a_window_can_fit_its_delays (void)
{
  GstHarness *p = publish (RAW_CAPS, "max-time", 40 * FRAME, "fit-delay", TRUE, NULL);
  GstHarness *h = add_pad (p, "live", 100 * FRAME);

  push_frames (p, 0, 1, 1);
  gst_test_clock_wait_for_next_pending_id (test_clock, NULL);
  push_frames (p, 1, 99, 1);
  move_clock ();
  for (guint i = 0; i < 5; i++) {
    expect_discont (h, i, i == 0);
    g_assert_cmpuint (move_clock (), ==, FRAME);
  }
  remove_pad (p, h);
  end (p, NULL);
}

// A reader that joins a window that is already full begins at once.
static void
test_a_new_reader_with_too_long_a_delay_starts_at_once (void)
{
  GstHarness *p = publish (RAW_CAPS, "max-buffers", 40, NULL), *h;

  push_frames (p, 0, 100, 1);
  h = add_pad (p, "live", 100 * FRAME);
  expect_discont (h, 64, TRUE);
  expect_shift (h, 35 * FRAME);
  for (guint i = 65; i < 70; i++) {
    g_assert_cmpuint (move_clock (), ==, FRAME);
    expect_discont (h, i, FALSE);
  }
  remove_pad (p, h);
  end (p, NULL);
}

static void
test_a_flush_empties_the_window (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 20 * FRAME);
  GstSegment segment;

  push_frames (p, 0, 5, 10);
  move_clock ();
  expect (h, 0);
  gst_harness_push_event (p, gst_event_new_flush_start ());
  gst_harness_push_event (p, gst_event_new_flush_stop (TRUE));
  g_assert_cmpuint (stat_of (p->element, "held"), ==, 0);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (p, gst_event_new_segment (&segment));
  push_frames (p, 7, 2, 10);
  move_clock ();
  expect_discont (h, 7, TRUE);
  move_clock ();
  expect_discont (h, 8, FALSE);
  gst_event_unref (next_event (h, GST_EVENT_FLUSH_START));
  gst_event_unref (next_event (h, GST_EVENT_FLUSH_STOP));
  gst_event_unref (next_event (h, GST_EVENT_SEGMENT));
  remove_pad (p, h);
  end (p, NULL);
}

// A flush does not reach readers in other pipelines. They continue with later data.
static void
test_a_flush_leaves_readers_in_other_pipelines_running (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "flush", NULL);
  GstHarness *r = make_reader ("channel", "flush", "start", 2, NULL);
  GstSegment segment;

  push_frames (p, 0, 5, 10);
  gst_harness_play (r);
  for (guint i = 0; i < 5; i++)
    expect (r, i);
  gst_harness_push_event (p, gst_event_new_flush_start ());
  gst_harness_push_event (p, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (p, gst_event_new_segment (&segment));
  push_frames (p, 7, 2, 10);
  expect_discont (r, 7, TRUE);
  expect_discont (r, 8, FALSE);
  end (p, r);
}

// Readers at a pad and in another pipeline get the caps between the right buffers.
static void
test_caps_arrive_between_the_right_buffers (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "caps", NULL);
  GstHarness *readers[] = { add_pad (p, "live", 0), make_reader ("channel", "caps", NULL) };
  GstCaps *caps;

  gst_harness_play (readers[1]);
  push_frames (p, 0, 1, 1);
  for (guint i = 0; i < 2; i++) {
    expect (readers[i], 0);
    gst_event_unref (next_event (readers[i], GST_EVENT_CAPS));
  }
  gst_harness_set_src_caps_str (p, "video/x-vp8");
  gst_harness_push_event (p, gst_event_new_gap (FRAME, FRAME));
  push_frames (p, 2, 1, 1);
  for (guint i = 0; i < 2; i++) {
    expect_discont (readers[i], 2, FALSE);
    gst_event_unref (next_event (readers[i], GST_EVENT_CAPS));
    gst_event_unref (next_event (readers[i], GST_EVENT_GAP));
    caps = gst_pad_get_current_caps (readers[i]->sinkpad);
    g_assert_true (gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-vp8"));
    gst_caps_unref (caps);
  }
  remove_pad (p, readers[0]);
  end (p, readers[1]);
}

static void
push_at (GstHarness *p, guint number, GstClockTime pts)
{
  GstBuffer *buffer = make_buffer (number, TRUE);

  GST_BUFFER_PTS (buffer) = pts;
  gst_test_clock_advance_time (test_clock, FRAME);
  feed (p, buffer);
}

// Timestamps are missing, go back or jump. All buffers come out in order and unchanged, and the
// cache's time continues. A buffer without a timestamp has the time of the one before it.
static void
test_bad_timestamps_are_repaired (void)
{
  static const GstClockTime times[] = { 0, FRAME, GST_CLOCK_TIME_NONE, 3 * FRAME,
    3 * FRAME - FRAME / 2, 5 * FRAME, 3600 * GST_SECOND, 3600 * GST_SECOND + FRAME, 0, FRAME };
  GstHarness *p = publish (RAW_CAPS, "channel", "times", NULL);
  GstHarness *r = make_reader ("channel", "times", "start", 2, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    push_at (p, i, times[i]);
  gst_harness_play (r);
  for (guint i = 0; i < G_N_ELEMENTS (times); i++) {
    GstBuffer *buffer = pull (r, i);

    g_assert_cmpuint (GST_BUFFER_PTS (buffer), ==, times[i]);
    gst_buffer_unref (buffer);
  }
  g_assert_cmpuint (stat_of (p->element, "repaired"), ==, 4);
  g_assert_cmpuint (stat_of (p->element, "oldest"), ==, 0);
  g_assert_cmpuint (stat_of (p->element, "newest"), ==, 10 * FRAME);
  end (p, r);
}

// After a jump of the clock, waiting buffers are due at once, and later ones have the same delay as
// before.
static void
test_a_clock_jump_keeps_the_delay (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 20 * FRAME);

  push_frames (p, 0, 5, 10);
  gst_test_clock_wait_for_next_pending_id (test_clock, NULL);
  gst_test_clock_advance_time (test_clock, 3600 * GST_SECOND);
  gst_test_clock_crank (test_clock);
  for (guint i = 0; i < 5; i++)
    expect_discont (h, i, i == 0);
  push_frames (p, 5, 2, 10);
  g_assert_cmpint (gst_harness_buffers_in_queue (h), ==, 0);
  g_assert_cmpuint (move_clock (), ==, 19 * FRAME);
  expect_discont (h, 5, FALSE);
  g_assert_cmpuint (move_clock (), ==, FRAME);
  expect_discont (h, 6, FALSE);
  remove_pad (p, h);
  end (p, NULL);
}

static GstEvent *
make_seek (gint64 to, GstSeekFlags flags)
{
  return gst_event_new_seek (
      1.0, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, to, GST_SEEK_TYPE_NONE, 0);
}

// Asks what may be sought downstream of `r`, in ns.
static gboolean
ask_seekable (GstHarness *r, gint64 *from, gint64 *to)
{
  GstQuery *query = gst_query_new_seeking (GST_FORMAT_TIME);
  gboolean seekable;

  g_assert_true (gst_pad_peer_query (r->sinkpad, query));
  gst_query_parse_seeking (query, NULL, &seekable, from, to);
  gst_query_unref (query);
  return seekable;
}

static void
seek_reader (GstHarness *r, gint64 to)
{
  g_assert_true (gst_harness_push_upstream_event (r, make_seek (to, GST_SEEK_FLAG_FLUSH)));
}

static void
test_a_channel_reader_can_seek (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "seek", "max-buffers", 35, NULL);
  GstHarness *r = make_reader ("channel", "seek", NULL);
  gint64 from, to;

  gst_harness_play (r);
  for (guint i = 0; i < 50; i++) {
    push_frames (p, i, 1, 10);
    expect (r, i);
  }
  // Seeks work, but gst-rtsp-server would seek a seekable media at every PLAY.
  g_assert_false (ask_seekable (r, &from, &to));
  g_assert_cmpint (from, ==, 15 * FRAME);
  g_assert_cmpint (to, ==, 50 * FRAME);
  seek_reader (r, 35 * FRAME);
  for (guint i = 30; i < 50; i++)
    expect_discont (r, i, i == 30);
  g_assert_true (gst_harness_push_upstream_event (r, make_seek (45 * FRAME, GST_SEEK_FLAG_NONE)));
  for (guint i = 40; i < 50; i++)
    expect_discont (r, i, i == 40);
  seek_reader (r, FRAME); // before the window: its oldest join point
  for (guint i = 20; i < 50; i++)
    expect_discont (r, i, i == 20);
  seek_reader (r, 500 * FRAME); // behind it: the live edge
  push_frames (p, 50, 1, 10);
  expect_discont (r, 50, TRUE);
  end (p, r);
}

static void
use_clock (GstHarness *h)
{
  gst_element_set_clock (h->element, GST_CLOCK (test_clock));
  gst_element_set_base_time (h->element, gst_clock_get_time (GST_CLOCK (test_clock)));
}

// A pipeline prerolls as a whole: a sink behind a delay must not keep a live one waiting.
static void
test_a_delayed_reader_announces_its_stream (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *live = add_pad (p, "live", 0), *r = add_pad (p, "late", 20 * FRAME);

  push_frames (p, 0, 2, 10);
  expect (live, 0);
  gst_event_unref (next_event (r, GST_EVENT_CAPS));
  gst_event_unref (next_event (r, GST_EVENT_SEGMENT));
  gst_event_unref (next_event (r, GST_EVENT_GAP));
  g_assert_cmpuint (gst_harness_buffers_received (r), ==, 0);
  move_clock ();
  expect_discont (r, 0, TRUE);
  move_clock ();
  expect_discont (r, 1, FALSE);
  g_assert_null (gst_harness_try_pull_event (r)); // it announces only once
  remove_pad (p, r);
  remove_pad (p, live);
  end (p, NULL);
}

// gst-rtsp-server would describe a media without caps.
static void
test_a_delayed_reader_alone_announces_nothing (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "alone", NULL);
  GstHarness *r = make_reader ("channel", "alone", "delay", 20 * FRAME, NULL);
  GstEvent *event;

  gst_harness_play (r);
  push_frames (p, 0, 1, 10);
  move_clock ();
  expect_discont (r, 0, TRUE);
  while ((event = gst_harness_try_pull_event (r))) {
    g_assert_cmpint (GST_EVENT_TYPE (event), !=, GST_EVENT_GAP);
    gst_event_unref (event);
  }
  end (p, r);
}

static GstElement *
make_pipeline (const gchar *line)
{
  GstElement *pipeline = gst_parse_launch (line, NULL);

  gst_pipeline_use_clock (GST_PIPELINE (pipeline), GST_CLOCK (test_clock));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  return pipeline;
}

// Waits until the pad of the source `name` has this offset.
static void
expect_offset (GstElement *pipeline, const gchar *name, gint64 offset)
{
  GstElement *source = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *pad = gst_element_get_static_pad (source, "src");
  const gint64 deadline = g_get_monotonic_time () + GST_TIME_AS_USECONDS (PATIENCE);

  while (gst_pad_get_offset (pad) != offset && g_get_monotonic_time () < deadline)
    g_usleep (100);
  g_assert_cmpint (gst_pad_get_offset (pad), ==, offset);
  gst_object_unref (pad);
  gst_object_unref (source);
}

#define TO_FAKESINK " ! fakesink sync=false async=false "

// The pipeline of the readers begins 20 frames after that of the caches. The picture begins with
// the keyframe of 5 frames ago. The sound begins now, and then waits for the picture.
static void
test_readers_of_a_pipeline_stay_in_step (void)
{
  GstHarness *picture = publish (RAW_CAPS, "channel", "picture", NULL);
  GstHarness *sound = publish (RAW_CAPS, "channel", "sound", NULL);
  GstElement *readers;

  use_clock (picture);
  use_clock (sound);
  push_frames (picture, 0, 20, 15);
  readers = make_pipeline ("intervalcachesrc name=s channel=sound" TO_FAKESINK
                           "intervalcachesrc name=p channel=picture start=join-point" TO_FAKESINK);
  // The newest keyframe is number 15, whose running time becomes that of this moment: 0.
  expect_offset (readers, "p", -15 * FRAME);
  push_frames (sound, 20, 1, 1);
  expect_offset (readers, "s", -15 * FRAME);
  gst_element_set_state (readers, GST_STATE_NULL);
  gst_object_unref (readers);

  // In the other order, the sound moves when the picture comes.
  readers = make_pipeline ("intervalcachesrc name=s channel=sound" TO_FAKESINK
                           "intervalcachesrc name=p channel=late-picture start=oldest" TO_FAKESINK);
  push_frames (sound, 21, 1, 1);
  expect_offset (readers, "s", -20 * FRAME);
  gst_harness_teardown (picture);
  picture = publish (RAW_CAPS, "channel", "late-picture", NULL);
  gst_element_set_clock (picture->element, GST_CLOCK (test_clock));
  gst_element_set_base_time (picture->element, gst_element_get_base_time (sound->element));
  feed (picture, make_buffer (18, TRUE)); // 4 frames late
  expect_offset (readers, "p", -17 * FRAME);
  push_frames (sound, 22, 1, 1);
  expect_offset (readers, "s", -17 * FRAME);
  gst_element_set_state (readers, GST_STATE_NULL);
  gst_object_unref (readers);
  gst_harness_teardown (sound);
  gst_harness_teardown (picture);
}

// Sinks that synchronise show the data after a pad's seek at once.
static void
test_a_pad_can_seek (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 0);
  const GstSegment *segment;
  GstEvent *event;
  gboolean reset;

  use_clock (h);
  push_frames (p, 0, 50, 10);
  for (guint i = 0; i < 50; i++)
    expect (h, i);
  gst_event_unref (next_event (h, GST_EVENT_SEGMENT));
  expect_shift (h, 0);
  g_assert_true (gst_harness_push_upstream_event (h, make_seek (35 * FRAME, GST_SEEK_FLAG_FLUSH)));
  for (guint i = 30; i < 50; i++)
    expect_discont (h, i, i == 30);
  expect_shift (h, 20 * FRAME);
  event = next_event (h, GST_EVENT_FLUSH_STOP);
  gst_event_parse_flush_stop (event, &reset);
  g_assert_false (reset);
  gst_event_unref (event);
  event = next_event (h, GST_EVENT_SEGMENT);
  gst_event_parse_segment (event, &segment);
  g_assert_cmpuint (
      gst_segment_to_running_time (segment, GST_FORMAT_TIME, 30 * FRAME), ==, 50 * FRAME);
  gst_event_unref (event);
  g_assert_true (gst_harness_push_upstream_event (h, make_seek (45 * FRAME, GST_SEEK_FLAG_NONE)));
  for (guint i = 40; i < 50; i++)
    expect_discont (h, i, i == 40);
  expect_shift (h, 10 * FRAME);
  remove_pad (p, h);
  end (p, NULL);
}

static void
push_flush (GstHarness *h)
{
  GstSegment segment;

  gst_harness_push_event (h, gst_event_new_flush_start ());
  gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (h, gst_event_new_segment (&segment));
}

// Stored media arrives at once, far ahead of its presentation time.
static void
test_stored_media_can_be_sought (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 0);

  use_clock (h);
  for (guint i = 0; i < 50; i++)
    feed (p, make_buffer (i, i % 10 == 0));
  for (guint i = 0; i < 50; i++)
    expect (h, i);
  gst_test_clock_advance_time (test_clock, 2 * FRAME);
  g_assert_true (gst_harness_push_upstream_event (h, make_seek (35 * FRAME, GST_SEEK_FLAG_FLUSH)));
  for (guint i = 30; i < 50; i++)
    expect_discont (h, i, i == 30);
  expect_shift (h, -28 * FRAME);
  remove_pad (p, h);
  end (p, NULL);
}

// After a flush, and after a restart of the element, the reader is at the live edge again.
static void
test_a_flush_or_restart_ends_a_seeks_lag (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 0);

  use_clock (h);
  push_frames (p, 0, 30, 10);
  for (guint i = 0; i < 30; i++)
    expect (h, i);
  g_assert_true (gst_harness_push_upstream_event (h, make_seek (15 * FRAME, GST_SEEK_FLAG_NONE)));
  for (guint i = 10; i < 30; i++)
    expect (h, i);
  expect_shift (h, 20 * FRAME);
  push_flush (p);
  push_frames (p, 30, 20, 10);
  for (guint i = 30; i < 50; i++)
    expect (h, i);
  expect_shift (h, 0);
  g_assert_true (gst_harness_push_upstream_event (h, make_seek (45 * FRAME, GST_SEEK_FLAG_NONE)));
  for (guint i = 40; i < 50; i++)
    expect (h, i);
  expect_shift (h, 10 * FRAME);
  gst_element_set_state (p->element, GST_STATE_READY);
  gst_element_set_state (p->element, GST_STATE_PLAYING);
  push_frames (p, 50, 1, 10);
  expect (h, 50);
  expect_shift (h, 0);
  remove_pad (p, h);
  end (p, NULL);
}

// Checks which buffer a new pad with this start receives first.
static void
expect_first (GstHarness *p, const gchar *start, guint64 delay, guint first)
{
  GstHarness *h = add_pad (p, start, delay);

  if (delay > 0)
    move_clock ();
  expect_discont (h, first, TRUE);
  remove_pad (p, h);
}

// While another pipeline reads the channel, older data stays in the window. Its running time is not
// that of the cache's pads.
static void
test_new_pads_skip_data_from_before_a_restart (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "again", NULL);
  GstHarness *r = make_reader ("channel", "again", "start", 2, NULL);

  push_frames (p, 0, 30, 10);
  gst_harness_play (r);
  expect (r, 0);
  gst_element_set_state (p->element, GST_STATE_READY);
  gst_element_set_state (p->element, GST_STATE_PLAYING);
  push_frames (p, 31, 1, 100);
  push_frames (p, 40, 10, 10);
  for (guint i = 1; i < 30; i++)
    expect (r, i);
  expect (r, 31);
  expect_first (p, "oldest", 0, 40);
  expect_first (p, "join-point", 0, 40);
  expect_first (p, "position", 0, 40);
  expect_first (p, "live", 15 * FRAME, 40);
  end (p, r);
}

static GstElement *
add_sink (GstElement *pipeline, GstElement *cache)
{
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);

  g_object_set (sink, "sync", TRUE, NULL);
  gst_bin_add (GST_BIN (pipeline), sink);
  g_assert_true (gst_element_link (cache, sink));
  return sink;
}

// Waits until the sinks have data again and the pipeline's time runs.
static void
wait_until_it_plays (GstElement *pipeline)
{
  GstMessage *message =
      gst_bus_timed_pop_filtered (GST_ELEMENT_BUS (pipeline), PATIENCE, GST_MESSAGE_ASYNC_DONE);

  g_assert_nonnull (message);
  gst_message_unref (message);
  g_assert_cmpint (
      gst_element_get_state (pipeline, NULL, NULL, PATIENCE), ==, GST_STATE_CHANGE_SUCCESS);
}

// A seek of one reader leaves the pipeline's running time alone, for the other readers.
static void
test_a_seek_leaves_other_readers_alone (void)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL), *sink;
  GstHarness *p;
  GstClockTime base;

  gst_bin_add (GST_BIN (pipeline), cache);
  sink = add_sink (pipeline, cache);
  add_sink (pipeline, cache);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  p = gst_harness_new_with_element (cache, "sink", NULL);
  gst_harness_set_src_caps_str (p, RAW_CAPS);
  push_frames (p, 0, 1, 1);
  wait_until_it_plays (pipeline);
  base = gst_element_get_base_time (pipeline);
  push_frames (p, 1, 19, 1);
  g_assert_true (gst_element_send_event (sink, make_seek (15 * FRAME, GST_SEEK_FLAG_FLUSH)));
  wait_until_it_plays (pipeline);
  g_assert_cmpuint (gst_element_get_base_time (pipeline), ==, base);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_harness_teardown (p);
  gst_object_unref (pipeline);
}

static GstEvent *
make_upstream_event (const gchar *name)
{
  return gst_event_new_custom (
      GST_EVENT_CUSTOM_UPSTREAM, gst_structure_new (name, "running-time", GST_TYPE_CLOCK_TIME,
                                     3 * FRAME, "all-headers", G_TYPE_BOOLEAN, TRUE, NULL));
}

static GstEvent *
next_upstream_event (GstHarness *h, const gchar *name)
{
  GstEvent *event;

  while ((event = gst_harness_try_pull_upstream_event (h)) && !gst_event_has_name (event, name))
    gst_event_unref (event);
  return event;
}

// The request goes from a channel's reader to the cache's upstream, whose pipeline has a different
// time.
static void
test_a_keyframe_request_reaches_upstream (void)
{
  GstHarness *r = make_reader ("channel", "events", NULL), *p;
  const GstStructure *s;
  GstClockTime time = 0;
  gboolean all = FALSE;
  GstEvent *event;

  gst_harness_play (r);
  g_assert_false (gst_harness_push_upstream_event (r, make_upstream_event ("GstForceKeyUnit")));
  p = publish (RAW_CAPS, "channel", "events", NULL);
  g_assert_true (gst_harness_push_upstream_event (r, make_upstream_event ("GstForceKeyUnit")));
  event = next_upstream_event (p, "GstForceKeyUnit");
  g_assert_nonnull (event);
  s = gst_event_get_structure (event);
  g_assert_true (gst_structure_get_clock_time (s, "running-time", &time));
  g_assert_cmpuint (time, ==, GST_CLOCK_TIME_NONE);
  g_assert_true (gst_structure_get_boolean (s, "all-headers", &all) && all);
  gst_event_unref (event);
  end (p, r);
}

// One slow reader must not make a decoder skip pictures for all other readers.
static void
test_a_pads_lateness_stays_with_it (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *h = add_pad (p, "live", 0);
  GstEvent *event;

  while ((event = gst_harness_try_pull_upstream_event (p)))
    gst_event_unref (event);
  g_assert_true (gst_harness_push_upstream_event (
      h, gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 2.0, FRAME, 3 * FRAME)));
  g_assert_true (gst_harness_push_upstream_event (h, make_upstream_event ("GstForceKeyUnit")));
  event = gst_harness_try_pull_upstream_event (p);
  g_assert_true (gst_event_has_name (event, "GstForceKeyUnit"));
  gst_event_unref (event);
  remove_pad (p, h);
  end (p, NULL);
}

// Like other sources, the reader refuses events that nothing handles, but accepts QoS, latency and
// reconfigure events.
static void
test_unhandled_upstream_events_are_refused (void)
{
  GstHarness *r = make_reader ("channel", "events", NULL);
  GstHarness *p = publish (RAW_CAPS, "channel", "events", NULL);

  gst_harness_play (r);
  g_assert_false (gst_harness_push_upstream_event (r, make_upstream_event ("Whatever")));
  g_assert_false (gst_harness_push_upstream_event (
      r, gst_event_new_navigation (gst_structure_new_empty ("application/x-gst-navigation"))));
  g_assert_true (gst_harness_push_upstream_event (
      r, gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 2.0, FRAME, 3 * FRAME)));
  g_assert_true (gst_harness_push_upstream_event (r, gst_event_new_latency (FRAME)));
  g_assert_true (gst_harness_push_upstream_event (r, gst_event_new_reconfigure ()));
  g_assert_null (next_upstream_event (p, "Whatever"));
  end (p, r);
}

// A reader that joins after the end gets EOS.
static void
test_late_readers_get_eos (void)
{
  GstHarness *p = publish (RAW_CAPS, NULL);
  GstHarness *one = add_pad (p, "live", 0), *two;

  push_frames (p, 0, 3, 10);
  gst_harness_push_event (p, gst_event_new_eos ());
  for (guint i = 0; i < 3; i++)
    expect (one, i);
  gst_event_unref (next_event (one, GST_EVENT_EOS));
  two = add_pad (p, "live", 0);
  gst_event_unref (next_event (two, GST_EVENT_CAPS));
  gst_event_unref (next_event (two, GST_EVENT_EOS));
  remove_pad (p, one);
  remove_pad (p, two);
  end (p, NULL);
}

// Readers stop while they wait for data, for the clock and for downstream.
static void
test_readers_stop_at_once (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "stops", NULL);

  for (guint i = 0; i < 30; i++) {
    GstElement *source = gst_element_factory_make ("intervalcachesrc", NULL);
    GstElement *sink = gst_element_factory_make ("fakesink", NULL);
    GstElement *pipeline = gst_pipeline_new (NULL);

    g_object_set (source, "channel", "stops", "start", i % 3, "delay",
        i % 2 ? (guint64) GST_SECOND : (guint64) 0, NULL);
    g_object_set (sink, "sync", i % 5 == 0, NULL);
    gst_bin_add_many (GST_BIN (pipeline), source, sink, NULL);
    gst_element_link (source, sink);
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    push_frames (p, i, 1, 10);
    gst_element_set_state (pipeline, i % 4 ? GST_STATE_NULL : GST_STATE_PAUSED);
    gst_element_set_state (pipeline, GST_STATE_NULL);
    gst_object_unref (pipeline);
  }
  end (p, NULL);
}

typedef struct {
  GstHarness *reader;
  gint done; // atomic
} Seeker;

static gpointer
seek_on (gpointer user_data)
{
  Seeker *seeker = user_data;

  for (guint i = 0; !g_atomic_int_get (&seeker->done); i++)
    gst_harness_push_upstream_event (
        seeker->reader, make_seek (i % 10 * FRAME, i % 3 ? GST_SEEK_FLAG_FLUSH : 0));
  return NULL;
}

static void
test_a_reader_can_stop_during_seeks (void)
{
  GstHarness *p = publish (RAW_CAPS, "channel", "both", NULL);
  GstHarness *r = make_reader ("channel", "both", NULL);
  Seeker seeker = { r, FALSE };
  GThread *thread;

  gst_harness_set_drop_buffers (r, TRUE);
  push_frames (p, 0, 20, 1);
  thread = g_thread_new ("seeker", seek_on, &seeker);
  for (guint i = 0; i < 100; i++) {
    gst_element_set_state (r->element, i % 3 ? GST_STATE_PLAYING : GST_STATE_PAUSED);
    if (i % 2)
      push_frames (p, 20 + i, 1, 1);
    gst_element_set_state (r->element, i % 5 ? GST_STATE_READY : GST_STATE_NULL);
  }
  g_atomic_int_set (&seeker.done, TRUE);
  g_thread_join (thread);
  end (p, r);
}

static gpointer
write_on (gpointer user_data)
{
  GstHarness *p = user_data;

  for (guint i = 0; i < 3000; i++)
    feed (p, make_buffer (i % 50, i % 10 == 0));
  return NULL;
}

static void
test_pads_come_and_go (void)
{
  GstHarness *p = publish (RAW_CAPS, "max-buffers", 100, NULL);
  GThread *writer = g_thread_new ("writer", write_on, p);

  for (guint i = 0; i < 50; i++) {
    GstHarness *h = add_pad (p, i % 2 ? "oldest" : "join-point", 0);

    gst_buffer_unref (gst_harness_pull (h));
    remove_pad (p, h);
  }
  g_thread_join (writer);
  g_assert_cmpuint (stat_of (p->element, "in"), ==, 3000);
  end (p, NULL);
}

static const Test tests[] = {
  { "buffers-arrive-unchanged", test_buffers_arrive_unchanged },
  { "buffers-are-not-copied", test_buffers_are_not_copied },
  { "readers-follow-a-caps-change", test_readers_follow_a_caps_change },
  { "a-source-waits-for-its-channel", test_a_source_waits_for_its_channel },
  { "a-new-publisher-takes-over", test_a_new_publisher_takes_over },
  { "a-channel-has-one-publisher", test_a_channel_has_one_publisher },
  { "the-source-is-live", test_the_source_is_live },
  { "a-program-can-send-eos", test_a_program_can_send_eos },
  { "a-program-can-flush-a-reader", test_a_program_can_flush_a_reader },
  { "start-selects-the-first-buffer", test_start_selects_the_first_buffer },
  { "rtp-keyframes-are-join-points", test_rtp_keyframes_are_join_points },
  { "rtp-keyframes-in-lists-are-join-points", test_rtp_keyframes_in_lists_are_join_points },
  { "a-join-point-is-the-start-of-the-frame", test_a_join_point_is_the_start_of_the_frame },
  { "limits-bound-the-window", test_limits_bound_the_window },
  { "a-reader-left-behind-skips-ahead", test_a_reader_left_behind_skips_ahead },
  { "the-buffers-of-skipped-lists-are-counted", test_the_buffers_of_skipped_lists_are_counted },
  { "a-position-before-the-window-moves-up", test_a_position_before_the_window_moves_up },
  { "a-full-window-without-a-join-point-starts-anyway",
      test_a_full_window_without_a_join_point_starts_anyway },
  { "a-blocked-reader-never-blocks-the-writer", test_a_blocked_reader_never_blocks_the_writer },
  { "an-unlinked-reader-waits-for-a-link", test_an_unlinked_reader_waits_for_a_link },
  { "each-pad-has-its-own-position", test_each_pad_has_its_own_position },
  { "the-cache-is-a-sink-without-pads", test_the_cache_is_a_sink_without_pads },
  { "only-a-sink-posts-eos", test_only_a_sink_posts_eos },
  { "a-delay-can-change-while-playing", test_a_delay_can_change_while_playing },
  { "a-delayed-reader-starts-at-a-join-point", test_a_delayed_reader_starts_at_a_join_point },
  { "a-delay-is-limited-by-the-window", test_a_delay_is_limited_by_the_window },
  { "a-window-can-fit-its-delays", test_a_window_can_fit_its_delays },
  { "a-new-reader-with-too-long-a-delay-starts-at-once",
      test_a_new_reader_with_too_long_a_delay_starts_at_once },
  { "a-flush-empties-the-window", test_a_flush_empties_the_window },
  { "a-flush-leaves-readers-in-other-pipelines-running",
      test_a_flush_leaves_readers_in_other_pipelines_running },
  { "caps-arrive-between-the-right-buffers", test_caps_arrive_between_the_right_buffers },
  { "bad-timestamps-are-repaired", test_bad_timestamps_are_repaired },
  { "a-clock-jump-keeps-the-delay", test_a_clock_jump_keeps_the_delay },
  { "a-channel-reader-can-seek", test_a_channel_reader_can_seek },
  { "a-delayed-reader-announces-its-stream", test_a_delayed_reader_announces_its_stream },
  { "a-delayed-reader-alone-announces-nothing", test_a_delayed_reader_alone_announces_nothing },
  { "readers-of-a-pipeline-stay-in-step", test_readers_of_a_pipeline_stay_in_step },
  { "a-pad-can-seek", test_a_pad_can_seek },
  { "new-pads-skip-data-from-before-a-restart", test_new_pads_skip_data_from_before_a_restart },
  { "stored-media-can-be-sought", test_stored_media_can_be_sought },
  { "a-flush-or-restart-ends-a-seeks-lag", test_a_flush_or_restart_ends_a_seeks_lag },
  { "a-seek-leaves-other-readers-alone", test_a_seek_leaves_other_readers_alone },
  { "a-keyframe-request-reaches-upstream", test_a_keyframe_request_reaches_upstream },
  { "a-pads-lateness-stays-with-it", test_a_pads_lateness_stays_with_it },
  { "unhandled-upstream-events-are-refused", test_unhandled_upstream_events_are_refused },
  { "late-readers-get-eos", test_late_readers_get_eos },
  { "readers-stop-at-once", test_readers_stop_at_once },
  { "a-reader-can-stop-during-seeks", test_a_reader_can_stop_during_seeks },
  { "pads-come-and-go", test_pads_come_and_go },
};

int
main (int argc, char **argv)
{
  int ret;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  test_clock = GST_TEST_CLOCK (gst_test_clock_new ());
  gst_system_clock_set_default (GST_CLOCK (test_clock));
  add_tests ("intervalcache", tests, G_N_ELEMENTS (tests));
  ret = g_test_run ();
  gst_system_clock_set_default (NULL);
  gst_object_unref (test_clock);
  return ret;
}
