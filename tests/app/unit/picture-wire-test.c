// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/picture_wire.h"

#include <string.h>

static void
a_job_arrives_as_it_was_put (void)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  g_autoptr (GstCaps) caps = gst_caps_from_string (
      "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96");
  GstCaps *read;
  guint width;

  picture_wire_put_job (message, 640, caps);
  g_assert_true (picture_wire_read_job (message->data, message->len, &width, &read));
  g_assert_cmpuint (width, ==, 640);
  g_assert_cmpstr (
      gst_structure_get_string (gst_caps_get_structure (read, 0), "encoding-name"), ==, "H264");
  gst_caps_unref (read);
  for (gsize len = 0; len < message->len; len++)
    g_assert_false (picture_wire_read_job (message->data, len, &width, &read));
  message->data[message->len] = 0;
  g_assert_false (picture_wire_read_job (message->data, message->len + 1, &width, &read));
}

static void
answers_are_read_as_hostile (void)
{
  static const guint8 picture[] = { PICTURE_WIRE_JPEG, 0xff, 0xd8, 1, 2, 0xff, 0xd9 };
  static const struct {
    const gchar *bytes, *problem;
    gsize len;
  } wrong[] = {
    { "", "its decoder gave no picture", 0 },
    { "\x01", "its decoder gave no picture", 1 },
    { "\x01\xff\xd8\xff", "its decoder gave no picture", 4 },
    { "\x01<svg onload=x>", "its decoder gave no picture", 15 },
    { "\x02", "its decoder gave no picture", 1 },
    { "\x02\x00\x09short", "its decoder gave no picture", 8 },
    { "\x02\x00\x03"
      "a\nb",
        "a?b", 6 },
    { "\x03\xff\xd8\xff\xd9", "its decoder gave no picture", 5 },
  };
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  gchar *problem;
  GBytes *jpeg = picture_wire_read_answer (picture, sizeof picture, &problem);

  g_assert_nonnull (jpeg);
  g_assert_cmpmem (
      g_bytes_get_data (jpeg, NULL), g_bytes_get_size (jpeg), picture + 1, sizeof picture - 1);
  g_bytes_unref (jpeg);
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_assert_null (
        picture_wire_read_answer ((const guint8 *) wrong[i].bytes, wrong[i].len, &problem));
    g_assert_cmpstr (problem, ==, wrong[i].problem);
    g_free (problem);
  }
  picture_wire_put_problem (message, "there is no decoder");
  g_assert_null (picture_wire_read_answer (message->data, message->len, &problem));
  g_assert_cmpstr (problem, ==, "there is no decoder");
  g_free (problem);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/picture-wire/a-job-arrives-as-it-was-put", a_job_arrives_as_it_was_put);
  g_test_add_func ("/picture-wire/answers-are-read-as-hostile", answers_are_read_as_hostile);
  return g_test_run ();
}
