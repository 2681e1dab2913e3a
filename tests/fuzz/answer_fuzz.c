// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the checks of what an upstream sends before rtspsrc reads it, and the writer of messages.
// The input is what the upstream sends.

#include <fcntl.h>
#include <gio/gio.h>
#include <gst/rtsp/gstrtsp.h>
#include <gst/rtsp/gstrtspconnection.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "rtsp/text.h"
#include "sources/rtsp_parser.h"

#define INPUT_MAX_BYTES (32 * 1024)

// The library takes the address of a socket pair for an IP address, and complains.
static void
ignore (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
}

// Of LeakSanitizer; absent in other builds.
void __lsan_disable (void) __attribute__ ((weak));

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  g_log_set_default_handler (ignore, NULL);
  // The library's reader of challenges leaks some that are malformed.
  if (__lsan_disable)
    __lsan_disable ();
  return 0;
}

// rtspsrc reads the parameters of a digest without a check, and continues with any transport that
// can be parsed.
static void
check_answer (GstRTSPMessage *message)
{
  GstRTSPTransport *transport;
  gchar *text;

  if (message->type != GST_RTSP_MESSAGE_RESPONSE)
    return;
  for (gint i = 0;
      gst_rtsp_message_get_header (message, GST_RTSP_HDR_WWW_AUTHENTICATE, &text, i) == GST_RTSP_OK;
      i++) {
    GstRTSPAuthCredential **credentials =
        gst_rtsp_message_parse_auth_credentials (message, GST_RTSP_HDR_WWW_AUTHENTICATE);

    for (GstRTSPAuthCredential **c = credentials; c && *c; c++)
      require ((*c)->scheme != GST_RTSP_AUTH_DIGEST || (*c)->params);
    gst_rtsp_auth_credentials_free (credentials);
  }
  if (gst_rtsp_message_get_header (message, GST_RTSP_HDR_TRANSPORT, &text, 0) != GST_RTSP_OK)
    return;
  gst_rtsp_transport_new (&transport);
  require (gst_rtsp_transport_parse (text, transport) == GST_RTSP_OK
           && transport->trans == GST_RTSP_TRANS_RTP);
  gst_rtsp_transport_free (transport);
}

static void
on_message (gpointer data, const RtspMessage *message)
{
  ++*(guint *) data;
}

static void
on_packet (gpointer data, guint8 channel, guint8 *bytes, gsize len)
{
  ++*(guint *) data;
}

// Interleaved data must be written as one packet.
static void
write_message (GstRTSPMessage *message)
{
  static const RtspParserOps ops = { on_message, on_packet };
  GByteArray *out = g_byte_array_new ();
  guint cseq = 0, n = 0;
  RtspParser parser;

  if (weir_rtsp_text (message, &cseq, out)) {
    require (out->len > 0);
    g_byte_array_append (out, (const guint8 *) "", 1);
    rtsp_parser_init (&parser, &ops, &n);
    rtsp_parser_take (&parser, out->data, out->len - 1);
    require (message->type != GST_RTSP_MESSAGE_DATA || (n == 1 && parser.n_kept == 0));
    rtsp_parser_clear (&parser);
  }
  g_byte_array_unref (out);
}

static void
receive (GSocket *socket)
{
  GstRTSPConnection *connection = NULL;
  GstRTSPMessage message = { 0 };

  // GStreamer 1.22 asks a local socket for its IP address.
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  require (gst_rtsp_connection_create_from_socket (socket, "192.0.2.1", 554, NULL, &connection)
           == GST_RTSP_OK);
  for (guint n = 0; n < 64; n++) {
    gst_rtsp_message_init (&message);
    if (gst_rtsp_connection_receive_usec (connection, &message, G_USEC_PER_SEC) != GST_RTSP_OK)
      break;
    check_answer (&message);
    write_message (&message);
    gst_rtsp_message_unset (&message);
  }
  gst_rtsp_message_unset (&message);
  gst_rtsp_connection_free (connection);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  int fds[2];
  GSocket *socket;

  if (size == 0 || size > INPUT_MAX_BYTES)
    return 0;
  require (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  require (write (fds[1], data, size) == (gssize) size);
  shutdown (fds[1], SHUT_WR);
  socket = g_socket_new_from_fd (fds[0], NULL);
  require (socket != NULL);
  receive (socket);
  g_object_unref (socket);
  close (fds[1]);
  return 0;
}
