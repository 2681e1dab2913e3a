// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "rtsp_text.h"

#include <stdio.h>
#include <string.h>

static const guint8 *
find_end (const guint8 *data, gsize len)
{
  const guint8 *end = memmem (data, MIN (len, RTSP_TEXT_MAX), "\r\n\r\n", 4);

  return end ? end + 4 : NULL;
}

static void
add_headers (GstRTSPMessage *message, gchar **lines)
{
  for (; *lines; lines++) {
    gchar *colon = strchr (*lines, ':');

    if (!colon)
      continue;
    *colon = '\0';
    gst_rtsp_message_add_header_by_name (message, g_strstrip (*lines), g_strstrip (colon + 1));
  }
}

// Returns the start line and the headers as a message, or NULL if they are not RTSP. The message is
// made as a response, even of a request.
static GstRTSPMessage *
read_head (const guint8 *data, gsize len, RtspText *kind)
{
  gchar *text = g_strndup ((const gchar *) data, len);
  gchar **lines = g_strsplit (text, "\r\n", -1);
  const gchar *first = lines[0] ? lines[0] : "";
  guint status = 0;
  GstRTSPMessage *message = NULL;

  *kind = RTSP_TEXT_BAD;
  if (sscanf (first, "RTSP/%*u.%*u %3u", &status) == 1 && status >= 100)
    *kind = RTSP_TEXT_ANSWER;
  else if (g_str_has_suffix (first, " RTSP/1.0"))
    *kind = RTSP_TEXT_REQUEST;
  if (*kind != RTSP_TEXT_BAD) {
    gst_rtsp_message_new_response (&message, status, NULL, NULL);
    add_headers (message, lines + 1);
  }
  g_strfreev (lines);
  g_free (text);
  return message;
}

static gboolean
body_length (const GstRTSPMessage *message, gsize *out)
{
  const gchar *text = rtsp_text_header (message, GST_RTSP_HDR_CONTENT_LENGTH);
  guint64 value = 0;

  if (text && !g_ascii_string_to_unsigned (text, 10, 0, RTSP_TEXT_MAX, &value, NULL))
    return FALSE;
  *out = value;
  return TRUE;
}

RtspText
rtsp_text_read (const guint8 *data, gsize len, GstRTSPMessage **out, gsize *used)
{
  const guint8 *body = find_end (data, len);
  GstRTSPMessage *message;
  RtspText kind;
  gsize size;

  if (!body)
    return len < RTSP_TEXT_MAX ? RTSP_TEXT_PARTIAL : RTSP_TEXT_BAD;
  message = read_head (data, (gsize) (body - data) - 4, &kind);
  if (!message)
    return RTSP_TEXT_BAD;
  if (!body_length (message, &size))
    kind = RTSP_TEXT_BAD;
  else if (size > len - (gsize) (body - data))
    kind = RTSP_TEXT_PARTIAL;
  else
    *used = (gsize) (body - data) + size;
  if (kind == RTSP_TEXT_ANSWER) {
    gst_rtsp_message_set_body (message, body, (guint) size);
    *out = message;
  } else {
    gst_rtsp_message_free (message);
  }
  return kind;
}

void
rtsp_text_request (
    GString *out, const gchar *method, const gchar *uri, guint cseq, const gchar *headers)
{
  g_string_append_printf (out, "%s %s RTSP/1.0\r\nCSeq: %u\r\nUser-Agent: rtsp-load\r\n%s\r\n",
      method, uri, cseq, headers ? headers : "");
}

const gchar *
rtsp_text_header (const GstRTSPMessage *message, GstRTSPHeaderField field)
{
  gchar *value = NULL;

  gst_rtsp_message_get_header (message, field, &value, 0);
  return value;
}

gchar *
rtsp_text_control (const gchar *base, const gchar *control)
{
  if (!control || g_str_equal (control, "") || g_str_equal (control, "*"))
    return g_strdup (base);
  if (g_str_has_prefix (control, "rtsp://"))
    return g_strdup (control);
  return g_strconcat (base, g_str_has_suffix (base, "/") ? "" : "/", control, NULL);
}
