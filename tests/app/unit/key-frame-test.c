// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/key_frame.h"

#include <string.h>

#define SPS 0x67
#define IDR 0x65
#define SLICE 0x41

typedef struct {
  guint8 unit; // of H.264; 0: no packet
  guint16 seq;
  guint32 timestamp;
} Sent;

// Returns the sequence numbers in a frame, such as "1,2".
static gchar *
dup_numbers (GBytes *frame)
{
  GString *text = g_string_new (NULL);
  gsize size;
  const guint8 *data = g_bytes_get_data (frame, &size);

  for (gsize at = 0; at < size;) {
    const gsize len = (gsize) data[at] << 8 | data[at + 1];

    g_assert_cmpuint (len, ==, 20);
    g_string_append_printf (
        text, "%s%u", text->len ? "," : "", data[at + 2 + 2] << 8 | data[at + 2 + 3]);
    at += 2 + len;
  }
  return g_string_free (text, FALSE);
}

static GBytes *
take (KeyFrame *self, const Sent *sent, gsize len)
{
  guint8 packet[20] = { 0x80, 96, (guint8) (sent->seq >> 8), (guint8) sent->seq,
    (guint8) (sent->timestamp >> 24), (guint8) (sent->timestamp >> 16),
    (guint8) (sent->timestamp >> 8), (guint8) sent->timestamp, 0, 0, 0, 7, sent->unit, 0x80 };

  return key_frame_take (self, packet, len);
}

// Reports the frames that packets of H.264 make, such as "1,2 5".
static gchar *
dup_frames (const Sent *sent)
{
  GString *text = g_string_new (NULL);
  KeyFrame self;

  key_frame_init (&self, WEIR_CODEC_H264);
  for (; sent->unit; sent++) {
    g_autoptr (GBytes) frame = take (&self, sent, 20);
    g_autofree gchar *numbers = frame ? dup_numbers (frame) : NULL;

    if (numbers)
      g_string_append_printf (text, "%s%s", text->len ? " " : "", numbers);
  }
  key_frame_clear (&self);
  return g_string_free (text, FALSE);
}

static void
only_keyframes_are_collected (void)
{
  static const struct {
    const gchar *frames;
    Sent sent[8];
  } cases[] = {
    { "1,2", { { SPS, 1, 9 }, { IDR, 2, 9 }, { SLICE, 3, 19 }, { SLICE, 4, 29 } } },
    { "3,4 5",
        { { SLICE, 2, 9 }, { IDR, 3, 19 }, { IDR, 4, 19 }, { IDR, 5, 29 }, { SLICE, 6, 39 } } },
    { "65535,0", { { IDR, 65535, 0xfffffff0 }, { IDR, 0, 0xfffffff0 }, { SLICE, 1, 0 } } },
    { "", { { SPS, 1, 9 }, { SLICE, 2, 19 } } },                   // no keyframe follows
    { "", { { IDR, 1, 9 }, { IDR, 3, 9 }, { SLICE, 4, 19 } } },    // a packet inside is lost
    { "", { { IDR, 1, 9 }, { SLICE, 3, 19 }, { SLICE, 4, 29 } } }, // its last packet may be lost
    { "4",
        { { IDR, 1, 9 }, { IDR, 3, 9 }, { IDR, 4, 19 }, { SLICE, 5, 29 } } }, // the next is whole
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *frames = dup_frames (cases[i].sent);

    g_assert_cmpstr (frames, ==, cases[i].frames);
  }
}

static void
each_frame_of_jpeg_is_a_keyframe (void)
{
  guint8 packet[24] = { 0x80, 26, 0, 1, 0, 0, 0, 9 };
  KeyFrame self;
  GBytes *frame;

  key_frame_init (&self, WEIR_CODEC_OPAQUE);
  packet[14] = 1; // an offset: the beginning of this frame was lost
  g_assert_null (key_frame_take (&self, packet, sizeof packet));
  packet[3] = 2, packet[7] = 10, packet[14] = 0;
  g_assert_null (key_frame_take (&self, packet, sizeof packet));
  packet[3] = 3, packet[7] = 11;
  frame = key_frame_take (&self, packet, sizeof packet);
  g_assert_nonnull (frame);
  g_assert_cmpuint (g_bytes_get_size (frame), ==, 2 + sizeof packet);
  g_bytes_unref (frame);
  key_frame_clear (&self);
}

static void
malformed_packets_are_ignored (void)
{
  const Sent key = { IDR, 1, 9 }, next = { SLICE, 2, 19 };
  KeyFrame self;
  GBytes *frame;

  key_frame_init (&self, WEIR_CODEC_H264);
  for (gsize len = 0; len < 12; len++)
    g_assert_null (take (&self, &next, len));
  g_assert_null (take (&self, &key, 20));
  g_assert_null (take (&self, &next, 11));
  frame = take (&self, &next, 20);
  g_assert_nonnull (frame);
  g_bytes_unref (frame);
  key_frame_clear (&self);
}

static void
a_frame_without_end_is_dropped (void)
{
  Sent sent = { IDR, 1, 9 };
  g_autofree guint8 *big = g_malloc0 (65000);
  GBytes *frame;
  KeyFrame self;

  big[0] = 0x80, big[7] = 9, big[12] = IDR, big[13] = 0x80;
  key_frame_init (&self, WEIR_CODEC_H264);
  for (guint16 seq = 1; seq < 200; seq++) {
    big[3] = (guint8) seq;
    g_assert_null (key_frame_take (&self, big, 65000));
    g_assert_true (!self.bytes || self.bytes->len <= KEY_FRAME_BYTES_MAX);
  }
  sent.seq = 200, sent.timestamp = 19, sent.unit = SLICE;
  frame = take (&self, &sent, 20);
  g_assert_null (frame);
  key_frame_clear (&self);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/key-frame/only-keyframes-are-collected", only_keyframes_are_collected);
  g_test_add_func ("/key-frame/each-frame-of-jpeg-is-a-keyframe", each_frame_of_jpeg_is_a_keyframe);
  g_test_add_func ("/key-frame/malformed-packets-are-ignored", malformed_packets_are_ignored);
  g_test_add_func ("/key-frame/a-frame-without-end-is-dropped", a_frame_without_end_is_dropped);
  return g_test_run ();
}
