// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtsp_text.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

// Reads from memory of exactly the text's size, so that a sanitizer sees a read past its end.
static RtspText
read_exact (const char *text, size_t len, GstRTSPMessage **answer, gsize *used)
{
  guint8 *exact = malloc (len ? len : 1);
  RtspText ret;

  memcpy (exact, text, len);
  ret = rtsp_text_read (exact, len, answer, used);
  free (exact);
  return ret;
}

static void
an_answer_is_read_when_it_is_complete (void)
{
  static const char text[] =
      "RTSP/1.0 200 OK\r\nCSeq: 7\r\nX-Odd\r\n: odd\r\nsession:  abc;timeout=5 \r\n"
      "Content-Length: 4\r\n\r\nbodyRTSP";
  size_t whole = strlen (text) - 4;
  GstRTSPMessage *answer = NULL;
  GstRTSPStatusCode status;
  gsize used = 0;
  guint8 *body;
  guint len;

  for (size_t cut = 0; cut < whole; cut++)
    CHECK_INT (read_exact (text, cut, &answer, &used), RTSP_TEXT_PARTIAL);
  for (size_t more = 0; more <= 4; more++) {
    CHECK_INT (read_exact (text, whole + more, &answer, &used), RTSP_TEXT_ANSWER);
    CHECK_INT (used, whole);
    gst_rtsp_message_parse_response (answer, &status, NULL, NULL);
    CHECK_INT (status, 200);
    CHECK (g_strcmp0 (rtsp_text_header (answer, GST_RTSP_HDR_SESSION), "abc;timeout=5") == 0);
    CHECK (g_strcmp0 (rtsp_text_header (answer, GST_RTSP_HDR_CSEQ), "7") == 0);
    CHECK (rtsp_text_header (answer, GST_RTSP_HDR_TRANSPORT) == NULL);
    gst_rtsp_message_get_body (answer, &body, &len);
    CHECK (len == 4 && !memcmp (body, "body", 4));
    gst_rtsp_message_free (answer);
  }
}

static void
messages_are_classified (void)
{
  static const struct {
    const char *text;
    size_t len; // 0: to the end
    RtspText kind;
  } cases[] = {
    { "RTSP/1.0 401 \r\n\r\n", 0, RTSP_TEXT_ANSWER },
    { "RTSP/2.0 200 OK\r\n\r\n", 0, RTSP_TEXT_ANSWER },
    { "OPTIONS rtsp://x RTSP/1.0\r\nCSeq: 1\r\n\r\n", 0, RTSP_TEXT_REQUEST },
    { "OPTIONS * RTSP/1.0\r\nContent-Length: 2\r\n\r\nx", 0, RTSP_TEXT_PARTIAL },
    { "HTTP/1.1 200 OK\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "RTSP/1.0 99 OK\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "RTSP/1.0 OK\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "\0RTSP/1.0 200 OK\r\n\r\n", 20, RTSP_TEXT_BAD },
    { "RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "RTSP/1.0 200 OK\r\nContent-Length: 4x\r\n\r\nbody", 0, RTSP_TEXT_BAD },
    { "RTSP/1.0 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "RTSP/1.0 200 OK\r\nContent-Length: 262145\r\n\r\n", 0, RTSP_TEXT_BAD },
    { "RTSP/1.0 200 OK\r\nContent-Length: 262144\r\n\r\n", 0, RTSP_TEXT_PARTIAL },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    size_t len = cases[c].len ? cases[c].len : strlen (cases[c].text);
    GstRTSPMessage *answer = NULL;
    gsize used = 0;
    RtspText got = read_exact (cases[c].text, len, &answer, &used);

    CHECK_INT (got, cases[c].kind);
    if (got == RTSP_TEXT_ANSWER)
      gst_rtsp_message_free (answer);
  }
}

static void
an_endless_head_is_refused (void)
{
  GstRTSPMessage *answer = NULL;
  char *text = malloc (RTSP_TEXT_MAX);
  gsize used = 0;

  memset (text, 'x', RTSP_TEXT_MAX);
  CHECK_INT (read_exact (text, RTSP_TEXT_MAX - 1, &answer, &used), RTSP_TEXT_PARTIAL);
  CHECK_INT (read_exact (text, RTSP_TEXT_MAX, &answer, &used), RTSP_TEXT_BAD);
  free (text);
}

static void
requests_are_written (void)
{
  GString *out = g_string_new ("before ");

  rtsp_text_request (out, "PLAY", "rtsp://x/y", 3, "Range: npt=0-\r\n");
  CHECK (g_str_has_prefix (out->str, "before PLAY rtsp://x/y RTSP/1.0\r\nCSeq: 3\r\n"));
  CHECK (g_str_has_suffix (out->str, "\r\nRange: npt=0-\r\n\r\n"));
  g_string_free (out, TRUE);
}

static void
control_urls_are_resolved (void)
{
  static const char *const cases[][3] = {
    { "rtsp://x/a", NULL, "rtsp://x/a" },
    { "rtsp://x/a", "*", "rtsp://x/a" },
    { "rtsp://x/a", "", "rtsp://x/a" },
    { "rtsp://x/a", "track0", "rtsp://x/a/track0" },
    { "rtsp://x/a/", "track0", "rtsp://x/a/track0" },
    { "rtsp://x/a", "rtsp://y/b", "rtsp://y/b" },
  };

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    gchar *uri = rtsp_text_control (cases[c][0], cases[c][1]);

    CHECK (g_strcmp0 (uri, cases[c][2]) == 0);
    g_free (uri);
  }
}

int
main (void)
{
  RUN (an_answer_is_read_when_it_is_complete);
  RUN (messages_are_classified);
  RUN (an_endless_head_is_refused);
  RUN (requests_are_written);
  RUN (control_urls_are_resolved);
  return tap_done ();
}
