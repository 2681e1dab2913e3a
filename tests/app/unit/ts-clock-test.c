// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/ts_clock.h"

#include <gst/check/gstharness.h>
#include <string.h>

#define PACKET 188
#define STEP (40 * GST_MSECOND) // between two PCR
#define PER_STEP (27000000 / 25)
#define SLEW (STEP / 200)

static GstClockTime last;

// Pushes a packet with a PCR. Returns the time that it gets.
static GstClockTime
push (GstHarness *h, guint16 pid, guint64 ticks, GstClockTime arrives)
{
  guint8 *data = g_malloc0 (PACKET);
  guint64 base = ticks / 300;
  GstBuffer *buffer = gst_buffer_new_wrapped (data, PACKET);
  GstClockTime got;

  data[0] = 0x47;
  GST_WRITE_UINT16_BE (data + 1, pid);
  data[3] = 0x20; // an adaptation field, and nothing else
  data[4] = PACKET - 5;
  data[5] = 0x10;
  GST_WRITE_UINT32_BE (data + 6, (guint32) (base >> 1));
  GST_WRITE_UINT16_BE (data + 10, (guint16) ((base & 1) << 15 | 0x7e00 | ticks % 300));
  GST_BUFFER_DTS (buffer) = arrives;
  gst_harness_push (h, buffer);
  buffer = gst_harness_pull (h);
  got = GST_BUFFER_DTS (buffer);
  gst_buffer_unref (buffer);
  g_assert_cmpuint (got, >=, last);
  last = got;
  return got;
}

static GstHarness *
make (void)
{
  GstHarness *h = gst_harness_new ("identity");

  ts_clock_add (h->element);
  gst_harness_set_src_caps_str (h, "video/mpegts, systemstream=true");
  last = 0;
  return h;
}

static void
a_burst_of_a_new_pid_has_the_times_of_its_clock (void)
{
  GstHarness *h = make ();
  GstClockTime begins = GST_SECOND + 25 * STEP, got = 0;

  for (guint n = 0; n < 25; n++)
    g_assert_cmpuint (
        push (h, 0x100, n * PER_STEP, GST_SECOND + n * STEP), ==, GST_SECOND + n * STEP);
  for (guint n = 0; n < 20; n++)
    got = push (h, 0x200, n * PER_STEP, begins);
  g_assert_cmpuint (got, <=, begins + 19 * STEP);
  g_assert_cmpuint (got, >=, begins + 19 * STEP - 20 * SLEW);
  gst_harness_teardown (h);
}

static void
programs_in_turn_have_one_clock (void)
{
  GstHarness *h = make ();

  for (guint n = 0; n < 100; n++) {
    GstClockTime arrives = GST_SECOND + n * STEP;

    g_assert_cmpuint (push (h, 0x100, n * PER_STEP, arrives), ==, arrives);
    for (guint i = 0; i < 2; i++)
      g_assert_cmpuint (push (h, 0x200, n * 7 * PER_STEP + i, arrives), ==, arrives);
  }
  gst_harness_teardown (h);
}

// Packets of another length are not where they are looked for.
static void
stuffing_is_no_clock (void)
{
  GstHarness *h = make ();

  for (guint n = 0; n < 20; n++) {
    GstBuffer *stuffing = gst_buffer_new_allocate (NULL, 2 * PACKET, NULL);

    gst_buffer_memset (stuffing, 0, 0xff, 2 * PACKET);
    GST_BUFFER_DTS (stuffing) = GST_SECOND + n * STEP;
    gst_harness_push (h, stuffing);
    gst_buffer_unref (gst_harness_pull (h));
    if (n % 5 == 0) {
      GstClockTime arrives = GST_SECOND + n * STEP;

      g_assert_cmpuint (push (h, 0x100, n * PER_STEP, arrives), ==, arrives);
    }
  }
  gst_harness_teardown (h);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ts-clock/a-new-pid", a_burst_of_a_new_pid_has_the_times_of_its_clock);
  g_test_add_func ("/ts-clock/programs-in-turn", programs_in_turn_have_one_clock);
  g_test_add_func ("/ts-clock/stuffing", stuffing_is_no_clock);
  return g_test_run ();
}
