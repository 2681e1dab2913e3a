// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "outlets/ts/mux_frames.h"
#include "outlets/ts/decode_times.h"
#include "outlets/ts/ts_cutter.h"

#define PMT_PID 32
#define MEDIA_PID 65

typedef struct {
  GByteArray *bytes;
  guint n, joins;
} Got;

static void
take (gpointer data, const guint8 datagram[TS_DATAGRAM], gboolean join, guint64 time)
{
  Got *got = data;

  g_byte_array_append (got->bytes, datagram, TS_DATAGRAM);
  got->n++;
  got->joins += join;
  if (join)
    g_assert_cmpuint (datagram[1] << 8 | datagram[2], ==, 0x4000);
}

static void
add (GByteArray *frame, gint pid, guint8 counter)
{
  guint8 packet[TS_PACKET] = { 0x47, (guint8) (pid >> 8), (guint8) pid, 0x10 };

  packet[3] |= counter & 15;
  if (pid == 0) { // a PAT with one program
    const guint8 section[] = { 0, 0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xe0, PMT_PID };

    packet[1] |= 0x40;
    memcpy (packet + 4, section, sizeof section);
  }
  g_byte_array_append (frame, packet, TS_PACKET);
}

// Each join point begins a datagram with the tables, and no packet is missing.
static void
test_joins (void)
{
  Got got = { g_byte_array_new () };
  guint8 expected[8192] = { 0 }, media = 0;
  gboolean seen[8192] = { FALSE };
  TsCutter cutter;

  ts_cutter_init (&cutter, take, &got);
  for (guint f = 0; f < 50; f++) {
    GByteArray *frame = g_byte_array_new ();

    if (f % 7 == 1) {
      add (frame, 0, 5);
      add (frame, PMT_PID, 5);
    }
    for (guint i = 0; i < 3 + f % 5; i++)
      add (frame, MEDIA_PID, media++);
    g_byte_array_append (frame, (const guint8 *) "rest", 4); // is left out
    ts_cutter_take (&cutter, frame->data, frame->len, f % 10 == 1, f);
    g_byte_array_unref (frame);
  }
  g_assert_cmpuint (got.joins, ==, 5);
  for (guint at = 0; at < got.bytes->len; at += TS_PACKET) {
    const guint8 *packet = got.bytes->data + at;
    gint pid = (packet[1] & 0x1f) << 8 | packet[2];

    g_assert_cmphex (packet[0], ==, 0x47);
    if (pid == 0x1fff)
      continue;
    if (seen[pid])
      g_assert_cmpuint (packet[3] & 15, ==, (expected[pid] + 1) & 15);
    seen[pid] = TRUE;
    expected[pid] = packet[3] & 15;
  }
  g_byte_array_unref (got.bytes);
}

// Any bytes are taken.
static void
test_noise (void)
{
  Got got = { g_byte_array_new () };
  GRand *rand = g_rand_new_with_seed (1);
  TsCutter cutter;

  ts_cutter_init (&cutter, take, &(Got) { got.bytes });
  for (guint n = 0; n < 20000; n++) {
    guint8 packet[TS_PACKET];

    for (guint i = 0; i < TS_PACKET; i++)
      packet[i] = (guint8) g_rand_int (rand);
    packet[0] = 0x47;
    if (n % 3 == 0)
      packet[1] = packet[2] = 0;
    cutter.out = take;
    cutter.begun = FALSE; // nothing is sent, as the tables are noise
    ts_cutter_take (&cutter, packet, n % (TS_PACKET + 1), FALSE, n);
    ts_cutter_take (&cutter, packet, TS_PACKET, FALSE, n);
  }
  g_rand_free (rand);
  g_byte_array_unref (got.bytes);
}

static void
check_times (const gint *pts, guint n, gint depth)
{
  DecodeTimes times = { 0 };
  gint64 last = G_MININT64;

  for (guint i = 0; i < n; i++) {
    gint64 dts = decode_times_next (&times, pts[i] * G_GINT64_CONSTANT (40), 40);

    g_assert_cmpint (dts, >, last);
    g_assert_cmpint (dts, <=, pts[i] * 40);
    if (i > 40)
      g_assert_cmpint (dts, ==, ((gint) i - depth) * 40);
    last = dts;
  }
}

// The times never go back, are never after those of presentation, and the depth is learned.
static void
test_decode_times (void)
{
  gint plain[60], b[60], pyramid[60];

  for (gint i = 0; i < 60; i++) {
    static const gint one[] = { 0, 2, 1 }, two[] = { 0, 3, 1, 2 };

    plain[i] = i;
    b[i] = i == 0 ? 0 : (i - 1) / 2 * 2 + one[1 + (i - 1) % 2];
    pyramid[i] = i == 0 ? 0 : (i - 1) / 3 * 3 + two[1 + (i - 1) % 3];
  }
  check_times (plain, 60, 0);
  check_times (b, 60, 2);
  check_times (pyramid, 60, 2);
}

// A clip that reorders more than the stream into which it is inserted.
static void
test_decode_times_of_another_encoder (void)
{
  static const gint pyramid[] = { 0, 4, 2, 1, 3, 8, 6, 5, 7, 12, 10, 9, 11 };
  DecodeTimes times = { 0 };
  gint64 last = G_MININT64;

  for (gint i = 0; i < 60 + (gint) G_N_ELEMENTS (pyramid); i++) {
    gint64 pts = (i < 60 ? i : 60 + pyramid[i - 60]) * 40, dts;

    if (i == 60)
      decode_times_relearn (&times);
    dts = decode_times_next (&times, pts, 40);
    g_assert_cmpint (dts, >, last);
    g_assert_cmpint (dts, <=, pts);
    last = dts;
  }
}

// ---- carriage ----

static void
check_choice (
    const Carriage *carriage, const gchar *const *tracks, guint32 carried, const gchar *why)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  gchar *left_out;

  for (; *tracks; tracks += 2)
    g_ptr_array_add (caps, gst_caps_new_simple ("application/x-rtp", "media", G_TYPE_STRING,
                               tracks[0], "encoding-name", G_TYPE_STRING, tracks[1], NULL));
  g_assert_cmphex (carriage_choose (carriage, caps, &left_out), ==, carried);
  g_assert_cmpstr (left_out, ==, why);
  g_free (left_out);
  g_ptr_array_unref (caps);
}

static void
test_left_out (void)
{
  static const gchar *const tracks[] = { "audio", "L16", "video", "H264", "video", "VP8", "audio",
    "MPEG4-GENERIC", "video", "h264", NULL };

  check_choice (&carriage_ts, tracks, 0x1a,
      "track 0: MPEG-TS cannot carry L16; track 2: MPEG-TS cannot carry VP8");
  check_choice (&carriage_flv, tracks, 0xa,
      "track 0: FLV cannot carry L16; track 2: FLV cannot carry VP8; track 4: FLV carries 1 video "
      "track at most");
  check_choice (&carriage_flv, tracks + 2, 0x5,
      "track 1: FLV cannot carry VP8; track 3: FLV carries 1 video track at most");
  check_choice (&carriage_ts, tracks + 6, 0x3, NULL);
}

#define H264 "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000"
#define AAC "application/x-rtp, media=audio, encoding-name=MPEG4-GENERIC, clock-rate=48000"

static MuxFrames
make_frames (const Carriage *carriage, const gchar *packets, const gchar *format)
{
  GstCaps *caps = gst_caps_from_string (packets);
  MuxFrames frames;

  mux_frames_init (&frames, carriage, caps);
  gst_caps_unref (caps);
  caps = gst_caps_from_string (format);
  mux_frames_set_format (&frames, caps);
  gst_caps_unref (caps);
  return frames;
}

// Makes a buffer of the bytes of a frame, which is the first one after a loss, or needs nothing
// before it. Returns NULL if it is dropped.
static GstBuffer *
give (MuxFrames *to, const guint8 *bytes, gsize size, gboolean lost, gboolean begins)
{
  const Frame frame = { gst_buffer_new_memdup (bytes, size), 0, begins, lost, begins };
  GstBuffer *made;

  GST_BUFFER_PTS (frame.data) = GST_SECOND;
  made = mux_frames_make (to, &frame);
  gst_buffer_unref (frame.data);
  return made;
}

static void
check_made (MuxFrames *frames, const guint8 *bytes, gsize size, const guint8 *expected, gsize n)
{
  GstBuffer *made = give (frames, bytes, size, FALSE, TRUE);
  guint8 got[64];

  g_assert_nonnull (made);
  g_assert_cmpuint (GST_BUFFER_PTS (made), ==, GST_SECOND);
  g_assert_true (GST_BUFFER_DTS_IS_VALID (made));
  g_assert_cmpmem (got, gst_buffer_extract (made, 0, got, sizeof got), expected, n);
  gst_buffer_unref (made);
}

#define CHECK_MADE(frames, bytes, expected)                                                        \
  check_made (frames, bytes, sizeof bytes, expected, sizeof expected)

static void
test_byte_stream (void)
{
  static const guint8 plain[] = { 0, 0, 0, 2, 0x67, 1, 0, 0, 0, 1, 0x65 };
  static const guint8 made[] = { 0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x65 };
  static const guint8 delimited[] = { 0, 0, 0, 2, 9, 0x10, 0, 0, 0, 1, 0x65 };
  static const guint8 made_delimited[] = { 0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1, 0x65 };
  static const guint8 cut[] = { 0, 0, 0, 1, 0x65, 0, 0, 0, 9, 0x65, 1 };
  static const guint8 made_cut[] = { 0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65 };
  static const guint8 hevc[] = { 0, 0, 0, 3, 0x26, 1, 2 }, made_hevc[] = { 0, 0, 0, 1, 0x26, 1, 2 };
  MuxFrames frames =
      make_frames (&carriage_ts, H264, "video/x-h264, stream-format=avc, codec_data=(buffer)01");
  const GstStructure *format = gst_caps_get_structure (frames.caps, 0);

  g_assert_cmpstr (gst_structure_get_string (format, "stream-format"), ==, "byte-stream");
  g_assert_false (gst_structure_has_field (format, "codec_data"));
  CHECK_MADE (&frames, plain, made);
  CHECK_MADE (&frames, delimited, made_delimited);
  CHECK_MADE (&frames, cut, made_cut);
  mux_frames_clear (&frames);

  frames = make_frames (&carriage_ts,
      "application/x-rtp, media=video, encoding-name=H265, clock-rate=90000",
      "video/x-h265, stream-format=hvc1, codec_data=(buffer)01");
  CHECK_MADE (&frames, hevc, made_hevc);
  mux_frames_clear (&frames);

  frames =
      make_frames (&carriage_flv, H264, "video/x-h264, stream-format=avc, codec_data=(buffer)01");
  g_assert_true (gst_structure_has_field (gst_caps_get_structure (frames.caps, 0), "codec_data"));
  CHECK_MADE (&frames, plain, plain);
  mux_frames_clear (&frames);
}

static gboolean
passes (MuxFrames *frames, gboolean lost, gboolean begins)
{
  GstBuffer *made = give (frames, (const guint8[]) { 0, 0, 0, 1, 0x41 }, 5, lost, begins);
  gboolean passed = made != NULL;

  gst_clear_buffer (&made);
  return passed;
}

static void
test_losses (void)
{
  MuxFrames video = make_frames (&carriage_ts, H264, "video/x-h264, stream-format=avc");
  MuxFrames sound = make_frames (&carriage_ts, AAC, "audio/mpeg, stream-format=raw");

  g_assert_false (passes (&video, FALSE, FALSE)); // a receiver cannot begin with it
  g_assert_true (passes (&video, TRUE, TRUE));
  g_assert_true (passes (&video, FALSE, FALSE));
  g_assert_false (passes (&video, TRUE, FALSE));
  g_assert_false (passes (&video, FALSE, FALSE));
  g_assert_true (passes (&video, FALSE, TRUE));
  g_assert_true (passes (&sound, FALSE, FALSE));
  g_assert_true (passes (&sound, TRUE, FALSE));
  mux_frames_clear (&video);
  mux_frames_clear (&sound);
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ts/a-join-point-begins-a-datagram-with-the-tables", test_joins);
  g_test_add_func ("/ts/noise-does-no-harm", test_noise);
  g_test_add_func ("/ts/times-of-decoding", test_decode_times);
  g_test_add_func ("/ts/times-of-another-encoder", test_decode_times_of_another_encoder);
  g_test_add_func ("/ts/tracks-are-left-out-with-a-reason", test_left_out);
  g_test_add_func ("/ts/frames-get-start-codes-and-a-delimiter", test_byte_stream);
  g_test_add_func ("/ts/after-a-loss-h264-waits", test_losses);
  return g_test_run ();
}
