// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/picture_wire.h"

void
picture_wire_put_job (WireMessage *message, guint width, const GstCaps *caps)
{
  wire_begin (message, WIRE_PICTURE);
  wire_put (message, width, 2);
  wire_put_track (message, caps);
}

gboolean
picture_wire_read_job (const guint8 *data, gsize len, guint *width, GstCaps **caps)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type;
  guint16 pixels;

  weir_bytes_u8 (&b, &type);
  weir_bytes_u16 (&b, &pixels);
  *width = pixels;
  *caps = wire_read_caps (&b);
  if (*caps && weir_bytes_left (&b) > 0)
    gst_clear_caps (caps);
  return *caps != NULL;
}

// Reports whether the bytes begin and end as a JPEG does (ITU-T T.81, B.1.1.3).
static gboolean
is_jpeg (const guint8 *data, gsize len)
{
  return len >= 4 && data[0] == 0xff && data[1] == 0xd8 && data[len - 2] == 0xff
         && data[len - 1] == 0xd9;
}

void
picture_wire_put_problem (WireMessage *message, const gchar *problem)
{
  g_autofree gchar *text = g_strndup (problem, WIRE_TEXT_MAX);

  message->len = 0;
  message->failed = FALSE;
  wire_put (message, PICTURE_WIRE_PROBLEM, 1);
  wire_put_text (message, text);
}

GBytes *
picture_wire_read_answer (const guint8 *data, gsize len, gchar **problem)
{
  WeirBytes b = weir_bytes (data, len);
  const guint8 *picture;
  gsize n = len > 0 ? len - 1 : 0;
  guint8 kind;

  *problem = NULL;
  weir_bytes_u8 (&b, &kind);
  if (kind == PICTURE_WIRE_PROBLEM)
    *problem = wire_dup_message (&b, WIRE_TEXT_MAX);
  else if (kind == PICTURE_WIRE_JPEG && weir_bytes_take (&b, n, &picture) && is_jpeg (picture, n))
    return g_bytes_new (picture, n);
  if (!*problem)
    *problem = g_strdup ("its decoder gave no picture");
  return NULL;
}
