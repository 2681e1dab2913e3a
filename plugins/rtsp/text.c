// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text.h"

static void
append_body (GstRTSPMessage *message, GByteArray *out)
{
  guint8 *data = NULL;
  guint size = 0;
  GstBuffer *buffer = NULL;
  GstMapInfo map;

  if (gst_rtsp_message_has_body_buffer (message)) {
    gst_rtsp_message_get_body_buffer (message, &buffer);
    if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
      g_byte_array_append (out, map.data, (guint) map.size);
      gst_buffer_unmap (buffer, &map);
    }
  } else if (gst_rtsp_message_get_body (message, &data, &size) == GST_RTSP_OK && size > 0)
    g_byte_array_append (out, data, size);
}

static gsize
body_size (GstRTSPMessage *message)
{
  GstBuffer *buffer = NULL;
  guint8 *data = NULL;
  guint size = 0;

  if (gst_rtsp_message_has_body_buffer (message)) {
    gst_rtsp_message_get_body_buffer (message, &buffer);
    return gst_buffer_get_size (buffer);
  }
  gst_rtsp_message_get_body (message, &data, &size);
  return size;
}

static gchar *
date (void)
{
  GDateTime *now = g_date_time_new_now_utc ();
  static const gchar *const days[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun" };
  static const gchar *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
    "Sep", "Oct", "Nov", "Dec" };
  // Without strftime(), whose names of days and months depend on the locale.
  gchar *text = g_strdup_printf ("%s, %02d %s %d %02d:%02d:%02d GMT",
      days[g_date_time_get_day_of_week (now) - 1], g_date_time_get_day_of_month (now),
      months[g_date_time_get_month (now) - 1], g_date_time_get_year (now),
      g_date_time_get_hour (now), g_date_time_get_minute (now), g_date_time_get_second (now));

  g_date_time_unref (now);
  return text;
}

static void
append_first_line (GstRTSPMessage *message, guint *cseq, GString *text)
{
  GstRTSPMethod method;
  GstRTSPStatusCode code;
  GstRTSPVersion version;
  const gchar *words;

  if (gst_rtsp_message_get_type (message) == GST_RTSP_MESSAGE_REQUEST) {
    gst_rtsp_message_parse_request (message, &method, &words, &version);
    g_string_append_printf (text, "%s %s RTSP/%s\r\nCSeq: %u\r\n", gst_rtsp_method_as_text (method),
        words, gst_rtsp_version_as_text (version), ++*cseq);
  } else {
    gst_rtsp_message_parse_response (message, &code, &words, &version);
    g_string_append_printf (
        text, "RTSP/%s %d %s\r\n", gst_rtsp_version_as_text (version), code, words);
  }
}

static void
append_text (GstRTSPMessage *message, guint *cseq, GByteArray *out)
{
  GString *text = g_string_new (NULL);
  gsize size = body_size (message);

  append_first_line (message, cseq, text);
  gst_rtsp_message_remove_header (message, GST_RTSP_HDR_DATE, -1);
  gst_rtsp_message_take_header (message, GST_RTSP_HDR_DATE, date ());
  gst_rtsp_message_remove_header (message, GST_RTSP_HDR_CONTENT_LENGTH, -1);
  gst_rtsp_message_append_headers (message, text);
  if (size > 0)
    g_string_append_printf (text, "Content-Length: %" G_GSIZE_FORMAT "\r\n", size);
  g_string_append (text, "\r\n");
  g_byte_array_append (out, (const guint8 *) text->str, (guint) text->len);
  g_string_free (text, TRUE);
  append_body (message, out);
}

static gboolean
append_data (GstRTSPMessage *message, GByteArray *out)
{
  guint8 channel;
  gsize size = body_size (message);
  guint8 header[4] = { '$', 0, (guint8) (size >> 8), (guint8) size };

  if (size > G_MAXUINT16 || gst_rtsp_message_parse_data (message, &channel) != GST_RTSP_OK)
    return FALSE;
  header[1] = channel;
  g_byte_array_append (out, header, sizeof header);
  append_body (message, out);
  return TRUE;
}

gboolean
weir_rtsp_text (GstRTSPMessage *message, guint *cseq, GByteArray *out)
{
  switch (gst_rtsp_message_get_type (message)) {
    case GST_RTSP_MESSAGE_REQUEST:
    case GST_RTSP_MESSAGE_RESPONSE:
      append_text (message, cseq, out);
      return TRUE;
    case GST_RTSP_MESSAGE_DATA:
      return append_data (message, out);
    default:
      return FALSE;
  }
}
