// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of messages between the proxy and the worker process that has libsrt. The
// input consists of messages, each after two bytes of length; the upper two bits of the length say
// which reader gets the message.

#include "app.h"
#include "isolate/srt_wire.h"

static void
on_handshake (gpointer owner, guint32 id, GInetSocketAddress *from, const gchar *stream_id)
{
  gchar *peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));

  require (strlen (stream_id) <= SRT_WIRE_STREAM_ID && *peer);
  g_free (peer);
}

static void
on_opened (gpointer owner, guint32 id)
{
}

static void
on_refused (gpointer owner, guint32 id, SrtProblem problem)
{
  require (problem < SRT_PROBLEMS);
}

static void
on_ended (gpointer owner, guint32 id, SrtEnd end)
{
  require (end < SRT_ENDS);
}

static void
on_sampled (gpointer owner, const SrtSample *sample)
{
}

static void
read_job (const uint8_t *data, size_t len)
{
  gchar *passphrase;
  guint32 latency;

  if (!srt_wire_read_job (data, len, &latency, &passphrase))
    require (!passphrase);
  require (!passphrase || (*passphrase && strlen (passphrase) <= SRT_WIRE_SECRET));
  g_free (passphrase);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const SrtWireHandler handler = { on_handshake, on_opened, on_refused, on_ended,
    on_sampled };

  while (size >= 2) {
    size_t len = (size_t) (data[0] & 0x3f) << 8 | data[1];
    uint8_t reader = data[0] >> 6;
    SrtCommand command;
    guint16 code;
    guint32 id;

    data += 2;
    size -= 2;
    len = len < size ? len : size;
    if (reader == 0)
      srt_wire_read (data, len, &handler, NULL);
    else if (reader == 1)
      require (!srt_wire_read_command (data, len, &command, &id) || command < SRT_COMMANDS);
    else if (reader == 2)
      srt_wire_read_verdict (data, len, &id, &code);
    else
      read_job (data, len);
    data += len;
    size -= len;
  }
  return 0;
}
