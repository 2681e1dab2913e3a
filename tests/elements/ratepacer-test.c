// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests ratepacer between two pads, with a clock that moves only when the test moves it, and in
// pipelines, for changes of state.
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <string.h>

#include "core/pace/pacer.h"
#include "pace/ratepacer_private.h"

// Sanitizers replace malloc() themselves.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 1
#else
#define OWN_MALLOC 0
#endif

#define RTP_CAPS "application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=96"
#define TS_CAPS "video/mpegts,systemstream=true,packetsize=188"
#define MS GST_MSECOND
#define PATIENCE (20 * GST_SECOND)

static GstHarness *
make (const gchar *properties, const gchar *caps)
{
  gchar *line = g_strdup_printf ("ratepacer %s", properties);
  GstHarness *h = gst_harness_new_parse (line);

  gst_harness_use_testclock (h);
  gst_harness_set_src_caps_str (h, caps);
  g_free (line);
  return h;
}

static guint64
stat_of_element (GstElement *pacer, const gchar *name)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (pacer, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, name, &value));
  gst_structure_free (stats);
  return value;
}

static guint64
stat_of (GstHarness *h, const gchar *name)
{
  GstElement *pacer = gst_harness_find_element (h, "ratepacer");
  guint64 value = stat_of_element (pacer, name);

  gst_object_unref (pacer);
  return value;
}

// Ends the test; each packet must have been counted once.
static void
end (GstHarness *h, guint64 in)
{
  g_assert_cmpuint (stat_of (h, "in"), ==, in);
  g_assert_cmpuint (in, ==, stat_of (h, "out") + stat_of (h, "flushed") + stat_of (h, "queued"));
  gst_harness_teardown (h);
}

static GstBuffer *
make_buffer (gsize size, GstClockTime pts, guint8 number)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);

  gst_buffer_memset (buffer, 0, number, size);
  GST_BUFFER_PTS (buffer) = pts;
  return buffer;
}

static GstBuffer *
make_rtp (guint32 timestamp, GstClockTime pts, guint8 number)
{
  const guint8 head[] = { 0x80, 96, 0, number, (guint8) (timestamp >> 24),
    (guint8) (timestamp >> 16), (guint8) (timestamp >> 8), (guint8) timestamp, 1, 2, 3, 4 };
  GstBuffer *buffer = make_buffer (1200, pts, number);

  gst_buffer_fill (buffer, 0, head, sizeof head);
  GST_BUFFER_DURATION (buffer) = 40 * MS;
  return buffer;
}

// The packets have their own times, as udpsrc sets them; packets with the same RTP timestamp are
// one frame.
static void
push_frame (GstHarness *h, guint k, guint n)
{
  GstBufferList *list = gst_buffer_list_new ();

  for (guint i = 0; i < n; i++)
    gst_buffer_list_add (list, make_rtp (3600 * k, k * 40 * MS + i * 1000, (guint8) (k * n + i)));
  g_assert_cmpint (gst_pad_push_list (h->srcpad, list), ==, GST_FLOW_OK);
}

// Waits until the pacer waits for the clock, and moves the clock to that time.
static void
move_to (GstHarness *h, GstClockTime expected)
{
  GstTestClock *clock = gst_harness_get_testclock (h);
  GstClockID id;

  gst_test_clock_wait_for_next_pending_id (clock, &id);
  g_assert_cmpuint (gst_clock_id_get_time (id), ==, expected);
  gst_test_clock_set_time (clock, expected);
  g_assert_true (gst_test_clock_process_id (clock, id)); // takes the id
  gst_object_unref (clock);
}

static void
expect (GstHarness *h, guint number, gsize size)
{
  GstBuffer *buffer = gst_harness_pull (h);
  guint8 byte;

  g_assert_nonnull (buffer);
  g_assert_cmpuint (gst_buffer_get_size (buffer), ==, size);
  gst_buffer_extract (buffer, size - 1, &byte, 1);
  g_assert_cmpuint (byte, ==, number);
  gst_buffer_unref (buffer);
}

static void
expect_none (GstHarness *h)
{
  g_assert_cmpuint (gst_harness_buffers_in_queue (h), ==, 0);
}

/* Modes */

static void
test_packets_of_a_frame_are_spread_evenly (void)
{
  GstHarness *h = make ("", RTP_CAPS);

  push_frame (h, 0, 4);
  push_frame (h, 1, 4);
  for (guint i = 0; i < 8; i++) {
    if (i > 0)
      move_to (h, i * 10 * MS);
    expect (h, i, 1200);
    expect_none (h);
  }
  g_assert_cmpuint (stat_of (h, "repaired"), ==, 0);
  g_assert_cmpuint (stat_of (h, "late"), ==, 0);
  end (h, 8);
}

static GstPadProbeReturn
count_lists (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_assert_cmpuint (gst_buffer_list_length (GST_PAD_PROBE_INFO_BUFFER_LIST (info)), ==, 2);
  g_atomic_int_inc ((gint *) user_data);
  return GST_PAD_PROBE_OK;
}

static void
test_bursts_are_lists (void)
{
  GstHarness *h = make ("max-burst=2", RTP_CAPS);
  gint n_lists = 0;

  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_BUFFER_LIST, count_lists, &n_lists, NULL);
  push_frame (h, 0, 6);
  for (guint i = 0; i < 6; i++) {
    if (i > 0 && i % 2 == 0)
      move_to (h, i * 40 * MS / 6);
    expect (h, i, 1200);
  }
  g_assert_cmpint (g_atomic_int_get (&n_lists), ==, 3);
  end (h, 6);
}

// 188 bytes at 1504 kb/s take one millisecond.
static void
test_mode_bitrate_keeps_the_rate (void)
{
  GstHarness *h = make ("mode=bitrate bitrate=1504000 burst=752", TS_CAPS);
  GstBufferList *list = gst_buffer_list_new ();

  for (guint i = 0; i < 10; i++)
    gst_buffer_list_add (list, make_buffer (188, GST_CLOCK_TIME_NONE, (guint8) i));
  gst_pad_push_list (h->srcpad, list);
  for (guint i = 0; i < 10; i++) {
    if (i >= 4)
      move_to (h, (i - 3) * MS);
    expect (h, i, 188);
    if (i >= 3)
      expect_none (h);
  }
  end (h, 10);
}

static void
set_clock (GstHarness *h, GstClockTime time)
{
  GstTestClock *clock = gst_harness_get_testclock (h);

  gst_test_clock_set_time (clock, time);
  gst_object_unref (clock);
}

static void
test_mode_block_sends_blocks_in_time (void)
{
  GstHarness *h = make ("mode=block bitrate=80000 block-time=500000000", TS_CAPS);

  // A block has 5000 bytes. The first one is the receiver's buffer.
  for (guint i = 0; i < 15; i++)
    gst_harness_push (h, make_buffer (1000, GST_CLOCK_TIME_NONE, (guint8) i));
  for (guint i = 0; i < 10; i++)
    expect (h, i, 1000);
  expect_none (h);
  move_to (h, 500 * MS);
  for (guint i = 10; i < 15; i++)
    expect (h, i, 1000);
  g_assert_cmpuint (stat_of (h, "deficit"), ==, 0);
  g_assert_cmpuint (stat_of (h, "overruns"), ==, 0);
  g_assert_cmpuint (stat_of (h, "starvations"), ==, 0);

  // After 700 ms without data, the next block is 200 ms late, and the one after it is on time. The
  // receiver has a block left to play.
  set_clock (h, 1200 * MS);
  for (guint i = 15; i < 25; i++)
    gst_harness_push (h, make_buffer (1000, GST_CLOCK_TIME_NONE, (guint8) i));
  for (guint i = 15; i < 20; i++)
    expect (h, i, 1000);
  g_assert_cmpuint (stat_of (h, "deficit"), ==, 200 * MS);
  g_assert_cmpuint (stat_of (h, "starvations"), ==, 0);
  move_to (h, 1500 * MS);
  for (guint i = 20; i < 25; i++)
    expect (h, i, 1000);
  g_assert_cmpuint (stat_of (h, "deficit"), ==, 0);

  // It has played all after 2.5 s.
  set_clock (h, 2501 * MS);
  gst_harness_push (h, make_buffer (1000, GST_CLOCK_TIME_NONE, 25));
  expect (h, 25, 1000);
  g_assert_cmpuint (stat_of (h, "starvations"), ==, 1);
  end (h, 26);
}

// `rounds`: when packets leave that are due at 0, 10, 20 and 30 ms.
static void
check_rounds (const gchar *properties, const guint rounds[4])
{
  GstHarness *h = make (properties, RTP_CAPS);

  push_frame (h, 0, 4);
  expect (h, 0, 1200);
  for (guint i = 1; i < 4; i++) {
    if (rounds[i] != rounds[i - 1])
      move_to (h, rounds[i] * MS);
    expect (h, i, 1200);
  }
  end (h, 4);
}

static void
test_packets_leave_in_rounds (void)
{
  check_rounds ("rounds=15000000", (const guint[]) { 0, 15, 30, 30 });
  check_rounds ("rounds=60000000 round-bytes=3600", (const guint[]) { 0, 60, 60, 60 });
  check_rounds ("rounds=60000000 round-bytes=3599", (const guint[]) { 0, 20, 20, 40 });
}

static void
test_large_buffers_are_split (void)
{
  GstHarness *h = make ("mode=bitrate bitrate=10528000 blocksize=1316", TS_CAPS);

  gst_harness_push (h, make_buffer (3000, 0, 7));
  expect (h, 7, 1316);
  move_to (h, 1 * MS);
  expect (h, 7, 1316);
  move_to (h, 2 * MS);
  expect (h, 7, 368);
  g_assert_cmpuint (stat_of (h, "bytes-out"), ==, 3000);
  end (h, 3);
}

static void
test_bad_rtp_is_dropped (void)
{
  GstHarness *h = make ("", RTP_CAPS);

  gst_harness_use_systemclock (h);
  gst_harness_push (h, make_buffer (0, 0, 0));
  gst_harness_push (h, make_buffer (3, 0, 0));
  gst_harness_push (h, make_buffer (1000, GST_CLOCK_TIME_NONE, 0xff));
  gst_harness_push (h, make_rtp (1, G_MAXUINT64 - 1, 0));
  gst_harness_push (h, make_rtp (2, 1000 * GST_SECOND, 0));
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < 5; i++)
    gst_buffer_unref (gst_harness_pull (h));
  g_assert_cmpuint (stat_of (h, "repaired"), >, 0);
  end (h, 5);
}

/* Times and clocks */

// Waits until the pacer waits for this clock, and moves the clock to that time.
static void
move_clock_to (GstClock *clock, GstClockTime expected)
{
  GstClockID id;

  gst_test_clock_wait_for_next_pending_id (GST_TEST_CLOCK (clock), &id);
  g_assert_cmpuint (gst_clock_id_get_time (id), ==, expected);
  gst_test_clock_set_time (GST_TEST_CLOCK (clock), expected);
  g_assert_true (gst_test_clock_process_id (GST_TEST_CLOCK (clock), id));
}

// The pipeline switches to a clock that is ahead, and then to one that is behind.
static void
test_pacing_continues_after_clock_jumps (void)
{
  GstHarness *h = make ("", RTP_CAPS);
  GstClock *ahead = gst_test_clock_new_with_start_time (3600 * GST_SECOND);
  GstClock *behind = gst_test_clock_new_with_start_time (10 * GST_SECOND);

  push_frame (h, 0, 4);
  push_frame (h, 1, 4);
  for (guint i = 0; i < 5; i++) {
    if (i > 0)
      move_to (h, i * 10 * MS);
    expect (h, i, 1200);
  }
  // Queued packets are due at once; later packets leave evenly.
  g_assert_true (gst_element_set_clock (h->element, ahead));
  for (guint i = 5; i < 8; i++)
    expect (h, i, 1200);
  push_frame (h, 2, 4);
  for (guint i = 8; i < 12; i++) {
    if (i > 8)
      move_clock_to (ahead, 3600 * GST_SECOND + (i - 8) * 10 * MS);
    expect (h, i, 1200);
  }
  g_assert_cmpuint (stat_of (h, "repaired"), ==, 1);
  // With the clock behind, the pacer's time stops until the new clock takes over.
  push_frame (h, 3, 4);
  gst_test_clock_wait_for_next_pending_id (GST_TEST_CLOCK (ahead), NULL);
  g_assert_true (gst_element_set_clock (h->element, behind));
  for (guint i = 12; i < 16; i++) {
    move_clock_to (behind, 10 * GST_SECOND + (i - 11) * 10 * MS);
    expect (h, i, 1200);
  }
  gst_object_unref (ahead);
  gst_object_unref (behind);
  end (h, 16);
}

// At double rate, a frame has half its duration.
static void
test_playback_rate_scales_durations (void)
{
  GstHarness *h = make ("", RTP_CAPS);
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.rate = 2;
  gst_harness_push_event (h, gst_event_new_segment (&segment));
  for (guint k = 0; k < 3; k++) {
    push_frame (h, k, 4); // one at a time, so that only the frame's own duration is known
    for (guint i = 0; i < 4; i++) {
      if (k + i > 0)
        move_to (h, (4 * k + i) * 5 * MS);
      expect (h, 4 * k + i, 1200);
    }
  }
  end (h, 12);
}

// Timestamps are missing, go back or jump. Packets leave in order, at the time when they would have
// been due, and the repairs are counted.
static void
test_bad_timestamps_are_repaired (void)
{
  static const GstClockTime times[] = { 0, 40 * MS, GST_CLOCK_TIME_NONE, 80 * MS, 70 * MS, 120 * MS,
    3600 * GST_SECOND, 3600 * GST_SECOND + 40 * MS, 0, 40 * MS };
  static const guint due[] = { 0, 40, 80, 80, 80, 120, 160, 200, 240, 280 };
  GstHarness *h = make ("max-burst=8", TS_CAPS);

  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    gst_harness_push (h, make_buffer (188, times[i], (guint8) i));
  for (guint i = 0; i < G_N_ELEMENTS (times); i++) {
    if (i > 0 && due[i] != due[i - 1])
      move_to (h, due[i] * MS);
    expect (h, i, 188);
  }
  g_assert_cmpuint (stat_of (h, "repaired"), ==, 4);
  g_assert_cmpuint (stat_of (h, "late"), ==, 0);
  end (h, G_N_ELEMENTS (times));
}

/* Events and queries */

static void
expect_event (GstHarness *h, GstEventType type)
{
  GstEvent *event = gst_harness_pull_event (h);

  g_assert_nonnull (event);
  g_assert_cmpstr (GST_EVENT_TYPE_NAME (event), ==, gst_event_type_get_name (type));
  gst_event_unref (event);
}

// Expects the first packet with the events before it, and no others.
static void
expect_first (GstHarness *h)
{
  expect (h, 0, 1200);
  expect_event (h, GST_EVENT_STREAM_START);
  expect_event (h, GST_EVENT_CAPS);
  expect_event (h, GST_EVENT_SEGMENT);
  g_assert_null (gst_harness_try_pull_event (h));
}

static void
test_events_keep_their_order (void)
{
  GstHarness *h = make ("", RTP_CAPS);

  push_frame (h, 0, 2);
  gst_harness_push_event (h, gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "x", NULL)));
  gst_harness_set_src_caps_str (h, RTP_CAPS ",a=(int)1");
  push_frame (h, 1, 1);
  gst_harness_push_event (h, gst_event_new_eos ());
  expect_first (h);
  move_to (h, 20 * MS);
  expect (h, 1, 1200);
  expect_event (h, GST_EVENT_TAG);
  expect_event (h, GST_EVENT_CAPS);
  expect_event (h, GST_EVENT_SEGMENT);
  g_assert_null (gst_harness_try_pull_event (h));
  move_to (h, 40 * MS);
  expect (h, 1, 1200);
  expect_event (h, GST_EVENT_EOS);
  end (h, 3);
}

// RTP, a gap, and then another format, whose buffers are split.
static void
test_caps_may_change_in_the_stream (void)
{
  GstHarness *h = make ("blocksize=1000", RTP_CAPS);

  push_frame (h, 0, 2);
  gst_harness_push_event (h, gst_event_new_gap (30 * MS, 10 * MS));
  gst_harness_set_src_caps_str (h, TS_CAPS);
  gst_harness_push (h, make_buffer (1500, 40 * MS, 7));
  expect_first (h);
  move_to (h, 20 * MS);
  expect (h, 1, 1200);
  expect_event (h, GST_EVENT_GAP);
  expect_event (h, GST_EVENT_CAPS);
  expect_event (h, GST_EVENT_SEGMENT);
  move_to (h, 40 * MS);
  expect (h, 7, 1000);
  move_to (h, 60 * MS);
  expect (h, 7, 500);
  end (h, 4);
}

#if OWN_MALLOC
extern void *__libc_malloc (size_t size);
static size_t refused_size;

__attribute__ ((visibility ("default"))) void *
malloc (size_t size)
{
  return size > 0 && size == refused_size ? NULL : __libc_malloc (size);
}

static void
test_out_of_memory_is_an_error (void)
{
  GstHarness *h = make ("", TS_CAPS);
  GstBus *bus = gst_bus_new ();
  GstElement *pacer = gst_harness_find_element (h, "ratepacer");
  GstFlowReturn ret = GST_FLOW_OK;
  GstMessage *message;
  GError *err;

  gst_element_set_bus (pacer, bus);
  // The size of the queue's first growth.
  refused_size = 128 * sizeof (WeirPaceEntry);
  for (guint i = 0; i < 100 && ret == GST_FLOW_OK; i++)
    ret = gst_harness_push (h, make_buffer (188, i * MS, 1));
  refused_size = 0;
  g_assert_cmpint (ret, ==, GST_FLOW_ERROR);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  g_assert_nonnull (message);
  gst_message_parse_error (message, &err, NULL);
  g_assert_true (g_error_matches (err, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT));
  g_error_free (err);
  gst_message_unref (message);
  gst_element_set_bus (pacer, NULL);
  gst_object_unref (pacer);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}
#endif

static void
flush (GstHarness *h)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  g_assert_true (gst_harness_push_event (h, gst_event_new_flush_start ()));
  g_assert_true (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
  g_assert_true (gst_harness_push_event (h, gst_event_new_segment (&segment)));
}

static void
test_a_flush_starts_over (void)
{
  GstHarness *h = make ("", RTP_CAPS);

  push_frame (h, 0, 4);
  push_frame (h, 1, 4);
  expect (h, 0, 1200);
  move_to (h, 10 * MS);
  expect (h, 1, 1200);
  flush (h);
  g_assert_cmpuint (stat_of (h, "flushed"), ==, 6);
  g_assert_cmpuint (stat_of (h, "queued"), ==, 0);
  // After a flush, pacing starts over, whatever the clock's time is.
  push_frame (h, 0, 2);
  expect (h, 0, 1200);
  move_to (h, 20 * MS);
  expect (h, 1, 1200);
  g_assert_cmpuint (stat_of (h, "repaired"), ==, 0);
  end (h, 10);
}

static gpointer
push_until_it_fails (gpointer data)
{
  GstHarness *h = data;
  GstFlowReturn ret = GST_FLOW_OK;

  for (guint i = 0; ret == GST_FLOW_OK; i++)
    ret = gst_harness_push (h, make_rtp (3600 * i, i * 40 * MS, 0));
  return GINT_TO_POINTER (ret);
}

// A second fills the queue: 26 packets, 40 ms apart. The first one leaves at once, before or after
// that. Returns the number of packets that came before upstream waits.
static guint64
wait_until_full (GstHarness *h)
{
  WeirRatePacer *pacer = (gpointer) gst_harness_find_element (h, "ratepacer");
  gboolean waits;

  do {
    g_thread_yield ();
    g_mutex_lock (&pacer->lock);
    waits = pacer->wants_room;
    g_mutex_unlock (&pacer->lock);
  } while (!waits);
  gst_object_unref (pacer);
  return stat_of (h, "in");
}

static void
test_a_full_queue_blocks_upstream_until_a_flush (void)
{
  GstHarness *h = make ("", RTP_CAPS);
  GThread *thread = g_thread_new ("upstream", push_until_it_fails, h);

  wait_until_full (h);
  g_assert_true (gst_harness_push_event (h, gst_event_new_flush_start ()));
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, GST_FLOW_FLUSHING);
  g_assert_true (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
  g_assert_cmpuint (stat_of (h, "in"), <=, 27);
  end (h, stat_of (h, "in"));
}

static void
test_upstream_continues_when_half_of_a_full_queue_is_left (void)
{
  GstHarness *h = make ("", RTP_CAPS);
  GThread *thread = g_thread_new ("upstream", push_until_it_fails, h);
  guint64 full = wait_until_full (h);

  // 13 packets last less than half a second.
  for (guint i = 1; full - stat_of (h, "out") > 13; i++) {
    g_assert_cmpuint (stat_of (h, "in"), ==, full);
    move_to (h, i * 40 * MS);
    while (stat_of (h, "out") <= i)
      g_thread_yield ();
  }
  while (stat_of (h, "in") < full + 13)
    g_thread_yield ();
  gst_harness_push_event (h, gst_event_new_flush_start ());
  g_thread_join (thread);
  gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
  end (h, stat_of (h, "in"));
}

static void
test_a_downstream_error_reaches_upstream (void)
{
  GstHarness *h = make ("mode=bitrate bitrate=1000000000 burst=100000000", TS_CAPS);
  GstFlowReturn ret;

  gst_harness_push (h, make_buffer (188, 0, 0));
  expect (h, 0, 188);
  gst_pad_set_active (h->sinkpad, FALSE);
  do
    ret = gst_harness_push (h, make_buffer (188, 0, 1));
  while (ret == GST_FLOW_OK);
  g_assert_cmpint (ret, ==, GST_FLOW_FLUSHING);
  g_assert_cmpuint (stat_of (h, "queued"), ==, 0);
  gst_harness_teardown (h);
}

static void
test_the_element_reports_no_latency (void)
{
  GstHarness *h = make ("rounds=10000000", RTP_CAPS);

  gst_harness_set_upstream_latency (h, 7 * MS);
  g_assert_cmpuint (gst_harness_query_latency (h), ==, 7 * MS);
  g_assert_true (gst_harness_push_upstream_event (h, gst_event_new_latency (7 * MS)));
  push_frame (h, 0, 1);
  g_assert_cmpuint (gst_harness_query_latency (h), ==, 7 * MS);
  g_assert_cmpuint (stat_of (h, "latency"), ==, 50 * MS); // a frame and a round
  // A frame leaves in the next round after the pipeline's latency has passed.
  move_to (h, 10 * MS);
  expect (h, 0, 1200);
  end (h, 1);
}

static gpointer
change_properties (gpointer data)
{
  static const gchar *modes[] = { "timestamp", "bitrate", "block" };
  GstElement *pacer = gst_harness_find_element (data, "ratepacer");

  for (guint i = 0; i < 300; i++) {
    gst_util_set_object_arg (G_OBJECT (pacer), "mode", modes[i % 3]);
    g_object_set (pacer, "bitrate", (guint64) (i % 2) * 100000000, "max-burst", 1 + i % 4, "burst",
        i * 10, "rounds", (guint64) (i % 5) * 100000, "round-bytes", i % 7 * 1000, "microrounds",
        1 + i % 3, NULL);
    stat_of_element (pacer, "out");
  }
  gst_object_unref (pacer);
  return NULL;
}

// In real time, every packet leaves in order, whatever properties change meanwhile.
static void
test_properties_may_change_in_another_thread (void)
{
  GstHarness *h = gst_harness_new_parse ("ratepacer");
  GThread *thread;

  gst_harness_use_systemclock (h);
  gst_harness_set_src_caps_str (h, RTP_CAPS);
  thread = g_thread_new ("changes", change_properties, h);
  for (guint k = 0; k < 50; k++) {
    for (guint i = 0; i < 5; i++)
      gst_harness_push (h, make_rtp (k, k * MS, (guint8) (k * 5 + i)));
  }
  g_thread_join (thread);
  for (guint i = 0; i < 250; i++)
    expect (h, i, 1200);
  end (h, 250);
}

/* Threads */

static guint
n_threads (void)
{
  GDir *dir = g_dir_open ("/proc/self/task", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir))
    n++;
  g_dir_close (dir);
  return n;
}

static void
test_pacers_share_threads (void)
{
  enum { N = 200 };
  GstHarness *all[N];
  guint before = 0;

  for (guint i = 0; i < N; i++) {
    all[i] = gst_harness_new_parse ("ratepacer");
    gst_harness_use_systemclock (all[i]);
    gst_harness_set_src_caps_str (all[i], RTP_CAPS);
    if (i == 0)
      before = n_threads ();
  }
  for (guint i = 0; i < N; i++)
    push_frame (all[i], 0, 4);
  for (guint i = 0; i < N; i++)
    expect (all[i], 0, 1200);
  g_assert_cmpuint (n_threads (), <=, before);
  for (guint i = 0; i < N; i++) {
    for (guint j = 1; j < 4; j++)
      expect (all[i], j, 1200);
    end (all[i], 4);
  }
}

static GMutex gate;
static GCond gate_moved;
static guint n_before_gate;
static gboolean gate_open;

static GstPadProbeReturn
wait_at_gate (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_mutex_lock (&gate);
  n_before_gate++;
  g_cond_broadcast (&gate_moved);
  while (!gate_open)
    g_cond_wait (&gate_moved, &gate);
  g_mutex_unlock (&gate);
  return GST_PAD_PROBE_OK;
}

static GstHarness *
make_real (void)
{
  GstHarness *h = gst_harness_new_parse ("ratepacer");

  gst_harness_use_systemclock (h);
  gst_harness_set_src_caps_str (h, RTP_CAPS);
  return h;
}

// All shared threads block in sinks; another pacer still gets a thread.
static void
test_blocked_threads_are_replaced (void)
{
  const guint n = g_get_num_processors ();
  GstHarness **waiting = g_new (GstHarness *, n), *h = make_real ();

  for (guint i = 0; i < n; i++) {
    waiting[i] = make_real ();
    gst_pad_add_probe (waiting[i]->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, wait_at_gate, NULL, NULL);
    gst_harness_push (waiting[i], make_rtp (0, 0, 0));
  }
  g_mutex_lock (&gate);
  while (n_before_gate < n)
    g_cond_wait (&gate_moved, &gate);
  g_mutex_unlock (&gate);
  for (guint i = 0; i < n; i++)
    gst_element_set_state (waiting[i]->element, GST_STATE_PAUSED);
  gst_harness_push (h, make_rtp (0, 0, 0));
  expect (h, 0, 1200);
  g_mutex_lock (&gate);
  gate_open = TRUE;
  g_cond_broadcast (&gate_moved);
  g_mutex_unlock (&gate);
  for (guint i = 0; i < n; i++)
    end (waiting[i], 1);
  end (h, 1);
  g_free (waiting);
}

/* States, in pipelines */

#define SOURCE                                                                                     \
  "videotestsrc num-buffers=%d ! video/x-raw,width=16,height=16,framerate=200/1 ! ratepacer ! "

static GstElement *
make_pipeline (const gchar *format, gint n)
{
  GError *error = NULL;
  gchar *line = g_strdup_printf (format, n);
  GstElement *pipeline = gst_parse_launch (line, &error);

  g_assert_no_error (error);
  g_free (line);
  return pipeline;
}

static void
set_state (GstElement *pipeline, GstState state)
{
  GstState now;

  g_assert_cmpint (gst_element_set_state (pipeline, state), !=, GST_STATE_CHANGE_FAILURE);
  g_assert_cmpint (
      gst_element_get_state (pipeline, &now, NULL, PATIENCE), ==, GST_STATE_CHANGE_SUCCESS);
  g_assert_cmpint (now, ==, state);
}

static void
wait_for_eos (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message =
      gst_bus_timed_pop_filtered (bus, PATIENCE, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

  g_assert_nonnull (message);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_object_unref (bus);
}

static void
drop (GstElement *pipeline)
{
  set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

static void
test_pause_and_resume (void)
{
  GstElement *pipeline = make_pipeline (SOURCE "fakesink sync=false", 100);

  for (guint i = 0; i < 40; i++) {
    set_state (pipeline, GST_STATE_PAUSED);
    set_state (pipeline, GST_STATE_PLAYING);
  }
  wait_for_eos (pipeline);
  drop (pipeline);
}

// More pacers than threads are paused at any moment; a playing pipeline is not held up.
static void
test_paused_pipelines_delay_no_others (void)
{
  enum { N = 12 };
  static const gchar busy[] = "videotestsrc num-buffers=%d ! "
                              "video/x-raw,width=16,height=16,framerate=2000/1 ! ratepacer ! "
                              "fakesink sync=false";
  GstElement *paused[N], *playing;

  for (guint i = 0; i < N; i++) {
    paused[i] = make_pipeline (busy, G_MAXINT);
    set_state (paused[i], GST_STATE_PLAYING);
  }
  for (guint round = 0; round < 20; round++) {
    for (guint i = 0; i < N; i++)
      set_state (paused[i], GST_STATE_PAUSED);
    playing = make_pipeline (SOURCE "fakesink sync=false", 10);
    set_state (playing, GST_STATE_PLAYING);
    wait_for_eos (playing);
    drop (playing);
    for (guint i = 0; i < N; i++)
      set_state (paused[i], GST_STATE_PLAYING);
  }
  for (guint i = 0; i < N; i++)
    drop (paused[i]);
}

static void
seek (GstElement *pipeline, GstClockTime from, GstClockTime to)
{
  GstState state;

  g_assert_true (
      gst_element_seek (pipeline, 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
          GST_SEEK_TYPE_SET, (gint64) from, GST_SEEK_TYPE_SET, (gint64) to));
  g_assert_cmpint (
      gst_element_get_state (pipeline, &state, NULL, PATIENCE), ==, GST_STATE_CHANGE_SUCCESS);
}

// After a seek the sink shows data from the new position, not queued data.
static void
test_seeks_show_the_new_position (void)
{
  GstElement *pipeline = make_pipeline (SOURCE "fakesink name=sink sync=false", 100000);
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstSample *sample;

  set_state (pipeline, GST_STATE_PAUSED);
  for (guint i = 1; i < 20; i++) {
    GstClockTime from = (i * 7 % 20) * GST_SECOND, pts;

    if (i % 3 == 0)
      set_state (pipeline, i % 2 ? GST_STATE_PLAYING : GST_STATE_PAUSED);
    seek (pipeline, from, from + GST_SECOND / 2);
    g_object_get (sink, "last-sample", &sample, NULL);
    g_assert_nonnull (sample);
    pts = GST_BUFFER_PTS (gst_sample_get_buffer (sample));
    g_assert_cmpuint (pts, >=, from);
    g_assert_cmpuint (pts, <, from + GST_SECOND / 2);
    gst_sample_unref (sample);
  }
  set_state (pipeline, GST_STATE_PLAYING);
  seek (pipeline, 100 * GST_SECOND, 100 * GST_SECOND + 50 * MS);
  wait_for_eos (pipeline);
  gst_object_unref (sink);
  drop (pipeline);
}

// Seeks to positions inside a group of pictures. The pacer does not wait for data before the
// position, and a sink that drops this data reaches PAUSED.
static guint64
get_rendered (GstElement *sink)
{
  GstStructure *stats;
  guint64 rendered = 0;

  g_object_get (sink, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, "rendered", &rendered));
  gst_structure_free (stats);
  return rendered;
}

// The sink waits for the clock, in a pipeline with a latency of 100 ms.
static void
test_a_sink_that_waits_gets_each_packet_when_it_is_due (void)
{
  GstClock *clock = gst_test_clock_new ();
  GstElement *pipeline = gst_parse_launch (
      "appsrc name=src is-live=true format=time min-latency=60000000 caps=\"" RTP_CAPS "\" "
      "! ratepacer name=pacer ! fakesink name=sink sync=true async=false",
      NULL);
  GstElement *source = gst_bin_get_by_name (GST_BIN (pipeline), "src");
  GstElement *pacer = gst_bin_get_by_name (GST_BIN (pipeline), "pacer");
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstBus *bus = gst_element_get_bus (pipeline);

  gst_pipeline_use_clock (GST_PIPELINE (pipeline), clock);
  gst_pipeline_set_latency (GST_PIPELINE (pipeline), 100 * MS);
  set_state (pipeline, GST_STATE_PLAYING);
  gst_message_unref (gst_bus_timed_pop_filtered (bus, PATIENCE, GST_MESSAGE_LATENCY));
  g_assert_true (gst_bin_recalculate_latency (GST_BIN (pipeline)));
  for (guint i = 0; i < 8; i++) {
    GstBuffer *buffer = make_rtp (3600 * (i / 4), i / 4 * 40 * MS, (guint8) i);
    GstFlowReturn ret;

    g_signal_emit_by_name (source, "push-buffer", buffer, &ret);
    gst_buffer_unref (buffer);
    g_assert_cmpint (ret, ==, GST_FLOW_OK);
  }
  while (stat_of_element (pacer, "in") < 8)
    g_thread_yield ();
  for (guint i = 0; i < 8; i++) {
    GstClockID id;

    move_clock_to (clock, (100 + i * 10) * MS); // for which the pacer waits
    gst_test_clock_wait_for_next_pending_id (GST_TEST_CLOCK (clock), &id);      // the sink's
    g_assert_cmpuint (gst_clock_id_get_time (id), ==, (100 + i / 4 * 40) * MS); // it has passed
    g_assert_true (gst_test_clock_process_id (GST_TEST_CLOCK (clock), id));
    while (get_rendered (sink) <= i)
      g_thread_yield ();
    g_assert_cmpuint (get_rendered (sink), ==, i + 1);
  }
  gst_object_unref (bus);
  gst_object_unref (sink);
  gst_object_unref (pacer);
  gst_object_unref (source);
  drop (pipeline);
  gst_object_unref (clock);
}

static void
test_accurate_seeks_do_not_wait_for_earlier_data (void)
{
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "bigbuckbunny.mp4", NULL);
  gchar *line = g_strdup_printf ("filesrc location=%s ! qtdemux ! video/x-h264 ! "
                                 "ratepacer name=pacer ! fakesink name=sink sync=false",
      path);
  GstElement *pipeline = gst_parse_launch (line, NULL);
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstElement *pacer = gst_bin_get_by_name (GST_BIN (pipeline), "pacer");

  set_state (pipeline, GST_STATE_PAUSED);
  for (guint i = 1; i < 4; i++) {
    const GstClockTime from = i * GST_SECOND + 700 * MS;
    gint64 position = 0;

    seek (pipeline, from, GST_CLOCK_TIME_NONE);
    set_state (pipeline, GST_STATE_PLAYING);
    while (!gst_element_query_position (sink, GST_FORMAT_TIME, &position)
           || position < (gint64) (from + 200 * MS))
      g_usleep (1000);
    g_assert_cmpuint (stat_of_element (pacer, "latency"), <, 500 * MS);
    g_assert_cmpuint (stat_of_element (pacer, "repaired"), ==, 0);
    set_state (pipeline, GST_STATE_PAUSED);
  }
  gst_object_unref (pacer);
  gst_object_unref (sink);
  drop (pipeline);
  g_free (line);
  g_free (path);
}

// Stops the pipeline repeatedly, with a full queue and with upstream waiting.
static void
test_stops_at_any_time (void)
{
  GstElement *pipeline = make_pipeline (SOURCE "fakesink sync=false", 100000);

  for (guint i = 0; i < 30; i++) {
    gst_element_set_state (pipeline, i % 2 ? GST_STATE_PLAYING : GST_STATE_PAUSED);
    if (i % 3 == 0)
      g_assert_cmpint (
          gst_element_get_state (pipeline, NULL, NULL, PATIENCE), ==, GST_STATE_CHANGE_SUCCESS);
    set_state (pipeline, i % 5 ? GST_STATE_NULL : GST_STATE_READY);
  }
  drop (pipeline);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/ratepacer/packets-of-a-frame-are-spread-evenly", test_packets_of_a_frame_are_spread_evenly);
  g_test_add_func ("/ratepacer/bursts-are-lists", test_bursts_are_lists);
  g_test_add_func ("/ratepacer/mode-bitrate-keeps-the-rate", test_mode_bitrate_keeps_the_rate);
  g_test_add_func (
      "/ratepacer/mode-block-sends-blocks-in-time", test_mode_block_sends_blocks_in_time);
  g_test_add_func ("/ratepacer/packets-leave-in-rounds", test_packets_leave_in_rounds);
  g_test_add_func ("/ratepacer/large-buffers-are-split", test_large_buffers_are_split);
  g_test_add_func ("/ratepacer/bad-rtp-is-dropped", test_bad_rtp_is_dropped);
  g_test_add_func (
      "/ratepacer/pacing-continues-after-clock-jumps", test_pacing_continues_after_clock_jumps);
  g_test_add_func (
      "/ratepacer/playback-rate-scales-durations", test_playback_rate_scales_durations);
  g_test_add_func ("/ratepacer/bad-timestamps-are-repaired", test_bad_timestamps_are_repaired);
  g_test_add_func ("/ratepacer/caps-may-change-in-the-stream", test_caps_may_change_in_the_stream);
  g_test_add_func ("/ratepacer/events-keep-their-order", test_events_keep_their_order);
  g_test_add_func ("/ratepacer/a-flush-starts-over", test_a_flush_starts_over);
  g_test_add_func ("/ratepacer/upstream-continues-when-half-of-a-full-queue-is-left",
      test_upstream_continues_when_half_of_a_full_queue_is_left);
  g_test_add_func ("/ratepacer/a-full-queue-blocks-upstream-until-a-flush",
      test_a_full_queue_blocks_upstream_until_a_flush);
  g_test_add_func (
      "/ratepacer/a-downstream-error-reaches-upstream", test_a_downstream_error_reaches_upstream);
#if OWN_MALLOC
  g_test_add_func ("/ratepacer/out-of-memory-is-an-error", test_out_of_memory_is_an_error);
#endif
  g_test_add_func (
      "/ratepacer/the-element-reports-no-latency", test_the_element_reports_no_latency);
  g_test_add_func ("/ratepacer/a-sink-that-waits-gets-each-packet-when-it-is-due",
      test_a_sink_that_waits_gets_each_packet_when_it_is_due);
  g_test_add_func ("/ratepacer/properties-may-change-in-another-thread",
      test_properties_may_change_in_another_thread);
  g_test_add_func ("/ratepacer/pacers-share-threads", test_pacers_share_threads);
  g_test_add_func ("/ratepacer/blocked-threads-are-replaced", test_blocked_threads_are_replaced);
  g_test_add_func ("/ratepacer/pause-and-resume", test_pause_and_resume);
  g_test_add_func (
      "/ratepacer/paused-pipelines-delay-no-others", test_paused_pipelines_delay_no_others);
  g_test_add_func ("/ratepacer/seeks-show-the-new-position", test_seeks_show_the_new_position);
  g_test_add_func ("/ratepacer/accurate-seeks-do-not-wait-for-earlier-data",
      test_accurate_seeks_do_not_wait_for_earlier_data);
  g_test_add_func ("/ratepacer/stops-at-any-time", test_stops_at_any_time);
  return g_test_run ();
}
