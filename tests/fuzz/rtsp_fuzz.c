// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of an RTSP connection to an upstream, and the readers of its challenges and
// URLs; and the reader of answers of rtsp-load. The first byte of the input is the size of the
// pieces in which the other bytes arrive; 0: in one piece.

#include "app.h"
#include "rtsp_text.h"
#include "sources/rtsp_auth.h"
#include "sources/rtsp_control.h"
#include "sources/rtsp_parser.h"

#define BASE "rtsp://192.0.2.1/s?x"

typedef struct {
  gsize bytes; // of packets and bodies
  guint messages;
} Seen;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static void
use_value (RtspAuth *auth, const gchar *value)
{
  RtspMessage challenge = { .status = 401, .n_headers = 1 };
  gchar *url = rtsp_control_join (BASE, value), *header;

  challenge.headers[0] = (RtspHeader) { "WWW-Authenticate", value };
  if (rtsp_auth_take (auth, &challenge, 1)) {
    header = rtsp_auth_dup_header (auth, "PLAY", BASE);
    require (header && !strpbrk (header, "\r\n"));
    g_free (header);
  }
  require (!rtsp_control_is_sound (url) || !strpbrk (url, " \r\n"));
  g_free (url);
}

static void
on_message (gpointer data, const RtspMessage *message)
{
  RtspAuth auth = { .user = "u", .password = "p" };
  Seen *seen = data;

  require ((message->method != NULL) == (message->uri != NULL));
  require (message->method || (message->status >= 100 && message->status <= 999));
  require (message->n_headers <= RTSP_HEADERS_MAX && message->body[message->body_len] == '\0');
  for (guint i = 0; i < message->n_headers; i++) {
    require (*message->headers[i].name && !strpbrk (message->headers[i].value, "\r\n"));
    use_value (&auth, message->headers[i].value);
  }
  rtsp_auth_clear (&auth);
  seen->bytes += message->body_len;
  seen->messages++;
}

static void
on_packet (gpointer data, guint8 channel, guint8 *bytes, gsize len)
{
  Seen *seen = data;

  memset (bytes, channel, len);
  seen->bytes += len;
}

static Seen
parse (const uint8_t *data, gsize size, gsize piece, gboolean expects)
{
  static const RtspParserOps ops = { on_message, on_packet };
  const gchar *wrong = NULL;
  RtspParser parser;
  Seen seen = { 0 };

  rtsp_parser_init (&parser, &ops, &seen);
  for (guint8 channel = 0; expects && channel < 2; channel++)
    rtsp_parser_expect (&parser, channel);
  for (gsize at = 0; at < size && !wrong; at += piece) {
    gsize n = MIN (piece, size - at);
    guint8 *buffer = g_malloc (parser.n_kept + n + 1);
    gsize kept = rtsp_parser_restore (&parser, buffer);

    memcpy (buffer + kept, data + at, n);
    wrong = rtsp_parser_take (&parser, buffer, kept + n);
    require (parser.n_kept <= RTSP_KEPT_MAX);
    g_free (buffer);
  }
  rtsp_parser_clear (&parser);
  return seen;
}

// The same bytes are the same messages, in whatever pieces they arrive.
static void
parse_in_pieces (const uint8_t *data, gsize size, gsize piece)
{
  for (gboolean expects = FALSE; expects <= TRUE; expects++) {
    Seen whole = parse (data, size, size, expects);
    Seen pieces = parse (data, size, piece ? piece : size, expects);

    require (whole.bytes == pieces.bytes && whole.messages == pieces.messages);
  }
}

static void
read_answers (const uint8_t *data, gsize size)
{
  GstRTSPMessage *answer = NULL;
  gsize used = 0;

  while (size > 0) {
    RtspText read = rtsp_text_read (data, size, &answer, &used);

    if (read == RTSP_TEXT_PARTIAL || read == RTSP_TEXT_BAD)
      return;
    require (used > 0 && used <= size);
    if (read == RTSP_TEXT_ANSWER) {
      gchar *control = rtsp_text_control (BASE, rtsp_text_header (answer, GST_RTSP_HDR_SESSION));

      g_free (control);
      gst_rtsp_message_free (answer);
    }
    data += used;
    size -= used;
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size < 2)
    return 0;
  parse_in_pieces (data + 1, size - 1, data[0]);
  read_answers (data + 1, size - 1);
  return 0;
}
